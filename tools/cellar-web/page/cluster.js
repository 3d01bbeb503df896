// A cluster: its sets and their nodes, its moments, backup and feeds over all sets, which tablets of which table lie
// where, and what has been done. As the node that is asked knows it.
'use strict';

import {changed, link} from './address.js';
import {card, choice, labelled, make, rows, soft} from './dom.js';
import {ofKeyspaces} from './keyspaces.js';
import {ask, info} from './server.js';
import {tableNames} from './tables.js';
import {count, duration, field, pack, shown, size, time, unpack} from './text.js';

const TABLETS = 200;  // a page
const JOBS = 50;
const NODES = 200;    // of more those that are down, then the first
const CUTS = 5;
const FEEDS = 50;

const bound = (key, none) => (key === null || key === '' ? make('span', {class: 'soft'}, none) : shown(key));
const figure = (value, written) => (value === null || value === undefined ? '' : written(value));
const membersOf = (set) => field(set, 'members');
const isUp = (member) => field(member, 'state') !== 'down';
const upOf = (set) => membersOf(set).filter(isUp).length;
const isServed = (set) => ['ok', 'empty'].includes(field(set, 'state'));
const isWell = (set) => isServed(set) && upOf(set) === membersOf(set).length;
const bad = (text, isBad) => (isBad ? make('span', {class: 'bad'}, text) : text);

function setTable(sets) {
  const lines = sets.map((set) => {
    const number = field(set, 'set');
    return [number === null ? '' : String(number), bad(shown(field(set, 'state')), !isServed(set)),
      field(set, 'leader') === '' ? bad('nobody', true) : shown(field(set, 'leader')) + (number === 0 ? ' (directs)' : ''),
      bad(upOf(set) + ' of ' + membersOf(set).length, upOf(set) < membersOf(set).length), count(field(set, 'tablets')),
      size(field(set, 'bytes')), count(field(set, 'catalog'))];
  });
  return rows(['set', 'state', 'leader', 'nodes up', 'tablets', 'memory', 'schema'], lines, ['n', '', 'key', 'n', 'n', 'n', 'n'], 'sets');
}

function nodeTable(sets) {
  const all = sets.flatMap((set) => membersOf(set).map((member) => [set, member]))
    .sort(([, a], [, b]) => Number(isUp(a)) - Number(isUp(b)));
  const lines = all.slice(0, NODES).map(([set, member]) => [field(set, 'set') === null ? '' : String(field(set, 'set')),
    shown(field(member, 'ip')) + ':' + shown(field(member, 'port')), shown(field(member, 'kind')),
    bad(shown(field(member, 'state')), !isUp(member)), shown(field(member, 'version'))]);
  return [rows(['set', 'node', 'kind', 'state', 'version'], lines, ['n', 'key', '', '', ''], 'nodes of the cluster'),
    all.length > NODES && soft('and ' + count(all.length - NODES) + ' more')];
}

// The map's page that begins with the tablet of a row. What is too large for one answer is asked for in smaller parts.
async function tabletsOf(query) {
  const table = query.get('table');
  const from = query.get('from');
  const what = {table64: table || undefined, from64: table && from ? from : undefined};
  for (let most = TABLETS; ; most = Math.floor(most / 4)) {
    try {
      const [version, list] = await ask('tablets', {...what, count: most + 1});
      return {version, list: list.slice(0, most), next: list.length > most ? list[most] : null};
    } catch (error) {
      if (error.status !== 413 || most < 4) throw error;
    }
  }
}

// Of all tables' tablets the map's own come last.
const isOfMap = (tablet) => shown(field(tablet, 'table')).startsWith('_cluster/');

function tabletTable(query, {list, next}) {
  const table = query.get('table');
  const lines = [...list].sort((a, b) => Number(isOfMap(a)) - Number(isOfMap(b))).map((tablet) => {
    const name = shown(field(tablet, 'table'));
    return [table ? name : make('a', {href: link(['cluster'], {table: pack(name)})}, name), bound(field(tablet, 'start'), 'first'),
      bound(field(tablet, 'end'), 'last'), String(field(tablet, 'set')), shown(field(tablet, 'state')), figure(field(tablet, 'rows'), count),
      figure(field(tablet, 'bytes'), size)];
  });
  const made = [rows(['table', 'from', 'before', 'set', 'state', 'rows', 'memory'], lines, ['key', 'key', 'key', 'n', '', 'n', 'n'], 'tablets')];
  if (query.get('from')) made.push(make('a', {class: 'button', id: 'first', href: changed({from: ''})}, 'First'), ' ');
  if (next && table) made.push(make('a', {class: 'button', id: 'next', href: changed({from: pack(field(next, 'start'))})}, 'Next'));
  else if (next) made.push(soft('these are the first ' + count(list.length) + '; choose a table to see all of its own'));
  return made;
}

