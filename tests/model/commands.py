"""The model: sessions, transactions, watches, the clock; and the table of commands."""


from . import aggregates, reads, schema, times, writes
from .refusals import Refused
from .resp import NULL_ARRAY, OK, QUEUED, Error, Simple
from .tables import Keyspaces
from .words import Words

# name -> (function, least number of arguments, most or None). Arguments come after the name.
COMMANDS = {
    b'CPUT': (writes.cput, 4, None), b'CGET': (reads.cget, 3, None),
    b'CMGET': (reads.cmget, 3, None), b'CROW': (reads.crow, 2, None),
    b'CROWS': (reads.crows, 3, None),
    b'CSCAN': (reads.cscan, 2, None), b'CCOUNT': (reads.ccount, 1, None),
    b'CAGG': (aggregates.cagg, 4, None),
    b'CNEAR': (reads.cnear, 2, None), b'CEXISTS': (reads.cexists, 2, None),
    b'CADD': (writes.cadd, 4, None),
    b'CDEL': (writes.cdel, 2, None), b'CDELRANGE': (writes.cdelrange, 2, None),
    b'CINCRBY': (writes.cincrby, 4, 4), b'CINCRBYFLOAT': (writes.cincrbyfloat, 4, 4),
    b'CAPPEND': (writes.cappend, 4, 4), b'CMUTATE': (writes.cmutate, 3, None),
    b'CUPDATE': (writes.cupdate, 3, None),
    b'TABLE': (schema.table, 1, None), b'FAMILY': (schema.family, 1, None),
    b'KEYSPACE': (schema.keyspace, 1, None), b'INDEX': (schema.index, 1, None),
    b'SELECT': (schema.select, 1, 1), b'EXISTS': (schema.exists, 1, None),
    b'TYPE': (schema.type_of, 1, 1), b'DBSIZE': (schema.dbsize, 0, 0),
    b'KEYS': (schema.keys, 1, 1), b'DEL': (schema.delete, 1, None),
    b'UNLINK': (schema.delete, 1, None), b'RENAME': (schema.rename, 2, 2),
    b'FLUSHDB': (schema.flushdb, 0, None), b'FLUSHALL': (schema.flushall, 0, None),
    b'PING': (lambda model, session, words: words.next() if words.more() else Simple(b'PONG'), 0, 1),
    b'ECHO': (lambda model, session, words: words.next(), 1, 1),
}
# (container, subcommand) -> least and most words behind them, as above.
SUBCOMMANDS = {
    (b'TABLE', b'CREATE'): (1, None), (b'TABLE', b'DROP'): (1, 1), (b'TABLE', b'TRUNCATE'): (1, 1),
    (b'TABLE', b'RENAME'): (2, 2), (b'TABLE', b'LIST'): (0, None), (b'TABLE', b'INFO'): (1, 1),
    (b'FAMILY', b'ADD'): (2, None), (b'FAMILY', b'ALTER'): (2, None), (b'FAMILY', b'DROP'): (2, 2),
    (b'FAMILY', b'INFO'): (2, 2), (b'KEYSPACE', b'CREATE'): (1, 1), (b'KEYSPACE', b'DROP'): (1, 1),
    (b'KEYSPACE', b'LIST'): (0, 0), (b'INDEX', b'CREATE'): (4, None), (b'INDEX', b'DROP'): (2, 2),
    (b'INDEX', b'LIST'): (1, 1), (b'INDEX', b'INFO'): (2, 2),
}
CONTAINERS = (b'TABLE', b'FAMILY', b'KEYSPACE', b'INDEX')
_CONTROL = (b'MULTI', b'EXEC', b'DISCARD', b'WATCH', b'CWATCH', b'UNWATCH')


class Session:
    """One client. `watched` holds (keyspace, table, ranks or None)."""

    def __init__(self, protocol):
        self.protocol = protocol
        self.space = b'0'
        self.queue = None
        self.atomic = False
        self.queue_is_bad = False
        self.watched = []
        self.touched = False

    def leave_transaction(self):
        self.queue = None
        self.atomic = False
        self.queue_is_bad = False
        self.unwatch()

    def unwatch(self):
        self.watched = []
        self.touched = False


