// Cellar over node-redis 4 or newer: tables, rows, scans, feeds with JavaScript's types.
//
//   const { Cellar } = require('cellar');
//   const db = await Cellar.connect('redis://localhost:6479');
//   const web = await db.createTable('web', { anchor: 'TYPE string', n: 'TYPE i64' });
//   await web.put('com.cnn.www', { 'anchor:cnnsi.com': 'CNN', 'n:hits': 5 });
//   for await (const [key, row] of web.scan({ prefix: 'com.' })) console.log(key, row['n:hits']);
//
// What has surely not been done is tried again for `wait` milliseconds, and the leader of a set is found anew: nodes.js.
// A write behind a lost connection may have been done, and is thrown.
'use strict';

const { Nodes } = require('./nodes.js');
const { CellarError, Typed, Put, text, key, columnName, column, word, integer, float, value, pairs } = require('./values.js');
const { listed, split, conditions, options, Schema, put, steps } = require('./words.js');

const READS = new Set(['CAGG', 'CCOUNT', 'CEXISTS', 'CEXPLAIN', 'CGET', 'CMGET', 'CNEAR', 'CROW', 'CROWS', 'CSCAN', 'INFO',
  'XRANGE', 'XREAD', 'XREVRANGE']);
const isRead = (words) => READS.has(words[0]) || ['SHOW', 'LIST', 'INFO'].includes(words[1]);  // does no harm twice
const SHOWN = ['WITHTYPE', 'WITHTTL', 'WITHLABELS'];
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// Words to send and what makes a value of the reply.
const request = (words, decode) => ({ words: words.map((each) => (Buffer.isBuffer(each) ? each : column(String(each)))), decode });

function cellsOf(reply) {
  const cells = {};
  for (const [column, versions] of pairs(reply)) {
    cells[columnName(column)] = versions.map(([ts, raw, type, expires, labels]) => ({
      value: value(raw, text(type)), ts: integer(ts), type: text(type),
      expires: expires === null ? null : integer(expires), labels: labels.map(text) }));
  }
  return cells;
}

const newest = (cells) => Object.fromEntries(Object.entries(cells).map(([column, versions]) => [column, versions[0].value]));

function plain(reply) {
  if (Buffer.isBuffer(reply)) return text(reply);
  if (Array.isArray(reply)) return reply.map(plain);
  return typeof reply === 'string' && /^-?\d+$/.test(reply) ? integer(reply) : reply;
}

const info = (reply) => Object.fromEntries(pairs(reply).map(([name, told]) => [text(name), plain(told)]));

class Cellar {
  // `given`: node-redis' options, or a URL, of one node or several; `wait`: milliseconds (nodes.js).
  static async connect(given = 'redis://localhost:6479', { wait = 2000 } = {}) {
    const cellar = new Cellar(typeof given === 'string' ? { url: given } : given, wait);
    await cellar._nodes.perform([], true);
    return cellar;
  }

  constructor(given, wait) {
    this._nodes = new Nodes(given, wait);
    this._schemas = new Map();
  }

  async close() {
    await this._nodes.close();
  }

  async _run({ words, decode }) {
    const [reply] = await this._nodes.perform([words], isRead(words));
    if (reply instanceof Error) throw reply;
    return decode(reply);
  }

  // Any command; strings come as Buffers.
  command(...words) {
    return this._run(request(words.map(word), (reply) => reply));
  }

  async _schema(table, fresh) {
    const name = table.split('@')[0];
    if (fresh || !this._schemas.has(name)) {
      this._schemas.set(name, await this._run(request(['TABLE', 'SHOW', name], (lines) => new Schema(lines))));
    }
    return this._schemas.get(name);
  }

  table(name) {
    return new Table(this, name, (each) => this._run(each));
  }

  // createTable('m', { v: 'TYPE f64 TTL 30d', info: '' }, { key: 'dev=utf8#-at=u64' })
  async createTable(name, families, { key: order } = {}) {
    const named = Array.isArray(families) ? families.map((family) => [family, '']) : Object.entries(families);
    await this.command('TABLE', 'CREATE', name, ...(order ? ['KEY', order] : []),
      ...named.flatMap(([family, said]) => ['FAMILY', family, ...split(said)]));
    this._schemas.delete(name);
    return this.table(name);
  }

  async tables() {
    return (await this.command('TABLE', 'LIST')).map(text);
  }

  feed(name) {
    return new Feed(this, name);
  }

  // The changes of `tables` ('web', 'web:anchor'; none: all) from now on; `slice: [1, 4]`: of a quarter of the rows.
  async createFeed(name, tables = [], { prefix, old, expired, keep, slice } = {}) {
    await this.command('FEED', 'CREATE', name, 'ON', tables.length, ...tables,
      ...(prefix === undefined ? [] : ['PREFIX', prefix]), ...(slice ? ['SLICE', ...slice] : []), ...(old ? ['OLD'] : []), ...(expired ? ['EXPIRED'] : []),
      ...(keep ? ['KEEP', keep] : []));
    return this.feed(name);
  }

