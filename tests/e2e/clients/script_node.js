// The script of test_clients.py for the npm clients: script_node.js CLIENT HOST PORT TABLE [PROTOCOL], CLIENT one
// of ioredis, iovalkey, redis. What differs between them is in `adapters`; PROTOCOL 3 is for redis only.
'use strict';
const assert = require('assert');
const fs = require('fs');
const [client, host, port, table, protocol] = process.argv.slice(2);

// CELLAR_TLS_DIRECTORY, if set, holds ca.crt, client.crt and client.key: TLS with these.
const directory = process.env.CELLAR_TLS_DIRECTORY;
const read = (name) => fs.readFileSync(`${directory}/${name}`);
const tls = directory && { ca: read('ca.crt'), cert: read('client.crt'), key: read('client.key') };

// Each adapter: connect() -> {call(words, buffers), pipeline(list), exec(list), close(), subscribe(channel, f), id}.
const adapters = {
  ioredis: (module) => async (login) => {
    const redis = new module({ host, port: Number(port), ...(tls && { tls }), ...login });
    redis.on('error', () => {});
    try {
      await redis.ping();
    } catch (error) {
      redis.disconnect();
      throw error;
    }
    return {
      call: (words, buffers) => (buffers ? redis.callBuffer(...words) : redis.call(...words)),
      pipeline: async (list) => {
        const pipe = redis.pipeline();
        for (const words of list) pipe.call(...words);
        return (await pipe.exec()).map(([error, value]) => error || value);
      },
      exec: async (list) => {
        const transaction = redis.multi();
        for (const words of list) transaction.call(...words);
        const done = await transaction.exec();
        return done && done.map(([error, value]) => error || value);
      },
      watch: (key) => redis.watch(key),
      subscribe: async (channel, f) => {
        redis.on('message', (_, message) => f(message));
        await redis.subscribe(channel);
      },
      close: () => redis.disconnect(),
    };
  },
  redis: (module) => async (login) => {
    const { port: other, ...more } = login || {};
    const socket = { host, port: Number(other || port), ...(tls && { tls: true, ...tls }) };
    if (login) socket.reconnectStrategy = false;
    const options = { socket, ...more };
    if (protocol) options.RESP = Number(protocol);
    const redis = module.createClient(options);
    redis.on('error', () => {});
    await redis.connect();
    const asBuffers = { typeMapping: { [module.RESP_TYPES.BLOB_STRING]: Buffer } };
    return {
      call: (words, buffers) => redis.sendCommand(words, buffers ? asBuffers : undefined),
      pipeline: (list) => Promise.all(list.map((words) => redis.sendCommand(words))),
      exec: async (list) => {
        const transaction = redis.multi();
        for (const words of list) transaction.addCommand(words);
        try {
          return await transaction.exec();
        } catch (error) {
          if (error instanceof module.WatchError) return null;
          throw error;
        }
      },
      watch: (key) => redis.watch(key),
      subscribe: (channel, f) => redis.subscribe(channel, f),
      close: () => redis.destroy(),
    };
  },
};
adapters.iovalkey = adapters.ioredis;

// A map comes as an object, a Map or a flat array, by client and protocol.
const flat = (map) => (Array.isArray(map) ? map : Object.entries(map).flat());

