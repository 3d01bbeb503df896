"""Write commands (cellar-commands(7), "CELL COMMANDS"): every change is made on a draft of the row, and committed at the end."""

import math

from . import hll, values
from .cells import Selection
from .orders import Bounds, read_bound
from .predicates import all_hold, take_predicates
from .reads import ScanOptions
from .refusals import Refused
from .resp import OK
from .retention import read_duration
from .tables import Cell
from .words import read_time_range, read_timestamp, split_column

TIMESTAMP_MAX = 2**63 - 1


def bad_delta():
    return Refused('ERR', alternatives=('BADVALUE',))


class Change:
    """One command's change of one row. Its server timestamp is used up only if a cell takes it."""

    def __init__(self, model, table, ranks, key):
        self.model = model
        self.table = table
        self.row = table.draft(ranks, key)
        self.now = model.now
        self.stamp = model.next_stamp()
        self.stamp_used = False
        self.wrote = False
        self.deleted = 0
        self.made = {}
        self.puts_alone = False     # the command only puts: it is one write, and reclaims once
        self.reclaimed = set()

    def put(self, place, qualifier, kind, value, timestamp, expiry):
        timestamp = self._timestamp(place, timestamp)
        self._store(place, qualifier, Cell(timestamp, kind, value, expiry))

    def _timestamp(self, place, said):
        """What a write with TS `said` (None: without) gets."""
        family = self.table.families[place[0]]
        if said is None:
            if family.fold and not family.bucket:
                return 0
            said = self.stamp
            self.stamp_used = True
        return family.bucket_of(said)

    def fold(self, place, qualifier, fold, said):
        """What `fold(old value or None)` makes of the cell; the value."""
        stamp_was_used = self.stamp_used
        timestamp = self._timestamp(place, said)
        self._reclaim_once(place)
        family = self.table.families[place[0]]
        column = self.row.columns.get(place)
        held = [cell for cell in column.cells if cell.timestamp == timestamp] if column else []
        old = held[0] if held and not (held[0].expiry is not None and
                                       held[0].expiry <= self.now) else None
        value = fold(old.value if old else None)
        if old is None or not values.same(family.type, old.value, value):
            self._store(place, qualifier,
                        Cell(timestamp, family.type or 'hll', value, old.expiry if old else None))
        else:
            self.stamp_used = stamp_was_used
        return value

    def _reclaim_once(self, place):
        if not self.puts_alone or place not in self.reclaimed:
            self.table.reclaim(self.row, place, self.now)
            self.reclaimed.add(place)

    def _store(self, place, qualifier, cell):
        self._reclaim_once(place)
        self.table.put(self.row, place, qualifier, cell)
        self.wrote = True

    def delete(self, selection, between=None):
        """Deletes the selected columns (all where `selection` is None); how many cells."""
        count = 0
        for place in list(self.row.columns):
            if selection is None or selection(place):
                count += self.table.remove(self.row, place, self.now, between)
        self.deleted += count
        return count

    def _newest(self, place):
        self.table.reclaim(self.row, place, self.now)
        return self.table.newest(self.row, place, self.now)

    def _renew(self, place, qualifier, cell, kind, value):
        """The new version made from `cell` (None: from nothing)."""
        if cell is not None and self.made.get(place) == cell.timestamp:
            timestamp = cell.timestamp
        else:
            self.stamp_used = True
            timestamp = self.stamp
            if cell is not None:
                if cell.timestamp == TIMESTAMP_MAX:
                    raise Refused('ERR')
                timestamp = max(self.stamp, cell.timestamp + 1)
        timestamp = self.table.families[place[0]].bucket_of(timestamp)
        self.made[place] = timestamp
        expiry = cell.expiry if cell is not None else None
        self._store(place, qualifier, Cell(timestamp, kind, value, expiry))

    def increment(self, place, qualifier, delta, wanted):
        """Adds the text `delta`; `wanted` is 'integer', 'float' or 'any'. (type, new value)"""
        cell = self._newest(place)
        declared = self.table.families[place[0]].type_of(place[1])
        if cell is None:
            start = 0
            kind = declared
            if kind is None:
                is_integer = values.read_integer(delta) is not None
                kind = 'f64' if wanted == 'float' or not is_integer else 'i64'
        elif cell.type in values.TEXTS:
            if declared is not None:
                raise Refused('WRONGTYPE')
            kind, start = self._number_in_text(cell.value, delta, wanted)
        else:
            kind, start = cell.type, cell.value
        if kind in values.INTEGER_RANGES and wanted != 'float':
            value = self._add_integer(kind, start, delta)
        elif kind in values.FLOATS and wanted != 'integer':
            value = self._add_float(kind, start, delta)
        else:
            raise Refused('WRONGTYPE')
        self._renew(place, qualifier, cell, kind, value)
        return kind, value

    @staticmethod
    def _number_in_text(text, delta, wanted):
        number = values.read_integer(text)
        if wanted == 'integer' or (wanted == 'any' and number is not None
                                   and values.read_integer(delta) is not None):
            if number is None:
                raise Refused('WRONGTYPE')
            return 'i64', number
        number = values.read_float('f64', text)
        if number is None:
            raise Refused('WRONGTYPE')
        return 'f64', number

    @staticmethod
    def _add_integer(kind, start, delta):
        number = values.read_integer(delta)
        if number is None:
            raise bad_delta()
        if not -2**63 <= number <= 2**64 - 1:
            raise Refused('ERR')
        return Change.add_integer(kind, start, number)

    @staticmethod
    def add_integer(kind, start, number):
        low, high = values.INTEGER_RANGES[kind]
        if not low <= start + number <= high:
            raise Refused('ERR')
        return start + number

    @staticmethod
    def _add_float(kind, start, delta):
        number = values.read_float('f64', delta)
        if number is None:
            raise bad_delta()
        return Change.add_float(kind, start, number)

    @staticmethod
    def add_float(kind, start, number):
        result = float(start) + number
        if kind == 'f32':
            result = values.round_f32(result)
        if math.isinf(result) or math.isnan(result):
            raise Refused('ERR')
        return result

    def append(self, place, qualifier, text):
        """The new length."""
        cell = self._newest(place)
        declared = self.table.families[place[0]].type_of(place[1])
        kind = cell.type if cell is not None else declared or 'bytes'
        if kind not in values.TEXTS:
            raise Refused('WRONGTYPE')
        value = (cell.value if cell is not None else b'') + text
        if kind == 'string' and not values.is_utf8(value):
            raise Refused('BADVALUE')
        self._renew(place, qualifier, cell, kind, value)
        return len(value)

    def commit(self):
        if not self.wrote and not self.deleted:
            return
        self.table.commit(self.row, self.now)
        if self.stamp_used:
            self.model.last_stamp = self.stamp
        if self.wrote and self.table.order.is_recno():
            self.table.record_max = max(self.table.record_max, self.row.ranks[0])
        self.model.touch(self.table, self.row.ranks)


