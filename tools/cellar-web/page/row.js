// All columns of a row, page by page, by families and super columns.
'use strict';

import {link} from './address.js';
import {timeNode, valueNode, viewLinks, viewOf} from './cells.js';
import {choice, labelled, make, scrolled, soft} from './dom.js';
import {fetchPage, pager} from './pager.js';
import {ask} from './server.js';
import {bytesOf, count, exactTime, field, pack, packList, pairs, shown, textOf} from './text.js';
import {split} from './words.js';

const CELLS = 200;

// The delimiter of a family whose qualifiers have several components, or nothing.
async function delimiterOf(table, family) {
  const order = shown(field(await ask('family', {table64: pack(table), family64: pack(family)}), 'order'));
  const found = /[#/|:,;~.]/.exec(order);
  return found ? found[0].charCodeAt(0) : null;
}

// "f:1:by" as [family, super column or nothing, rest].
function divided(column, delimiters) {
  const bytes = bytesOf(column);
  const colon = bytes.indexOf(58);
  const family = shown(textOf(bytes.slice(0, colon)));
  const qualifier = bytes.slice(colon + 1);
  const delimiter = delimiters.get(family);
  const at = delimiter === null || delimiter === undefined ? -1 : qualifier.indexOf(delimiter);
  if (at < 0) return [family, null, shown(textOf(qualifier))];
  return [family, shown(textOf(qualifier.slice(0, at))), shown(textOf(qualifier.slice(at + 1)))];
}

async function delimitersOf(table, columns) {
  const families = new Set(columns.map(([column]) => divided(column, new Map())[0]));
  const known = new Map();
  for (const family of families) known.set(family, await delimiterOf(table, family).catch(() => null));
  return known;
}

// Families are headings, super columns sub-headings of a part of the table.
function bodies(place, columns, delimiters, view) {
  const made = [];
  let family = null;
  let group = null;
  for (const [column, versions] of columns) {
    const [ofFamily, ofGroup, rest] = divided(column, delimiters);
    if (ofFamily !== family || ofGroup !== group) {
      made.push(make('tbody', {}));
      const body = made[made.length - 1];
      if (ofFamily !== family) body.append(make('tr', {class: 'family'}, make('th', {scope: 'rowgroup', colspan: '5'}, ofFamily + ':')));
      if (ofGroup !== null) body.append(make('tr', {class: 'super'}, make('th', {scope: 'rowgroup', colspan: '5'}, ofGroup)));
      [family, group] = [ofFamily, ofGroup];
    }
    versions.forEach((version, i) => made[made.length - 1].append(make('tr', {},
      make('td', {class: ofGroup === null ? 'key' : 'key sub'}, i === 0 ? rest || '""' : ''),
      make('td', {class: 'value'}, valueNode({...place, column}, version, view)),
      make('td', {class: 'time'}, timeNode(version[0])), make('td', {class: 'type'}, shown(version[2])),
      make('td', {class: 'time'}, version[3] === null ? '' : exactTime(version[3])))));
  }
  return made;
}

function rowForm(table, row, query) {
  const columns = make('input', {name: 'columns', value: query.get('columns') || '', placeholder: 'family or family:qualifier ...',
    autocapitalize: 'off', autocomplete: 'off', spellcheck: 'false'});
  const versions = choice([[1, 'newest'], [5, '5'], [100, '100'], [1000, '1000']], query.get('versions') || 5, {name: 'versions'});
  return make('form', {class: 'ask', 'aria-label': 'which columns', onsubmit: (event) => {
    event.preventDefault();
    location.hash = link(['table', pack(table), 'row', pack(row)], {columns: columns.value,
      versions: versions.value === '5' ? '' : versions.value, view: query.get('view')});
  }}, labelled('Columns', columns), labelled('Versions', versions), make('button', {}, 'Show'));
}

export async function showRow(view, table, row, query) {
  const place = {table64: pack(table), row64: pack(row)};
  const wanted = split(query.get('columns') || '').map((word) => word.bytes);
  const [next, found] = await fetchPage('row', {...place, versions: query.get('versions') || 5,
    columns64: wanted.length === 0 ? undefined : packList(wanted)}, query, view, {cells: CELLS});
  const total = await ask('columns', place);
  const columns = found.length === 0 ? [] : pairs(found[0][1]);
  const delimiters = await delimitersOf(table, columns);
  const heads = ['column', 'value', 'time (UTC)', 'type', 'expires'];
  view.show(shown(row), make('p', {}, 'in ', make('a', {href: link(['table', pack(table)])}, shown(table)),
    make('span', {class: 'soft'}, ' · ' + count(total) + (total === 1 ? ' column' : ' columns'))),
  rowForm(table, row, query), make('div', {class: 'above'}, pager(query, next), viewLinks(query)),
  columns.length === 0 ? soft('there is no such row, or none of these columns in it')
    : scrolled(make('table', {class: 'cells', 'aria-label': 'cells of the row'},
      make('thead', {}, make('tr', {}, ...heads.map((text) => make('th', {scope: 'col'}, text)))),
      ...bodies({table, row}, columns, delimiters, viewOf(query)))));
}
