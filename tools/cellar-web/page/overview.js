// What the server does at the moment.
'use strict';

import {byId, card, draw, make, rows} from './dom.js';
import {info} from './server.js';
import {count, duration, parts, size} from './text.js';

const POINTS = 60;
const SECTIONS = ['server', 'clients', 'memory', 'persistence', 'stats', 'replication', 'commandstats', 'latencystats', 'cellar'];

const past = {ops: [], memory: [], clients: []};

function line(values) {
  const most = Math.max(1, ...values);
  return draw('svg', {viewBox: '0 0 ' + (POINTS - 1) + ' 20', preserveAspectRatio: 'none', 'aria-hidden': 'true'},
    draw('polyline', {points: values.map((value, i) =>
      (POINTS - values.length + i) + ',' + (19 - 18 * value / most).toFixed(2)).join(' ')}));
}

function note(values, value) {
  values.push(Number(value) || 0);
  if (values.length > POINTS) values.shift();
}

function commandLines(fields) {
  return Object.entries(fields).filter(([name]) => name.startsWith('cmdstat_')).map(([name, value]) => {
    const command = name.slice('cmdstat_'.length);
    return {command, stat: parts(value), p: parts(fields['latency_percentiles_usec_' + command] || '')};
  }).sort((a, b) => b.stat.usec - a.stat.usec).slice(0, 15).map(({command, stat, p}) =>
    [command.replace('|', ' ').toUpperCase(), count(stat.calls), Number(stat.usec_per_call).toFixed(1),
      p.p50 || '', p.p99 || '']);
}

export async function showOverview(view) {
  const fields = await info(SECTIONS);
  if (!view.alive) return;
  byId('server').textContent = 'Cellar ' + (fields.cellar_version || '') + ' · ' + (fields.role || '') +
    ' · port ' + (fields.tcp_port || '');
  note(past.ops, fields.instantaneous_ops_per_sec);
  note(past.memory, fields.used_memory);
  note(past.clients, fields.connected_clients);
  view.show('Overview', make('div', {class: 'cards'},
    card('commands/s', count(fields.instantaneous_ops_per_sec), line(past.ops)),
    card('memory', size(fields.used_memory), line(past.memory)),
    card('clients', count(fields.connected_clients), line(past.clients)),
    card('up for', duration(fields.uptime_in_seconds)),
    card('log', fields.aof_enabled === '1' ? size(fields.aof_current_size) : 'off'),
    card('last snapshot', fields.rdb_last_bgsave_status || '')),
  make('h2', {}, 'Commands that take most time'),
  rows(['command', 'calls', 'µs a call', 'p50 µs', 'p99 µs'], commandLines(fields), ['', 'n', 'n', 'n', 'n'], 'commands'));
}
