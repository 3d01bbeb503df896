// The page of cellar-web. What the server says is only ever put into text nodes, never into HTML.
//
//   #/                         overview          #/table/<name>          its rows
//   #/heat, #/heat/<name>      heat map          #/table/<name>/schema
//   #/slow                     slow log          #/table/<name>/row/<key>
//   #/replication
//
// Names and keys are any bytes: a string, or {b64: "..."} of what is not UTF-8. In addresses each is
// the base64 of its bytes, after the word that says what it is.
'use strict';

const OVERVIEW_MS = 2000;
const POINTS = 60;
const PAGE_ROWS = 50;

const byId = (id) => document.getElementById(id);

// --- small helpers

// An element with attributes, and children that are nodes or texts.
function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === false || value === undefined) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

function bytesOf(text) {
  if (typeof text === 'object' && text !== null && 'b64' in text) {
    return Uint8Array.from(atob(text.b64), (c) => c.charCodeAt(0));
  }
  return new TextEncoder().encode(String(text));
}

function pack(text) {
  let binary = '';
  for (const byte of bytesOf(text)) binary += String.fromCharCode(byte);
  return btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

function unpack(packed) {
  const b64 = packed.replaceAll('-', '+').replaceAll('_', '/');
  const bytes = bytesOf({b64});
  try {
    return new TextDecoder('utf-8', {fatal: true, ignoreBOM: true}).decode(bytes);
  } catch {
    return {b64};
  }
}

// What people see of a text: what cannot be printed as \xHH.
function shown(text) {
  if (text === null) return '(nil)';
  if (typeof text === 'object') {
    if ('int' in text) return text.int;
    if ('bytes' in text) return shown(text.begin) + ' … (' + count(text.bytes) + ' bytes)';
    return [...bytesOf(text)].map((b) => b >= 32 && b < 127 ? String.fromCharCode(b)
      : '\\x' + b.toString(16).padStart(2, '0')).join('');
  }
  // eslint-disable-next-line no-control-regex
  return String(text).replace(/[\u0000-\u001f\u007f\u0080-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g,
    (c) => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'));
}

// Maps come as arrays: key, value, key, value ...
const field = (map, name) => map[map.findIndex((key, i) => i % 2 === 0 && key === name) + 1];

function pairs(map) {
  return Array.from({length: map.length / 2}, (_, i) => [map[2 * i], map[2 * i + 1]]);
}

function time(micros) {
  const date = new Date(micros / 1000);
  return Number.isNaN(date.getTime()) ? String(micros)
    : date.toISOString().replace('T', ' ').slice(0, 19);
}

function count(n) {
  return Number(n).toLocaleString('en');
}

function size(bytes) {
  let unit = 0;
  let n = Number(bytes);
  while (n >= 1024 && unit < 4) {
    n /= 1024;
    ++unit;
  }
  return (unit === 0 ? n : n.toFixed(n < 10 ? 2 : 1)) + ' ' + ['B', 'KiB', 'MiB', 'GiB', 'TiB'][unit];
}

// --- the server

class NotLoggedIn extends Error {}

async function ask(path, parameters, options) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters || {})) {
    if (value !== undefined && value !== '') query.set(name, value);
  }
  let response;
  try {
    response = await fetch('/api/' + path + '?' + query, {headers: {'X-Cellar': '1'}, ...options});
  } catch {
    throw new Error('cellar-web does not answer.');
  }
  const reply = await response.json().catch(() => ({error: 'status ' + response.status}));
  if (response.status === 401 && path !== 'login') throw new NotLoggedIn(reply.error);
  if (!response.ok) throw new Error(shown(reply.error));
  return reply.answer;
}

function post(path, body) {
  return ask(path, {}, {
    method: 'POST',
    headers: {'X-Cellar': '1', 'Content-Type': 'application/json'},
    body: JSON.stringify(body || {}),
  });
}

// The fields of INFO.
async function info() {
  const text = await ask('info');
  const fields = {};
  for (const line of text.split('\r\n')) {
    const colon = line.indexOf(':');
    if (colon > 0 && line[0] !== '#') fields[line.slice(0, colon)] = line.slice(colon + 1);
  }
  return fields;
}

// "calls=1,usec=2" by its words.
function parts(value) {
  return Object.fromEntries(value.split(',').map((part) => {
    const equals = part.indexOf('=');
    return [part.slice(0, equals), part.slice(equals + 1)];
  }));
}

