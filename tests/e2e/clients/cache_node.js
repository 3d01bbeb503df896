// The script of test_clients.py for node-redis' client side cache: cache_node.js HOST PORT TABLE. Its cache takes
// commands that say CACHEABLE and files replies under what they give to pushKey, so commands of Cellar are given to
// it as a module.
'use strict';
const assert = require('assert');
const redis = require('redis');
const { once } = require('events');
const [host, port, table] = process.argv.slice(2);

const cells = {
  get: {
    CACHEABLE: true,
    IS_READ_ONLY: true,
    parseCommand(parser, name, row, column) {
      parser.push('CGET');
      parser.pushKey(name);
      parser.push(row, column);
    },
    transformReply: undefined,
  },
  scan: {
    CACHEABLE: true,
    IS_READ_ONLY: true,
    parseCommand(parser, name) {
      parser.push('CSCAN');
      parser.pushKey(name);
      parser.push('0', 'KEYSONLY');
    },
    transformReply: undefined,
  },
};

async function main() {
  const options = { RESP: 3, socket: { host, port: Number(port) }, modules: { cells } };
  const cache = new redis.BasicClientSideCache({ ttl: 0, maxEntries: 0 });
  const reader = redis.createClient({ ...options, clientSideCache: cache });
  const writer = redis.createClient(options);
  await Promise.all([reader.connect(), writer.connect()]);
  const write = (line) => writer.sendCommand(line.split(' '));
  // What `change` brings is waited for as an application would not: until the cache has heard of it.
  const heard = async (change) => {
    const invalidation = once(cache, 'invalidate');
    await change;
    await invalidation;
  };
  const hits = () => cache.stats().hitCount;

  await write(`TABLE CREATE ${table} FAMILY f FAMILY short TTL 1s`);
  await write(`CPUT ${table} r f:a 1`);
  assert.equal(await reader.cells.get(table, 'r', 'f:a'), '1');
  assert.equal(await reader.cells.get(table, 'r', 'f:a'), '1');
  assert.equal(hits(), 1);
  console.log('ok cached');

  await heard(write(`CPUT ${table} r f:a 2`));
  assert.equal(await reader.cells.get(table, 'r', 'f:a'), '2');
  await reader.cells.get(table, 's', 'f:a');
  await heard(write(`CPUT ${table} s f:a 1`));
  assert.equal(await reader.cells.get(table, 's', 'f:a'), '1');
  await reader.cells.get(table, 'r', 'f:a');
  await heard(write(`CDELRANGE ${table} ALL`));
  assert.equal(await reader.cells.get(table, 'r', 'f:a'), null);
  console.log('ok rows');

  assert.deepEqual((await reader.cells.scan(table))[1], []);
  await heard(write(`CPUT ${table} x f:a 1`));
  assert.deepEqual((await reader.cells.scan(table))[1], ['x']);
  console.log('ok scans');

  // A table may be named with its keyspace or without.
  await write(`KEYSPACE CREATE ${table}`);
  await write(`TABLE CREATE ${table}/t FAMILY f`);
  for (const name of [`${table}/t`, `0/${table}`]) {
    await write(`CPUT ${name} r f:a 1`);
    assert.equal(await reader.cells.get(name, 'r', 'f:a'), '1');
    await heard(write(`CPUT ${name} r f:a 2`));
    assert.equal(await reader.cells.get(name, 'r', 'f:a'), '2');
  }
  await reader.sendCommand(['SELECT', table]);
  assert.equal(await reader.cells.get('t', 'r', 'f:a'), '2');
  await heard(write(`CPUT ${table}/t r f:a 3`));
  assert.equal(await reader.cells.get('t', 'r', 'f:a'), '3');
  await reader.sendCommand(['SELECT', '0']);
  console.log('ok keyspaces');

  await write(`CPUT ${table} r short:a 1`);
  assert.equal(await reader.cells.get(table, 'r', 'short:a'), '1');
  await heard(Promise.resolve());
  assert.equal(await reader.cells.get(table, 'r', 'short:a'), null);
  console.log('ok ttl');
  reader.destroy();
  writer.destroy();
}

main().catch((error) => {
  console.log(error.stack);
  process.exit(1);
});
