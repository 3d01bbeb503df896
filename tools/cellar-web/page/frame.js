// What surrounds all pages: the place for their content, trouble, and which one is shown.
'use strict';

import {byId, make} from './dom.js';
import {Left, NotLoggedIn, leave} from './server.js';

let view = 0;
let timer = null;
let toLogin = null;

// Each page that is begun gets one; what comes late for an old one is dropped.
export class View {
  constructor() {
    clearTimeout(timer);
    leave();
    this.number = ++view;
  }

  get alive() {
    return this.number === view;
  }

  // The heading is also the title of the window.
  show(title, ...children) {
    if (!this.alive) return;
    tell('');
    document.title = title === '' ? 'Cellar' : title + ' – Cellar';
    byId('main').replaceChildren(...(title === '' ? [] : [make('h1', {}, title)]), ...children.filter(Boolean));
  }

  // Runs `action` now and every so often, while the page is shown.
  async repeat(action, pauseMs) {
    await guard(action, this);
    if (this.alive) timer = setTimeout(() => this.repeat(action, pauseMs), pauseMs);
  }
}

export function tell(trouble) {
  byId('trouble').hidden = !trouble;
  byId('trouble').textContent = trouble || '';
}

export function onLoggedOut(action) {
  toLogin = action;
}

// Runs what shows something, and tells what went wrong.
export async function guard(action, of) {
  try {
    await action();
    return true;
  } catch (error) {
    if (error instanceof Left || (of && !of.alive)) return true;
    if (error instanceof NotLoggedIn) await toLogin('');
    else tell(error.message);
    return false;
  }
}

export function mark() {
  const here = (location.hash || '#/').split('?')[0];
  for (const link of document.querySelectorAll('header nav a, aside a')) {
    const href = link.getAttribute('href');
    if (href === here || (href !== '#/' && here.startsWith(href + '/'))) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
}
