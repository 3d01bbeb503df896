// A cluster: its sets and their nodes, which tablets of which table lie where, and what has been done. As the node that
// is asked knows it.
'use strict';

import {changed, link} from './address.js';
import {card, choice, labelled, make, rows, soft} from './dom.js';
import {ask, info} from './server.js';
import {tableNames} from './tables.js';
import {count, field, pack, shown, size, time, unpack} from './text.js';

const TABLETS = 200;  // a page
const NODES = 200;    // of more those that are down, then the first

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
  const told = await part(events);
  if (focused && document.activeElement && document.activeElement.id === 'of') return;  // somebody is choosing
  view.show('Cluster', make('div', {class: 'cards'},
    card('sets', count(sets.length), bad(troubled === 0 ? 'all well' : troubled + ' not well', troubled > 0)),
    card('nodes up', count(members.filter(isUp).length) + ' of ' + count(members.length)),
    card('tablets', count(sets.reduce((sum, set) => sum + field(set, 'tablets'), 0))),
    card('map version', count(fields.cluster_map_version)),
    card('this node', 'set ' + fields.cluster_set, fields.cluster_role)),
  make('h2', {}, 'Sets'), setTable(sets), make('h2', {}, 'Nodes'), ...nodeTable(sets), make('h2', {}, 'Tablets'), chooser(query), ...tablets,
  make('h2', {}, 'Events'), ...told);
}
