// timeseries.js with nothing but node-redis and the commands; in RESP2 and RESP3.
'use strict';

const redis = require('redis');

const HOUR = 3600;
const WAIT_MS = 2000;

function pairs(reply) {
  if (reply instanceof Map) return [...reply];
  if (!Array.isArray(reply)) return Object.entries(reply);
  const found = [];
  for (let i = 0; i < reply.length; i += 2) found.push([reply[i], reply[i + 1]]);
  return found;
}

const object = (reply, value) => Object.fromEntries(pairs(reply).map(([name, raw]) => [String(name), value(raw)]));
const number = (raw) => (raw === null ? null : Number(raw));

class Measurements {
  static async connect(options) {
    const self = new Measurements();
    self.client = redis.createClient(options);
    self.client.on('error', () => {});
    await self.client.connect();
    return self;
  }

  async run(...words) {
    for (const deadline = Date.now() + WAIT_MS; ;) {
      try {
        return await this.client.sendCommand(words.map(String));
      } catch (error) {
        if (!/^(CLUSTERDOWN|TRYAGAIN) /.test(error.message) || Date.now() > deadline) throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }

  async create() {
    await this.run('TABLE', 'CREATE', 'readings', 'KEY', 'host=utf8#-at=u64',
      'FAMILY', 'v', 'TYPE', 'f64', 'VERSIONS', 1, 'TTL', '30d');
    await this.run('TABLE', 'CREATE', 'hours', 'KEY', 'host=utf8#hour=u64', 'FAMILY', 'n', 'TYPE', 'u64',
      'FAMILY', 'avg', 'TYPE', 'f64', 'FAMILY', 'max', 'TYPE', 'f64');
    await this.run('FEED', 'CREATE', 'new-readings', 'ON', 1, 'readings');
    await this.run('XGROUP', 'CREATE', 'new-readings', 'rollup', '0');
  }

  async record(host, at, values) {
    const words = ['CPUT', 'readings', `${host}#${at}`];
    for (const [name, of] of Object.entries(values)) words.push(`v:${name}`, of);
    await this.run(...words);
  }

  async scan(table, count, ...options) {
    const found = [];
    let cursor = '0';
    do {
      const page = Math.min(100, count - found.length);
      const [next, rows] = await this.run('CSCAN', table, cursor, 'COUNT', page, ...options);
      for (const [key, cells] of rows) found.push([key, object(cells, number)]);
      cursor = next;
    } while (cursor !== '0' && found.length < count);
    return found;
  }

  newest(host, count) {
    return this.scan('readings', count, 'PREFIX', `${host}#`);
  }

  async *entries(worker) {
    for (let last = '0'; ;) {
      const reply = await this.run('XREADGROUP', 'GROUP', 'rollup', worker, 'COUNT', 100, 'STREAMS', 'new-readings', last);
      const streams = Array.isArray(reply) ? reply : reply === null ? [] : pairs(reply);
      const entries = streams.flatMap(([, found]) => found);
      for (const [id, fields] of entries) {
        yield object(fields ?? [], String);
        await this.run('XACK', 'new-readings', 'rollup', id);
      }
      if (entries.length === 0) {
        if (last === '>') return;
        last = '>';
      }
    }
  }

  async rollUp(worker) {
    for await (const entry of this.entries(worker)) {
      if (entry.op !== 'put') continue;
      const [host, at] = entry.row.split('#');
      const name = entry.column.slice(2);
      const hour = Math.floor(at / HOUR);
      const [[, results]] = await this.run(
        'CAGG', 'readings', 'RANGE', `[${host}#${(hour + 1) * HOUR - 1}`, `[${host}#${hour * HOUR}`,
        'REDUCE', 'COUNT', `v:${name}`, 'AS', 'n', 'REDUCE', 'AVG', `v:${name}`, 'AS', 'avg',
        'REDUCE', 'MAX', `v:${name}`, 'AS', 'max');
      const of = object(results, number);
      await this.run('CPUT', 'hours', `${host}#${hour}`, `n:${name}`, of.n, `avg:${name}`, of.avg, `max:${name}`, of.max);
    }
  }

  async chart(host, name) {
    const rows = await this.scan('hours', Infinity, 'PREFIX', `${host}#`, 'WHERE', `n:${name}`, 'EXISTS');
    return rows.map(([key, row]) => [Number(key.split('#')[1]), row[`n:${name}`], row[`avg:${name}`], row[`max:${name}`]]);
  }

  async report(name) {
    const groups = await this.run(
      'CAGG', 'readings', 'BY', 'PART', 'host', 'REDUCE', 'QUANTILE', `v:${name}`, 1, 0.5, 'AS', 'median',
      'REDUCE', 'MAX', `v:${name}`, 'AS', 'max', 'SORT', 'max', 'DESC');
    return groups.map(([terms, results]) => ({
      host: terms[0],
      ...object(results, (raw) => (Array.isArray(raw) ? raw.map(number) : number(raw))),
    }));
  }

  async close() {
    await this.client.quit();
  }
}

module.exports = { Measurements };
