// Pages of a scan. A cursor leads forwards only, so the address holds those of the pages before: `at` has the cursors
// of pages 2 to `page`, the last ones at least.
'use strict';

import {changed} from './address.js';
import {make} from './dom.js';
import {ask} from './server.js';
import {pack, shown, unpack} from './text.js';

const KEPT = 40;
const EMPTY_MAX = 200;  // calls that find nothing before somebody is asked whether to go on

const cursorsOf = (query) => (query.get('at') || '').split('.').filter(Boolean);

export function pageOf(query) {
  const at = cursorsOf(query);
  const page = Math.max(1, Number(query.get('page')) || 1);
  return {number: page, cursor64: at.length > 0 ? at[at.length - 1] : undefined};
}

// One page: [cursor of the next, what was found]. What is too large for one answer is asked for in smaller parts, and a
// part of a scan in which nothing fits the conditions is passed over.
export async function fetchPage(question, parameters, query, view, limits) {
  let cursor64 = pageOf(query).cursor64;
  const now = {...limits};
  for (let i = 0; ; ++i) {
    try {
      const [next, found] = await ask(question, {...parameters, ...now, cursor64});
      if (found.length > 0 || shown(next) === '0' || i >= EMPTY_MAX || !view.alive) return [next, found];
      cursor64 = pack(next);
    } catch (error) {
      if (error.status !== 413 || Object.values(now).every((n) => n <= 1)) throw error;
      for (const name of Object.keys(now)) now[name] = Math.max(1, Math.floor(now[name] / 4));
    }
  }
}

// First, previous and next page, as links.
export function pager(query, next) {
  const at = cursorsOf(query);
  const page = pageOf(query).number;
  const place = (id, text, href) => href
    ? make('a', {id, href, class: 'button'}, text)
    : make('a', {id, class: 'button', role: 'link', 'aria-disabled': 'true'}, text);
  const to = (number, cursors) => changed({page: number > 1 ? number : '', at: cursors.slice(-KEPT).join('.')});
  const isLast = shown(next) === '0';
  // Further back than the address remembers is the first page alone.
  const before = page <= 1 ? null : at.length > 1 || page === 2 ? to(page - 1, at.slice(0, -1)) : to(1, []);
  return make('nav', {class: 'pager', 'aria-label': 'pages'}, place('first', 'First', page > 1 && to(1, [])),
    place('previous', 'Previous', before), make('span', {class: 'soft'}, 'page ' + page),
    place('next', 'Next', !isLast && to(page + 1, [...at, pack(next)])));
}

export const cursorText = (query) => {
  const {cursor64} = pageOf(query);
  return cursor64 ? unpack(cursor64) : '0';
};