class Put:
    """`column value [AS type] [TS time] [TTL duration|EXPIREAT time]`"""

    def __init__(self, words):
        self.column = split_column(words.next())
        self.text = words.next()
        self.kind = self.timestamp = self.ttl = self.expiry = None
        seen = set()
        while words.more() and words.keyword() in (b'AS', b'TS', b'TTL', b'EXPIREAT'):
            name = words.next().upper()
            if name in seen:
                raise Refused('ERR')
            seen.add(name)
            if name == b'AS':
                self.kind = values.read_type(words.next())
            elif name == b'TS':
                self.timestamp = read_timestamp(words.next())
            elif name == b'TTL':
                self.ttl = read_duration(words.next())
            else:
                self.expiry = min(read_timestamp(words.next()), TIMESTAMP_MAX - 1)
        if self.ttl is not None and self.expiry is not None:
            raise Refused('ERR')

    def resolve(self, table):
        family = table.family(self.column[0])
        self.place, self.qualifier = table.column(*self.column)
        declared = family.type_of(self.place[1])
        if self.kind is not None and declared is not None and self.kind != declared:
            raise Refused('WRONGTYPE')
        if family.fold == 'hll':
            if self.kind is not None:
                raise Refused('WRONGTYPE')
            self.kind, self.value = 'hll', hll.decode(self.text)
            if self.value is None:
                raise Refused('BADVALUE')
            return
        self.kind = self.kind or declared or 'bytes'
        self.value = values.read(self.kind, self.text)

    def apply(self, change, _protocol=2):
        expiry = self.expiry if self.ttl is None else min(change.now + self.ttl, TIMESTAMP_MAX - 1)
        change.put(self.place, self.qualifier, self.kind, self.value, self.timestamp, expiry)
        return OK


