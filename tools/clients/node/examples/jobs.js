// A queue of jobs: each is there once, is done by one worker at a time, and is tried three times; and what happens, for
// whoever watches it.
'use strict';

const { Cellar } = require('cellar');

const TRIES = 3;
const own = (worker) => ['job:state EQ running', ['job:worker', 'EQ', worker]];

class Jobs {
  static async connect(options) {
    const self = new Jobs();
    self.db = await Cellar.connect(options);
    self.jobs = self.db.table('jobs');
    self.watchers = self.db.feed('job-changes').group('watchers');
    return self;
  }

  async create() {
    await this.db.createTable('jobs', { job: 'TYPE string VERSIONS 10', n: 'TYPE i64' }, { key: 'recno' });
    await this.jobs.createIndex('name', 'job:name', { unique: true });
    await this.jobs.createIndex('state', ['job:state', 'n:due']);
    await (await this.db.createFeed('job-changes', ['jobs:job'])).createGroup('watchers');
  }

  // Their numbers; null, and none of them is taken, if there is one of that name.
  submit(jobs) {
    return this.db.transaction(async (tx) => {
      for (const [name, task, due] of jobs) {
        await tx.table('jobs').appendRow({ 'job:name': name, 'job:task': task, 'job:state': 'ready', 'n:due': due });
      }
    }).catch((error) => (error.code === 'NOTUNIQUE' ? null : Promise.reject(error)));
  }

  // [number, task] of the job that has been due the longest, or null.
  async claim(worker, now, seconds) {
    const ready = { index: 'state', between: ['[ready', '[ready'], where: ['n:due', 'LE', now] };
    for await (const [number, job] of this.jobs.scan(ready)) {
      const taken = [['PUT', 'job:state', 'running'], ['PUT', 'job:worker', worker], ['PUT', 'n:due', now + seconds],
        ['INCR', 'n:tries', 1]];
      const when = ['job:state EQ ready', `n:due EQ ${job['n:due']}`];
      if ((await this.jobs.mutate(number, taken, { when })).held) return [number, job['job:task']];
    }
    return null;
  }

  // false: it was given to somebody else meanwhile.
  finish(number, worker, result) {
    return this.jobs.put(number, { 'job:state': 'done', 'job:result': result }, { when: own(worker) });
  }

  // Back into the queue, or given up; its new state.
  async fail(number, worker) {
    const isLast = await this.jobs.put(number, { 'job:state': 'given up' }, { when: [...own(worker), `n:tries GE ${TRIES}`] });
    if (!isLast) await this.jobs.put(number, { 'job:state': 'ready' }, { when: own(worker) });
    return this.jobs.get(number, 'job:state');
  }

  // What a worker has left undone is ready again; how many.
  sweep(now) {
    return this.jobs.update([['PUT', 'job:state', 'ready']], { where: ['job:state EQ running', `n:due LT ${now}`] });
  }

  // Numbers and states, since the watchers last asked; each goes to one of them.
  async *changes(watcher) {
    for await (const { column, row, value } of this.watchers.entries(watcher)) {
      if (column === 'job:state') yield [row, value];
    }
  }

  close() {
    return this.db.close();
  }
}

module.exports = { Jobs };
