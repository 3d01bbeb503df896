// A wide table in a web page: rows by the page, with their first columns; all columns of a row by the page; versions of
// a cell. page_html.js draws and serves them.
'use strict';

const { Cellar } = require('cellar');

const [ROWS, FIRST, COLUMNS] = [10, 3, 20];

class Pages {
  static async connect(options, table) {
    const self = new Pages();
    self.db = await Cellar.connect(options);
    self.table = self.db.table(table);
    return self;
  }

  // The cursor of the next page ('0': this is the last), and rows.
  rows(cursor, prefix) {
    return this.table.page(cursor, { count: ROWS, prefix, perRow: FIRST });
  }

  async rowsBefore(first, prefix) {
    const range = [`[${prefix}`, `(${first}`];
    return (await this.table.scanAll({ range, limit: ROWS, perRow: FIRST, reverse: true })).reverse();
  }

  // Columns of a family behind one of them, and whether there are more.
  async columns(key, family, after) {
    const found = await this.table.row(key, { columnRange: [family, after ? `(${after}` : '-', '+'], perRow: COLUMNS + 1 });
    return { row: Object.entries(found).slice(0, COLUMNS), more: Object.keys(found).length > COLUMNS };
  }

  async versions(key, column) {
    const cells = await this.table.cells(key, { columns: column, versions: 'ALL' });
    return Object.values(cells).flat().map(({ ts, type, value }) => [ts, type, value]);
  }

  close() {
    return this.db.close();
  }
}

module.exports = { Pages };