class Fold:
    """`column input [TS time]`: ADD, or MERGE"""

    def __init__(self, words, merges=False):
        self.column = split_column(words.next())
        self.text = words.next()
        self.merges = merges
        self.timestamp = read_timestamp(words.next()) if words.take(b'TS') else None

    def resolve(self, table):
        family = table.family(self.column[0])
        self.place, self.qualifier = table.column(*self.column)
        if family.fold is None:
            raise Refused('WRONGTYPE')
        if family.fold == 'hll':
            self.input = hll.decode(self.text) if self.merges else hll.add((), self.text)
        elif self.merges or family.fold != 'sum':
            self.input = values.read(family.type, self.text)
        else:
            self.input = read_delta(family.type, self.text)
        if self.input is None:
            raise Refused('BADVALUE')
        self.family = family

    def apply(self, change, _protocol=2):
        change.fold(self.place, self.qualifier,
                    lambda old: fold_value(self.family, old, self.input), self.timestamp)
        return OK


class Merge(Fold):
    def __init__(self, words):
        super().__init__(words, True)


def read_delta(kind, text):
    if kind in values.FLOATS:
        return values.read_float('f64', text)
    number = values.read_integer(text)
    return number if number is not None and -2**63 <= number < 2**64 else None


def fold_value(family, old, new):
    if family.fold == 'hll':
        return new if old is None else hll.merge(old, new)
    if family.fold == 'sum':
        add = Change.add_float if family.type in values.FLOATS else Change.add_integer
        return add(family.type, 0 if old is None else old, new)
    if old is None:
        return new
    both = [old, new]
    key = values.fold_key(family.type)
    return min(both, key=key) if family.fold == 'min' else max(both, key=key)


class Delete:
    """`column|family|COLPREFIX family prefix|COLRANGE family min max [TIME min max]`"""

    def __init__(self, words):
        self.selection = Selection()
        self.between = None
        name = words.keyword()
        if name == b'COLPREFIX':
            words.next()
            self.selection.add_prefix(words)
        elif name == b'COLRANGE':
            words.next()
            self.selection.add_range(words)
        else:
            self.selection.add_column(words.next())
        if words.take(b'TIME'):
            self.between = read_time_range(words.next(), words.next())

    def resolve(self, table):
        self.selection.resolve(table)

    def apply(self, change, _protocol=2):
        return change.delete(self.selection, self.between)


class DeleteRow:
    def __init__(self, words):
        pass

    def resolve(self, table):
        pass

    def apply(self, change, _protocol=2):
        return change.delete(None)


class Increment:
    def __init__(self, words, wanted='any'):
        self.column = split_column(words.next())
        self.delta = words.next()
        self.wanted = wanted
        if values.read_float('f64', self.delta) is None or (
                wanted == 'integer' and values.read_integer(self.delta) is None):
            raise bad_delta()
        number = values.read_integer(self.delta)
        if number is not None and wanted == 'integer' and not -2**63 <= number <= 2**64 - 1:
            raise bad_delta()

    def resolve(self, table):
        self.place, self.qualifier = table.column(*self.column)
        self.family = table.families[self.place[0]]
        if not self.family.fold:
            return
        floats = self.family.type in values.FLOATS
        if self.family.fold != 'sum' or self.wanted == ('integer' if floats else 'float'):
            raise Refused('WRONGTYPE')
        self.number = read_delta(self.family.type, self.delta)
        if self.number is None:
            raise Refused('ERR')

    def apply(self, change, protocol):
        if self.family.fold:
            value = change.fold(self.place, self.qualifier,
                                lambda old: fold_value(self.family, old, self.number), None)
            return values.reply(self.family.type, value, protocol)
        kind, value = change.increment(self.place, self.qualifier, self.delta, self.wanted)
        return values.reply(kind, value, protocol)


