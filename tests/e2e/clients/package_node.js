// The package `cellar` of tools/clients/node against the server at CELLAR_PORT, over the node-redis that NODE_PATH
// names: what comes back is what was put, each call does what its command does. Ends with status 0, or says what differs.
'use strict';

const assert = require('assert');
const fs = require('fs');
const net = require('net');
const path = require('path');

const { Cellar, CellarError, typed, withOptions } = require('cellar');

const url = `redis://127.0.0.1:${process.env.CELLAR_PORT}`;
const version = Number(require('redis/package.json').version.split('.')[0]);

async function all(found) {
  const each = [];
  for await (const one of found) each.push(one);
  return each;
}

async function values(db) {
  const table = await db.createTable('t', { x: '', s: 'TYPE string', n: 'TYPE u8', f: 'TYPE f64' });
  const put = { 'x:a': Buffer.from([0, 255]), 'x:b': true, 'x:c': false, 'x:d': -5, 'x:e': 0.5, 'x:f': typed(7, 'u16'),
    's:a': 'ü', 'n:': 255, 'f:a': Infinity, 'f:b': 1e300 };
  assert(await table.put('r', put));
  assert.deepStrictEqual(await table.row('r'), { ...put, 'x:f': 7 });
  await table.put('big', { 'x:a': 2n ** 63n - 1n, 'x:b': 2n ** 64n - 1n, 'x:c': -(2n ** 63n) });
  if (version >= 5) {
    assert.deepStrictEqual(await table.row('big'), { 'x:a': 2n ** 63n - 1n, 'x:b': 2n ** 64n - 1n, 'x:c': -(2n ** 63n) });
  } else {
    await assert.rejects(table.row('big'), RangeError);
  }
  await assert.rejects(table.put('r', { 'x:a': 2 ** 60 }), RangeError);
  await assert.rejects(table.put('r', { 'n:': 256 }), { code: 'BADVALUE' });
  await table.put('r', { 'f:t': withOptions(1, { ts: 10 }) });
  await table.put('r', { 'f:t': withOptions(2, { ts: 20, ttl: '1h' }) });
  const cells = (await table.cells('r', { versions: 'ALL' }))['f:t'];
  assert.deepStrictEqual(cells.map((cell) => [cell.value, cell.ts]), [[2, 20], [1, 10]]);
  assert.strictEqual(await table.get('r', 'f:t', { at: 15 }), 1);
  assert.strictEqual(await table.get('r', 'f:none'), null);
  const odd = [Buffer.from('x:\xff', 'latin1'), Buffer.from('x:\xfe', 'latin1')];  // two columns, neither of them UTF-8
  for (const column of odd) await db.command('CPUT', 't', 'odd', column, column);
  const names = Object.keys(await table.row('odd'));
  assert.strictEqual(names.length, 2);
  for (const name of names) assert.deepStrictEqual(await table.get('odd', name), (await table.row('odd'))[name]);
  await table.put(Buffer.from([1, 200, 0]), { 'n:': 1 });
  const keys = await all(table.keys());
  assert.strictEqual(await table.get(keys[0], 'n:'), 1);
  await table.drop();
}

async function reads(db) {
  const table = await db.createTable('t', { f: 'TYPE i64', s: 'TYPE string' });
  for (let i = 0; i < 100; ++i) await table.put(`k${String(i).padStart(3, '0')}`, { 'f:n': i, 's:p': i % 2 ? 'odd' : 'even' });
  for (const page of [1, 7, 1000]) assert.strictEqual((await all(table.keys({ page }))).length, 100);
  assert.deepStrictEqual((await all(table.scan({ limit: 2, page: 1, reverse: true }))).map(([key]) => key), ['k099', 'k098']);
  assert.strictEqual(await table.count({ where: [['s:p', 'EQ', 'odd'], ['f:n', 'LT', 10]] }), 5);
  assert.deepStrictEqual(await table.rows(['none', 'k003'], { columns: 'f' }), [{}, { 'f:n': 3 }]);
  const { cursor, rows } = await table.page('0', { count: 2 });
  assert.strictEqual(rows.length, 2);
  assert.strictEqual((await table.page(cursor, { count: 1 })).rows[0][0], 'k002');
  assert.deepStrictEqual(await table.aggregate({ n: 'COUNT f', max: 'MAX f:n', avg: 'AVG f:n' },
    { by: { parity: 'VALUE s:p' }, sort: 'max DESC' }),
  [{ parity: 'odd', n: 50, max: 99, avg: 50 }, { parity: 'even', n: 50, max: 98, avg: 49 }]);
  await table.createIndex('n', '-f:n');
  assert.deepStrictEqual(await all(table.keys({ index: 'n', eq: [42] })), ['k042']);
  await assert.rejects(table.count({ nonsense: 1 }), TypeError);
  await table.drop();
}

