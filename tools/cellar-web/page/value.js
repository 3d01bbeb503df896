// One version of a column, however long: 64 KiB at a time.
'use strict';

import {changed, link} from './address.js';
import {rendered, timeNode, viewLinks, viewOf} from './cells.js';
import {make, soft} from './dom.js';
import {ask} from './server.js';
import {bytesOf, count, indentJson, pack, shown, shownLines, textOf} from './text.js';

const PIECE = 64 << 10;

// A character that two pieces share belongs to the one in which it begins.
function whole(bytes, isFirst) {
  let begin = 0;
  let end = Math.min(bytes.length, PIECE);
  const continues = (i) => (bytes[i] & 0xc0) === 0x80;
  while (!isFirst && begin < 3 && continues(begin)) ++begin;
  while (end < bytes.length && continues(end)) ++end;
  const text = textOf(bytes.slice(begin, end));
  return typeof text === 'string' ? text : textOf(bytes.slice(0, PIECE));
}

function shownPiece(bytes, offset, length, view) {
  if (view === 'hex') return rendered(bytes.slice(0, PIECE), 'hex', offset);
  const text = whole(bytes, offset === 0);
  if (view === 'json' && length <= PIECE) {
    const indented = typeof text === 'string' ? indentJson(text) : null;
    if (indented !== null) return shownLines(indented);
  }
  return shownLines(text);
}

export async function showValue(view, place, query) {
  const {table, row, column, ts} = place;
  const offset = Math.max(0, Number(query.get('offset')) || 0);
  const told = await ask('value', {table64: pack(table), row64: pack(row), column64: pack(column), ts, offset});
  const up = make('p', {}, 'in row ', make('a', {href: link(['table', pack(table), 'row', pack(row)])}, shown(row)), ' of ',
    make('a', {href: link(['table', pack(table)])}, shown(table)));
  if (told === null || shown(told.ts) !== ts) {
    view.show(shown(column), up, soft('this version is not there any more'));
    return;
  }
  const bytes = bytesOf(told.part);
  const shownAs = viewOf(query);
  const step = (id, text, to) => make('a', to === null ? {id, class: 'button', role: 'link', 'aria-disabled': 'true'}
    : {id, class: 'button', href: changed({offset: to || ''})}, text);
  view.show(shown(column), up, make('p', {class: 'soft'}, timeNode(told.ts), ' · ' + count(told.bytes) + ' bytes'),
    make('div', {class: 'above'}, make('nav', {class: 'pager', 'aria-label': 'pieces'},
      step('previous', 'Previous', offset > 0 ? Math.max(0, offset - PIECE) : null),
      make('span', {class: 'soft'}, 'from byte ' + count(offset)),
      step('next', 'Next', offset + PIECE < told.bytes ? offset + PIECE : null)), viewLinks(query)),
    shownAs === 'json' && told.bytes > PIECE ? soft('Only values of up to 64 KiB are shown as JSON.') : null,
    make('pre', {id: 'value', class: shownAs === 'hex' && 'hex', tabindex: '0', 'aria-label': 'value'}, shownPiece(bytes, offset, told.bytes, shownAs)));
}
