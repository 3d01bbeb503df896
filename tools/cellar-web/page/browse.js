// The rows of a table, page by page: which ones, which of their columns, and how many versions.
'use strict';

import {link} from './address.js';
import {timeNode, valueNode, viewLinks, viewOf} from './cells.js';
import {choice, labelled, make, scrolled, soft} from './dom.js';
import {fetchPage, pager} from './pager.js';
import {FIELDS, questionOf} from './rowquery.js';
import {tabs} from './tables.js';
import {pack, pairs, shown} from './text.js';

const COLUMNS_OF_ROW = 20;
const HINTS = {
  prefix: 'the key begins with',
  min: 'first key; (key begins behind it',
  max: 'last key; (key ends before it',
  columns: 'family or family:qualifier ...',
  where: 'f:q GT 5 AND f:r EXISTS',
  filter: 'value >= 40 | latest(1)',
};

function searchForm(table, query) {
  const input = (name, text) => labelled(text, make('input', {id: name, name, value: query.get(name) || '',
    placeholder: HINTS[name], autocapitalize: 'off', autocomplete: 'off', spellcheck: 'false'}));
  const reverse = make('input', {id: 'reverse', name: 'reverse', type: 'checkbox', value: '1', checked: query.get('reverse') === '1'});
  const count = choice([10, 50, 200].map((n) => [n, n]), query.get('count') || 50, {name: 'count'});
  const versions = choice([[1, 'newest'], [3, '3'], [10, '10'], [100, '100']], query.get('versions') || 1, {name: 'versions'});
  const form = make('form', {class: 'ask', 'aria-label': 'which rows', onsubmit: (event) => {
    event.preventDefault();
    const wanted = {view: query.get('view')};
    for (const name of FIELDS) wanted[name] = new FormData(form).get(name);
    if (wanted.count === '50') wanted.count = '';
    if (wanted.versions === '1') wanted.versions = '';
    const to = link(['table', pack(table)], wanted);
    if (to === location.hash) window.dispatchEvent(new HashChangeEvent('hashchange'));
    else location.hash = to;
  }}, input('prefix', 'Prefix'), input('min', 'From'), input('max', 'To'), input('columns', 'Columns'),
  input('where', 'Where'), input('filter', 'Filter'), labelled('Versions', versions), labelled('Rows a page', count),
  make('label', {class: 'check'}, reverse, 'Descending'), make('button', {}, 'Show'));
  return form;
}

// One row's lines; its key stands in the first.
function rowBody(table, row, columns, view) {
  const to = link(['table', pack(table), 'row', pack(row)], {view: view === 'text' ? '' : view});
  const lines = [];
  for (const [column, versions] of pairs(columns)) {
    versions.forEach((version, i) => {
      const key = lines.length === 0 ? make('a', {href: to}, shown(row)) : '';
      lines.push(make('tr', {}, make('td', {class: 'key'}, key), make('td', {class: 'key'}, i === 0 ? shown(column) : ''),
        make('td', {class: 'value'}, valueNode({table, row, column}, version, view)),
        make('td', {class: 'time'}, timeNode(version[0])), make('td', {class: 'type'}, shown(version[2]))));
    });
  }
  if (columns.length >= 2 * COLUMNS_OF_ROW) {
    lines.push(make('tr', {}, make('td', {}), make('td', {colspan: '4'}, make('a', {href: to}, 'more columns'))));
  }
  return make('tbody', {}, ...lines);
}

export async function showRows(view, table, query) {
  const limits = {count: Number(query.get('count')) || 50, cells: 1000, perrow: COLUMNS_OF_ROW};
  const head = [tabs(table, 'rows', query), searchForm(table, query)];
  let page;
  try {
    page = await fetchPage('rows', questionOf(table, query), query, view, limits);
  } catch (error) {
    // The form stays, so that what is wrong in it can be mended.
    if (view.alive && (error.status === 400 || error.name === 'SyntaxError')) view.show(shown(table), ...head);
    throw error;
  }
  const [next, found] = page;
  const heads = ['row', 'column', 'value', 'time (UTC)', 'type'];
  const shownAs = viewOf(query);
  view.show(shown(table), ...head,
    make('div', {class: 'above'}, pager(query, next), viewLinks(query)),
    found.length === 0
      ? soft(shown(next) === '0' ? 'no rows' : 'none so far: the next page goes on')
      : scrolled(make('table', {class: 'cells', 'aria-label': 'rows'},
        make('thead', {}, make('tr', {}, ...heads.map((text) => make('th', {scope: 'col'}, text)))),
        ...found.map(([row, columns]) => rowBody(table, row, columns, shownAs)))));
}