class Append:
    def __init__(self, words):
        self.column = split_column(words.next())
        self.text = words.next()

    def resolve(self, table):
        self.place, self.qualifier = table.column(*self.column)
        if table.families[self.place[0]].fold:
            raise Refused('WRONGTYPE')

    def apply(self, change, _protocol=2):
        return change.append(self.place, self.qualifier, self.text)


def _check(table, predicates):
    for predicate in predicates:
        predicate.resolve(table)


def _compile(table, predicates):
    for predicate in predicates:
        predicate.compile_filter(table)


def cput(model, session, words):
    name, key = words.next(), words.next()
    predicates, condition = [], None
    while words.keyword() in (b'NX', b'XX', b'IF'):
        found = take_predicates(words, b'IF')
        predicates += found
        if not found:
            if condition is not None:
                raise Refused('ERR')
            condition = words.next().upper()
    puts = [Put(words)]
    while words.more():
        puts.append(Put(words))
    table = model.table(session, name)
    numbered = key == b'*' and table.order.is_recno()
    if numbered:
        if table.record_max == 2**63 - 1:
            raise Refused('ERR')
        key = b'%d' % (table.record_max + 1)
    ranks, key = table.row_key(key)
    _check(table, predicates)
    for put in puts:
        put.resolve(table)
    _compile(table, predicates)
    row = table.rows.get(ranks)
    if condition is not None:
        present = [table.newest(row, put.place, model.now) is not None for put in puts]
        if (condition == b'NX' and any(present)) or (condition == b'XX' and not all(present)):
            return None
    if not all_hold(predicates, table, row, model.now):
        return None
    change = Change(model, table, ranks, key)
    change.puts_alone = True
    for put in puts:
        put.apply(change)
    change.commit()
    return key if numbered else OK


def cadd(model, session, words):
    name, key = words.next(), words.next()
    predicates = take_predicates(words, b'IF')
    folds = [Fold(words)]
    while words.more():
        folds.append(Fold(words))
    table = model.table(session, name)
    ranks, key = table.row_key(key)
    _check(table, predicates)
    for fold in folds:
        fold.resolve(table)
    _compile(table, predicates)
    if not all_hold(predicates, table, table.rows.get(ranks), model.now):
        return None
    change = Change(model, table, ranks, key)
    change.puts_alone = True
    for fold in folds:
        fold.apply(change)
    change.commit()
    return OK


def _single(model, session, words, make):
    """A command of one column: resolve, apply, commit."""
    name, key = words.next(), words.next()
    step = make(words)
    words.end()
    table = model.table(session, name)
    ranks, key = table.row_key(key)
    step.resolve(table)
    change = Change(model, table, ranks, key)
    result = step.apply(change, session.protocol)
    change.commit()
    return result


def cincrby(model, session, words):
    return _single(model, session, words, lambda rest: Increment(rest, 'integer'))


def cincrbyfloat(model, session, words):
    return _single(model, session, words, lambda rest: Increment(rest, 'float'))


def cappend(model, session, words):
    return _single(model, session, words, Append)


