// Users with their rights, and the configuration.
'use strict';

import {labelled, make, rows, scrolled, soft} from './dom.js';
import {ask} from './server.js';
import {count, field, pack, pairs, shown} from './text.js';

const USERS = 200;
// What a page has no business to show.
const SECRET = /pass$|password|masterauth|secret/;

export async function showUsers(view) {
  const names = await ask('users');
  const lines = [];
  for (const name of names.slice(0, USERS)) {
    const told = await ask('user', {user64: pack(name)});
    if (told === null) continue;
    const get = (what) => told.includes(what) ? field(told, what) : '';
    const flags = get('flags') || [];
    lines.push([name, flags.includes('on') ? 'on' : 'off', flags.includes('nopass') ? 'none needed' : count((get('passwords') || []).length),
      get('commands'), get('keys'), get('channels'), (get('selectors') || []).map((selector) => '(' + pairs(selector)
        .map(([, value]) => shown(value)).join(' ') + ')').join(' ')]);
  }
  view.show('Users', rows(['user', 'state', 'passwords', 'commands', 'tables', 'channels', 'selectors'], lines,
    ['key', '', 'n', 'key', 'key', 'key', 'key'], 'users'), names.length > USERS ? soft('and ' + (names.length - USERS) + ' more') : null);
}

export async function showConfig(view, query) {
  const options = pairs(await ask('config')).sort(([a], [b]) => a < b ? -1 : 1);
  const body = make('tbody', {});
  const input = make('input', {id: 'wanted', type: 'search', value: query.get('find') || '', autocomplete: 'off'});
  const fill = () => body.replaceChildren(...options.filter(([name]) => name.includes(input.value.toLowerCase())).map(([name, value]) =>
    make('tr', {}, make('td', {class: 'key'}, name),
      make('td', {class: 'value'}, SECRET.test(name) && value !== '' ? '(set)' : shown(value)))));
  input.addEventListener('input', fill);
  fill();
  view.show('Configuration', make('div', {class: 'ask'}, labelled('Whose names have', input)),
    scrolled(make('table', {'aria-label': 'options'}, make('thead', {}, make('tr', {}, make('th', {scope: 'col'}, 'option'),
      make('th', {scope: 'col'}, 'value'))), body)));
}