class Model:
    def __init__(self, now):
        self.keyspaces = Keyspaces()
        self.now = now
        self.last_stamp = 0
        self.sessions = []

    def session(self, protocol):
        made = Session(protocol)
        self.sessions.append(made)
        return made

    def table(self, session, name):
        return self.keyspaces.table(name, session.space)

    def next_stamp(self):
        return max(self.now, self.last_stamp + 1)

    def touch(self, table, ranks=None):
        """A change of a row, or of the whole table where `ranks` is None."""
        for session in self.sessions:
            for space, name, row in session.watched:
                if (space, name) == (table.space, table.name) and (
                        ranks is None or row is None or row == ranks):
                    session.touched = True

    def all_tables(self):
        for space in sorted(self.keyspaces.spaces):
            for name in sorted(self.keyspaces.spaces[space]):
                yield space, self.keyspaces.spaces[space][name]

    def execute(self, session, words):
        """The expected reply to a command."""
        name = words[0].upper()
        times.clock['now'] = self.now
        try:
            if name in _CONTROL:
                return self._control(session, name, words[1:])
            self._check_arity(name, words)
            if session.queue is not None:
                session.queue.append(words)
                return QUEUED
            return self._run(session, words)
        except Refused as refusal:
            if session.queue is not None:
                session.queue_is_bad = True
            return refusal.reply()

    @staticmethod
    def _check_arity(name, words):
        if name not in COMMANDS:
            raise Refused('ERR')
        _, least, most = COMMANDS[name]
        given = len(words) - 1
        if name in CONTAINERS and given:
            given -= 1
            bounds = SUBCOMMANDS.get((name, words[1].upper()))
            if bounds is None:
                raise Refused('ERR')
            least, most = bounds
        if given < least or (most is not None and given > most):
            raise Refused('ERR')

    def _run(self, session, words):
        return COMMANDS[words[0].upper()][0](self, session, Words(words[1:]))

    def _control(self, session, name, rest):
        if name == b'MULTI':
            if len(rest) > 1 or (rest and rest[0].upper() != b'ATOMIC'):
                return Error('ERR')
            if session.queue is not None:
                return Error('ERR')
            session.queue = []
            session.atomic = bool(rest)
            return OK
        if name == b'UNWATCH':
            if session.queue is not None:
                session.queue.append([name])
                return QUEUED
            session.unwatch()
            return OK
        if name in (b'WATCH', b'CWATCH'):
            if session.queue is not None or not rest or (name == b'CWATCH' and len(rest) != 2):
                return Error('ERR')
            self._watch(session, name, rest)
            return OK
        if session.queue is None:
            return Error('ERR')
        if name == b'DISCARD':
            session.leave_transaction()
            return OK
        return self._exec(session)

    def _watch(self, session, name, rest):
        if name == b'WATCH':
            for word in rest:
                space, table = self.keyspaces.split(word, session.space)
                session.watched.append((space, table, None))
            return
        table = self.table(session, rest[0])
        session.watched.append((table.space, table.name, table.row_key(rest[1])[0]))

    def _exec(self, session):
        queue, atomic, bad, touched = (session.queue, session.atomic, session.queue_is_bad,
                                       session.touched)
        session.leave_transaction()
        if bad:
            return Error('EXECABORT')
        if touched:
            return NULL_ARRAY if session.protocol == 2 else None
        before = (self.keyspaces.copy(), session.space) if atomic else None
        replies = []
        for words in queue:
            if words[0].upper() == b'UNWATCH':
                replies.append(OK)
                continue
            try:
                replies.append(self._run(session, words))
            except Refused as refusal:
                if atomic:
                    self.keyspaces, session.space = before
                    return Error('EXECABORT', text=None if refusal.text is None else
                                 '%s %s' % (refusal.code, refusal.text))
                replies.append(refusal.reply())
        return replies