// How many of the tablets that are shown each set has.
function spread(list) {
  const counts = new Map();
  for (const tablet of list) counts.set(field(tablet, 'set'), (counts.get(field(tablet, 'set')) || 0) + 1);
  return [...counts].sort(([a], [b]) => a - b).map(([set, n]) => 'set ' + set + ': ' + count(n)).join(' · ');
}

function chooser(query) {
  const names = tableNames();
  const chosen = query.get('table') ? shown(unpack(query.get('table'))) : '';
  if (chosen !== '' && !names.includes(chosen)) names.push(chosen);
  return make('div', {class: 'ask'}, labelled('Tablets of', choice([['', 'all tables'], ...names.map((name) => [name, name])], chosen,
    {id: 'of', onchange: (event) => {
      location.hash = link(['cluster'], {table: event.target.value === '' ? '' : pack(event.target.value)});
    }})));
}

// Tablets that move, and those that have within the last hour, the newest first.
async function jobs() {
  const all = (await ask('jobs')).reverse();
  const lines = all.slice(0, JOBS).map((job) => {
    const state = shown(field(job, 'state'));
    return [String(field(job, 'job')), shown(field(job, 'table')), bound(field(job, 'start'), 'first'), bound(field(job, 'end'), 'last'),
      String(field(job, 'from')), String(field(job, 'to')), bad(state, state === 'cancelled'), size(field(job, 'copied')),
      figure(field(job, 'bytes'), size), time(Number(field(job, 'started')) * 1000), shown(field(job, 'error'))];
  });
  return [rows(['job', 'table', 'from', 'before', 'of set', 'to set', 'state', 'copied', 'of', 'since', 'why'], lines,
    ['n', 'key', 'key', 'key', 'n', 'n', '', 'n', 'n', 'time', ''], 'jobs'), all.length > JOBS && soft('and ' + count(all.length - JOBS) + ' more')];
}

// An option; of one that is not to be known nothing is said.
async function option(question, name) {
  try {
    return shown(field(await ask(question), name));
  } catch (error) {
    if (![400, 403].includes(error.status)) throw error;
    return null;
  }
}

// The last moments of all sets.
async function cuts() {
  const list = await ask('cuts');
  const seconds = await option('cut-interval', 'cluster-cut-interval');
  const interval = seconds === null ? null : Number(seconds);
  const lines = list.slice(0, CUTS).map((cut) => [count(field(cut, 'cut')), time(Number(field(cut, 'time'))), shown(field(cut, 'purpose')),
    bad(shown(field(cut, 'state')), field(cut, 'state') === 'bad')]);
  return {good: list.find((cut) => field(cut, 'state') === 'good'), interval,
    parts: [interval !== null && soft(interval > 0 ? 'one is made every ' + duration(interval) : 'none is made by itself (cluster-cut-interval)'),
      lines.length === 0 ? soft('none') : rows(['cut', 'time (UTC)', 'for a', 'state'], lines, ['n', 'time', '', ''], 'cuts')]};
}

function cutCard({good, interval}) {
  if (!good) return card('last cut', 'none', interval > 0 && bad('one every ' + duration(interval), true));
  const age = Math.max(0, Date.now() / 1000 - Number(field(good, 'time')) / 1e6);
  const told = duration(age) + ' ago' + (interval > 0 ? ', every ' + duration(interval) : '');
  return card('last cut', count(field(good, 'cut')), bad(told, interval > 0 && age > 3 * interval + 3));
}

// Of all sets, and which of them are how far.
async function backup() {
  const told = await ask('backup');
  if (Number(field(told, 'start_time')) === 0) return [soft('none since the nodes began')];
  const at = (name) => (Number(field(told, name)) === 0 ? '' : time(field(told, name) * 1e6));
  const of = told.includes('sets') ? field(told, 'sets') : [];
  const states = of.map((set) => 'set ' + field(set, 'set') + ': ' + shown(field(set, 'state'))).join(' · ');
  const cut = told.includes('cut') ? field(told, 'cut') : 0;
  const folder = await option('backup-folder', 'backupdirname');
  return [folder !== null && soft('in ' + folder + ' of each node'), rows(['state', 'sets', 'begun (UTC)', 'ended (UTC)', 'cut', 'error'], [[bad(shown(field(told, 'state')), field(told, 'state') === 'failed'),
    states, at('start_time'), at('end_time'), cut === 0 ? '' : count(cut), bad(shown(field(told, 'error')), field(told, 'error') !== '')]],
  ['', '', 'time', 'time', 'n', ''], 'backup of all sets')];
}

