// Questions to cellar-web, and what it answers.
'use strict';

import {packList, shown} from './text.js';

export class NotLoggedIn extends Error {}
export class Left extends Error {}  // another page is shown by now

// Of this tab and origin alone: a cookie would go to every port of the host.
const SESSION = 'cellar';
const ADDRESS_MAX = 6000;  // what is longer is sent as a body

let leaving = new AbortController();

// Nobody waits any more for what has been asked.
export function leave() {
  leaving.abort();
  leaving = new AbortController();
}

export const keepSession = (name) => sessionStorage.setItem(SESSION, name);
export const dropSession = () => sessionStorage.removeItem(SESSION);

async function send(path, options, more) {
  const session = sessionStorage.getItem(SESSION);
  const headers = {'X-Cellar': '1', ...(session ? {'X-Cellar-Session': session} : {}), ...more};
  let response;
  try {
    response = await fetch('api/' + path, {credentials: 'omit', ...options, headers});
  } catch (error) {
    if (error.name === 'AbortError') throw new Left();
    throw new Error('cellar-web does not answer.');
  }
  const reply = await response.json().catch(() => ({error: 'status ' + response.status}));
  if (response.status === 401 && path !== 'login') throw new NotLoggedIn(reply.error);
  if (!response.ok) throw Object.assign(new Error(shown(reply.error)), {status: response.status});
  return reply.answer;
}

export function post(path, body, options) {
  return send(path, {method: 'POST', body: JSON.stringify(body || {}), ...options}, {'Content-Type': 'application/json'});
}

// Parameters that are undefined or empty are not sent.
export function ask(path, parameters, signal = leaving.signal) {
  const given = Object.fromEntries(Object.entries(parameters || {})
    .filter(([, value]) => value !== undefined && value !== '').map(([name, value]) => [name, String(value)]));
  const query = String(new URLSearchParams(given));
  return query.length > ADDRESS_MAX ? post(path, given, {signal}) : send(path + '?' + query, {signal});
}

// The fields of INFO.
export async function info(sections) {
  return fieldsOf(await ask('info', {sections64: packList(sections)}));
}

export function fieldsOf(text) {
  const fields = {};
  for (const line of text.split('\r\n')) {
    const colon = line.indexOf(':');
    if (colon > 0 && line[0] !== '#') fields[line.slice(0, colon)] = line.slice(colon + 1);
  }
  return fields;
}