  async createSnapshot(name, ...words) {
    await this.command('SNAPSHOT', 'CREATE', name, ...words);
  }

  async dropSnapshot(name) {
    await this.command('SNAPSHOT', 'DROP', name);
  }

  // All that `body` calls on the tables of its argument, in one step; the results, in order. `atomic`: one
  // refused command undoes all and is thrown. Calls inside answer undefined: do not await their values.
  async transaction(body, { atomic = true } = {}) {
    const queue = [];
    await body({ table: (name) => new Table(this, name, async (each) => { queue.push(each); }) });
    if (queue.length === 0) return [];
    const replies = await this._nodes.perform(
      [['MULTI', ...(atomic ? ['ATOMIC'] : [])], ...queue.map((each) => each.words), ['EXEC']], false);
    if (replies.at(-1) instanceof Error) throw replies.at(-1);
    const results = queue.map((each, i) => {
      const reply = replies.at(-1)[i];
      return reply instanceof Error ? CellarError.of(reply) : each.decode(reply);
    });
    const failed = results.find((each) => each instanceof Error);
    if (failed && atomic) throw failed;
    return results;
  }
}

class Table {
  constructor(cellar, name, run) {
    this._cellar = cellar;
    this._run = run;
    this.name = name;
  }

  // The table as a named snapshot has it.
  at(snapshot) {
    return new Table(this._cellar, `${this.name}@${snapshot}`, this._run);
  }

  // Sends what was made by the schema; made anew, once, if a type has changed meanwhile.
  async _write(make) {
    const known = await this._cellar._schema(this.name);
    try {
      return await this._run(make(known));
    } catch (error) {
      if (!['WRONGTYPE', 'NOTABLE'].includes(error.code)) throw error;
      const schema = await this._cellar._schema(this.name, true);
      if (schema.same(known)) throw error;
      return this._run(make(schema));
    }
  }

  async _put(row, cells, { when, nx, xx } = {}, decode) {
    return this._write((schema) => request(['CPUT', this.name, word(row), ...(nx ? ['NX'] : xx ? ['XX'] : []),
      ...conditions('IF', when), ...Object.entries(cells).flatMap(([column, item]) => put(schema, column, item))], decode));
  }

  // Writes cells, all or none; false if a condition did not hold.
  async put(row, cells, given) {
    return this._put(row, cells, given, (reply) => reply !== null);
  }

  // A new row of a table with KEY recno; its number.
  async appendRow(cells) {
    return this._put('*', cells, {}, text);
  }

  async _row(row, given, decode) {
    return this._run(request(['CROW', this.name, word(row), ...options(given), ...SHOWN],
      (reply) => decode(cellsOf(reply))));
  }

  // The newest value, or that of a time; null: there is none.
  async get(row, column, { at } = {}) {
    return this._row(row, { columns: [column], ...(at === undefined ? {} : { time: ['-inf', at] }) },
      (cells) => Object.values(cells)[0]?.[0].value ?? null);
  }

  // The newest value of each column.
  async row(row, given) {
    return this._row(row, given, newest);
  }

  // Versions with time, type, expiry.
  async cells(row, given) {
    return this._row(row, given, (cells) => cells);
  }

  async rows(keys, given) {
    const named = [...keys].map(word);
    return this._run(request(['CROWS', this.name, named.length, ...named, ...options(given), ...SHOWN],
      (reply) => reply.map((each) => newest(cellsOf(each)))));
  }

  async exists(row, column) {
    return this._run(request(['CEXISTS', this.name, word(row), ...(column ? [column] : [])],
      (reply) => integer(reply) === 1));
  }

  async _page(cursor, count, given, keysOnly) {
    return this._run(request(
      ['CSCAN', this.name, cursor, 'COUNT', count, ...options(given), ...(keysOnly ? ['KEYSONLY'] : SHOWN)],
      ([next, found]) => [text(next), keysOnly ? found.map(key) : found.map(([row, cells]) => [key(row), cellsOf(cells)])]));
  }

  async *_pages({ limit = Infinity, page = 100, ...given } = {}, keysOnly = false) {
    let cursor = '0';
    for (let left = limit; left > 0;) {
      const [next, found] = await this._page(cursor, Math.min(page, left), given, keysOnly);
      yield* found;
      left -= found.length;
      cursor = next;
      if (cursor === '0') return;
    }
  }

