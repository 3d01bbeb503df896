"""Wrong input: one fault put into a good command (cellar-model(7), "ERROR REPLIES")."""

from . import pools


def spoil(generator, words, table):
    """The command with one thing wrong (or, now and then, still right)."""
    words = list(words)
    choice = generator.weighted([('table', 3), ('keyspace', 1), ('cut', 2), ('more', 2),
                                 ('family', 3), ('key', 3), ('value', 3), ('filter', 2),
                                 ('count', 1)])
    if choice == 'table' and words[0].startswith(b'C'):
        words[1] = generator.pick([b'nix', b'T1', b'no such'])
    elif choice == 'keyspace' and words[0].startswith(b'C'):
        words[1] = b'nowhere/t1'
    elif choice == 'cut' and len(words) > 3:
        return words[:generator.rng.randint(1, len(words) - 1)]
    elif choice == 'more':
        words.insert(generator.rng.randint(3, len(words)) if len(words) > 3 else len(words),
                     generator.pick([b'WITHTS', b'nonsense', b'NX', b'COUNT', b'REVERSE', b'IF']))
    elif choice == 'family':
        return _replace_family(generator, words)
    elif choice == 'key' and words[0].startswith(b'C') and len(words) > 2:
        if words[0] not in (b'CSCAN', b'CCOUNT', b'CAGG', b'CDELRANGE', b'CUPDATE'):
            at = 3 if words[0] == b'CROWS' else 2
            words[at] = _bad_key(generator, table.order) or words[at]
    elif choice == 'value' and words[0] == b'CPUT' and len(words) > 4:
        kind = generator.pick(['i64', 'u8', 'f64', 'f32', 'bool', 'uuid', 'string'])
        family = words[-2].partition(b':')[0]
        if b':' in words[-2] and family in table.families:
            declared = table.families[family].type_of_text(words[-2].partition(b':')[2])
            bad = pools.bad_value(declared or kind, generator.rng)
            if bad is not None:
                words[-1] = bad
                words += [] if declared else [b'AS', kind.encode()]
    elif choice == 'filter' and words[0] in (b'CROW', b'CROWS', b'CSCAN', b'CCOUNT', b'CAGG') and b'FILTER' not in words:
        words += [b'FILTER', generator.pick([
            b'', b'pass |', b'nonsense', b'value ~ "("', b'limit(0)', b'latest(0)', b'{pass', b'pass)',
            b'label("TOO BIG")', b'value = ', b'if(pass)', b'if(sink; pass)', b'ts = "x"', b'"x"'])]
    elif choice == 'count' and words[0] in (b'CSCAN', b'CROW', b'CROWS'):
        words += [generator.pick([b'PERROW', b'VERSIONS', b'GROUPS']),
                  generator.pick([b'0', b'-1', b'x', b''])]
    return words


def _replace_family(generator, words):
    places = [at for at in range(3, len(words)) if b':' in words[at][:7]]
    if places:
        at = generator.pick(places)
        words[at] = b'nofam:' + words[at].partition(b':')[2]
    return words


def _bad_key(generator, order):
    choice = generator.rng.random()
    if choice < 0.15:
        return b'k' * 70000
    if choice < 0.3:
        return b''
    if len(order.parts) > 1 and choice < 0.5:
        return generator.random_key(order).split(order.delimiter)[0]
    parts = []
    place = generator.rng.randrange(len(order.parts))
    for at, (kind, _) in enumerate(order.parts):
        word = pools.bad_component(kind, generator.rng) if at == place else None
        parts.append(word if word is not None else generator.pick(pools.component_texts(kind)))
    return order.delimiter.join(parts)
