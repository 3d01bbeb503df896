// The slow log, and the state of replication.
'use strict';

import {make, rows, soft} from './dom.js';
import {ask, info} from './server.js';
import {count, field, parts, shown, time} from './text.js';

const FIELDS = ['role', 'master_host', 'master_port', 'master_link_status', 'master_last_io_seconds_ago',
  'slave_repl_offset', 'connected_slaves', 'master_repl_offset', 'master_replid', 'master_failover_state'];

export async function showSlow(view) {
  const entries = await ask('slowlog');
  const lines = entries.map((entry) => [time(entry[1] * 1e6), count(entry[2]), entry[3].map(shown).join(' '), entry[4]]);
  view.show('Slow log', lines.length === 0 ? soft('nothing was slow')
    : rows(['time', 'µs', 'command', 'client'], lines, ['time', 'n', 'value', ''], 'slow commands'));
}

// The nodes of a set, as this one knows them.
async function members() {
  let list;
  try {
    list = await ask('members');
  } catch (error) {
    if (error.status !== 400 && error.status !== 403) throw error;
    return [make('h2', {}, 'Nodes of the set'), soft(error.message)];
  }
  const lines = list.map((node) => [field(node, 'id'), shown(field(node, 'ip')) + ':' + shown(field(node, 'port')), field(node, 'kind'),
    field(node, 'state'), field(node, 'lsn'), field(node, 'lag-ms') === null ? '' : count(field(node, 'lag-ms')), field(node, 'version')]);
  return [make('h2', {}, 'Nodes of the set'),
    rows(['id', 'address', 'kind', 'state', 'last record', 'lag ms', 'version'], lines, ['key', 'key', '', '', 'key', 'n', ''], 'nodes')];
}

export async function showReplication(view) {
  const fields = await info(['replication']);
  const nodes = (fields.replica_state || 'standalone') === 'standalone' ? [] : await members();
  const followers = Object.entries(fields).filter(([name]) => /^slave\d+$/.test(name)).map(([, value]) => {
    const of = parts(value);
    return [of.ip + ':' + of.port, of.state, of.lag, of.offset];
  });
  view.show('Replication', ...nodes, ...followers.length === 0 ? [] : [make('h2', {}, 'Followers'),
      rows(['follower', 'state', 'lag s', 'offset'], followers, ['key', '', 'n', 'n'], 'followers')],
    make('h2', {}, 'This node'),
    rows(['field', 'value'], Object.entries(fields).filter(([name]) => FIELDS.includes(name) || name.startsWith('replica_')),
      ['', 'value'], 'replication'));
}
