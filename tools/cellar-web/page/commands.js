// What COMMAND DOCS says of the server's commands: how each is written, and what may stand where somebody types.
'use strict';

import {ask} from './server.js';
import {field, pairs} from './text.js';
import {split} from './words.js';

let known = null;  // name in capitals -> {summary, form, tokens, takesTable}

function formOf(argument) {
  const type = field(argument, 'type');
  const flags = argument.includes('flags') ? field(argument, 'flags').map((flag) => flag.replace('+', '')) : [];
  const token = argument.includes('token') ? field(argument, 'token') : '';
  const inner = argument.includes('arguments') ? field(argument, 'arguments').map(formOf) : [];
  let form = type === 'oneof' ? inner.join('|') : type === 'block' ? inner.join(' ')
    : type === 'pure-token' ? '' : field(argument, 'name');
  const isRepeated = flags.includes('multiple');
  if (isRepeated && !flags.includes('multiple_token')) form += ' ...';
  form = [token, form].filter(Boolean).join(' ');
  if (flags.includes('optional')) form = '[' + form + ']';
  return isRepeated && flags.includes('multiple_token') ? form + ' ...' : form;
}

function tokensOf(argument) {
  const inner = argument.includes('arguments') ? field(argument, 'arguments') : [];
  return [...argument.includes('token') ? [field(argument, 'token')] : [], ...inner.flatMap(tokensOf)];
}

function note(into, docs) {
  for (const [name, doc] of pairs(docs)) {
    if (doc.includes('subcommands')) {
      note(into, field(doc, 'subcommands'));
      continue;
    }
    const given = doc.includes('arguments') ? field(doc, 'arguments') : [];
    into.set(name.toUpperCase().replace('|', ' '), {summary: field(doc, 'summary'), form: given.map(formOf).join(' '),
      tokens: [...new Set(given.flatMap(tokensOf))].sort(),
      takesTable: given.some((argument) => field(argument, 'type') === 'key')});
  }
}

export async function loadCommands() {
  if (known !== null) return;
  const found = new Map();
  note(found, await ask('commands'));
  known = found;
}

// The command that a line begins with: {name, ...} or nothing.
export function commandOf(line) {
  if (known === null) return null;
  const words = line.trim().toUpperCase().split(/\s+/);
  for (const name of [words.slice(0, 2).join(' '), words[0]]) {
    if (known.has(name)) return {name, ...known.get(name)};
  }
  return null;
}

// What may stand in place of the last word of `line`: [{text: the whole line then, word}].
export function completions(line, tables, most) {
  if (known === null) return [];
  const begin = line.search(/\S*$/);
  const typed = line.slice(begin).toUpperCase();
  const before = line.slice(0, begin);
  const command = commandOf(before);
  if (command === null) {
    const wanted = line.trimStart().replace(/\s+/g, ' ').toUpperCase();
    return [...known.keys()].filter((name) => name.startsWith(wanted) && name !== wanted).sort().slice(0, most)
      .map((name) => ({word: name, text: name + ' '}));
  }
  if (typed === '' && command.takesTable === false) return [];
  let words = command.tokens;
  try {
    // Behind the name there is a table.
    const place = split(before).length - command.name.split(' ').length;
    if (command.takesTable && place <= (command.name === 'CEXPLAIN' ? 1 : 0)) words = tables;
  } catch {
    return [];
  }
  return words.filter((word) => word.toUpperCase().startsWith(typed) && word.toUpperCase() !== typed).slice(0, most)
    .map((word) => ({word, text: before + word + ' '}));
}
