"""Predicates of IF and WHERE (cellar-query(7), "CONDITIONS"): parse, resolve against a table, evaluate on a row.

`parse` checks syntax alone. `resolve` finds family and qualifier. `compile_filter` comes last, as
BADFILTER comes after all other checks of names.
"""

from . import globs, values
from .cells import all_cells
from .filters import Filter
from .refusals import Refused
from .words import split_column

_COMPARISONS = {b'EQ': lambda sign: sign == 0, b'NE': lambda sign: sign != 0,
                b'LT': lambda sign: sign < 0, b'LE': lambda sign: sign <= 0,
                b'GT': lambda sign: sign > 0, b'GE': lambda sign: sign >= 0}


class Predicate:
    def __init__(self, words):
        self.filter = None
        self.place = None
        first = words.next()
        if b':' not in first and first.upper() == b'ROW':
            self.kind = b'ROW'
            self.operator = words.next().upper()
            if self.operator not in (b'EXISTS', b'MISSING'):
                raise Refused('ERR')
            return
        if b':' not in first and first.upper() == b'FILTER':
            self.kind = b'FILTER'
            self.argument = words.next()
            return
        self.kind = b'COLUMN'
        self.column = split_column(first)
        self.operator = words.next().upper()
        if self.operator in (b'EXISTS', b'MISSING'):
            return
        if self.operator not in _COMPARISONS and self.operator != b'MATCH':
            raise Refused('ERR')
        self.argument = words.next()

    def resolve(self, table):
        if self.kind == b'COLUMN':
            self.place, _ = table.column(*self.column)

    def compile_filter(self, table):
        if self.kind == b'FILTER':
            self.filter = Filter(self.argument).resolve(table)

    def holds(self, table, row, now):
        """`row` may be None."""
        if self.kind == b'ROW':
            return table.row_is_live(row, now) == (self.operator == b'EXISTS')
        if self.kind == b'FILTER':
            return row is not None and bool(self.filter(table, row, all_cells(table, row, now)))
        cell = table.newest(row, self.place, now)
        if self.operator in (b'EXISTS', b'MISSING'):
            return (cell is not None) == (self.operator == b'EXISTS')
        if cell is None:
            return self.operator == b'NE'
        if self.operator == b'MATCH':
            return globs.matches(self.argument, values.print_value(cell.type, cell.value))
        sign = values.compare(cell.type, cell.value, self.argument)
        if sign is None:
            return self.operator == b'NE'
        return _COMPARISONS[self.operator](sign)


def take_predicates(words, keyword):
    """All `IF predicate` (or WHERE) at this place."""
    found = []
    while words.take(keyword):
        found.append(Predicate(words))
    return found


def all_hold(predicates, table, row, now):
    return all(predicate.holds(table, row, now) for predicate in predicates)