async function writes(db) {
  const table = await db.createTable('t', { f: 'TYPE i64', a: 'AGGREGATE sum', x: '' });
  assert(await table.put('r', { 'f:n': 1 }, { nx: true }));
  assert(!await table.put('r', { 'f:n': 2 }, { nx: true }));
  assert(!await table.put('r', { 'f:n': 2 }, { when: ['f:n', 'GT', 1] }));
  assert.deepStrictEqual(await table.mutate('r', [['PUT', 'x:', 'v'], ['INCR', 'f:n', 3]], { when: ['ROW', 'EXISTS'] }),
    { held: true, results: ['OK', 4] });
  assert.strictEqual(await table.increment('r', 'f:n'), 5);
  assert(await table.add('r', { 'a:': 5 }) && await table.add('r', { 'a:': 2 }));
  assert.strictEqual(await table.get('r', 'a:'), 7);
  assert.strictEqual(await table.update([['PUT', 'x:all', '1']]), 1);
  assert.strictEqual(await table.delete('r', ['x'], { when: ['f:n', 'GT', 9] }), null);
  assert.strictEqual(await table.delete('r', ['x']), 2);
  await assert.rejects(table.delete('r', []), TypeError);  // nothing is not all
  await assert.rejects(table.update([['DELROW']], { prefix: [] }), TypeError);
  assert.deepStrictEqual(await db.transaction(async (tx) => {
    await tx.table('t').put('q', { 'f:n': 1 });
    await tx.table('t').increment('q', 'f:n', 4);
  }), [true, 5]);
  await assert.rejects(db.transaction(async (tx) => {
    await tx.table('t').put('q', { 'f:n': 9 });
    await tx.table('t').put('q', { 'f:n': 'no' });
  }), { code: 'BADVALUE' });
  assert.strictEqual(await table.get('q', 'f:n'), 5);
  assert.strictEqual(await table.deleteRange({ all: true }), 2);
  await assert.rejects(db.table('none').row('r'), (error) => error instanceof CellarError && error.code === 'NOTABLE');
  await table.drop();
}

async function feeds(db) {
  const table = await db.createTable('t', { f: 'TYPE i64' });
  const feed = await db.createFeed('all-of-t', ['t'], { old: true, slice: [0, 1] });
  const group = await feed.createGroup('g');
  await table.put('r', { 'f:n': 1 });
  await table.put('r', { 'f:n': 2 });
  await db.command('WAITAOF', 1, 0, 10000);
  assert.deepStrictEqual((await all(feed.entries())).filter(({ op }) => op === 'put').map(({ value, old }) => [value, old]),
    [[1, null], [2, 1]]);
  const left = await group.read('ann');
  assert.deepStrictEqual(await group.read('bob'), []);
  assert.deepStrictEqual((await all(group.entries('bob', { claim: 0 }))).map(({ id }) => id), left.map(({ id }) => id));
  assert.deepStrictEqual(await group.read('ann', { pending: true }), []);
  await feed.drop();
  await table.drop();
}

// A server of a few lines. A write behind a lost connection is sent once, a read again; what is surely not done is tried
// again, and not for ever; where a node says who leads, that one is asked.
async function answers() {
  const served = [];
  const serve = async (answer) => {
    const heard = [];
    const server = net.createServer((socket) => socket.on('error', () => {}).on('data', (words) => {
      const commands = words.toString().split(/^\*\d+\r\n/m).slice(1).map((each) => each.split('\r\n').filter((_, i) => i % 2));
      for (const command of commands) {
        if (['CLIENT', 'QUIT'].includes(command[0])) {
          socket.write('+OK\r\n');
        } else {
          heard.push(command[0]);
          const reply = answer(heard.length);
          if (reply === null) socket.destroy();
          else socket.write(reply);
        }
      }
    }));
    served.push(server);
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
    return { port: server.address().port, heard };
  };
  const connected = (port, wait) => Cellar.connect({ url: `redis://127.0.0.1:${port}`, RESP: 2 }, { wait });

  const losing = await serve((count) => (count < 4 ? null : ':7\r\n'));
  let db = await connected(losing.port, 60_000);
  await assert.rejects(db.table('t').increment('r', 'f:n'), (error) => !(error instanceof CellarError));
  assert.deepStrictEqual(losing.heard, ['CINCRBY']);
  assert.strictEqual(await db.table('t').count(), 7);
  assert.deepStrictEqual(losing.heard, ['CINCRBY', 'CCOUNT', 'CCOUNT', 'CCOUNT']);
  await db.close();

  const told = ['-TRYAGAIN it is moved\r\n', '-CLUSTERDOWN no leader\r\n', '-LOADING it\r\n'];
  const leader = await serve((count) => told[count - 1] ?? ':8\r\n');
  const follower = await serve((count) => (count === 1 ? `-REDIRECT 127.0.0.1:${leader.port}\r\n` :
    `-READONLY no writes. The leader is 127.0.0.1:${leader.port}\r\n`));
  for (let i = 0; i < 2; ++i) {
    db = await connected(follower.port, 60_000);
    assert.strictEqual(Number(await db.command('X')), 8);
    await db.close();
  }
  assert.deepStrictEqual([follower.heard.length, leader.heard.length], [4, 5]);

  const never = await serve(() => '-TRYAGAIN still\r\n');
  db = await connected(never.port, 100);
  await assert.rejects(db.command('X'), { code: 'TRYAGAIN' });
  await db.close();
  for (const server of served) server.close();
}

async function readme() {
  const text = fs.readFileSync(path.join(process.env.CELLAR_CLIENT, 'README.md'), 'utf8');
  const code = text.split('```js\n').slice(1).map((block) => block.split('```')[0]).join('').replace(
    'redis://localhost:6479', url);
  const AsyncFunction = (async () => {}).constructor;
  await new AsyncFunction('require', code)(require);
}

(async () => {
  const db = await Cellar.connect(url);
  for (const part of [values, reads, writes, feeds, answers]) await part(db);
  await db.close();
  await readme();
})().catch((error) => {
  console.error(error);
  process.exit(1);
});
