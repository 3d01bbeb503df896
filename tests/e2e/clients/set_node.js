// The package `cellar` of tools/clients/node against the replica set at CELLAR_URL: writes rows, each with its number, and
// reads back each at once, until standard input ends. Says "written" behind the hundredth, and at the end, as JSON, which
// writes were acknowledged.
'use strict';

const assert = require('assert');
const { Cellar, CellarError } = require('cellar');

(async () => {
  const db = await Cellar.connect(process.env.CELLAR_URL, { wait: 300_000 });
  const table = db.table('t');
  const acknowledged = [];
  let ends = false;
  process.stdin.on('end', () => { ends = true; }).resume();
  for (let number = 0; !ends; ++number) {
    try {
      await table.put(`n${number}`, { 'f:n': number });
      acknowledged.push(number);
    } catch (error) {
      if (error instanceof CellarError) throw error;  // a refusal, which `wait` had to bridge
      continue;  // the connection was lost: it may have been done
    }
    assert.strictEqual(await table.get(`n${number}`, 'f:n'), number);
    if (acknowledged.length === 100) console.log('written');
  }
  console.log(JSON.stringify(acknowledged));
  await db.close();
})().catch((error) => {
  console.error(error);
  process.exit(1);
});
