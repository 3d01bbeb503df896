// The sets of a cluster, its tablets and what has become of them.
'use strict';

import {make, rows, soft} from './dom.js';
import {ask} from './server.js';
import {count, field, shown, size, time} from './text.js';

const TABLETS = 200;  // of more the first

const bound = (key) => (key === null || key === '' ? '' : shown(key));
const figure = (value, written) => (value === null || value === undefined ? '' : written(value));

async function sets() {
  const lines = (await ask('sets')).map((set) => [String(field(set, 'set')), field(set, 'state'), shown(field(set, 'leader')),
    count(field(set, 'members').length), count(field(set, 'tablets')), size(field(set, 'bytes'))]);
  return rows(['set', 'state', 'leader', 'nodes', 'tablets', 'memory'], lines, ['n', '', 'key', 'n', 'n', 'n'], 'sets');
}

async function tablets() {
  const [version, list] = await ask('tablets', {count: TABLETS + 1});
  const lines = list.slice(0, TABLETS).map((tablet) => [shown(field(tablet, 'table')), bound(field(tablet, 'start')),
    bound(field(tablet, 'end')), String(field(tablet, 'set')), field(tablet, 'state'), figure(field(tablet, 'rows'), count),
    figure(field(tablet, 'bytes'), size)]);
  return [soft('map version ' + version + (list.length > TABLETS ? ', the first ' + TABLETS + ' of more' : '')),
    rows(['table', 'from', 'before', 'set', 'state', 'rows', 'memory'], lines, ['key', 'key', 'key', 'n', '', 'n', 'n'], 'tablets')];
}

async function events() {
  const lines = (await ask('events')).map(([micros, what, why]) => [time(Number(micros) * 1000), shown(what), shown(why)]);
  return rows(['time', 'what', 'why'], lines, ['', 'value', ''], 'events');
}

// Of a node that is part of a cluster. What somebody may not see is said to be so.
export async function clusterParts() {
  const made = [];
  for (const [title, action] of [['Sets', sets], ['Tablets', tablets], ['Events', events]]) {
    made.push(make('h2', {}, title));
    try {
      made.push(...[await action()].flat());
    } catch (error) {
      if (error.status !== 400 && error.status !== 403) throw error;
      made.push(soft(error.message));
    }
  }
  return made;
}
