// Values of cells: as text, as bytes in hexadecimal, or as JSON; long ones only when they are opened.
'use strict';

import {changed, link} from './address.js';
import {make} from './dom.js';
import {bytesOf, exactTime, hexLines, indentJson, pack, shown, shownLines} from './text.js';

export const VIEWS = [['text', 'Text'], ['hex', 'Hex'], ['json', 'JSON']];
const INLINE = 200;  // letters of a value that stand in a line

export const viewOf = (query) => VIEWS.some(([name]) => name === query.get('view')) ? query.get('view') : 'text';

export function viewLinks(query) {
  const view = viewOf(query);
  return make('nav', {class: 'views', 'aria-label': 'values as'}, 'values as ', ...VIEWS.map(([name, text]) =>
    make('a', {href: changed({view: name === 'text' ? '' : name}), 'aria-current': name === view && 'true'}, text)));
}

export function rendered(value, view, from = 0) {
  if (view === 'hex') return hexLines(bytesOf(value), from);
  if (view === 'json') {
    const text = typeof value === 'object' && value !== null && 'int' in value ? value.int : value;
    const indented = typeof text === 'object' ? null : indentJson(String(text));
    if (indented !== null) return shownLines(indented);
  }
  return shown(value);
}

const isCut = (labels) => (labels || []).includes('cut');

// place: {table, row, column}; version: [timestamp, value, type, expiry, labels].
export function valueNode(place, version, view) {
  const [micros, value, , , labels] = version;
  if (isCut(labels)) {
    const path = ['table', pack(place.table), 'row', pack(place.row), 'cell', pack(place.column), shown(micros)];
    return make('a', {class: 'open', href: link(path, {view: view === 'text' ? '' : view})}, 'open: more than 1,000 bytes');
  }
  const text = rendered(value, view);
  const tags = (labels || []).map((label) => make('span', {class: 'tag'}, shown(label)));
  if (view === 'hex' || text.includes('\n')) {
    return make('div', {}, make('pre', {class: view === 'hex' ? 'inline hex' : 'inline'}, text), ...tags);
  }
  if (text.length <= INLINE) return tags.length === 0 ? text : make('span', {}, text, ...tags);
  return make('details', {}, make('summary', {}, text.slice(0, INLINE) + ' …'), make('span', {}, text), ...tags);
}

export function timeNode(micros) {
  const exact = exactTime(micros);
  return make('span', {title: shown(micros) + ' µs'}, exact);
}
