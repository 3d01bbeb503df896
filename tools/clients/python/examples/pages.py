"""A wide table in a web page: rows by the page, with their first columns; all columns of a row by the page; versions of
a cell. page_html.py draws and serves them."""

import cellar

ROWS, FIRST, COLUMNS = 10, 3, 20


class Pages:
    def __init__(self, url, table, **options):
        self.db = cellar.Cellar(url, **options)
        self.table = self.db.table(table)

    def rows(self, cursor, prefix):
        """The cursor of the next page ("0": this is the last), and rows."""
        return self.table.page(cursor, count=ROWS, prefix=prefix, per_row=FIRST)

    def rows_before(self, first, prefix):
        return list(self.table.scan(range=(f"[{prefix}", f"({first}"), limit=ROWS, per_row=FIRST, reverse=True))[::-1]

    def columns(self, key, family, after):
        """Columns of a family behind one of them, and whether there are more."""
        found = self.table.row(key, column_range=(family, f"({after}" if after else "-", "+"), per_row=COLUMNS + 1)
        return dict(list(found.items())[:COLUMNS]), len(found) > COLUMNS

    def versions(self, key, column):
        cells = self.table.cells(key, columns=column, versions="ALL")
        return [(cell.ts, cell.type, cell.value) for versions in cells.values() for cell in versions]

    def close(self):
        self.db.close()
