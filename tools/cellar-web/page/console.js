// A console for commands that only read: what is typed, what comes back, completion and history.
'use strict';

import {make, soft} from './dom.js';
import {commandOf, completions, loadCommands} from './commands.js';
import {guard} from './frame.js';
import {NotLoggedIn, post} from './server.js';
import {tableNames} from './tables.js';
import {packList, shown} from './text.js';
import {split} from './words.js';

const LINES = 'cellar-lines';  // of this tab, as the session is
const LINES_MAX = 200;
const ENTRIES_MAX = 50;
const OFFERED = 12;

const entries = [];  // what has been asked since the page was opened

const past = () => JSON.parse(sessionStorage.getItem(LINES) || '[]');

function remember(line) {
  const lines = past().filter((other) => other !== line);
  sessionStorage.setItem(LINES, JSON.stringify([...lines, line].slice(-LINES_MAX)));
}

// As redis-cli prints a reply.
export function printed(reply, indent = '') {
  if (reply === null) return '(nil)';
  if (typeof reply === 'number' || (typeof reply === 'object' && 'int' in reply)) return '(integer) ' + shown(reply);
  if (!Array.isArray(reply)) {
    const text = shown(reply);
    return typeof reply === 'string' ? '"' + text.replace(/["\\]/g, '\\$&') + '"' : '"' + text + '"';
  }
  if (reply.length === 0) return '(empty array)';
  const wide = String(reply.length).length;
  return reply.map((element, i) => {
    const number = String(i + 1).padStart(wide) + ') ';
    return (i === 0 ? '' : indent) + number + printed(element, indent + ' '.repeat(number.length));
  }).join('\n');
}

// INFO and the like are lines, and read better so.
function printedWhole(reply) {
  return typeof reply === 'string' && reply.includes('\r\n') ? reply.split('\r\n').map(shown).join('\n') : printed(reply);
}

async function run(line) {
  const words = split(line).map((word) => word.bytes);
  if (words.length === 0) return null;
  remember(line);
  try {
    const reply = await post('typed', {words64: packList(words)});
    return {line, text: printedWhole(reply)};
  } catch (error) {
    if (error instanceof NotLoggedIn) throw error;
    return {line, text: error.message, isError: true};
  }
}

const entryNode = ({line, text, isError}) => make('div', {class: isError ? 'entry error' : 'entry'},
  make('div', {class: 'typed'}, line), make('pre', {tabindex: '0', 'aria-label': isError ? 'error' : 'reply'}, text));

// The field with what it offers below: a combobox, as screen readers know them.
class Prompt {
  constructor(onLine) {
    this.onLine = onLine;
    this.offered = [];
    this.chosen = -1;
    this.back = 0;  // lines of the past, counted from the newest
    this.list = make('ul', {id: 'offers', role: 'listbox', 'aria-label': 'completions', hidden: true});
    this.input = make('input', {id: 'line', role: 'combobox', 'aria-label': 'command', 'aria-expanded': 'false',
      'aria-controls': 'offers', 'aria-autocomplete': 'list', autocomplete: 'off', autocapitalize: 'off', spellcheck: 'false',
      placeholder: 'CSCAN table 0 COUNT 10', oninput: () => this.offer(), onkeydown: (event) => this.key(event),
      onblur: () => this.close()});
    this.hint = soft();
    this.hint.id = 'hint';
    this.node = make('form', {class: 'prompt', onsubmit: (event) => {
      event.preventDefault();
      this.submit();
    }}, make('div', {class: 'combo'}, this.input, this.list), make('button', {}, 'Run'));
  }

  set(text) {
    this.input.value = text;
    this.input.setSelectionRange(text.length, text.length);
    this.tellForm();
  }

  tellForm() {
    const command = commandOf(this.input.value);
    this.hint.textContent = command === null ? '' : command.name + ' ' + command.form + ' — ' + command.summary;
  }

  offer() {
    this.chosen = -1;
    this.back = 0;
    this.offered = completions(this.input.value, tableNames(), OFFERED);
    this.tellForm();
    this.draw();
  }

  draw() {
    this.list.hidden = this.offered.length === 0;
    this.input.setAttribute('aria-expanded', String(!this.list.hidden));
    this.list.replaceChildren(...this.offered.map((offer, i) => make('li', {id: 'offer' + i, role: 'option',
      'aria-selected': String(i === this.chosen), onmousedown: (event) => {
        event.preventDefault();  // the field keeps the cursor
        this.take(i);
      }}, offer.word)));
    if (this.chosen >= 0) this.input.setAttribute('aria-activedescendant', 'offer' + this.chosen);
    else this.input.removeAttribute('aria-activedescendant');
  }

  close() {
    this.offered = [];
    this.chosen = -1;
    this.draw();
  }

  take(i) {
    this.set(this.offered[i].text);
    this.offer();
  }

  key(event) {
    const {key} = event;
    const isOpen = this.offered.length > 0;
    if (key === 'Tab' && isOpen && !event.shiftKey) this.take(Math.max(0, this.chosen));
    else if (key === 'Enter' && isOpen && this.chosen >= 0) this.take(this.chosen);
    else if (key === 'Escape' && isOpen) this.close();
    else if (key === 'ArrowDown' && isOpen && this.back === 0) this.choose(1);
    else if (key === 'ArrowUp' && isOpen && this.chosen >= 0) this.choose(-1);
    else if (key === 'ArrowUp') this.recall(1);
    else if (key === 'ArrowDown') this.recall(-1);
    else return;
    event.preventDefault();
  }

  choose(step) {
    this.chosen = Math.min(this.offered.length - 1, Math.max(-1, this.chosen + step));
    this.draw();
  }

  recall(step) {
    const lines = past();
    this.close();
    this.back = Math.max(0, Math.min(lines.length, this.back + step));
    this.set(this.back === 0 ? '' : lines[lines.length - this.back]);
  }

  async submit() {
    const line = this.input.value.trim();
    this.back = 0;
    this.close();
    if (line === '') return;
    await this.onLine(line);
  }
}

export async function showConsole(view, query) {
  const log = make('div', {id: 'log', role: 'log', 'aria-label': 'replies'}, ...entries.map(entryNode));
  const prompt = new Prompt((line) => guard(async () => {
    const entry = await run(line);
    if (entry === null) return;
    entries.unshift(entry);
    entries.splice(ENTRIES_MAX);
    log.replaceChildren(...entries.map(entryNode));
    prompt.set('');
  }, view));
  view.show('Console', prompt.node, prompt.hint, log);
  prompt.set(query.get('line') || '');
  prompt.input.focus();
  await loadCommands();
  prompt.tellForm();
}