  // Row keys and rows, in order; `limit` rows at most, `page` rows a command.
  async *scan(given) {
    for await (const [row, cells] of this._pages(given)) yield [row, newest(cells)];
  }

  // The same as an array.
  async scanAll(given) {
    const found = [];
    for await (const each of this.scan(given)) found.push(each);
    return found;
  }

  async *scanCells(given) {
    yield* this._pages(given);
  }

  async *keys(given) {
    yield* this._pages({ page: 1000, ...given }, true);
  }

  // One page, and the cursor of the next one ('0': that was all), for a link in a web page.
  async page(cursor = '0', { count = 100, ...given } = {}) {
    const [next, found] = await this._page(cursor, count, given, false);
    return { cursor: next, rows: found.map(([row, cells]) => [row, newest(cells)]) };
  }

  // ROWS, GROUPS, COLUMNS or CELLS that a scan would return.
  async count({ of = 'ROWS', ...given } = {}) {
    return this._run(request(['CCOUNT', this.name, ...options(given), 'BY', of], integer));
  }

  // aggregate({ n: 'COUNT pos' }, { by: { plane: 'KEY 1' }, sort: 'n DESC', limit: [0, 10] })
  async aggregate(reduce, { by = {}, sort, limit, ...given } = {}) {
    return this._write((schema) => {
      const kinds = Object.fromEntries(Object.entries(reduce).map(
        ([name, of]) => [name, typeof of === 'string' ? split(of) : of.map((each) => text(word(each)))]));
      const result = (name, raw) => {
        if (Array.isArray(raw)) return raw.map((each) => result(name, each));
        const [kind, target] = [kinds[name][0].toUpperCase(), kinds[name][1]];
        if (raw === null) return null;
        if (['AVG', 'QUANTILE', 'STDDEV', 'VARIANCE', 'RATE'].includes(kind)) return float(raw);
        if (!['MIN', 'MAX', 'FIRST', 'LAST'].includes(kind)) return /^-?\d+$/.test(text(raw)) ? integer(raw) : float(raw);
        const type = schema.declared(target);
        if (type && !['sum', 'min', 'max', 'hll'].includes(type)) return value(raw, type);
        return Buffer.isBuffer(raw) ? raw : integer(raw);
      };
      const words = ['CAGG', this.name, ...options(given),
        ...Object.values(by).flatMap((term) => ['BY', ...(typeof term === 'string' ? split(term) : term.map(word))]),
        ...Object.entries(kinds).flatMap(([name, of]) => ['REDUCE', ...of, 'AS', name]),
        ...(sort ? ['SORT', ...split(sort)] : []), ...(limit ? ['LIMIT', ...limit] : [])];
      return request(words, (groups) => groups.map(([terms, results]) => Object.fromEntries([
        ...Object.keys(by).map((name, i) => [name, plain(terms[i])]),
        ...pairs(results).map(([name, raw]) => [text(name), result(text(name), raw)])])));
    });
  }

  // Steps of one row, atomically: mutate('r', [['PUT', 'f:a', 1], ['DEL', 'g']], { when, otherwise })
  async mutate(row, given, { when, otherwise } = {}) {
    return this._write((schema) => request(['CMUTATE', this.name, word(row), ...conditions('IF', when),
      ...steps(schema, given), ...(otherwise ? ['ELSE', ...steps(schema, otherwise)] : [])],
    ([held, ...results]) => ({ held: integer(held) === 1, results: results.map(plain) })));
  }

  // The steps in each row of a selection (none: all rows); how many were changed.
  async update(given, { limit, ...selection } = {}) {
    return this._write((schema) => {
      const rows = options(selection);
      if (rows.length === 0 || rows[0] === 'WHERE') rows.unshift('ALL');
      return request(['CUPDATE', this.name, ...rows, ...(limit ? ['LIMIT', limit] : []), ...steps(schema, given)], integer);
    });
  }

  // Folds inputs into cells of aggregate families.
  async add(row, inputs, { ts, when } = {}) {
    return this._run(request(['CADD', this.name, word(row), ...conditions('IF', when), ...Object.entries(inputs).flatMap(
      ([column, input]) => [column, word(input), ...(ts === undefined ? [] : ['TS', word(ts)])])], (reply) => reply !== null));
  }

  async increment(row, column, by = 1) {
    return this._run(request(['CINCRBY', this.name, word(row), column, by], integer));
  }

  // A row, or some of its columns and families; how many cells. null: `when` did not hold.
  async delete(row, columns, { when, ...given } = {}) {
    const cells = [...listed(columns), ...options(given)];
    if (columns && cells.length === 0) throw new TypeError('no column: leave them out to delete the row');
    return this._run(request(['CDEL', this.name, word(row), ...conditions('IF', when), ...cells],
      (reply) => (reply === null ? null : integer(reply))));
  }

