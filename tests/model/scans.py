"""Following a CSCAN to its end, and comparing the whole with what the model expects."""

from .resp import Error, Map, as_map, same

STATS_FIELDS = {b'rows', b'cells', b'bytes', b'groups', b'micros'}


class Difference(Exception):
    """The server is not as expected: what was asked, expected, got."""

    def __init__(self, what, expected, got):
        super().__init__(what)
        self.what = what
        self.expected = expected
        self.got = got


def _cells_of(scan, row):
    """How many cells a row of one call shows."""
    pairs = as_map(row[1])
    return sum(len(entry) if scan.shows_versions else 1 for _, entry in pairs)


def _join(scan, rows, more):
    """Appends a call's rows; a row that goes on in the next call is put together again."""
    for at, row in enumerate(more):
        if at == 0 and rows and scan.cells is not None and not scan.keys_only \
                and rows[-1][0] == row[0]:
            rows[-1] = [row[0], _join_maps(scan, rows[-1][1], row[1])]
        else:
            rows.append(row)


def _join_maps(scan, first, second):
    pairs, rest = list(as_map(first)), list(as_map(second))
    if scan.shows_versions and pairs and rest and pairs[-1][0] == rest[0][0]:
        pairs[-1] = (pairs[-1][0], pairs[-1][1] + rest[0][1])
        rest = rest[1:]
    pairs += rest
    if isinstance(first, Map):
        return Map(pairs)
    return [item for pair in pairs for item in pair]


def _check_call(scan, reply):
    if not isinstance(reply, list) or len(reply) != (3 if scan.stats else 2) or \
            not isinstance(reply[0], bytes) or not isinstance(reply[1], list):
        raise Difference('the shape of a scan', scan, reply)
    if len(reply[1]) > scan.count:
        raise Difference('more rows than COUNT %d' % scan.count, scan, reply)
    if scan.cells is not None and not scan.keys_only and sum(_cells_of(scan, row) for row in reply[1]) > scan.cells:
        raise Difference('more cells than CELLS %d' % scan.cells, scan, reply)
    # Which index was walked, if any, is for the server to choose; so is what it remarks.
    if scan.stats and set(name for name, _ in as_map(reply[2])) - {b'index', b'notes'} != STATS_FIELDS:
        raise Difference('the fields of STATS', STATS_FIELDS, reply[2])


def _is_subsequence(some, whole):
    rest = iter(whole)
    return all(any(same(row, other) for other in rest) for row in some)


def check(scan, reply, words, call):
    """Compares a scan, fetching what is left with `call(words)`."""
    rows = []
    calls = 0
    seen = set()
    while True:
        if isinstance(reply, Error):
            raise Difference('a scan is refused after %d calls' % calls, scan, reply)
        _check_call(scan, reply)
        _join(scan, rows, reply[1])
        calls += 1
        cursor = reply[0]
        if cursor == b'0':
            break
        if cursor in seen or calls > 10000:
            raise Difference('a cursor that does not get on', scan, reply)
        seen.add(cursor)
        reply = call(words[:2] + [cursor] + words[3:])
    if scan.sampled:
        if not _is_subsequence(rows, scan.rows):
            raise Difference('a sample that is no part of the scan', scan.rows, rows)
    elif not same(scan.rows, rows):
        raise Difference('the rows of a scan in %d calls' % calls, scan.rows, rows)


def check_queued(scan, reply):
    """A scan inside EXEC is one call; what it did not return must be behind its cursor."""
    if isinstance(reply, Error):
        raise Difference('a scan in EXEC is refused', scan, reply)
    _check_call(scan, reply)
    rows = reply[1]
    if scan.sampled:
        if not _is_subsequence(rows, scan.rows):
            raise Difference('a sample that is no part of the scan', scan.rows, rows)
    elif not same(scan.rows[:len(rows)] if reply[0] != b'0' else scan.rows, rows):
        raise Difference('the rows of a scan in EXEC', scan.rows, rows)
