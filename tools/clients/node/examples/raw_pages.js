// pages.js with nothing but node-redis and the commands; in RESP2 and RESP3.
'use strict';

const redis = require('redis');

const [ROWS, FIRST, COLUMNS] = [10, 3, 20];
const WAIT_MS = 2000;

function pairs(reply) {
  if (reply instanceof Map) return [...reply];
  if (!Array.isArray(reply)) return Object.entries(reply);
  const found = [];
  for (let i = 0; i < reply.length; i += 2) found.push([reply[i], reply[i + 1]]);
  return found;
}

function integer(raw) {
  const exact = BigInt(String(raw));
  return exact >= Number.MIN_SAFE_INTEGER && exact <= Number.MAX_SAFE_INTEGER ? Number(exact) : exact;
}

function valueOf(raw, type) {
  switch (type) {
    case 'bytes': return raw;
    case 'string': case 'uuid': return String(raw);
    case 'bool': return raw === true || ['1', 'true'].includes(String(raw));
    case 'f32': case 'f64': return Number(String(raw).replace(/^(-?)inf$/, '$1Infinity'));
    default: return integer(raw);
  }
}

const newest = (cells) => pairs(cells).map(
  ([column, [[, raw, type]]]) => [String(column), valueOf(raw, String(type))]);

class Pages {
  static async connect(options, table) {
    const self = new Pages();
    self.client = redis.createClient(options);
    self.client.on('error', () => {});
    await self.client.connect();
    self.table = table;
    return self;
  }

  async run(...words) {
    for (const deadline = Date.now() + WAIT_MS; ;) {
      try {
        return await this.send(words.map(String));
      } catch (error) {
        if (!/^(CLUSTERDOWN|TRYAGAIN) /.test(error.message) || Date.now() > deadline) throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }

  send(words) {
    if (!this.client.withTypeMapping) return this.client.sendCommand(words, { returnBuffers: true });
    const types = redis.RESP_TYPES;
    return this.client.sendCommand(words, { typeMapping: {
      [types.BLOB_STRING]: Buffer, [types.NUMBER]: String, [types.BIG_NUMBER]: String, [types.DOUBLE]: String,
      [types.MAP]: Array } });
  }

  async rows(cursor, prefix) {
    const [next, rows] = await this.run('CSCAN', this.table, cursor, 'COUNT', ROWS, 'PREFIX', prefix, 'PERROW', FIRST,
      'WITHTYPE');
    return { cursor: String(next), rows: rows.map(([key, cells]) => [String(key), Object.fromEntries(newest(cells))]) };
  }

  async rowsBefore(first, prefix) {
    const found = [];
    let cursor = '0';
    do {
      const [next, rows] = await this.run('CSCAN', this.table, cursor, 'COUNT', ROWS - found.length,
        'RANGE', `[${prefix}`, `(${first}`, 'PERROW', FIRST, 'REVERSE', 'WITHTYPE');
      for (const [key, cells] of rows) found.push([String(key), Object.fromEntries(newest(cells))]);
      cursor = String(next);
    } while (cursor !== '0' && found.length < ROWS);
    return found.reverse();
  }

  async columns(key, family, after) {
    const row = newest(await this.run('CROW', this.table, key, 'COLRANGE', family, after ? `(${after}` : '-', '+',
      'PERROW', COLUMNS + 1, 'WITHTYPE'));
    return { row: row.slice(0, COLUMNS), more: row.length > COLUMNS };
  }

  async versions(key, column) {
    const cells = await this.run('CROW', this.table, key, 'COLUMNS', 1, column, 'VERSIONS', 'ALL', 'WITHTYPE');
    return pairs(cells).flatMap(([, versions]) => versions).map(
      ([ts, raw, type]) => [integer(ts), String(type), valueOf(raw, String(type))]);
  }

  async close() {
    await this.client.quit();
  }
}

module.exports = { Pages };
