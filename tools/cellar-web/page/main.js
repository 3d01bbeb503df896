// The page of cellar-web: logging in and out, and which page an address is. No framework and no build step: each file is
// one idea, and what it begins with says which.
'use strict';

import {here} from './address.js';
import {showConfig, showUsers} from './admin.js';
import {showAllTables} from './alltables.js';
import {showRows} from './browse.js';
import {showCluster} from './cluster.js';
import {showConsole} from './console.js';
import {byId} from './dom.js';
import {showExplain} from './explain.js';
import {View, guard, mark, onLoggedOut, tell} from './frame.js';
import {showGraphs} from './graphs.js';
import {chooseTable, showHeat} from './heat.js';
import {showOverview} from './overview.js';
import {showReplication, showSlow} from './reports.js';
import {showRow} from './row.js';
import {showSchema} from './schema.js';
import {NotLoggedIn, ask, dropSession, keepSession, post} from './server.js';
import {showState} from './state.js';
import {listTables, showList} from './tables.js';
import {unpack} from './text.js';
import {showValue} from './value.js';

const OVERVIEW_MS = 2000;
const HEAT_MS = 20000;
const REPLICATION_MS = 5000;
const CLUSTER_MS = 5000;
const GRAPHS_MS = 5000;
const TABLE_FIGURES_MS = 5000;
const TABLES_MS = 30000;

function ofTable(view, [, name, tab, key, cell, column, ts], query) {
  const table = unpack(name);
  if (tab === 'explain') return showExplain(view, table, query);
  if (tab === 'schema') return showSchema(view, table);
  if (tab === 'row' && cell === 'cell') return showValue(view, {table, row: unpack(key), column: unpack(column || ''), ts}, query);
  if (tab === 'row') return showRow(view, table, unpack(key || ''), query);
  return showRows(view, table, query);
}

// What shows an address, and how often it is shown anew.
function pageOf(view, path, query) {
  const [page, name] = path;
  if (page === 'table' && name) return [() => ofTable(view, path, query)];
  if (page === 'tables') return [() => showAllTables(view, query), TABLE_FIGURES_MS];
  if (page === 'graphs') return [() => showGraphs(view, query), GRAPHS_MS];
  if (page === 'state') return [() => showState(view)];
  if (page === 'users') return [() => showUsers(view)];
  if (page === 'config') return [() => showConfig(view, query)];
  if (page === 'heat' && name) return [() => showHeat(view, unpack(name), query), HEAT_MS];
  if (page === 'heat') return [() => chooseTable(view)];
  if (page === 'console') return [() => showConsole(view, query)];
  if (page === 'slow') return [() => showSlow(view)];
  if (page === 'cluster') return [() => showCluster(view, query), CLUSTER_MS];
  if (page === 'replication') return [() => showReplication(view), REPLICATION_MS];
  return [() => showOverview(view), OVERVIEW_MS];
}

async function go() {
  const view = new View();
  mark();
  const {path, query} = here();
  const [action, pauseMs] = pageOf(view, path, query);
  if (pauseMs) {
    if (byId('main').dataset.page !== path.join('/')) byId('main').replaceChildren();
    byId('main').dataset.page = path.join('/');
    return view.repeat(action, pauseMs);
  }
  byId('main').dataset.page = '';
  byId('main').setAttribute('aria-busy', 'true');
  const shown = byId('main').firstChild;
  const done = await guard(action, view);
  if (!view.alive) return null;
  byId('main').removeAttribute('aria-busy');
  // What was shown before is not left standing beside the trouble, as if it were what was asked for.
  if (!done && byId('main').firstChild === shown) byId('main').replaceChildren();
  return null;
}

// Whoever follows a link by keys or hears the page goes on from its content.
async function follow() {
  if (!byId('login').hidden) return;
  byId('main').focus({preventScroll: true});
  window.scrollTo(0, 0);
  await go();
}

async function refreshTables() {
  if (byId('login').hidden && document.visibilityState === 'visible') await guard(listTables);
  setTimeout(refreshTables, TABLES_MS);
}

async function showLogin(trouble) {
  new View();
  tell(trouble);
  byId('head').hidden = byId('body').hidden = true;
  byId('login').hidden = false;
  byId('password').value = '';
  byId('user').focus();
}

async function enter() {
  byId('login').hidden = true;
  byId('head').hidden = byId('body').hidden = false;
  tell('');
  await Promise.all([guard(listTables), go()]);
}

async function logIn(user, password) {
  keepSession(await post('login', {user, password}));
  await enter();
}

// A session may be there still; or nobody needs a password.
async function begin() {
  try {
    if (!await ask('session')) throw new NotLoggedIn();
    await enter();
  } catch (error) {
    if (!(error instanceof NotLoggedIn)) return showLogin(error.message);
    try {
      await logIn('', '');
    } catch (refused) {
      await showLogin(/NOAUTH|WRONGPASS/.test(refused.message) ? '' : refused.message);
    }
  }
  return null;
}

onLoggedOut(showLogin);
byId('login').addEventListener('submit', async (event) => {
  event.preventDefault();
  try {
    await logIn(byId('user').value, byId('password').value);
  } catch (error) {
    tell(error.message);
  }
});
byId('leave').addEventListener('click', async () => {
  await post('logout').catch(() => null);
  dropSession();
  await showLogin('');
});
byId('skip').addEventListener('click', (event) => {
  event.preventDefault();  // the address says what is shown
  byId('main').focus();
});
byId('find').addEventListener('input', showList);
window.addEventListener('hashchange', follow);
setTimeout(refreshTables, TABLES_MS);
begin();
