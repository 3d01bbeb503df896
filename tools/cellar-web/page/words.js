// What people type: words with quotes, as in redis-cli, and bytes as \xHH.
'use strict';

import {bytesOf} from './text.js';

const NAMED = {n: 10, r: 13, t: 9, b: 8, a: 7};
const HEX = /^[0-9a-fA-F]{2}$/;

class Bytes {
  constructor() {
    this.list = [];
  }

  text(piece) {
    this.list.push(...new TextEncoder().encode(piece));
  }

  get() {
    return Uint8Array.from(this.list);
  }
}

// A character, by its code points.
const charAt = (line, at) => String.fromCodePoint(line.codePointAt(at));

// Reads a word without quotes, or the inside of a field: \xHH is a byte, \\ a backslash, any other backslash itself.
function readPlain(line, at, ends, bytes) {
  while (at < line.length && !ends(line[at])) {
    if (line[at] === '\\' && line[at + 1] === 'x' && HEX.test(line.slice(at + 2, at + 4))) {
      bytes.list.push(parseInt(line.slice(at + 2, at + 4), 16));
      at += 4;
    } else if (line[at] === '\\' && line[at + 1] === '\\') {
      bytes.list.push(92);
      at += 2;
    } else {
      const char = charAt(line, at);
      bytes.text(char);
      at += char.length;
    }
  }
  return at;
}

// Behind an opening quote; returns the place behind the closing one.
function readQuoted(line, at, quote, bytes) {
  while (at < line.length && line[at] !== quote) {
    const next = line[at + 1];
    if (line[at] === '\\' && quote === '"' && next === 'x' && HEX.test(line.slice(at + 2, at + 4))) {
      bytes.list.push(parseInt(line.slice(at + 2, at + 4), 16));
      at += 4;
    } else if (line[at] === '\\' && next !== undefined && (quote === '"' || next === "'")) {
      if (next in NAMED && quote === '"') bytes.list.push(NAMED[next]);
      else bytes.text(charAt(line, at + 1));
      at += 1 + charAt(line, at + 1).length;
    } else {
      const char = charAt(line, at);
      bytes.text(char);
      at += char.length;
    }
  }
  if (at >= line.length) throw new SyntaxError('a quote is not closed: ' + line);
  return at + 1;
}

// [{bytes, plain: without quotes, begin: where in the line}]
export function split(line) {
  const words = [];
  let at = 0;
  while (true) {
    while (at < line.length && /\s/.test(line[at])) ++at;
    if (at >= line.length) return words;
    const begin = at;
    const bytes = new Bytes();
    let plain = true;
    while (at < line.length && !/\s/.test(line[at])) {
      if (line[at] === '"' || line[at] === "'") {
        plain = false;
        at = readQuoted(line, at + 1, line[at], bytes);
      } else {
        at = readPlain(line, at, (c) => /[\s"']/.test(c), bytes);
      }
    }
    words.push({bytes: bytes.get(), plain, begin});
  }
}

// The bytes of a whole field, in which spaces and quotes are what they are.
export function typed(text) {
  const bytes = new Bytes();
  readPlain(text, 0, () => false, bytes);
  return bytes.get();
}

// "a:b GT 5 AND c:d EXISTS": a list of words for each condition.
export function conditions(line) {
  const lists = [[]];
  for (const word of split(line)) {
    const isAnd = word.plain && word.bytes.length === 3 && /^and$/i.test(String.fromCharCode(...word.bytes));
    if (isAnd) lists.push([]);
    else lists[lists.length - 1].push(word.bytes);
  }
  if (lists.some((list) => list.length === 0)) {
    if (lists.length === 1) return [];
    throw new SyntaxError('a condition is missing beside AND');
  }
  return lists;
}

// Bytes as they are typed.
export function written(text) {
  return typeof text === 'string' ? text.replaceAll('\\', '\\\\')
    : [...bytesOf(text)].map((byte) => byte >= 32 && byte < 127 && byte !== 92 ? String.fromCharCode(byte)
      : '\\x' + byte.toString(16).padStart(2, '0')).join('');
}
