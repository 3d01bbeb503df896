// What there is of a kind in each keyspace.
'use strict';

import {ask} from './server.js';
import {pack} from './text.js';

// Pairs: keyspace, name. `question`: feeds, snapshots.
export async function ofKeyspaces(question) {
  const found = [];
  for (const keyspace of await ask('keyspaces')) {
    for (const name of await ask(question, {keyspace64: pack(keyspace)})) found.push([keyspace, name]);
  }
  return found;
}
