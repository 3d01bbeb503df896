// What a store has besides its tables, each with its state: indexes, feeds and their groups, snapshots, the last
// snapshot file, backup and archive.
'use strict';

import {tableFigures} from './alltables.js';
import {link} from './address.js';
import {make, rows, soft} from './dom.js';
import {ofKeyspaces} from './keyspaces.js';
import {NotLoggedIn, Left, ask, fieldsOf} from './server.js';
import {count, duration, exactTime, field, pack, packList, shown, size, time} from './text.js';

const ASKED = 200;  // indexes, feeds, snapshots: of more the first

// A part that somebody may not see is said to be so, and the others are shown.
async function part(title, action) {
  let made;
  try {
    made = await action();
  } catch (error) {
    if (error instanceof NotLoggedIn || error instanceof Left) throw error;
    made = soft(error.message);
  }
  return [make('h2', {}, title), ...[made].flat()];
}

const tableLink = (name) => make('a', {href: link(['table', pack(name), 'schema'])}, shown(name));

async function indexes() {
  const lines = [];
  for (const {name} of (await tableFigures()).filter((table) => table.indexes > 0)) {
    for (const index of await ask('indexes', {table64: pack(name)})) {
      if (lines.length === ASKED) return [indexTable(lines), soft('and more')];
      const told = await ask('index', {table64: pack(name), index64: pack(index)});
      const get = (what) => field(told, what);
      const state = get('state') + (get('state') === 'building' ? ' ' + Math.round(100 * Number(get('progress'))) + ' %' : '');
      lines.push([tableLink(name), index, get('on'), get('include'), get('unique') ? 'yes' : '',
        told.includes('error') ? state + ': ' + shown(get('error')) : state, count(get('entries')), size(get('bytes')),
        count(get('left_out'))]);
    }
  }
  return lines.length === 0 ? soft('none') : indexTable(lines);
}

const indexTable = (lines) => rows(['table', 'index', 'on', 'include', 'unique', 'state', 'entries', 'memory', 'left out'], lines,
  ['key', 'key', 'key', 'key', '', '', 'n', 'n', 'n'], 'indexes');

async function feeds() {
  const lines = [];
  const groups = [];
  for (const [keyspace, name] of (await ofKeyspaces('feeds')).slice(0, ASKED)) {
    const place = {keyspace64: pack(keyspace), feed64: pack(name)};
    const told = await ask('feed', place);
    const whole = shown(keyspace) + '/' + shown(name);
    const on = field(told, 'on');
    lines.push([whole, on.length === 0 ? 'all' : on, field(told, 'keep'), field(told, 'first'), field(told, 'last'),
      size(field(told, 'bytes'))]);
    // Of a feed over several sets each set has its own, and the server says so.
    const of = await ask('groups', place).catch((error) => {
      if (error.status !== 400) throw error;
      return [];
    });
    for (const group of of) {
      groups.push([whole, field(group, 'name'), count(field(group, 'consumers')), count(field(group, 'pending')),
        field(group, 'last-delivered-id'), field(group, 'lag') === null ? '' : count(field(group, 'lag'))]);
    }
  }
  if (lines.length === 0) return soft('none');
  return [rows(['feed', 'on', 'keeps', 'first entry', 'last entry', 'log'], lines, ['key', 'key', '', 'key', 'key', 'n'], 'feeds'),
    make('h3', {}, 'Groups'), groups.length === 0 ? soft('none')
      : rows(['feed', 'group', 'consumers', 'pending', 'read up to', 'lag'], groups, ['key', 'key', 'n', 'n', 'key', 'n'], 'groups')];
}

async function snapshots() {
  const lines = [];
  for (const [keyspace, name] of (await ofKeyspaces('snapshots')).slice(0, ASKED)) {
    const told = await ask('snapshot', {keyspace64: pack(keyspace), snapshot64: pack(name)});
    const ttl = Number(shown(field(told, 'ttl')));
    lines.push([shown(keyspace) + '/' + shown(name), exactTime(field(told, 'created')), ttl < 0 ? 'for ever' : duration(ttl / 1000),
      field(told, 'tables'), count(field(told, 'rows')), count(field(told, 'cells')), size(field(told, 'memory')),
      size(field(told, 'held'))]);
  }
  return lines.length === 0 ? soft('none') : rows(['snapshot', 'made (UTC)', 'stays', 'tables', 'rows', 'cells', 'memory', 'held'], lines,
    ['key', 'time', '', 'key', 'n', 'n', 'n', 'n'], 'snapshots');
}

async function backup() {
  const told = await ask('backup');
  const at = (name) => Number(field(told, name)) === 0 ? '' : time(field(told, name) * 1e6);
  return rows(['state', 'begun (UTC)', 'ended (UTC)', 'up to', 'error'],
    [[field(told, 'state'), at('start_time'), at('end_time'), field(told, 'id'), field(told, 'error')]],
    ['', 'time', 'time', 'key', ''], 'backup');
}

const FILES = /^(aof_enabled|aof_current_size|aof_last_write_status|aof_room_status|aof_segments|aof_last_lsn|aof_durable_lsn|aof_last_error|rdb_last_save_time|rdb_last_bgsave_status|rdb_bgsave_in_progress|rdb_snapshots|rdb_snapshots_bytes|archive_.*)$/;

async function files() {
  const fields = fieldsOf(await ask('info', {sections64: packList(['persistence'])}));
  const read = (name, value) => /_(size|bytes)$/.test(name) ? size(value) : /_time$/.test(name) && Number(value) > 1e9 ? time(value * 1e6) : value;
  const lines = Object.entries(fields).filter(([name]) => FILES.test(name)).map(([name, value]) => [name, read(name, value)]);
  return lines.length === 0 ? soft('INFO tells you nothing of it') : rows(['field', 'value'], lines, ['', 'value'], 'files');
}

export async function showState(view) {
  const parts = [await part('Indexes', indexes), await part('Feeds', feeds), await part('Snapshots', snapshots),
    await part('Backup', backup), await part('Log, snapshot files and archive', files)];
  view.show('State', ...parts.flat());
}