// --- the frame

let view = 0;     // counted up whenever another one is shown: what comes late for an old one is dropped
let timer = null;

function tell(trouble) {
  byId('trouble').hidden = !trouble;
  byId('trouble').textContent = trouble || '';
}

function show(...children) {
  byId('main').replaceChildren(...children);
}

function rows(head, lines, classes) {
  const cell = (tag, content, i) => {
    const made = make(tag, {class: classes[i]});
    made.append(content instanceof Node ? content : shown(content));
    return made;
  };
  return make('div', {class: 'wide'}, make('table', {},
    make('thead', {}, make('tr', {}, ...head.map((text, i) => cell('th', text, i)))),
    make('tbody', {}, ...lines.map((line) =>
      make('tr', {}, ...line.map((content, i) => cell('td', content, i)))))));
}

async function showLogin(trouble) {
  ++view;
  clearTimeout(timer);
  tell(trouble);
  byId('head').hidden = byId('body').hidden = true;
  byId('login').hidden = false;
  byId('password').value = '';
  byId('user').focus();
}

async function logIn(user, password) {
  await post('login', {user, password});
  byId('login').hidden = true;
  byId('head').hidden = byId('body').hidden = false;
  tell('');
  await Promise.all([listTables(), go()]);
}

// Runs what shows something, and tells what went wrong.
async function guard(action) {
  try {
    await action();
    return true;
  } catch (error) {
    if (error instanceof NotLoggedIn) await showLogin('');
    else tell(error.message);
    return false;
  }
}

async function listTables() {
  let keyspaces = ['0'];
  try {
    keyspaces = await ask('keyspaces');
  } catch (error) {
    if (error instanceof NotLoggedIn) throw error;
  }
  const lists = [];
  for (const keyspace of keyspaces) {
    let names = [];
    try {
      names = await ask('tables', {keyspace64: pack(keyspace)});
    } catch (error) {
      if (error instanceof NotLoggedIn) throw error;
      continue;
    }
    if (names.length === 0) continue;
    lists.push(make('h2', {}, 'keyspace ' + shown(keyspace)));
    lists.push(make('ul', {}, ...names.map((name) => {
      const whole = shown(keyspace) + '/' + shown(name);
      return make('li', {}, make('a', {href: '#/table/' + pack(whole), title: shown(name)}, shown(name)));
    })));
  }
  if (lists.length === 0) lists.push(make('p', {class: 'soft'}, 'none, or none that you may see'));
  byId('tables').replaceChildren(...lists);
  mark();
}

