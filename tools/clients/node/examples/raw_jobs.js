// jobs.js with nothing but node-redis and the commands; in RESP2 and RESP3.
'use strict';

const redis = require('redis');

const TRIES = 3;
const WAIT_MS = 2000;

function pairs(reply) {
  if (reply instanceof Map) return [...reply];
  if (!Array.isArray(reply)) return Object.entries(reply);
  const found = [];
  for (let i = 0; i < reply.length; i += 2) found.push([reply[i], reply[i + 1]]);
  return found;
}

class Jobs {
  static async connect(options) {
    const self = new Jobs();
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
    await this.run('TABLE', 'CREATE', 'jobs', 'KEY', 'recno', 'FAMILY', 'job', 'TYPE', 'string', 'VERSIONS', 10,
      'FAMILY', 'n', 'TYPE', 'i64');
    await this.run('INDEX', 'CREATE', 'jobs', 'name', 'ON', 1, 'job:name', 'UNIQUE');
    await this.run('INDEX', 'CREATE', 'jobs', 'state', 'ON', 2, 'job:state', 'n:due');
    await this.run('FEED', 'CREATE', 'job-changes', 'ON', 1, 'jobs:job');
    await this.run('XGROUP', 'CREATE', 'job-changes', 'watchers', '0');
  }

  async exec(commands) {
    const sent = [['MULTI', 'ATOMIC'], ...commands, ['EXEC']].map((words) => this.client.sendCommand(words.map(String)));
    return (await Promise.allSettled(sent)).at(-1);
  }

  async submit(jobs) {
    const commands = jobs.map(([name, task, due]) => ['CPUT', 'jobs', '*', 'job:name', name, 'job:task', task,
      'job:state', 'ready', 'n:due', due]);
    for (const deadline = Date.now() + WAIT_MS; ;) {
      const { status, value, reason } = await this.exec(commands);
      if (status === 'fulfilled') return value;
      const message = reason.message.replace(/^EXECABORT /, '');
      if (message.startsWith('NOTUNIQUE ')) return null;
      if (!/^(CLUSTERDOWN|TRYAGAIN) /.test(message) || Date.now() > deadline) throw reason;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }

  async *due(now) {
    let cursor = '0';
    do {
      const [next, rows] = await this.run('CSCAN', 'jobs', cursor, 'COUNT', 100, 'INDEX', 'state',
        'BETWEEN', '[ready', '[ready', 'WHERE', 'n:due', 'LE', now);
      for (const [number, cells] of rows) {
        const job = Object.fromEntries(pairs(cells));
        yield [number, job['job:task'], Number(job['n:due'])];
      }
      cursor = next;
    } while (cursor !== '0');
  }

  async claim(worker, now, seconds) {
    for await (const [number, task, due] of this.due(now)) {
      const [held] = await this.run('CMUTATE', 'jobs', number, 'IF', 'job:state', 'EQ', 'ready', 'IF', 'n:due', 'EQ', due,
        'PUT', 'job:state', 'running', 'PUT', 'job:worker', worker, 'PUT', 'n:due', now + seconds, 'INCR', 'n:tries', 1);
      if (Number(held) === 1) return [number, task];
    }
    return null;
  }

  async putOwn(number, worker, cells, ...conditions) {
    const reply = await this.run('CPUT', 'jobs', number, 'IF', 'job:state', 'EQ', 'running', 'IF', 'job:worker', 'EQ', worker,
      ...conditions, ...cells);
    return reply !== null;
  }

  finish(number, worker, result) {
    return this.putOwn(number, worker, ['job:state', 'done', 'job:result', result]);
  }

  async fail(number, worker) {
    if (!await this.putOwn(number, worker, ['job:state', 'given up'], 'IF', 'n:tries', 'GE', TRIES)) {
      await this.putOwn(number, worker, ['job:state', 'ready']);
    }
    return this.run('CGET', 'jobs', number, 'job:state');
  }

  async sweep(now) {
    return Number(await this.run('CUPDATE', 'jobs', 'ALL', 'WHERE', 'job:state', 'EQ', 'running', 'WHERE', 'n:due', 'LT', now,
      'PUT', 'job:state', 'ready'));
  }

  async *changes(watcher) {
    for (let last = '0'; ;) {
      const reply = await this.run('XREADGROUP', 'GROUP', 'watchers', watcher, 'COUNT', 100, 'STREAMS', 'job-changes', last);
      const streams = Array.isArray(reply) ? reply : reply === null ? [] : pairs(reply);
      const entries = streams.flatMap(([, found]) => found);
      for (const [id, fields] of entries) {
        const of = Object.fromEntries(pairs(fields ?? []));
        if (of.column === 'job:state') yield [of.row, of.value];
        await this.run('XACK', 'job-changes', 'watchers', id);
      }
      if (entries.length === 0) {
        if (last === '>') return;
        last = '>';
      }
    }
  }

  async close() {
    await this.client.quit();
  }
}

module.exports = { Jobs };
