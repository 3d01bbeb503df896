// A feed as ioredis, iovalkey and node-redis read it: one line of JSON for each of XREAD, XRANGE, XREVRANGE, XLEN,
// XINFO STREAM.   node feed_node.js ioredis|iovalkey|redis HOST PORT FEED [PROTOCOL]
'use strict';

const [library, host, port, feed, protocol] = process.argv.slice(2);
const show = (call, found) => console.log(JSON.stringify({call, found}));
const pairs = (flat) => Object.fromEntries(flat.flatMap((_, i) => (i % 2 ? [] : [[flat[i], flat[i + 1]]])));

async function withIoredis() {
  const Redis = require(library);
  const client = new Redis({host, port: Number(port)});
  const entry = ([id, fields]) => [id, pairs(fields)];
  let last = '0';
  const entries = [];
  for (;;) {
    const reply = await client.xread('COUNT', 3, 'BLOCK', 300, 'STREAMS', feed, last);
    if (!reply) break;
    entries.push(...reply[0][1].map(entry));
    last = entries[entries.length - 1][0];
  }
  show('xread', entries);
  show('xrange', (await client.xrange(feed, '-', '+')).map(entry));
  show('xrevrange', (await client.xrevrange(feed, '+', '-', 'COUNT', 2)).map(entry));
  show('xlen', await client.xlen(feed));
  const info = pairs(await client.xinfo('STREAM', feed));
  show('xinfo', [info.length, info['last-generated-id'], info['last-entry'][0]]);
  client.disconnect();
}

async function withNodeRedis() {
  const {createClient} = require('redis');
  // node-redis gives XREAD's reply of RESP3 only as it comes, and only to those who say so.
  const client = createClient({socket: {host, port: Number(port)}, RESP: protocol === '3' ? 3 : 2,
                               unstableResp3: true});
  await client.connect();
  const entry = (at) => (Array.isArray(at) ? [at[0], pairs(at[1])] : [at.id, {...at.message}]);
  let last = '0';
  const entries = [];
  for (;;) {
    const reply = await client.xRead({key: feed, id: last}, {COUNT: 3, BLOCK: 300});
    if (!reply) break;
    const messages = Array.isArray(reply) ? reply[0].messages : Object.values(reply)[0];
    entries.push(...messages.map(entry));
    last = entries[entries.length - 1][0];
  }
  show('xread', entries);
  show('xrange', (await client.xRange(feed, '-', '+')).map(entry));
  show('xrevrange', (await client.xRevRange(feed, '+', '-', {COUNT: 2})).map(entry));
  show('xlen', await client.xLen(feed));
  const info = await client.xInfoStream(feed);
  show('xinfo', [info.length, info['last-generated-id'], entry(info['last-entry'])[0]]);
  client.destroy();
}

(library === 'redis' ? withNodeRedis() : withIoredis()).catch((error) => {
  console.log(error.stack);
  process.exit(1);
});
