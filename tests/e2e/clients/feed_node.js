// A feed as ioredis, iovalkey and node-redis read it: one line of JSON for each of XREAD, XRANGE, XREVRANGE, XLEN,
// XINFO STREAM, and for a group.   node feed_node.js ioredis|iovalkey|redis HOST PORT FEED [PROTOCOL]
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
  await client.xgroup('CREATE', feed, 'js', '0');
  const got = [];
  for (;;) {
    const reply = await client.xreadgroup('GROUP', 'js', 'ann', 'COUNT', 3, 'BLOCK', 100, 'STREAMS', feed, '>');
    if (!reply) break;
    got.push(...reply[0][1].map(entry));
  }
  show('xreadgroup', got);
  const ids = got.map(([id]) => id);
  const names = (list) => list.map(([id]) => id);
  show('xack', await client.xack(feed, 'js', ...ids.slice(0, 2)));
  show('xpending', [(await client.xpending(feed, 'js'))[0], names(await client.xpending(feed, 'js', '-', '+', 100))]);
  show('xclaim', names(await client.xclaim(feed, 'js', 'bob', 0, ...ids.slice(2, 4))));
  show('xautoclaim', names((await client.xautoclaim(feed, 'js', 'eve', 0, '0-0', 'COUNT', 3))[1]));
  show('xhistory', names((await client.xreadgroup('GROUP', 'js', 'eve', 'STREAMS', feed, '0'))[0][1]));
  show('consumers', (await client.xinfo('CONSUMERS', feed, 'js')).map((one) => pairs(one).name).sort());
  show('lag', (await client.xinfo('GROUPS', feed)).map((one) => pairs(one).lag));
  await client.xgroup('DESTROY', feed, 'js');
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
  await client.xGroupCreate(feed, 'js', '0');
  const read = async (id, options) => {
    const reply = await client.xReadGroup('js', options.consumer, {key: feed, id}, options);
    if (!reply) return null;
    return (Array.isArray(reply) ? reply[0].messages : Object.values(reply)[0]).map(entry);
  };
  const got = [];
  for (let more; (more = await read('>', {consumer: 'ann', COUNT: 3, BLOCK: 100}));) got.push(...more);
  show('xreadgroup', got);
  const ids = got.map(([id]) => id);
  const names = (list) => list.map((one) => entry(one)[0]);
  show('xack', await client.xAck(feed, 'js', ids.slice(0, 2)));
  show('xpending', [(await client.xPending(feed, 'js')).pending,
                    (await client.xPendingRange(feed, 'js', '-', '+', 100)).map((one) => one.id)]);
  show('xclaim', names(await client.xClaim(feed, 'js', 'bob', 0, ids.slice(2, 4))));
  show('xautoclaim', names((await client.xAutoClaim(feed, 'js', 'eve', 0, '0-0', {COUNT: 3})).messages));
  show('xhistory', (await read('0', {consumer: 'eve'})).map(([id]) => id));
  show('consumers', (await client.xInfoConsumers(feed, 'js')).map((one) => one.name).sort());
  show('lag', (await client.xInfoGroups(feed)).map((one) => one.lag));
  await client.xGroupDestroy(feed, 'js');
  client.destroy();
}

(library === 'redis' ? withNodeRedis() : withIoredis()).catch((error) => {
  console.log(error.stack);
  process.exit(1);
});