async function main() {
  const module = require(client);
  const connect = adapters[client](module.default || module);
  const one = await connect();
  const other = await connect();
  assert.equal(await one.call(['PING']), 'PONG');
  assert.equal(await one.call(['CLIENT', 'SETNAME', 'script']), 'OK');
  console.log('ok connect');

  assert.equal(await one.call(['TABLE', 'CREATE', table, 'FAMILY', 'f', 'FAMILY', 'n', 'TYPE', 'i64']), 'OK');
  assert.equal(await one.call(['EXISTS', table]), 1);
  assert.equal(await one.call(['TYPE', table]), 'table');
  assert.equal(await one.call(['RENAME', table, table + '2']), 'OK');
  assert.equal(await one.call(['RENAME', table + '2', table]), 'OK');
  console.log('ok generic');

  assert.equal(await one.call(['CPUT', table, 'r', 'f:a', '1', 'n:x', '42']), 'OK');
  assert.equal(await one.call(['CGET', table, 'r', 'f:a']), '1');
  assert.equal(await one.call(['CGET', table, 'r', 'n:x']), 42);
  assert.equal(await one.call(['CGET', table, 'r', 'f:none']), null);
  assert.equal(await one.call(['CINCRBY', table, 'r', 'n:x', '1']), 43);
  assert.deepEqual(flat(await one.call(['CROW', table, 'r'])), ['f:a', '1', 'n:x', 43]);
  const [cursor, rows] = await one.call(['CSCAN', table, '0']);
  assert.equal(cursor, '0');
  assert.equal(rows[0][0], 'r');
  assert.deepEqual(flat(rows[0][1]), ['f:a', '1', 'n:x', 43]);
  assert.equal(await one.call(['CDEL', table, 'r']), 3);
  console.log('ok cells');

  await assert.rejects(() => one.call(['CGET', 'nosuchtable', 'r', 'f:a']), /^[A-Za-z]*Error: NOTABLE /);
  console.log('ok errors');

  const list = [];
  for (let i = 0; i < 10000; i++) list.push(['CPUT', table, `p${i}`, 'f:a', String(i)]);
  assert.ok((await one.pipeline(list)).every((reply) => reply === 'OK'));
  assert.equal(await one.call(['CCOUNT', table, 'PREFIX', 'p']), 10000);
  console.log('ok pipeline');

  assert.deepEqual(await one.exec([['CPUT', table, 'm', 'f:a', '1'], ['CINCRBY', table, 'm', 'n:x', '5']]), ['OK', 5]);
  await one.watch(table);
  await other.call(['CPUT', table, 'm', 'f:a', '2']);
  assert.equal(await one.exec([['CPUT', table, 'm', 'f:a', '3']]), null);
  assert.equal(await one.call(['CGET', table, 'm', 'f:a']), '2');
  console.log('ok transactions');

  const large = 'x'.repeat(10000000);
  assert.equal(await one.call(['CPUT', table, 'l', 'f:a', large]), 'OK');
  assert.ok((await one.call(['CGET', table, 'l', 'f:a'])) === large);
  console.log('ok large');

  const binary = Buffer.from([...Array(256).keys()]);
  const column = Buffer.concat([Buffer.from('f:'), binary]);
  assert.equal(await one.call(['CPUT', table, binary, column, binary]), 'OK');
  assert.ok(binary.equals(await one.call(['CGET', table, binary, column], true)));
  console.log('ok binary');

  const id = await one.call(['CLIENT', 'ID']);
  assert.equal(await other.call(['CLIENT', 'KILL', 'ID', String(id)]), 1);
  // The client connects again by itself; a command that meets the closed socket may fail once.
  let value;
  for (let i = 0; i < 300 && value === undefined; i++) {
    value = await one.call(['CGET', table, 'm', 'f:a']).catch(() => undefined);
    if (value === undefined) await new Promise((resolve) => setTimeout(resolve, 100));
  }
  assert.equal(value, '2');
  console.log('ok reconnect');

  const number = String(await one.call(['CLIENT', 'ID']));
  const waiting = one.call(['WAIT', '1', '0']);
  while ((await other.call(['CLIENT', 'UNBLOCK', number])) !== 1) continue;
  assert.equal(await waiting, 0);
  console.log('ok blocking');

  if (process.env.CELLAR_AUTH_PORT) {
    const guarded = { port: Number(process.env.CELLAR_AUTH_PORT) };
    const enters = async (login) => {
      const inside = await connect({ ...guarded, ...login });
      assert.equal(await inside.call(['PING']), 'PONG');
      inside.close();
    };
    await assert.rejects(() => enters({}), /NOAUTH/);
    await assert.rejects(() => enters({ password: 'wrong' }), /WRONGPASS|NOAUTH/);
    await enters({ password: 'secret' });
    await enters({ username: 'default', password: 'secret' });
    console.log('ok auth');
  }

  const heard = new Promise((resolve) => { one.subscribe(table + '-news', resolve); });
  while ((await other.call(['PUBLISH', table + '-news', 'hello'])) < 1) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  assert.equal(await heard, 'hello');
  console.log('ok pubsub');
  one.close();
  other.close();
}

main().then(() => process.exit(0), (error) => {
  console.log('not ok:', error);
  process.exit(1);
});
