"""Rows of another set of a cluster in every table that is made, which no read may show and no write may touch.

Their keys lie between two that no generator draws. `DEBUG TABLETS` takes them from the server's set.
"""

from .pools import TIME_UUIDS, UUIDS, value_texts
from .resp import Error
from .scans import Difference

# By the kind of a component: an ascending range, and keys inside.
_TEXTS = (b'm_stranger', b'm_strangers', [b'm_stranger', b'm_stranger 2', b'm_stranger\x01'])
_FLOATS = (b'0.75', b'0.765625', [b'0.75', b'0.7578125'])
_UUIDS = (b'00000000-0000-4000-8000-00000000abc0', b'00000000-0000-4000-8000-00000000abcd',
          [b'00000000-0000-4000-8000-00000000abc0', b'00000000-0000-4000-8000-00000000abc7'])
_TIMES = (b'00001234-0002-1000-8000-000000000000', b'00001239-0002-1000-8000-000000000000',
          [b'00001234-0002-1000-8000-000000000000', b'00001235-0002-1000-8000-000000000000'])
_INTEGERS = (b'5000', b'5003', [b'5000', b'5002'])
# What stands behind the first component.
_ANY = {'bytes': b'a', 'ascii': b'a', 'utf8': b'a', 'bool': b'true', 'f32': b'1', 'f64': b'1', 'uuid': UUIDS[1],
        'luuid': UUIDS[1], 'timeuuid': TIME_UUIDS[0]}


def _strange(kind):
    """None: every key of the kind may be drawn."""
    if kind in ('bytes', 'ascii', 'utf8'):
        return _TEXTS
    if kind in ('f32', 'f64'):
        return _FLOATS
    if kind in ('uuid', 'luuid'):
        return _UUIDS
    if kind == 'timeuuid':
        return _TIMES
    return None if kind in ('bool', 'recno', 'i8', 'u8') else _INTEGERS


def _key(order, first):
    """A key that begins so."""
    return order.delimiter.join([first] + [_ANY.get(kind, b'1') for kind, _ in order.parts[1:]])


def settle(call, table, now):
    """Puts strangers into a table, which may have some; `call` runs a command on the server."""
    def must(*words):
        reply = call(*words)
        if isinstance(reply, Error):
            raise Difference(repr(words), 'no error', reply)

    name = table.space + b'/' + table.name
    kind, descending = table.order.parts[0]
    found = _strange(kind)
    if found is None:
        return
    low, high, keys = found
    must(b'DEBUG', b'TABLETS', name, b'', b'')
    # A UNIQUE index needs that, and what is WHOLE already stays so.
    must(b'TABLE', b'ALTER', name, b'WHOLE')
    for first in keys:
        row = _key(table.order, first)
        for family in table.families.values():
            if family.fold:
                continue
            qualifier = _key(family.order, _ANY.get(family.order.parts[0][0], b'1'))
            values = value_texts(family.type_of_text(qualifier) or 'bytes')
            value = values[now % len(values)]
            # A UNIQUE index may refuse it.
            call(b'CPUT', name, row, family.name + b':' + qualifier, value, b'TS', b'%d' % now)
    if descending:
        low, high = high, _below(kind)
    must(b'DEBUG', b'TABLETS', name, b'', low, high, b'')


def _below(kind):
    """A key below the range, so that in a descending order none of it stands behind."""
    return {'bytes': b'm_strange', 'ascii': b'm_strange', 'utf8': b'm_strange', 'f32': b'0.5', 'f64': b'0.5',
            'uuid': _UUIDS[0][:-4] + b'abbf', 'luuid': _UUIDS[0][:-4] + b'abbf',
            'timeuuid': b'00001233-0002-1000-8000-000000000000'}.get(kind, b'4999')
