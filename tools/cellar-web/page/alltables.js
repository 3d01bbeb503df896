// All tables with their sizes and what is done to them, as they change.
'use strict';

import {changed, link} from './address.js';
import {labelled, make, scrolled, soft} from './dom.js';
import {tell} from './frame.js';
import {ask, fieldsOf} from './server.js';
import {tableNames} from './tables.js';
import {count, field, pack, packList, parts, shown, size} from './text.js';

const SHOWN = 1000;
const ASKED = 50;  // where INFO tells nothing: one question each

// Figures of before, by table: what comes a second follows from two.
let before = {at: 0, of: new Map()};

const COLUMNS = [['name', 'table'], ['rows', 'rows'], ['cells', 'cells'], ['bytes', 'memory'], ['reads', 'reads/s'],
  ['writes', 'writes/s'], ['indexes', 'indexes']];

// INFO tells of a thousand tables, and hides them from those who may not read everything. What TABLE INFO says of the
// first of the others; of the rest their names alone.
async function oneByOne(names) {
  const found = [];
  for (const name of names.slice(0, ASKED)) {
    const told = await ask('table', {table64: pack(name)}).catch(() => null);
    found.push(told === null ? {name} : {name, rows: field(told, 'rows'), cells: field(told, 'cells'),
      bytes: field(told, 'memory'), indexes: field(told, 'indexes').length});
  }
  return [...found, ...names.slice(ASKED).map((name) => ({name}))];
}

export async function tableFigures() {
  const fields = fieldsOf(await ask('info', {sections64: packList(['tables'])}));
  return Object.entries(fields).filter(([name]) => name.startsWith('table_')).map(([name, value]) =>
    ({name: name.slice('table_'.length), ...Object.fromEntries(Object.entries(parts(value)).map(([key, n]) => [key, Number(n)]))}));
}

async function figures() {
  const found = await tableFigures();
  const now = performance.now() / 1000;
  const of = new Map();
  for (const table of found) {
    const old = before.of.get(table.name);
    const seconds = now - before.at;
    of.set(table.name, {reads: table.reads, writes: table.writes});
    for (const kind of ['reads', 'writes']) {
      table[kind] = old && seconds > 0 ? Math.max(0, (table[kind] - old[kind]) / seconds) : null;
    }
  }
  before = {at: now, of};
  return [...found, ...await oneByOne(tableNames().filter((name) => !of.has(name)))];
}

function bodyOf(tables, wanted, sort) {
  const fitting = tables.filter(({name}) => shown(name).toLowerCase().includes(wanted.toLowerCase()));
  fitting.sort((a, b) => sort === 'name' ? (a.name < b.name ? -1 : 1) : (b[sort] || 0) - (a[sort] || 0));
  const number = (n) => make('td', {class: 'n'}, n === null || n === undefined ? '' : count(Math.round(n)));
  return fitting.slice(0, SHOWN).map((table) => make('tr', {},
    make('td', {class: 'key'}, make('a', {href: link(['table', pack(table.name)])}, shown(table.name))),
    number(table.rows), number(table.cells), make('td', {class: 'n'}, size(table.bytes)), number(table.reads),
    number(table.writes), make('td', {class: 'n'}, table.indexes ? count(table.indexes) : '',
      table.indexes_building ? ' (' + table.indexes_building + ' building)' : '',
      table.indexes_failed ? ' (' + table.indexes_failed + ' failed)' : '')));
}

// Asked for again and again; what is typed into the field stays.
export async function showAllTables(view, query) {
  const tables = await figures();
  if (!view.alive) return;
  const sort = COLUMNS.some(([name]) => name === query.get('sort')) ? query.get('sort') : 'name';
  const old = document.getElementById('wanted');
  const body = make('tbody', {});
  const fill = (input) => body.replaceChildren(...bodyOf(tables, input.value, sort));
  if (old !== null && document.getElementById('all-tables') !== null) {
    const place = document.querySelector('#all-tables tbody');
    old.oninput = () => place.replaceChildren(...bodyOf(tables, old.value, sort));
    old.oninput();
    tell('');
    document.getElementById('sums').textContent = sums(tables);
    return;
  }
  const input = make('input', {id: 'wanted', type: 'search', value: query.get('find') || '', autocomplete: 'off',
    onchange: () => history.replaceState(null, '', changed({find: input.value}))});
  input.oninput = () => fill(input);
  fill(input);
  const heads = COLUMNS.map(([name, text]) => make('th', {scope: 'col', class: name === 'name' ? false : 'n',
    'aria-sort': name === sort && (name === 'name' ? 'ascending' : 'descending')},
  make('a', {href: changed({sort: name === 'name' ? '' : name})}, text)));
  view.show('Tables', make('div', {class: 'ask'}, labelled('Whose names have', input)), Object.assign(soft(sums(tables)), {id: 'sums'}),
    tables.length === 0 ? soft('There are no tables, or none that you may see.')
      : scrolled(make('table', {id: 'all-tables', 'aria-label': 'tables'}, make('thead', {}, make('tr', {}, ...heads)), body)));
}

function sums(tables) {
  const sum = (name) => tables.reduce((total, table) => total + (table[name] || 0), 0);
  return count(tables.length) + ' tables · ' + count(sum('rows')) + ' rows · ' + count(sum('cells')) + ' cells · ' + size(sum('bytes'));
}
