// Measurements: readings of hosts, the newest first; averages by the hour, kept up to date from a feed; reports.
'use strict';

const { Cellar } = require('cellar');

const HOUR = 3600;

class Measurements {
  static async connect(options) {
    const self = new Measurements();
    self.db = await Cellar.connect(options);
    self.readings = self.db.table('readings');
    self.hours = self.db.table('hours');
    self.rollup = self.db.feed('new-readings').group('rollup');
    return self;
  }

  async create() {
    await this.db.createTable('readings', { v: 'TYPE f64 VERSIONS 1 TTL 30d' }, { key: 'host=utf8#-at=u64' });
    await this.db.createTable('hours', { n: 'TYPE u64', avg: 'TYPE f64', max: 'TYPE f64' }, { key: 'host=utf8#hour=u64' });
    await (await this.db.createFeed('new-readings', ['readings'])).createGroup('rollup');
  }

  async record(host, at, values) {
    const cells = Object.entries(values).map(([name, value]) => [`v:${name}`, value]);
    await this.readings.put(`${host}#${at}`, Object.fromEntries(cells));
  }

  newest(host, count) {
    return this.readings.scanAll({ prefix: `${host}#`, limit: count });
  }

  // What is new since the last time. An entry that comes twice does no harm: the hour is computed anew.
  async rollUp(worker) {
    for await (const entry of this.rollup.entries(worker)) {
      if (entry.op !== 'put') continue;
      const [[host, at], name] = [entry.row.split('#'), entry.column.slice(2)];
      const hour = Math.floor(at / HOUR);
      const [of] = await this.readings.aggregate({ n: `COUNT v:${name}`, avg: `AVG v:${name}`, max: `MAX v:${name}` },
        { range: [`[${host}#${(hour + 1) * HOUR - 1}`, `[${host}#${hour * HOUR}`] });
      await this.hours.put(`${host}#${hour}`, { [`n:${name}`]: of.n, [`avg:${name}`]: of.avg, [`max:${name}`]: of.max });
    }
  }

  async chart(host, name) {
    const rows = await this.hours.scanAll({ prefix: `${host}#`, where: [`n:${name}`, 'EXISTS'] });
    return rows.map(([key, row]) => [Number(key.split('#')[1]), row[`n:${name}`], row[`avg:${name}`], row[`max:${name}`]]);
  }

  report(name) {
    return this.readings.aggregate({ median: ['QUANTILE', `v:${name}`, 1, 0.5], max: `MAX v:${name}` },
      { by: { host: 'PART host' }, sort: 'max DESC' });
  }

  close() {
    return this.db.close();
  }
}

module.exports = { Measurements };
