// Elements. What the server says is only ever put into text nodes, never into HTML.
'use strict';

import {shown} from './text.js';

export const byId = (id) => document.getElementById(id);

const SVG = 'http://www.w3.org/2000/svg';

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === false || value === undefined || value === null) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

// An element with attributes, and children that are nodes or texts.
export function make(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function draw(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

export const soft = (...texts) => make('p', {class: 'soft'}, ...texts);

// A table. Each line is an array of texts and nodes; `classes` are of its columns.
export function rows(head, lines, classes, name) {
  const cell = (tag, content, i) => {
    const made = make(tag, {class: classes[i] || false, scope: tag === 'th' && 'col'});
    made.append(content instanceof Node ? content : shown(content));
    return made;
  };
  return scrolled(make('table', {'aria-label': name},
    make('thead', {}, make('tr', {}, ...head.map((text, i) => cell('th', text, i)))),
    make('tbody', {}, ...lines.map((line) =>
      make('tr', {}, ...line.map((content, i) => cell('td', content, i)))))));
}

// What is wider than the window scrolls by itself, with keys as well.
export function scrolled(content) {
  return make('div', {class: 'wide', tabindex: '0', role: 'group',
    'aria-label': content.getAttribute('aria-label') || 'table'}, content);
}

export function card(name, value, drawn) {
  return make('div', {class: 'card'}, make('span', {class: 'soft'}, name), make('b', {}, value), drawn);
}

// A field with its name above it.
export function labelled(text, control) {
  return make('label', {}, make('span', {}, text), control);
}

export function choice(options, chosen, attributes) {
  return make('select', attributes, ...options.map(([value, text]) =>
    make('option', {value, selected: String(value) === String(chosen)}, text)));
}
