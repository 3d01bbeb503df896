// How a read is answered, as a tree: what comes out at the top, what is walked at the bottom. With its figures when
// the read is made for them.
'use strict';

import {changed} from './address.js';
import {make, soft} from './dom.js';
import {questionOf} from './rowquery.js';
import {ask} from './server.js';
import {tabs} from './tables.js';
import {count, field, pairs, shown} from './text.js';

const text = (value) => Array.isArray(value) ? value.map(shown).join(', ') : shown(value);

function figures(map) {
  if (!map) return null;
  return make('span', {class: 'figures'}, ...pairs(map).map(([name, value]) =>
    make('span', {class: 'tag'}, shown(name) + ' ' + count(shown(value)))));
}

// A node: what is done, with what, its figures, and what it is fed by.
function node(title, facts, numbers, ...below) {
  return make('li', {}, make('div', {class: 'node'}, make('b', {}, title),
    ...facts.filter(([, value]) => value !== '').map(([name, value]) => make('div', {}, make('span', {class: 'soft'}, name + ' '),
      make('code', {}, value))), numbers),
  below.length > 0 ? make('ul', {}, ...below) : null);
}

function only(map, wanted) {
  return map ? pairs(map).filter(([name]) => wanted(name)).flat() : null;
}

function tree(told) {
  const get = (name) => told.includes(name) ? field(told, name) : null;
  const examined = get('examined');
  const isResult = (name) => /returned|micros/.test(name);
  const index = get('index');
  const source = node(index === null ? 'Table' : 'Index ' + shown(index),
    [['from', (get('bounds') || []).map(text).join(' and ')], ['groups', text(get('groups') || [])], ['columns', text(get('columns') || [])]],
    make('span', {}, figures(get('estimated') && ['about ' + 'rows', field(get('estimated'), 'rows'), 'about cells', field(get('estimated'), 'cells')]),
      figures(examined && only(examined, (name) => !isResult(name)).map((word, i) => i % 2 === 0 ? word + ' examined' : word))));
  const rowsRead = index !== null && get('cells') === 'rows' ? [node('Rows of the table', [['for', 'cells that the index has not']], null, source)] : [source];
  const checked = get('checked') || [];
  const checks = checked.length === 0 ? rowsRead
    : [node('Checks', [['of each row', text(checked)], ['bounded by', text(get('pushed') || [])]], null, ...rowsRead)];
  return make('ul', {class: 'tree', 'aria-label': 'how it is answered'},
    node(shown(get('command')).toUpperCase(), [['direction', text(get('direction') || '')]], figures(only(examined, isResult)), ...checks));
}

export async function showExplain(view, table, query) {
  const analyze = query.get('analyze') === '1';
  const told = await ask('explain', {...questionOf(table, query), versions: undefined, count: analyze ? query.get('count') || 50 : undefined,
    analyze: analyze ? '1' : undefined});
  const list = (name) => told.includes(name) ? field(told, name) : [];
  const notes = list('notes');
  const considered = list('considered');
  view.show(shown(table), tabs(table, 'explain', query),
    make('p', {}, make('a', {class: 'button', id: 'analyze', href: changed({analyze: analyze ? '' : '1'})},
      analyze ? 'Without figures' : 'Make one page of the read, with figures')),
    tree(told),
    make('h2', {}, 'Indexes'), considered.length === 0 ? soft('none was considered')
      : make('ul', {}, ...considered.map((line) => make('li', {}, shown(line)))),
    notes.length === 0 ? null : make('h2', {}, 'Notes'),
    notes.length === 0 ? null : make('ul', {}, ...notes.map((line) => make('li', {}, shown(line)))));
}