  // { prefix }, { range } or { all: true }; how many rows there were.
  async deleteRange({ prefix, range, all } = {}) {
    if ((prefix !== undefined) + (range !== undefined) + Boolean(all) !== 1) throw new TypeError('one of prefix, range, all');
    return this._run(request(['CDELRANGE', this.name, ...(all ? ['ALL'] : options({ prefix, range }))], integer));
  }

  // createIndex('mail', 'p:mail', { unique: true }), createIndex('size', ['-stat:people AS u32'])
  async createIndex(name, on, { include = [], unique } = {}) {
    await this._run(request(['INDEX', 'CREATE', this.name, name, 'ON', listed(on).length, ...listed(on).flatMap(split),
      ...(listed(include).length ? ['INCLUDE', listed(include).length, ...listed(include)] : []),
      ...(unique ? ['UNIQUE'] : [])], () => undefined));
  }

  async dropIndex(name) {
    await this._run(request(['INDEX', 'DROP', this.name, name], () => undefined));
  }

  async info() {
    return this._run(request(['TABLE', 'INFO', this.name], info));
  }

  async drop() {
    await this._run(request(['TABLE', 'DROP', this.name], () => undefined));
    this._cellar._schemas.delete(this.name);
  }
}

function entry([id, raw]) {
  const fields = Object.fromEntries(pairs(raw ?? []).map(([name, told]) => [text(name), told]));
  const said = (name) => (name in fields ? text(fields[name]) : null);
  return { id: text(id), op: said('op'), table: said('table'), row: 'row' in fields ? key(fields.row) : null,
    column: said('column'), ts: 'ts' in fields ? integer(fields.ts) : null,
    value: value(fields.value, said('type') ?? 'bytes'), old: value(fields.old, said('oldtype') ?? 'bytes'), fields };
}

const entries = (reply) => pairs(reply ?? []).flatMap(([, found]) => found.map(entry));
// XREAD answers an array of pairs in RESP2, a map in RESP3.
const streams = (reply) => entries(Array.isArray(reply) && Array.isArray(reply[0]) ? reply.flat() : reply);

class Feed {
  constructor(cellar, name) {
    this._cellar = cellar;
    this.name = name;
  }

  // Entries behind an id.
  async read(after = '0', { count = 1000 } = {}) {
    return this._cellar._run(request(['XREAD', 'COUNT', count, 'STREAMS', this.name, after], streams));
  }

  // Entries behind an id up to the end; `follow`: then those that come, looked for each `interval` ms.
  async *entries(after = '0', { follow = false, interval = 100 } = {}) {
    for (let from = after; ;) {
      const found = await this.read(from);
      for (const each of found) {
        yield each;
        from = each.id;
      }
      if (found.length === 0 && !follow) return;
      if (found.length === 0) await sleep(interval);
    }
  }

  async createGroup(name, after = '0') {
    await this._cellar.command('XGROUP', 'CREATE', this.name, name, after);
    return this.group(name);
  }

  group(name) {
    return new Group(this._cellar, this.name, name);
  }

  async info() {
    return this._cellar._run(request(['FEED', 'INFO', this.name], info));
  }

  async drop() {
    await this._cellar.command('FEED', 'DROP', this.name);
  }
}

class Group {
  constructor(cellar, feed, name) {
    this._cellar = cellar;
    this.feed = feed;
    this.name = name;
  }

  // New entries for this consumer; `pending`: those that it has read and not acknowledged; `claim`: before the new ones
  // those that any consumer has left unacknowledged for so many milliseconds.
  async read(consumer, { count = 100, pending = false, claim } = {}) {
    return this._cellar._run(request(['XREADGROUP', 'GROUP', this.name, consumer, 'COUNT', count,
      ...(claim === undefined || pending ? [] : ['CLAIM', claim]), 'STREAMS', this.feed, pending ? '0' : '>'], streams));
  }

  // What this consumer left, then what others did (`claim`) and new entries; each is acknowledged when the next one is
  // asked for.
  async *entries(consumer, { follow = false, interval = 100, claim } = {}) {
    for (let pending = true; ;) {
      const found = await this.read(consumer, { pending, claim });
      for (const each of found) {
        yield each;
        await this.ack(each);
      }
      if (found.length === 0 && !pending && !follow) return;
      if (found.length === 0 && !pending) await sleep(interval);
      pending = pending && found.length > 0;
    }
  }

  // They have been dealt with.
  async ack(...given) {
    return integer(await this._cellar.command('XACK', this.feed, this.name, ...given.map((each) => each.id ?? each)));
  }
}

module.exports = { Cellar, CellarError, Table, Feed, Group, typed: (of, type) => new Typed(of, type),
  withOptions: (of, given) => new Put(of, given) };
