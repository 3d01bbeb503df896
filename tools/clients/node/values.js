// JavaScript's values as Cellar's cells, and back; errors by their code.
//
//   JavaScript            cell                     a cell of      comes back as
//   string, Buffer        bytes                    bytes          Buffer
//   number, whole         i64                      string         string
//   number, other         f64                      i8 ... u64     number; bigint beyond 2^53
//   bigint                i64, above 2^63-1 u64    f32, f64       number
//   boolean               bool                     bool           boolean
//                                                  uuid           string
//
// The left half holds where the family declares no TYPE; where it does, the value is written as that
// type. `typed(7, 'u16')` names one.
'use strict';

class CellarError extends Error {
  // `code` is the first word of the reply.
  constructor(code, message) {
    super(`${code} ${message}`);
    this.name = 'CellarError';
    this.code = code;
  }

  static of(error) {
    if (error instanceof CellarError || !/^[A-Z]+ /.test(error.message)) return error;
    let [, code, message] = /^(\S+) (.*)$/s.exec(error.message);
    const inner = /^([A-Z]{3,}) (.*)$/s.exec(message);
    if (code === 'EXECABORT' && inner) [, code, message] = inner;  // MULTI ATOMIC says what was refused
    return new CellarError(code, message);
  }
}

class Typed {
  constructor(value, type) {
    this.value = value;
    this.type = type;
  }
}

class Put {
  constructor(value, options) {
    this.value = value;
    this.options = options;
  }
}

const text = (word) => (Buffer.isBuffer(word) ? word.toString('utf8') : String(word));

// A row key: a string where it is UTF-8, else the bytes, so that it names its row when it is sent back.
function key(raw) {
  const told = raw.toString('utf8');
  return Buffer.from(told, 'utf8').equals(raw) ? told : raw;
}

// A column's name, which must be a string to name a property: where it is no UTF-8 each byte beyond ASCII is
// \udc80 to \udcff, which no UTF-8 is, and `column` makes the bytes of it again.
function columnName(raw) {
  const told = key(raw);
  return typeof told === 'string' ? told : Array.from(raw, (byte) => String.fromCharCode(byte < 0x80 ? byte : 0xdc00 + byte)).join('');
}

function column(name) {
  if (!/[\udc80-\udcff]/.test(name) || !/^[\0-\x7f\udc80-\udcff]*$/.test(name)) return name;
  return Buffer.from(Array.from(name.split(''), (each) => each.charCodeAt(0) & 0xff));
}

// What is sent for a value, a key, a bound.
function word(value) {
  if (typeof value === 'string' || Buffer.isBuffer(value)) return value;
  if (value instanceof Uint8Array) return Buffer.from(value);
  if (value === Infinity) return 'inf';
  if (value === -Infinity) return '-inf';
  if (Object.is(value, -0)) return '-0';
  if (value === undefined || value === null) throw new TypeError('a value is missing');
  return String(value);
}

function typeOf(value) {
  if (typeof value === 'boolean') return 'bool';
  if (typeof value === 'bigint') return value < 2n ** 63n ? 'i64' : 'u64';
  if (typeof value !== 'number') return null;
  if (Number.isSafeInteger(value) && !Object.is(value, -0)) return 'i64';
  if (Number.isInteger(value) && Math.abs(value) < 2 ** 64) {
    throw new RangeError(`${value} is no exact integer: write it as a bigint, or as typed(value, 'f64')`);
  }
  return 'f64';
}

// An integer as node-redis gave it: exact, or refused. Its version 4 makes a number of it before anybody
// can ask for more.
function integer(raw) {
  if (typeof raw === 'number') {
    if (Number.isSafeInteger(raw)) return raw;
    throw new RangeError('an integer beyond 2^53: node-redis 5 or newer reads it exactly, version 4 cannot');
  }
  const exact = BigInt(text(raw));
  return exact >= Number.MIN_SAFE_INTEGER && exact <= Number.MAX_SAFE_INTEGER ? Number(exact) : exact;
}

function float(raw) {
  const told = text(raw);
  return told === 'inf' ? Infinity : told === '-inf' ? -Infinity : Number(told);
}

// The value of a cell as it came.
function value(raw, type) {
  if (raw === null || raw === undefined) return null;
  switch (type) {
    case 'bytes': return raw;
    case 'string': case 'uuid': return text(raw);
    case 'bool': return raw === true || ['1', 'true'].includes(text(raw));
    case 'f32': case 'f64': return float(raw);
    default: return integer(raw);
  }
}

// A map: a flat array in RESP2, whatever node-redis makes of it in RESP3.
function pairs(reply) {
  if (reply instanceof Map) return [...reply];
  if (!Array.isArray(reply)) return Object.entries(reply);
  const found = [];
  for (let i = 0; i < reply.length; i += 2) found.push([reply[i], reply[i + 1]]);
  return found;
}

module.exports = { CellarError, Typed, Put, text, key, columnName, column, word, typeOf, integer, float, value, pairs };
