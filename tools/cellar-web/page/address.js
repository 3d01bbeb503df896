// Addresses within the page: #/word/word?name=value. Everything that is shown follows from the address, so that Back
// and links work.
//
//   #/                         overview          #/table/<name>?prefix=...           its rows
//   #/tables                   all tables        #/table/<name>/row/<key>            a row
//   #/heat, #/heat/<name>      heat map          #/table/<name>/row/<key>/cell/<column>/<timestamp>
//   #/console?line=...
//   #/graphs?hours=6
//   #/state, #/users, #/config                       #/table/<name>/explain?...
//   #/slow                     slow log          #/table/<name>/schema
//   #/replication, #/cluster?table=...
//
// A name or key is the base64 of its bytes; what people have typed stands as they typed it.
'use strict';

export function here() {
  const [path, query] = (location.hash || '#/').slice(2).split('?');
  return {path: path.split('/'), query: new URLSearchParams(query || '')};
}

export function link(path, query) {
  const kept = new URLSearchParams();
  for (const [name, value] of query instanceof URLSearchParams ? query : Object.entries(query || {})) {
    if (value !== '' && value !== undefined && value !== null && value !== false) kept.set(name, value);
  }
  return '#/' + path.join('/') + ([...kept].length > 0 ? '?' + kept : '');
}

// The same address with some values changed; those that are empty go.
export function changed(changes) {
  const {path, query} = here();
  for (const [name, value] of Object.entries(changes)) query.set(name, value === undefined ? '' : value);
  return link(path, query);
}
