// What a table is: its families, and the commands that make it anew.
'use strict';

import {card, make, rows} from './dom.js';
import {ask} from './server.js';
import {tabs} from './tables.js';
import {count, field, pack, shown, shownLines, size} from './text.js';

export async function showSchema(view, table) {
  const table64 = pack(table);
  const described = await ask('table', {table64});
  const families = await Promise.all(field(described, 'families').map((family) =>
    ask('family', {table64, family64: pack(family)})));
  const definition = await ask('definition', {table64});
  const lines = families.map((family) => [field(family, 'name'), field(family, 'type'), field(family, 'order'),
    field(family, 'gc') || field(family, 'versions'), field(family, 'group'), count(field(family, 'cells')),
    size(field(family, 'memory')), size(field(family, 'disk'))]);
  view.show(shown(table), tabs(table, 'schema'),
    make('div', {class: 'cards'}, card('key order', shown(field(described, 'key'))),
      card('rows', count(field(described, 'rows'))), card('cells', count(field(described, 'cells'))),
      card('memory', size(field(described, 'memory')))),
    make('h2', {}, 'Families'),
    rows(['family', 'type', 'order', 'keeps', 'group', 'cells', 'memory', 'disk'], lines, ['key', '', '', '', '', 'n', 'n', 'n'],
      'families'),
    make('h2', {}, 'The commands that make it'),
    make('pre', {}, definition.map(shownLines).join('\n')));
}
