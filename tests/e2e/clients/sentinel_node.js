// Of sentinel_writers.py: sentinel_node.js CLIENT SENTINEL_PORT,... NAME TABLE. Writes rows 0, 1, 2 ... through the
// Sentinels with ioredis or node-redis (redis; redis3 over RESP3) in their default settings, and prints `acknowledged N` for each. It ends when
// its standard input does.
'use strict';
const [library, ports, name, table] = process.argv.slice(2);
const addresses = ports.split(',').map((port) => ({ host: '127.0.0.1', port: Number(port) }));

async function connect() {
  if (library === 'ioredis') {
    const Redis = require('ioredis');
    const client = new Redis({ sentinels: addresses, name });
    client.on('error', () => {});
    return (...words) => client.call(...words);
  }
  const { createSentinel } = require('redis');
  const client = createSentinel({ name, sentinelRootNodes: addresses, RESP: library === 'redis3' ? 3 : 2 });
  client.on('error', () => {});
  await client.connect();
  return (...words) => client.sendCommand(false, words);
}

async function main() {
  let ended = false;
  process.stdin.on('end', () => { ended = true; }).resume();
  const call = await connect();
  for (let i = 0; !ended; ) {
    try {
      await call('CPUT', table, `${library}-${i}`, 'f:a', String(i));
      console.log(`acknowledged ${i}`);
      i += 1;
    } catch (error) {
      console.log(`error ${error.message.split('\n')[0]}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  process.exit(0);
}

main();
