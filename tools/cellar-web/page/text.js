// Bytes, numbers and times as people read them. Names, keys and values are any bytes: a string, or
// {b64: "..."} of what is not UTF-8; {int: "..."} is an integer that JavaScript has no number for.
'use strict';

export function bytesOf(text) {
  if (text instanceof Uint8Array) return text;
  if (typeof text === 'object' && text !== null) {
    if ('b64' in text) return Uint8Array.from(atob(text.b64), (c) => c.charCodeAt(0));
    if ('int' in text) return new TextEncoder().encode(text.int);
  }
  return new TextEncoder().encode(String(text));
}

// Base64 for addresses.
export function pack(text) {
  let binary = '';
  for (const byte of bytesOf(text)) binary += String.fromCharCode(byte);
  return btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

export function unpack(packed) {
  return textOf(bytesOf({b64: packed.replaceAll('-', '+').replaceAll('_', '/')}));
}

// Of bytes, what the server's answers have for them.
export function textOf(bytes) {
  try {
    return new TextDecoder('utf-8', {fatal: true, ignoreBOM: true}).decode(bytes);
  } catch {
    return {b64: btoa([...bytes].map((byte) => String.fromCharCode(byte)).join(''))};
  }
}

export const packList = (texts) => texts.map(pack).join('.');

// What people see of a text: what cannot be printed, and what would hide or turn it, as \xHH or \uHHHH.
export function shown(text) {
  if (text === null || text === undefined) return '(nil)';
  if (typeof text === 'object') {
    if (Array.isArray(text)) return text.map(shown).join(' ');
    if ('int' in text) return text.int;
    if ('bytes' in text) return shown(text.begin) + ' … (' + count(text.bytes) + ' bytes)';
    return [...bytesOf(text)].map((b) => b >= 32 && b < 127 ? String.fromCharCode(b)
      : '\\x' + b.toString(16).padStart(2, '0')).join('');
  }
  // eslint-disable-next-line no-control-regex
  return String(text).replace(/[\u0000-\u001f\u007f\u0080-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g,
    (c) => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'));
}

// As shown(), but lines stay lines.
export function shownLines(text) {
  return typeof text === 'string' ? text.split('\n').map(shown).join('\n') : shown(text);
}

// Maps come as arrays: key, value, key, value ...
export const field = (map, name) => map[map.findIndex((key, i) => i % 2 === 0 && key === name) + 1];

export function pairs(map) {
  return Array.from({length: map.length / 2}, (_, i) => [map[2 * i], map[2 * i + 1]]);
}

// "calls=1,usec=2" by its words.
export function parts(value) {
  return Object.fromEntries(value.split(',').map((part) => {
    const equals = part.indexOf('=');
    return [part.slice(0, equals), part.slice(equals + 1)];
  }));
}

export function time(micros) {
  const date = new Date(Number(micros) / 1000);
  return Number.isNaN(date.getTime()) ? String(micros)
    : date.toISOString().replace('T', ' ').slice(0, 19);
}

// A timestamp of a cell to the microsecond. What is no time of a calendar stays a number.
export function exactTime(micros) {
  const digits = shown(micros);
  if (digits === '0') return '0';
  const value = BigInt(digits);
  const date = new Date(Number(value / 1000000n) * 1000);
  if (Number.isNaN(date.getTime()) || date.getUTCFullYear() > 9999) return digits;
  return date.toISOString().slice(0, 19).replace('T', ' ') + '.' + String(value % 1000000n).padStart(6, '0');
}

export function count(n) {
  return Number(n).toLocaleString('en');
}

export function size(bytes) {
  if (bytes === null || bytes === undefined) return '';
  let unit = 0;
  let n = Number(bytes);
  while (n >= 1024 && unit < 4) {
    n /= 1024;
    ++unit;
  }
  return (unit === 0 ? n : n.toFixed(n < 10 ? 2 : 1)) + ' ' + ['B', 'KiB', 'MiB', 'GiB', 'TiB'][unit];
}

export function duration(seconds) {
  const s = Math.max(0, Math.floor(seconds));
  if (s < 120) return s + ' s';
  if (s < 7200) return Math.floor(s / 60) + ' min';
  if (s < 172800) return Math.floor(s / 3600) + ' h ' + Math.floor(s % 3600 / 60) + ' min';
  return Math.floor(s / 86400) + ' d ' + Math.floor(s % 86400 / 3600) + ' h';
}

// Sixteen bytes a line: where they stand, their numbers, and the letters among them.
export function hexLines(bytes, from) {
  const lines = [];
  for (let at = 0; at < bytes.length; at += 16) {
    const sixteen = [...bytes.slice(at, at + 16)];
    const numbers = sixteen.map((b, i) => b.toString(16).padStart(2, '0') + (i === 7 ? ' ' : '')).join(' ');
    const letters = sixteen.map((b) => b >= 32 && b < 127 ? String.fromCharCode(b) : '.').join('');
    lines.push((from + at).toString(16).padStart(8, '0') + '  ' + numbers.padEnd(49) + ' ' + letters);
  }
  return lines.join('\n');
}

// JSON with its lines and spaces made anew. Numbers stay as they are written: parsed ones would lose digits.
// Nothing if it is no JSON.
export function indentJson(text) {
  try {
    JSON.parse(text);
  } catch {
    return null;
  }
  let out = '';
  let depth = 0;
  const line = () => '\n' + '  '.repeat(depth);
  const tokens = text.match(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/gs) || [];
  tokens.forEach((token, i) => {
    const isEmpty = /[{[]/.test(tokens[i - 1] || '') && i > 0;
    if (token === '}' || token === ']') {
      --depth;
      out += isEmpty ? token : line() + token;
      return;
    }
    if (isEmpty) out += line();
    out += token === ':' ? ': ' : token;
    if (token === '{' || token === '[') ++depth;
    if (token === ',') out += line();
  });
  return out;
}
