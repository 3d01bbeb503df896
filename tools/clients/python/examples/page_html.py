"""What pages.py and raw_pages.py have in common: HTML of a table, and a server of it.

    python3 page_html.py redis://localhost:6479 TABLE PORT
"""

import http.server
import sys
from html import escape
from urllib.parse import parse_qsl, urlencode, urlsplit

STYLE = "<style>body{font-family:sans-serif} td,th{padding:2px 12px;text-align:left} th{font-family:monospace}</style>"


def link(text, path, **arguments):
    return f'<a href="{path}?{escape(urlencode(arguments, errors="surrogateescape"))}">{escape(text)}</a>'


def shown(value):
    text = value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)
    return escape(text if len(text) <= 60 else text[:60] + "…")


def table(lines):
    return "<table>" + "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in line)}</tr>\n" for line in lines) + "</table>"


def row_line(key, row):
    cells = (f"{link(column, '/row', key=key, family=column.partition(':')[0])} {shown(value)}"
             for column, value in row.items())
    return [f"<b>{escape(key)}</b>", *cells]


def rows_page(pages, cursor="0", prefix="", before=None):
    after, rows = (None, pages.rows_before(before, prefix)) if before else pages.rows(cursor, prefix)
    links = []
    if rows and (before or cursor != "0"):
        links.append(link("earlier", "/", prefix=prefix, before=rows[0][0]))
    if before:
        links.append(link("from the first", "/", prefix=prefix))
    elif after != "0":
        links.append(link("next", "/", prefix=prefix, cursor=after))
    return table(row_line(key, row) for key, row in rows) + " ".join(links)


def row_page(pages, key, family, after=None):
    row, more = pages.columns(key, family, after)
    lines = [[f"<b>{link(column, '/cell', key=key, column=column)}</b>", shown(value)] for column, value in row.items()]
    last = list(row)[-1].partition(":")[2] if row else ""
    return f"<h1>{escape(key)}</h1>" + table(lines) + (
        link("next", "/row", key=key, family=family, after=last) if more else "")


def cell_page(pages, key, column):
    return f"<h1>{escape(key)} {escape(column)}</h1>" + table(
        [str(ts), name, shown(value)] for ts, name, value in pages.versions(key, column))


def handler(pages):
    """The class of handlers that http.server takes."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            url = urlsplit(self.path)
            draw = {"/": rows_page, "/row": row_page, "/cell": cell_page}.get(url.path)
            try:
                body = draw and draw(pages, **dict(parse_qsl(url.query, errors="surrogateescape")))
            except TypeError:  # other arguments than those of its links
                body = None
            self.send_response(200 if body is not None else 404)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write((STYLE + (body or "There is nothing here")).encode("utf-8", "backslashreplace"))

        def log_message(self, *_):
            pass
    return Handler


if __name__ == "__main__":
    from pages import Pages
    http.server.HTTPServer(("127.0.0.1", int(sys.argv[3])), handler(Pages(sys.argv[1], sys.argv[2]))).serve_forever()
