// Options as words: what the calls of index.js take, in the notation of cellar-query(7).
'use strict';

const { Typed, Put, text, word, typeOf } = require('./values.js');

const listed = (given) => (given === undefined || given === null ? [] :
  typeof given === 'string' || Buffer.isBuffer(given) ? [given] : [...given]);

// Words as a shell divides them: 'f:a GT "two words"'.
function split(line) {
  const found = [];
  for (const match of line.matchAll(/"((?:[^"\\]|\\.)*)"|'([^']*)'|(\S+)/g)) {
    found.push(match[1] !== undefined ? match[1].replace(/\\(.)/g, '$1') : match[2] !== undefined ? match[2] : match[3]);
  }
  return found;
}

// ['f:a', 'GT', 5], ['ROW', 'EXISTS'], 'f:a EXISTS'; or a list of such.
function conditions(before, given) {
  if (given === undefined || given === null) return [];
  const one = typeof given === 'string' || (typeof given[0] === 'string' && given.length > 1 &&
    (['ROW', 'FILTER'].includes(given[0]) || (given[0].includes(':') && /^[A-Z]+$/.test(given[1]))));
  return (one ? [given] : given).flatMap((each) =>
    [before, ...(typeof each === 'string' ? split(each) : each.map(word))]);
}

const FLAGS = { reverse: 'REVERSE', snapshot: 'SNAPSHOT', noIndex: 'NOINDEX', columnReverse: 'COLREVERSE' };
const WORDS = { columnPrefix: 'COLPREFIX', columnRange: 'COLRANGE', time: 'TIME', range: 'RANGE', between: 'BETWEEN',
  each: 'EACH', versions: 'VERSIONS', perRow: 'PERROW', skip: 'SKIP', groups: 'GROUPS', filter: 'FILTER',
  index: 'INDEX', sample: 'SAMPLE' };
const COUNTED = { rows: 'ROWS', columns: 'COLUMNS', eq: 'EQ', fromValues: 'FROM' };

// The options of a read. TypeError for one that there is not.
function options(given = {}) {
  const names = Object.keys(given).sort((a, b) => (b === 'index') - (a === 'index'));  // EQ ... follow INDEX
  return names.flatMap((name) => {
    const value = given[name];
    if (value === undefined || value === null || value === false) return [];
    if (FLAGS[name]) return [FLAGS[name]];
    if (COUNTED[name]) return [COUNTED[name], String(listed(value).length), ...listed(value).map(word)];
    if (name === 'prefix' && listed(value).length === 0) throw new TypeError('no prefix: leave it out to mean all rows');
    if (name === 'prefix') return listed(value).flatMap((each) => ['PREFIX', each]);
    if (name === 'where') return conditions('WHERE', value);
    if (WORDS[name]) return [WORDS[name], ...(Array.isArray(value) ? value : [value]).map(word)];
    throw new TypeError(`a read has no option '${name}'`);
  });
}

// The types that a table declares, from TABLE SHOW.
class Schema {
  constructor(lines) {
    this.types = new Map();  // of families and columns; null: the writer's choice
    for (const line of lines) {
      const words = split(text(line));
      const verb = words.slice(0, 2).join(' ');
      if (verb !== 'TABLE CREATE' && verb !== 'FAMILY ADD') continue;
      let family = words[3];
      if (verb === 'FAMILY ADD') this.types.set(family, null);
      for (let at = verb === 'FAMILY ADD' ? 4 : 3; at < words.length; at += 2) {
        if (words[at] === 'FAMILY') this.types.set(family = words[at + 1], null);
        if (words[at] === 'TYPE' || words[at] === 'AGGREGATE') this.types.set(family, words[at + 1]);
        if (words[at] === 'COLUMN') this.types.set(`${family}:${words[at + 1]}`, words[++at + 1]);
      }
    }
  }

  declared(column) {
    return this.types.get(column) ?? this.types.get(column.split(':')[0]) ?? null;
  }

  same(other) {
    return other && JSON.stringify([...this.types]) === JSON.stringify([...other.types]);
  }
}

// column value [AS type] [TS ts] [TTL ttl | EXPIREAT at]
function put(schema, column, item) {
  const { value, options: more = {} } = item instanceof Put ? item : { value: item };
  const plain = value instanceof Typed ? value.value : value;
  const type = value instanceof Typed ? value.type : schema.declared(column) === null ? typeOf(plain) : null;
  return [column, word(plain), ...(type ? ['AS', type] : []),
    ...[['TS', more.ts], ['TTL', more.ttl], ['EXPIREAT', more.expireAt]].flatMap(
      ([name, given]) => (given === undefined ? [] : [name, word(given)]))];
}

// ['PUT', 'f:a', 1], ['INCR', 'f:n', 1], ['DEL', 'f'], ['DELROW'] ...
const steps = (schema, given) => given.flatMap((step) => (step[0].toUpperCase() === 'PUT' ?
  ['PUT', ...put(schema, step[1], step[2])] : step.map(word)));

module.exports = { listed, split, conditions, options, Schema, put, steps };
