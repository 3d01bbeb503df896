// Avro files by npm's avsc: `read FILE` prints each record as a line of JSON (bytes as hexadecimal digits), and
// `write FILE CODEC` writes those that come as such lines.
'use strict';

const avro = require('avsc');
const readline = require('readline');

const TYPE = avro.Type.forSchema({
  type: 'record', name: 'BigtableRow', namespace: 'com.google.cloud.teleport.bigtable', fields: [
    {name: 'note', type: ['null', 'string'], default: null},
    {name: 'key', type: 'bytes'},
    {name: 'cells', type: {type: 'array', items: {type: 'record', name: 'BigtableCell', fields: [
      {name: 'value', type: ['null', 'bytes']},
      {name: 'qualifier', type: 'bytes'},
      {name: 'labels', type: {type: 'map', values: 'double'}},
      {name: 'family', type: 'string'},
      {name: 'timestamp', type: 'long', logicalType: 'timestamp-micros'},
    ]}}},
  ],
});

const hex = (buffer) => buffer.toString('hex');
const [,, mode, path, codec] = process.argv;
if (mode === 'read') {
  avro.createFileDecoder(path)
    .on('metadata', (type, name) => console.error(type.getName(), name))
    .on('data', (row) => console.log(JSON.stringify({key: hex(row.key), cells: row.cells.map(
      (cell) => [cell.family, hex(cell.qualifier), cell.timestamp, hex(cell.value)])})));
} else {
  const encoder = avro.createFileEncoder(path, TYPE, {codec, blockSize: 1000});
  readline.createInterface({input: process.stdin}).on('line', (line) => {
    const row = JSON.parse(line);
    encoder.write({note: 'n'.repeat(row.cells.length), key: Buffer.from(row.key, 'hex'), cells: row.cells.map(
      ([family, qualifier, timestamp, value]) => ({family, timestamp, qualifier: Buffer.from(qualifier, 'hex'),
        labels: {a: 1, b: 2}, value: Buffer.from(value, 'hex')}))});
  }).on('close', () => encoder.end());
}