def cdel(model, session, words):
    name, key = words.next(), words.next()
    predicates = take_predicates(words, b'IF')
    selection, between = Selection(), None
    while words.more():
        if words.keyword() == b'TIME' and words.left() == 3:
            words.next()
            between = read_time_range(words.next(), words.next())
        elif words.keyword() == b'IF':
            predicates += take_predicates(words, b'IF')
        elif words.take(b'COLPREFIX'):
            selection.add_prefix(words)
        elif words.take(b'COLRANGE'):
            selection.add_range(words)
        else:
            selection.add_column(words.next())
    table = model.table(session, name)
    ranks, key = table.row_key(key)
    _check(table, predicates)
    selection.resolve(table)
    _compile(table, predicates)
    if not all_hold(predicates, table, table.rows.get(ranks), model.now):
        return None
    change = Change(model, table, ranks, key)
    count = change.delete(selection if selection else None, between)
    change.commit()
    return count


def cdelrange(model, session, words):
    name = words.next()
    kind = words.next().upper()
    if kind == b'PREFIX':
        argument = words.next()
    elif kind == b'RANGE':
        argument = (read_bound(words.next()), read_bound(words.next()))
    elif kind != b'ALL':
        raise Refused('ERR')
    words.end()
    table = model.table(session, name)
    if kind == b'PREFIX':
        test = table.order.prefix(argument)
    elif kind == b'RANGE':
        test = Bounds(table.order, *argument)
    else:
        def test(_ranks):
            return True
    count = 0
    for ranks in list(table.rows):
        if test(ranks):
            live = table.row_is_live(table.rows[ranks], model.now)
            count += live
            del table.rows[ranks]
            if live:
                model.touch(table, ranks)
    return count


_OPERATIONS = {b'PUT': Put, b'DEL': Delete, b'DELROW': DeleteRow, b'INCR': Increment,
               b'APPEND': Append, b'ADD': Fold, b'MERGE': Merge}
_BLIND = (Put, Fold)


def cmutate(model, session, words):
    name, key = words.next(), words.next()
    predicates = take_predicates(words, b'IF')
    branches = [[], []]
    at = 0
    while words.more():
        word = words.next().upper()
        if word == b'ELSE' and at == 0 and predicates:
            at = 1
        elif word in _OPERATIONS:
            branches[at].append(_OPERATIONS[word](words))
        else:
            raise Refused('ERR')
    if not branches[0] and not branches[1]:
        raise Refused('ERR')
    table = model.table(session, name)
    ranks, key = table.row_key(key)
    _check(table, predicates)
    for step in branches[0] + branches[1]:
        step.resolve(table)
    _compile(table, predicates)
    holds = all_hold(predicates, table, table.rows.get(ranks), model.now)
    change = Change(model, table, ranks, key)
    branch = branches[0 if holds else 1]
    change.puts_alone = all(isinstance(step, _BLIND) for step in branch)
    results = [step.apply(change, session.protocol) for step in branch]
    change.commit()
    return [int(holds)] + results


def cupdate(model, session, words):
    name = words.next()
    options = ScanOptions()
    options.parse_update(words, _OPERATIONS)
    steps = []
    while words.more():
        word = words.next().upper()
        if word not in _OPERATIONS:
            raise Refused('ERR')
        steps.append(_OPERATIONS[word](words))
    if not steps:
        raise Refused('ERR')
    table = model.table(session, name)
    options.resolve_names(table)
    for step in steps:
        step.resolve(table)
    options.resolve_rest(table)
    where, options.where = options.where, []
    chosen, seen = [], set()
    for row, _ in options.matching(table, model.now):
        if row.ranks not in seen:
            seen.add(row.ranks)
            chosen.append((row.ranks, row.key))
    changed = 0
    for ranks, key in chosen:
        if changed == options.limit:
            break
        row = table.rows.get(ranks)
        if not table.row_is_live(row, model.now) or not all_hold(where, table, row, model.now):
            continue
        change = Change(model, table, ranks, key)
        change.puts_alone = all(isinstance(step, _BLIND) for step in steps)
        try:
            for step in steps:
                step.apply(change, session.protocol)
            change.commit()
        except Refused as refusal:
            raise Refused(refusal.code, alternatives=refusal.alternatives) from None
        changed += bool(change.wrote or change.deleted)
    return changed
