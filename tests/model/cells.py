"""Cell options (cellar-query(7), "CELL OPTIONS"): which cells of a row a read returns, and how they are shown."""

from . import values
from .filters import Filter, FilterCell
from .orders import Bounds, read_bound
from .refusals import Refused
from .resp import make_map
from .words import read_time_range


def all_cells(table, row, now):
    """All live cells of a row as a filter sees them, by column, newest first."""
    found = []
    for place in sorted(row.columns):
        column = row.columns[place]
        for cell in table.live(row, place, now):
            found.append(FilterCell(place[0], place[1], column.qualifier, cell.timestamp,
                                    cell.type, cell.value, (), cell.expiry))
    return found


class Selection:
    """A union of columns, families, COLPREFIX and COLRANGE, in the order in which they stand."""

    def __init__(self):
        self.specs = []
        self.tests = []

    def add_column(self, word):
        """`family:qualifier` or `family`."""
        family, colon, qualifier = word.partition(b':')
        self.specs.append(('column', family, qualifier) if colon else ('family', family))

    def add_prefix(self, words):
        self.specs.append(('prefix', words.next(), words.next()))

    def add_range(self, words):
        self.specs.append(('range', words.next(), read_bound(words.next()),
                           read_bound(words.next())))

    def resolve(self, table):
        self.tests = []
        for spec in self.specs:
            name = spec[1]
            family = table.family(name)
            if spec[0] == 'family':
                test = None
            elif spec[0] == 'column':
                ranks = table.qualifier(family, spec[2])[0]
                test = ranks.__eq__
            elif spec[0] == 'prefix':
                test = family.order.prefix(spec[2])
            else:
                test = Bounds(family.order, spec[2], spec[3])
            self.tests.append((name, test))

    def __bool__(self):
        return bool(self.specs)

    def __call__(self, place):
        return any(name == place[0] and (test is None or test(place[1]))
                   for name, test in self.tests)


class CellOptions:
    def __init__(self):
        self.selection = Selection()
        self.time = None
        self.versions = None          # None: not given; 0: ALL
        self.per_row = None
        self.skip = None
        self.groups = None
        self.reverse = False
        self.filter_text = None
        self.filter = None
        self.shows = set()
        self.reply = values.reply     # of a value
        self.seen = set()

    def once(self, name):
        if name in self.seen:
            raise Refused('ERR')
        self.seen.add(name)

    def parse(self, words):
        """Takes one option if the next word is one; whether it was."""
        name = words.keyword()
        if name == b'COLUMNS':
            words.next()
            for word in words.several():
                self.selection.add_column(word)
        elif name == b'COLPREFIX':
            words.next()
            self.selection.add_prefix(words)
        elif name == b'COLRANGE':
            words.next()
            self.selection.add_range(words)
        elif name in (b'TIME', b'VERSIONS', b'PERROW', b'SKIP', b'GROUPS', b'COLREVERSE', b'FILTER',
                      b'WITHTS', b'WITHTYPE', b'WITHTTL', b'WITHLABELS', b'STATE'):
            words.next()
            self.once(name)
            self._single(name, words)
        else:
            return False
        return True

    def _single(self, name, words):
        if name == b'TIME':
            self.time = read_time_range(words.next(), words.next())
        elif name == b'VERSIONS':
            self.versions = 0 if words.take(b'ALL') else words.count()
        elif name == b'PERROW':
            self.per_row = words.count()
        elif name == b'SKIP':
            self.skip = words.count(zero=True)
        elif name == b'GROUPS':
            self.groups = words.count()
        elif name == b'COLREVERSE':
            self.reverse = True
        elif name == b'FILTER':
            self.filter_text = words.next()
        elif name == b'STATE':
            self.reply = values.reply_state
        else:
            self.shows.add(name)

    def resolve(self, table):
        self.selection.resolve(table)

    def compile_filter(self, table):
        if self.filter_text is not None:
            self.filter = Filter(self.filter_text).resolve(table)

    def columns(self, table, row, now):
        """The row's columns that pass, each [FilterCell ...] with the newest first."""
        found = []
        limit = self.versions
        if limit is None:
            limit = 0 if self.filter_text is not None else 1
        for place in sorted(row.columns):
            if self.selection and not self.selection(place):
                continue
            live = table.live(row, place, now)
            if self.time is not None:
                live = [cell for cell in live if self.time(cell.timestamp)]
            if limit:
                live = live[:limit]
            qualifier = row.columns[place].qualifier
            found += [FilterCell(place[0], place[1], qualifier, cell.timestamp, cell.type,
                                 cell.value, (), cell.expiry) for cell in live]
        if self.filter is not None:
            found = self.filter(table, row, found)
        columns = []
        for cell in found:
            if columns and (columns[-1][0].family, columns[-1][0].ranks) == (cell.family, cell.ranks):
                columns[-1].append(cell)
            else:
                columns.append([cell])
        return self._limit(table, columns)

    def _limit(self, table, columns):
        if self.reverse:
            columns.reverse()
        if self.skip:
            columns = columns[self.skip:]
        if self.groups:
            groups = []
            kept = []
            for column in columns:
                group = group_of(table, column[0])
                if group not in groups:
                    groups.append(group)
                if len(groups) > self.groups:
                    break
                kept.append(column)
            columns = kept
        if self.per_row:
            columns = columns[:self.per_row]
        return columns

    def shows_versions(self):
        return self.versions is not None or bool(self.shows)

    def show(self, columns, protocol):
        """The map of a row."""
        return make_map([(name(column[0]), self._entry(column, protocol)) for column in columns],
                        protocol)

    def _entry(self, column, protocol):
        if not self.shows_versions():
            return self.reply(column[0].type, column[0].value, protocol)
        return [self._version(cell, protocol) for cell in column]

    def _version(self, cell, protocol):
        version = [cell.timestamp, self.reply(cell.type, cell.value, protocol)]
        if b'WITHTYPE' in self.shows:
            version.append(cell.type.encode())
        if b'WITHTTL' in self.shows:
            version.append(cell.expiry)
        if b'WITHLABELS' in self.shows:
            version.append(list(cell.labels))
        return version


def name(cell):
    return cell.family + b':' + cell.qualifier


def group_of(table, cell):
    """Family and first component of the qualifier (a super column)."""
    order = table.families[cell.family].order
    return cell.family, order.first_component(cell.ranks)
