// The list of tables beside every page, and what stands above each table's pages.
'use strict';

import {link} from './address.js';
import {byId, make, soft} from './dom.js';
import {mark} from './frame.js';
import {ask, NotLoggedIn} from './server.js';
import {pack, shown} from './text.js';

const SHOWN = 300;  // of the list; whoever has more finds them by their names

let names = [];  // [keyspace, table]

async function tablesOf(keyspace) {
  try {
    return (await ask('tables', {keyspace64: pack(keyspace)}, null)).map((name) => [shown(keyspace), shown(name)]);
  } catch (error) {
    if (error instanceof NotLoggedIn) throw error;
    return [];
  }
}

export async function listTables() {
  let keyspaces = ['0'];
  try {
    keyspaces = await ask('keyspaces', {}, null);
  } catch (error) {
    if (error instanceof NotLoggedIn) throw error;
  }
  const found = [];
  for (const keyspace of keyspaces) found.push(...await tablesOf(keyspace));
  names = found;
  showList();
}

export const tableNames = () => names.map(([keyspace, name]) => keyspace + '/' + name);

export function showList() {
  const wanted = byId('find').value.toLowerCase();
  const fitting = names.filter(([keyspace, name]) => (keyspace + '/' + name).toLowerCase().includes(wanted));
  const lists = [];
  let last = null;
  for (const [keyspace, name] of fitting.slice(0, SHOWN)) {
    if (keyspace !== last) lists.push(make('h3', {}, 'keyspace ' + keyspace), make('ul', {}));
    last = keyspace;
    lists[lists.length - 1].append(make('li', {},
      make('a', {href: link(['table', pack(keyspace + '/' + name)]), title: name}, name)));
  }
  if (fitting.length > SHOWN) lists.push(soft('and ' + (fitting.length - SHOWN) + ' more'));
  if (names.length === 0) lists.push(soft('none, or none that you may see'));
  else if (fitting.length === 0) lists.push(soft('none of that name'));
  byId('tables').replaceChildren(...lists);
  mark();
}

// A read without its place in it.
function asked(query) {
  const kept = new URLSearchParams(query);
  for (const name of ['at', 'page', 'analyze', 'metric', 'hours', 'ranges']) kept.delete(name);
  return kept;
}

export function tabs(table, tab, query) {
  const to = (name, path, here) =>
    make('a', {href: link(path, here === 'explain' || here === 'rows' ? asked(query) : undefined),
      'aria-current': here === tab && 'page'}, name);
  const packed = pack(table);
  return make('nav', {class: 'tabs', 'aria-label': 'of this table'}, to('Rows', ['table', packed], 'rows'),
    to('Explain', ['table', packed, 'explain'], 'explain'), to('Schema', ['table', packed, 'schema'], 'schema'), to('Heat', ['heat', packed], 'heat'));
}
