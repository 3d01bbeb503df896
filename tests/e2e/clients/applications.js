// Runs an application of tools/clients/node/examples and prints what its calls gave, as JSON: applications.js MODULE
// APPLICATION. The server is at CELLAR_URL, replies come in RESP CELLAR_RESP. test_applications.py has the same for Python.
'use strict';

const redis = require('redis');

const [module_, application] = process.argv.slice(2);
const given = { url: process.env.CELLAR_URL, ...(process.env.CELLAR_RESP === '3' ? { RESP: 3 } : {}) };

async function all(found) {
  const each = [];
  for await (const one of found) each.push(one);
  return each;
}

async function onDisk() {  // a feed tells what is on disk
  const client = redis.createClient(given);
  await client.connect();
  await client.sendCommand(['WAITAOF', '1', '0', '60000']);
  await client.quit();
}

async function timeseries({ Measurements }) {
  const app = await Measurements.connect(given);
  await app.create();
  for (let i = 0; i < 300; ++i) {
    await app.record(`h${i % 3}`, 1764000000 + 60 * i, i % 2 ? { load: i / 8, temp: 40 + i % 7 } : { load: i / 8 });
  }
  await onDisk();
  await app.rollUp('ann');
  await app.record('h1', 1764000001, { load: 99 });
  await onDisk();
  await app.rollUp('ann');
  const told = [await app.newest('h1', 3), await app.newest('none', 3), await app.chart('h1', 'load'),
    await app.chart('h2', 'temp'), await app.report('temp'), await app.report('none')];
  await app.close();
  return told;
}

async function jobs({ Jobs }) {
  const app = await Jobs.connect(given);
  await app.create();
  const told = [await app.submit([['a', 'mail ä', 0], ['b', 'print', 5]]), await app.submit([['c', 'x', 0], ['a', 'y', 0]]),
    await app.claim('ann', 3, 10), await app.claim('bob', 3, 10), await app.claim('bob', 6, 10),
    await app.finish('1', 'bob', 'no'), await app.finish('1', 'ann', 'yes'), await app.sweep(100), await app.fail('2', 'bob')];
  for (let now = 200; now < 250; now += 10) told.push(await app.claim('bob', now, 5), await app.fail('2', 'bob'));
  await onDisk();
  told.push(await all(app.changes('eve')), await all(app.changes('eve')));
  await app.close();
  return told;
}

// Every page that links lead to.
async function pages({ Pages }) {
  const app = await Pages.connect(given, 't');
  const served = require(process.env.CELLAR_EXAMPLES + '/page_html.js').server(app).listen(0, '127.0.0.1');
  await new Promise((resolve) => served.once('listening', resolve));
  const seen = {};
  for (const ways = ['/', '/?prefix=r01', '/?before=r033', '/nowhere']; ways.length > 0;) {
    const way = ways.pop();
    if (way in seen) continue;
    seen[way] = await (await fetch(`http://127.0.0.1:${served.address().port}${way}`)).text();
    for (const [, to] of seen[way].matchAll(/href="([^"]*)"/g)) ways.push(to.replace(/&#38;/g, '&'));
  }
  served.closeAllConnections();
  served.close();
  await app.close();
  return seen;
}

({ timeseries, jobs, pages })[application](require(`${process.env.CELLAR_EXAMPLES}/${module_}.js`)).then(
  (told) => console.log(JSON.stringify(told)), (error) => {
    console.error(error);
    process.exit(1);
  });