function mark() {
  const here = location.hash || '#/';
  for (const link of document.querySelectorAll('header nav a, aside a')) {
    const href = link.getAttribute('href');
    if (href === here || (href !== '#/' && here.startsWith(href + '/'))) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
}

// --- overview

const history = {ops: [], memory: [], clients: []};

function line(values) {
  const most = Math.max(1, ...values);
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  svg.setAttribute('viewBox', '0 0 ' + (POINTS - 1) + ' 20');
  svg.setAttribute('preserveAspectRatio', 'none');
  const polyline = document.createElementNS('http://www.w3.org/2000/svg', 'polyline');
  polyline.setAttribute('points', values.map((value, i) =>
    (POINTS - values.length + i) + ',' + (19 - 18 * value / most).toFixed(2)).join(' '));
  svg.append(polyline);
  return svg;
}

function card(name, value, values) {
  return make('div', {class: 'card'}, make('span', {class: 'soft'}, name), make('b', {}, value),
    values ? line(values) : null);
}

function note(values, value) {
  values.push(Number(value) || 0);
  if (values.length > POINTS) values.shift();
}

function commandLines(fields) {
  return Object.entries(fields).filter(([name]) => name.startsWith('cmdstat_')).map(([name, value]) => {
    const stat = parts(value);
    const command = name.slice('cmdstat_'.length);
    const p = parts(fields['latency_percentiles_usec_' + command] || '');
    return {command, stat, p};
  }).sort((a, b) => b.stat.usec - a.stat.usec).slice(0, 15).map(({command, stat, p}) =>
    [command.replace('|', ' ').toUpperCase(), count(stat.calls), Number(stat.usec_per_call).toFixed(1),
      p.p50 || '', p.p99 || '']);
}

async function showOverview(mine) {
  const fields = await info();
  if (mine !== view) return;
  tell('');
  byId('server').textContent = 'Cellar ' + (fields.cellar_version || '') + ' · ' + (fields.role || '') +
    ' · port ' + (fields.tcp_port || '');
  note(history.ops, fields.instantaneous_ops_per_sec);
  note(history.memory, fields.used_memory);
  note(history.clients, fields.connected_clients);
  const cards = [
    card('commands/s', count(fields.instantaneous_ops_per_sec), history.ops),
    card('memory', size(fields.used_memory), history.memory),
    card('clients', count(fields.connected_clients), history.clients),
    card('up for', Math.floor(fields.uptime_in_seconds / 3600) + ' h ' +
      Math.floor(fields.uptime_in_seconds % 3600 / 60) + ' min'),
    card('log', fields.aof_enabled === '1' ? size(fields.aof_current_size) : 'off'),
    card('last snapshot', fields.rdb_last_bgsave_status || ''),
  ];
  show(make('h1', {}, 'Overview'), make('div', {class: 'cards'}, ...cards),
    make('h2', {}, 'Commands that take most time'),
    rows(['command', 'calls', 'us a call', 'p50 us', 'p99 us'], commandLines(fields), ['', 'n', 'n', 'n', 'n']));
}

async function overview(mine) {
  await guard(() => showOverview(mine));
  if (mine === view) timer = setTimeout(() => overview(mine), OVERVIEW_MS);
}

// --- tables

function tabs(table, tab) {
  const base = '#/table/' + pack(table);
  const link = (name, href, here) => make('a', {href, 'aria-current': here && 'page'}, name);
  return make('div', {class: 'tabs'}, link('Rows', base, tab === 'rows'),
    link('Schema', base + '/schema', tab === 'schema'), link('Heat', '#/heat/' + pack(table), false));
}

// The newest cell of each column, as CSCAN and CROW with WITHTS give them.
function cellLines(columns) {
  return pairs(columns).flatMap(([column, versions]) => versions.map(([micros, value], i) =>
    [i === 0 ? column : '', value, time(micros)]));
}

async function showRows(table, mine, prefix, cursor) {
  const [next, found] = await ask('rows',
    {table64: pack(table), prefix64: prefix === undefined ? undefined : pack(prefix), cursor, count: PAGE_ROWS});
  if (mine !== view) return;
  tell('');
  const input = make('input', {id: 'prefix', placeholder: 'row key begins with', 'aria-label': 'prefix', size: 40});
  input.value = prefix === undefined ? '' : shown(prefix);
  const search = make('form', {class: 'bar', onsubmit: (event) => {
    event.preventDefault();
    guard(() => showRows(table, mine, input.value === '' ? undefined : input.value));
  }}, input, make('button', {}, 'Search'));
  const lines = found.flatMap(([row, columns]) => {
    const link = make('a', {href: '#/table/' + pack(table) + '/row/' + pack(row)}, shown(row));
    return cellLines(columns).map((line, i) => [i === 0 ? link : '', ...line]);
  });
  const more = make('button', {type: 'button', id: 'next', disabled: shown(next) === '0',
    onclick: () => guard(() => showRows(table, mine, prefix, next))}, 'Next page');
  show(make('h1', {}, shown(table)), tabs(table, 'rows'), search,
    lines.length === 0 ? make('p', {class: 'soft'}, 'no rows')
      : rows(['row', 'column', 'value', 'time'], lines, ['key', 'key', 'value', 'time']),
    make('p', {}, more));
}

async function showRow(table, row, mine) {
  const columns = await ask('row', {table64: pack(table), row64: pack(row)});
  if (mine !== view) return;
  tell('');
  show(make('h1', {}, shown(row)), make('p', {}, 'in ', make('a', {href: '#/table/' + pack(table)}, shown(table)),
    make('span', {class: 'soft'}, ' — up to five versions of up to 200 columns')),
  columns.length === 0 ? make('p', {class: 'soft'}, 'there is no such row')
    : rows(['column', 'value', 'time'], cellLines(columns), ['key', 'value', 'time']));
}

async function showSchema(table, mine) {
  const table64 = pack(table);
  const described = await ask('table', {table64});
  const families = [];
  for (const family of field(described, 'families')) {
    families.push(await ask('family', {table64, family64: pack(family)}));
  }
  const definition = await ask('definition', {table64});
  if (mine !== view) return;
  tell('');
  const lines = families.map((family) => [field(family, 'name'), field(family, 'type'), field(family, 'versions'),
    field(family, 'ttl'), count(field(family, 'cells')), size(field(family, 'memory'))]);
  show(make('h1', {}, shown(table)), tabs(table, 'schema'),
    make('div', {class: 'cards'}, card('rows', count(field(described, 'rows'))),
      card('cells', count(field(described, 'cells'))), card('memory', size(field(described, 'memory')))),
    make('h2', {}, 'Families'),
    rows(['family', 'type', 'versions', 'ttl', 'cells', 'memory'], lines, ['key', '', '', '', 'n', 'n']),
    make('h2', {}, 'The commands that make it'), make('pre', {}, definition.map(shown).join('\n')));
}

// --- heat

// Viridis, by Smith and van der Walt, in nine steps: also for eyes that tell no red from green.
const VIRIDIS = [[68, 1, 84], [72, 40, 120], [62, 74, 137], [49, 104, 142], [38, 130, 142], [31, 158, 137],
  [53, 183, 121], [110, 206, 88], [253, 231, 37]];

function colour(share) {
  const at = Math.max(0, Math.min(1, share)) * (VIRIDIS.length - 1);
  const i = Math.min(VIRIDIS.length - 2, Math.floor(at));
  return VIRIDIS[i].map((low, c) => Math.round(low + (VIRIDIS[i + 1][c] - low) * (at - i)));
}

// Where shareAt gives null nothing is painted: the canvas shows its ground, which is no colour of the scale.
function paint(canvas, width, height, shareAt) {
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext('2d');
  const image = context.createImageData(width, height);
  for (let y = 0; y < height; ++y) {
    for (let x = 0; x < width; ++x) {
      const share = shareAt(x, y);
      if (share === null) continue;
      const [r, g, b] = colour(share);
      image.data.set([r, g, b, 255], 4 * (y * width + x));
    }
  }
  context.putImageData(image, 0, 0);
}

// Labels of some of `total` places along an axis, each where its place begins. `edge` is the side that they are
// measured from.
function axis(name, total, most, edge, textOf) {
  const labels = Math.min(total, most);
  const made = make('div', {class: 'axis ' + name});
  for (let i = 0; i < labels; ++i) {
    const at = Math.floor(i * total / labels);
    const label = make('span', {title: textOf(at)}, textOf(at));
    label.style[edge] = 100 * at / total + '%';
    made.append(label);
  }
  return made;
}

async function showHeat(table, metric, mine) {
  const heat = await ask('heat', {table64: pack(table)});
  if (mine !== view) return;
  tell('');
  const keys = field(heat, 'keys');
  const steps = field(heat, metric);
  const from = field(heat, 'from');
  const step = field(heat, 'step');
  const counted = steps.flat().filter((value) => value > 0);
  const most = counted.reduce((a, b) => Math.max(a, b), 0);
  const least = counted.reduce((a, b) => Math.min(a, b), most);
  const share = (value) => !value ? null
    : most === least ? 1 : Math.log(value / least) / Math.log(most / least);
  const timeOf = (x) => time((from + x * step) * 1e6);
  const picture = make('canvas', {id: 'heat', role: 'img', 'aria-label': 'heat map of ' + shown(table)});
  paint(picture, Math.max(1, steps.length), Math.max(1, keys.length), (x, y) => share(steps[x] ? steps[x][y] : 0));
  const label = make('p', {id: 'under', class: 'soft'}, 'Point at a place to see its time, its first key and its ' + metric + '.');
  picture.addEventListener('mousemove', (event) => {
    const box = picture.getBoundingClientRect();
    const x = Math.min(steps.length - 1, Math.floor((event.clientX - box.left) / box.width * steps.length));
    const y = Math.min(keys.length - 1, Math.floor((event.clientY - box.top) / box.height * keys.length));
    if (x < 0 || y < 0) return;
    label.textContent = timeOf(x) + ' · from ' + shown(keys[y]) + ' · ' + (steps[x][y] ? count(steps[x][y]) : 'no') + ' ' + metric;
  });
  const scale = make('canvas', {'aria-hidden': 'true'});
  paint(scale, 64, 1, (x) => x / 63);
  const legend = make('div', {class: 'legend'}, make('span', {class: 'none'}), 'no ' + metric);
  if (most > 0) legend.append(make('span', {class: 'from'}, count(least)), scale, count(most) + ' ' + metric);
  const choice = make('select', {'aria-label': 'metric', onchange: () => guard(() => showHeat(table, choice.value, mine))},
    ...['reads', 'writes', 'bytes'].map((name) => make('option', {value: name, selected: name === metric}, name)));
  // Of a day the hour is enough; UTC, as everywhere on this page.
  const short = steps.length * step <= 86400 ? (x) => timeOf(x).slice(11, 16) : (x) => timeOf(x).slice(5, 16);
  show(make('h1', {}, 'Heat of ' + shown(table)), make('form', {class: 'bar'}, choice),
    make('div', {class: 'map'}, axis('keys', keys.length, 16, 'top', (y) => shown(keys[y])), picture,
      axis('times', steps.length, 8, 'left', short), make('div', {class: 'name'}, 'row key ↓'),
      make('div', {class: 'name'}, 'time (UTC) →')),
    legend, label);
}

function chooseTable() {
  const links = [...byId('tables').querySelectorAll('a')].map((link) =>
    make('li', {}, make('a', {href: link.getAttribute('href').replace('#/table/', '#/heat/')}, link.textContent)));
  show(make('h1', {}, 'Heat'), make('p', {class: 'soft'}, 'Of which table?'), make('ul', {}, ...links));
}

// --- slow log, replication

async function showSlow(mine) {
  const entries = await ask('slowlog');
  if (mine !== view) return;
  tell('');
  const lines = entries.map((entry) => [time(entry[1] * 1e6), count(entry[2]), entry[3].map(shown).join(' '), entry[4]]);
  show(make('h1', {}, 'Slow log'), lines.length === 0 ? make('p', {class: 'soft'}, 'nothing was slow')
    : rows(['time', 'us', 'command', 'client'], lines, ['time', 'n', 'value', '']));
}

async function showReplication(mine) {
  const fields = await info();
  if (mine !== view) return;
  tell('');
  const followers = Object.entries(fields).filter(([name]) => /^slave\d+$/.test(name)).map(([, value]) => {
    const of = parts(value);
    return [of.ip + ':' + of.port, of.state, of.lag, of.offset];
  });
  const names = ['role', 'master_host', 'master_port', 'master_link_status', 'master_last_io_seconds_ago',
    'slave_repl_offset', 'connected_slaves', 'master_repl_offset', 'master_replid', 'master_failover_state'];
  show(make('h1', {}, 'Replication'),
    rows(['field', 'value'], names.filter((name) => name in fields).map((name) => [name, fields[name]]), ['', 'value']),
    followers.length === 0 ? null : make('h2', {}, 'Followers'),
    followers.length === 0 ? null
      : rows(['follower', 'state', 'lag s', 'offset'], followers, ['key', '', 'n', 'n']));
}

// --- addresses

async function go() {
  clearTimeout(timer);
  const mine = ++view;
  mark();
  const [page, name, tab, key] = (location.hash || '#/').slice(2).split('/');
  // What was shown before is not left standing beside the trouble, as if it were what was asked for.
  const open = async (action) => {
    if (!await guard(action) && mine === view) show();
  };
  if (page === 'table' && name) {
    await open(() => {
      const table = unpack(name);
      if (tab === 'schema') return showSchema(table, mine);
      return tab === 'row' ? showRow(table, unpack(key || ''), mine) : showRows(table, mine);
    });
  } else if (page === 'heat') {
    if (name) await open(() => showHeat(unpack(name), 'reads', mine));
    else chooseTable();
  } else if (page === 'slow') {
    await open(() => showSlow(mine));
  } else if (page === 'replication') {
    await open(() => showReplication(mine));
  } else {
    await overview(mine);
  }
}

byId('login').addEventListener('submit', async (event) => {
  event.preventDefault();
  try {
    await logIn(byId('user').value, byId('password').value);
  } catch (error) {
    tell(error.message);
  }
});
byId('leave').addEventListener('click', async () => {
  await post('logout').catch(() => null);
  await showLogin('');
});
window.addEventListener('hashchange', () => {
  if (byId('login').hidden) go();
});

// A session may be there still; or nobody needs a password.
(async () => {
  try {
    if (!await ask('session')) throw new NotLoggedIn();
    byId('head').hidden = byId('body').hidden = false;
    await Promise.all([guard(listTables), go()]);
  } catch (error) {
    if (!(error instanceof NotLoggedIn)) return showLogin(error.message);
    try {
      await logIn('', '');
    } catch (refused) {
      await showLogin(/NOAUTH|WRONGPASS/.test(refused.message) ? '' : refused.message);
    }
  }
  return null;
})();
