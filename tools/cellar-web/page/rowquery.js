// A read of rows, as its address has it, and as it is asked for.
'use strict';

import {pack, packList} from './text.js';
import {conditions, split, typed} from './words.js';

// What people type. `cursors` and `page` are not among them: whoever changes the question begins at its first page.
export const FIELDS = ['prefix', 'min', 'max', 'columns', 'where', 'filter', 'versions', 'count', 'reverse'];

// A bound as CSCAN has it; without a bracket it includes its key.
function bound(text) {
  if (text === '-' || text === '+') return pack(text);
  return pack(typed(/^[[(]/.test(text) ? text : '[' + text));
}

export function questionOf(table, query) {
  const get = (name) => query.get(name) || '';
  const where = conditions(get('where'));
  const columns = split(get('columns')).map((word) => word.bytes);
  return {
    table64: pack(table),
    prefix64: get('prefix') === '' ? undefined : pack(typed(get('prefix'))),
    min64: get('min') === '' ? undefined : bound(get('min')),
    max64: get('max') === '' ? undefined : bound(get('max')),
    columns64: columns.length === 0 ? undefined : packList(columns),
    where64: where.length === 0 ? undefined : where.map(packList).join(','),
    filter64: get('filter') === '' ? undefined : pack(get('filter')),
    versions: get('versions'),
    reverse: get('reverse') === '1' ? '1' : undefined,
  };
}
