// What pages.js and raw_pages.js have in common: HTML of a table, and a server of it.
//
//   node page_html.js redis://localhost:6479 TABLE PORT
'use strict';

const http = require('http');

const STYLE = '<style>body{font-family:sans-serif} td,th{padding:2px 12px;text-align:left} th{font-family:monospace}</style>';
const escape = (text) => String(text).replace(/[&<>"']/g, (each) => `&#${each.charCodeAt(0)};`);
const link = (text, path, given) => `<a href="${path}?${escape(new URLSearchParams(given))}">${escape(text)}</a>`;
const shown = (value) => escape(String(value).length <= 60 ? value : `${String(value).slice(0, 60)}…`);
const table = (lines) => `<table>${lines.map((line) =>
  `<tr>${line.map((cell) => `<td>${cell}</td>`).join('')}</tr>\n`).join('')}</table>`;

async function rowsPage(pages, { cursor = '0', prefix = '', before }) {
  const { cursor: after, rows } = before ? { rows: await pages.rowsBefore(before, prefix) } : await pages.rows(cursor, prefix);
  const links = [];
  if (rows.length > 0 && (before || cursor !== '0')) links.push(link('earlier', '/', { prefix, before: rows[0][0] }));
  if (before) links.push(link('from the first', '/', { prefix }));
  else if (after !== '0') links.push(link('next', '/', { prefix, cursor: after }));
  return table(rows.map(([key, row]) => [`<b>${escape(key)}</b>`, ...Object.entries(row).map(([column, value]) =>
    `${link(column, '/row', { key, family: column.split(':')[0] })} ${shown(value)}`)])) + links.join(' ');
}

async function rowPage(pages, { key, family, after }) {
  const { row, more } = await pages.columns(key, family, after);
  const lines = row.map(([column, value]) => [`<b>${link(column, '/cell', { key, column })}</b>`, shown(value)]);
  return `<h1>${escape(key)}</h1>${table(lines)}${more ?
    link('next', '/row', { key, family, after: row.at(-1)[0].replace(/^[^:]*:/, '') }) : ''}`;
}

async function cellPage(pages, { key, column }) {
  const versions = await pages.versions(key, column);
  return `<h1>${escape(key)} ${escape(column)}</h1>${table(versions.map(([ts, type, value]) => [ts, type, shown(value)]))}`;
}

// A server of these pages.
function server(pages) {
  return http.createServer(async (asked, answer) => {
    const url = new URL(asked.url, 'http://localhost');
    const draw = { '/': rowsPage, '/row': rowPage, '/cell': cellPage }[url.pathname];
    const body = draw ? await draw(pages, Object.fromEntries(url.searchParams)).catch((error) => escape(error.message)) : null;
    answer.writeHead(body === null ? 404 : 200, { 'Content-Type': 'text/html; charset=utf-8' });
    answer.end(STYLE + (body ?? 'There is nothing here'));
  });
}

module.exports = { server };

if (require.main === module) {
  const [url, name, port] = process.argv.slice(2);
  require('./pages.js').Pages.connect(url, name).then((pages) => server(pages).listen(Number(port), '127.0.0.1'));
}
