"""Random filter expressions (cellar-query(7), "FILTER EXPRESSIONS") over a table of the model."""

from . import pools
from .values import FLOATS, INTEGER_RANGES, print_value


def quote(text):
    """A filter's string literal."""
    out = bytearray(b'"')
    for byte in text:
        if byte in b'"\\':
            out += b'\\' + bytes([byte])
        elif byte < 0x20 or byte >= 0x7f:
            out += b'\\x%02x' % byte
        else:
            out.append(byte)
    return bytes(out + b'"')


def random_filter(generator, table, depth=0):
    count = generator.weighted([(1, 8), (2, 3), (3, 1)])
    steps = [_step(generator, table, depth) for _ in range(count)]
    return generator.pick([b' | ', b'|']).join(steps)


def _step(generator, table, depth):
    choice = generator.rng.random()
    if depth < 3 and choice < 0.08:
        return b'(' + random_filter(generator, table, depth + 1) + b')'
    if depth < 3 and choice < 0.2:
        branches = [random_filter(generator, table, depth + 1)
                    for _ in range(generator.rng.randint(1, 3))]
        return b'{' + b', '.join(branches) + b'}'
    if depth < 3 and choice < 0.28:
        parts = [_without_sink(generator, table, depth) for _ in range(generator.rng.randint(2, 3))]
        return b'if(' + b'; '.join(parts) + b')'
    if choice < 0.5:
        return generator.weighted([
            (b'pass', 3), (b'block', 1), (b'strip', 1), (b'sink', 0.7), (b'label("l-1")', 1),
            (b'label("b2")', 1), (b'latest(%d)' % generator.rng.randint(1, 3), 3),
            (b'limit(%d)' % generator.rng.randint(1, 5), 2),
            (b'offset(%d)' % generator.rng.randint(1, 3), 2), (b'sample(1)', 0.3)])
    return _comparison(generator, table)


def _without_sink(generator, table, depth):
    text = random_filter(generator, table, depth + 1)
    return text.replace(b'sink', b'pass')


def _comparison(generator, table):
    subject = generator.weighted([(b'row', 1), (b'family', 2), (b'qualifier', 2), (b'value', 5),
                                  (b'ts', 2)])
    if subject != b'ts' and generator.chance(0.3):
        return subject + generator.pick([b' ~ ', b'~']) + quote(generator.pick(pools.PATTERNS))
    operator = generator.pick([b'=', b'!=', b'<', b'<=', b'>', b'>='])
    if generator.chance(0.3):
        low, high = _literal(generator, table, subject), _literal(generator, table, subject)
        if (low[:1] == b'"') == (high[:1] == b'"') and (low[:1] in b'tf') == (high[:1] in b'tf'):
            if generator.chance(0.15):
                low = b''
            elif generator.chance(0.15):
                high = b''
            return b'%s in %s%s, %s%s' % (subject, generator.pick([b'[', b'(']), low, high,
                                          generator.pick([b']', b')']))
    literal = _literal(generator, table, subject)
    if subject == b'family' and operator not in (b'=', b'!='):
        operator = b'='
    return subject + b' ' + operator + b' ' + literal


def _shortened(generator, order, text):
    """Sometimes the first components alone."""
    return generator._shorten(order, b'[' + text)[1:] if len(order.parts) > 1 and generator.chance(0.4) else text


def _literal(generator, table, subject):
    if subject == b'ts':
        text = generator.time_word(generator.timestamp())
        return text if text.isdigit() or text.isalnum() and text and generator.chance(0.5) else quote(text)
    if subject == b'family':
        return quote(generator.family(table).name)
    if subject == b'row':
        return quote(_shortened(generator, table.order, generator.row_key(table)))
    if subject == b'qualifier':
        family = generator.family(table)
        return quote(_shortened(generator, family.order, generator.qualifier(family)))
    cells = [cell for row in table.rows.values() for column in row.columns.values()
             for cell in column.cells]
    if not cells:
        return b'1'
    cell = generator.pick(cells)
    if cell.type in INTEGER_RANGES:
        return b'%d' % cell.value
    if cell.type in FLOATS:
        return generator.pick([b'0.5', b'1.5', b'-1', b'2.25', b'1000', b'1e39', b'-1e39', b'1e309', b'inf', b'-inf'])
    if cell.type == 'bool':
        return generator.pick([b'true', b'false'])
    return quote(print_value(cell.type, cell.value))