// Up to when feeds show what was written, and which set has them wait.
async function feeds() {
  const all = await ofKeyspaces('feeds');
  const lines = [];
  let hasHomes = false;
  for (const [keyspace, name] of all.slice(0, FEEDS)) {
    const told = await ask('feed', {keyspace64: pack(keyspace), feed64: pack(name)});
    if (!told.includes('held-back-by')) continue;
    const holder = Number(field(told, 'held-back-by'));
    const held = Number(field(told, 'held-back-s'));
    const resolved = Number(field(told, 'resolved-ms'));
    const groups = field(told, 'groups');
    hasHomes = hasHomes || told.includes('home');
    lines.push([shown(keyspace) + '/' + shown(name), told.includes('home') ? 'set ' + field(told, 'home') : '',
      count(Array.isArray(groups) ? groups.length : groups), size(field(told, 'bytes')), resolved < 0 ? '' : time(resolved * 1000),
      holder < 0 ? '' : bad('set ' + holder + (held < 0 ? ', which is away' : ' for ' + duration(held)), true)]);
  }
  if (lines.length === 0) return [soft('none')];
  const known = (line) => line.filter((_, i) => hasHomes || i !== 1);
  return [rows(known(['feed', 'home', 'groups', 'log', 'shows up to (UTC)', 'held back by']), lines.map(known),
    known(['key', '', 'n', 'n', 'time', '']), 'feeds of all sets'),
    all.length > FEEDS && soft('and ' + count(all.length - FEEDS) + ' more')];
}

async function events() {
  const lines = (await ask('events')).map(([unixMs, what, why]) => [time(Number(unixMs) * 1000), shown(what), shown(why)]);
  return rows(['time', 'what', 'why'], lines, ['time', 'value', ''], 'events');
}

// What somebody may not see is said to be so.
async function part(action) {
  try {
    return [await action()].flat();
  } catch (error) {
    if (![400, 403, 413].includes(error.status)) throw error;
    return [soft(error.message)];
  }
}

export async function showCluster(view, query) {
  const fields = await info(['cluster']);
  if (fields.cluster_sets === undefined) {
    view.show('Cluster', soft('This server is part of no cluster of several sets: cellar-cluster(7).'));
    return;
  }
  const focused = document.activeElement && document.activeElement.id === 'of';
  const sets = await ask('sets');
  const members = sets.flatMap(membersOf);
  const troubled = sets.filter((set) => !isWell(set)).length;
  const tablets = await part(async () => {
    const map = await tabletsOf(query);
    return [soft(spread(map.list)), ...tabletTable(query, map)];
  });
  const moving = await part(jobs);
  let moments = {};
  const cut = await part(async () => {
    moments = await cuts();
    return moments.parts;
  });
  const kept = await part(backup);
  const fed = await part(feeds);
  const told = await part(events);
  if (focused && document.activeElement && document.activeElement.id === 'of') return;  // somebody is choosing
  view.show('Cluster', make('div', {class: 'cards'},
    card('sets', count(sets.length), bad(troubled === 0 ? 'all well' : troubled + ' not well', troubled > 0)),
    card('nodes up', count(members.filter(isUp).length) + ' of ' + count(members.length)),
    card('tablets', count(sets.reduce((sum, set) => sum + field(set, 'tablets'), 0))),
    card('map version', count(fields.cluster_map_version)),
    cutCard(moments),
    card('this node', 'set ' + fields.cluster_set, fields.cluster_role)),
  make('h2', {}, 'Sets'), setTable(sets), make('h2', {}, 'Nodes'), ...nodeTable(sets),
  make('h2', {}, 'Moments of all sets'), ...cut, make('h2', {}, 'Backup'), ...kept, make('h2', {}, 'Feeds'), ...fed, make('h2', {}, 'Tablets'), chooser(query), ...tablets,
  make('h2', {}, 'Tablets that move'), ...moving, make('h2', {}, 'Events'), ...told);
}
