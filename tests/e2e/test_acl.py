"""Access control: every command of the table, for a user with too little in each way and with exactly
enough; what a user may learn of families that it may not read; change of rights while connected;
files of users; what strangers can do."""

import os
import socket
import time
import unittest

import redis

from cellar_server import ROOT, CellarServer, CellarTest, not_on_a_follower, passes_on

RUN = "this user has no permissions to run the '%s' command"
KEY = "this user has no permissions to access one of the keys used as arguments"
CHANNEL = "this user has no permissions to access one of the channels used as arguments"

# Commands that name no table and no channel: the right to run them is all there is to it.
PLAIN = """
acl|cat acl|deluser acl|dryrun acl|genpass acl|getuser acl|help acl|list acl|load acl|log acl|save acl|setuser
acl|users acl|whoami asking backup|abort backup|cleanup backup|describe backup|help backup|list backup|seal backup|start
backup|status bgrewriteaof bgsave client|caching client|capa client|getname client|getredir client|help client|id
client|info client|kill client|list client|no-evict client|no-touch client|pause client|reply client|setinfo
client|setname client|tablets client|tracking client|trackinginfo client|unblock client|unpause cluster|addslots
cluster|addslotsrange cluster|admit cluster|bumpepoch cluster|changed cluster|config cluster|cursor cluster|cut cluster|cuts cluster|drain cluster|on cluster|undrain cluster|remove cluster|settled cluster|types cluster|end
cluster|events cluster|init cluster|map cluster|sets debug|cluster cluster|count-failure-reports cluster|countkeysinslot cluster|delslots
cluster|delslotsrange cluster|failover cluster|flushslots cluster|forget cluster|getkeysinslot cluster|help
cluster|info cluster|keyslot cluster|links cluster|meet cluster|myid cluster|myshardid cluster|nodes
cluster|replicas cluster|replicate cluster|reset cluster|saveconfig cluster|set-config-epoch cluster|setslot
cluster|shards cluster|slaves cluster|slots command command|count command|docs command|getkeys
command|getkeysandflags command|help command|info command|list config|get config|help config|resetstat
config|rewrite config|set dbsize debug|help debug|log debug|protocol debug|reload debug|set-time debug|sleep
discard echo exec failover peer family|help feed|help feed|list function|delete function|dump function|flush function|help
function|kill function|list function|load function|restore function|stats hotkeys|help hotkeys|reset hotkeys|start
hotkeys|stop index|help info keys keyspace|create keyspace|help
keyspace|list lastsave latency|doctor latency|graph latency|help latency|histogram latency|history latency|latest
latency|reset lolwut memory|doctor memory|help memory|malloc-stats memory|purge memory|stats module|help module|list
module|load module|loadex module|unload monitor multi object|help ping psync pubsub|channels pubsub|help
pubsub|numpat pubsub|numsub pubsub|shardchannels pubsub|shardnumsub punsubscribe randomkey readonly readwrite
replconf replica|add replica|demote replica|help replica|list replica|promote replica|remove replicaof role save scan script|debug script|exists script|flush script|help script|kill script|load select
sentinel|ckquorum sentinel|failover sentinel|get-master-addr-by-name sentinel|help sentinel|master sentinel|masters
sentinel|myid sentinel|replicas sentinel|sentinels sentinel|slaves
shutdown slaveof slowlog|get slowlog|help slowlog|len slowlog|reset snapshot|help snapshot|list sunsubscribe sync tablet|cancel tablet|help tablet|jobs table|help table|list time
unsubscribe unwatch wait waitaof xadd xdel xgroup|help xinfo|help xsetid xtrim
""".split()
# Answered whoever asks.
OPEN = ["auth", "hello", "quit", "reset"]

# Of the others: a call, exactly the rights that it needs; with `refuses` those that are not enough besides
# what is tried with every one.
CASES = {
    "cget": ("CGET web r1 anchor:a", "%R~web:anchor", ["%W~web:*"]),
    "cmget": ("CMGET web r1 anchor:a contents:c", "%R~web:anchor %R~web:contents", ["%R~web:anchor", "%W~web:*"]),
    "cexists": ("CEXISTS web r1 anchor:a", "%R~web:anchor", ["%W~web:*"]),
    "cnear": ("CNEAR web INDEX by_a 1 1", "%R~web:anchor", ["%R~web:contents", "%W~web:*"]),
    "crows": ("CROWS web 2 r1 r3 COLUMNS 1 anchor", "%R~web:anchor", ["%W~web:*"]),
    "crow": ("CROW web r1 COLUMNS 1 anchor", "%R~web:anchor", ["%W~web:*"]),
    "cscan": ("CSCAN web 0 WHERE contents:c EXISTS COLUMNS 1 anchor", "%R~web:anchor %R~web:contents",
              ["%R~web:anchor", "%R~web:contents", "%W~web:*"]),
    "ccount": ("CCOUNT web WHERE anchor:a EXISTS", "%R~web:anchor", ["%W~web:*"]),
    "cagg": ("CAGG web WHERE contents:c EXISTS REDUCE SUM anchor:a", "%R~web:anchor %R~web:contents",
             ["%R~web:anchor", "%R~web:contents", "%W~web:*"]),
    "heat": ("HEAT web", "%R~web:*", ["~web:anchor ~web:contents", "%W~web:*"]),
    "hotkeys|get": ("HOTKEYS GET", "%R~*", ["~web:*", "%W~*"]),
    "cexplain": ("CEXPLAIN CROW web r1", "%R~web:*", ["~web:anchor", "%W~web:*"]),
    "cput": ("CPUT web r1 anchor:a 7", "%W~web:anchor", ["%R~web:*", "%W~web:contents"]),
    "cadd": ("CADD tally r1 n:a 1", "%W~tally:n", ["%R~tally:*", "%W~tally:anchor"]),
    "cdel": ("CDEL web r1 anchor", "%W~web:anchor", ["%R~web:*", "%W~web:contents"]),
    "cdelrange": ("CDELRANGE web ALL", "%W~web:*", ["%R~web:*", "~web:anchor ~web:contents ~web:secret"]),
    "cincrby": ("CINCRBY web r1 anchor:n 1", "~web:anchor", ["%R~web:*", "%W~web:*"]),
    "cincrbyfloat": ("CINCRBYFLOAT web r1 anchor:f 1", "~web:anchor", ["%R~web:*", "%W~web:*"]),
    "cappend": ("CAPPEND web r1 anchor:a x", "~web:anchor", ["%R~web:*", "%W~web:*"]),
    "cmutate": ("CMUTATE web r1 IF contents:c EXISTS PUT anchor:a 5", "%R~web:contents %W~web:anchor",
                ["%W~web:anchor", "%R~web:*", "%W~web:contents %R~web:anchor"]),
    "cupdate": ("CUPDATE web ROWS 1 r1 WHERE contents:c EXISTS PUT anchor:a 5", "%R~web:contents %W~web:anchor",
                ["%W~web:anchor", "%R~web:*", "%W~web:contents %R~web:anchor"]),
    "cwatch": ("CWATCH web r1", "%R~web:*", ["~web:anchor", "%W~web:*"]),
    "watch": ("WATCH web new", "%R~web:* %R~new:*", ["~web:anchor", "%R~web:*", "%W~web:* %W~new:*"]),
    "exists": ("EXISTS web", "%W~web:anchor", []),
    "touch": ("TOUCH web", "%R~web:anchor", []),
    "type": ("TYPE web", "%R~web:anchor", []),
    "ttl": ("TTL web", "%R~web:anchor", []),
    "pttl": ("PTTL web", "%R~web:anchor", []),
    "object|encoding": ("OBJECT ENCODING web", "%R~web:anchor", []),
    "object|freq": ("OBJECT FREQ web", "%R~web:anchor", []),
    "object|idletime": ("OBJECT IDLETIME web", "%R~web:anchor", []),
    "object|refcount": ("OBJECT REFCOUNT web", "%R~web:anchor", []),
    "memory|usage": ("MEMORY USAGE web", "%R~web:anchor", []),
    "del": ("DEL web", "%W~web:*", ["%R~web:*", "~web:anchor"]),
    "unlink": ("UNLINK web", "%W~web:*", ["%R~web:*", "~web:anchor"]),
    "rename": ("RENAME web new", "~web:* ~new:*", ["~web:*", "~new:*", "%W~*", "%R~*"]),
    "renamenx": ("RENAMENX web new", "~web:* ~new:*", ["~web:*", "~new:*", "%W~*", "%R~*"]),
    "table|create": ("TABLE CREATE new FAMILY f", "%W~new:*", ["~new:f", "%R~new:*"]),
    "table|drop": ("TABLE DROP web", "%W~web:*", ["~web:anchor", "%R~web:*"]),
    "table|truncate": ("TABLE TRUNCATE web", "%W~web:*", ["~web:anchor", "%R~web:*"]),
    "table|rename": ("TABLE RENAME web new", "~web:* ~new:*", ["~web:*", "~new:*", "%W~*", "%R~*"]),
    "table|info": ("TABLE INFO web", "%R~web:anchor", ["%W~web:*"]),
    "table|show": ("TABLE SHOW web", "%R~web:anchor", ["%W~web:*"]),
    "table|sample": ("TABLE SAMPLE web 2", "%R~web:*", ["~web:anchor", "%W~web:*"]),
    "table|alter": ("TABLE ALTER web COLOCATE 1", "%W~web:*", ["~web:anchor", "%R~web:*"]),
    "tablet|list": ("TABLET LIST web", "%R~web:*", ["~web:anchor", "%W~web:*"]),
    "tablet|route": ("TABLET ROUTE web r1", "%R~web:*", ["~web:anchor", "%W~web:*"]),
    "tablet|split": ("TABLET SPLIT web r1", "%W~web:*", ["~web:anchor", "%R~web:*"]),
    "tablet|move": ("TABLET MOVE web r1 TO 1", "%W~web:*", ["~web:anchor", "%R~web:*"]),
    "tablet|adopt": ("TABLET ADOPT web r1 SET 1", "%W~web:*", ["~web:anchor", "%R~web:*"]),
    "tablet|merge": ("TABLET MERGE web r1", "%W~web:*", ["~web:anchor", "%R~web:*"]),
    "family|add": ("FAMILY ADD web more", "%W~web:more ~web:anchor", ["~web:anchor", "%R~web:*"]),
    "family|alter": ("FAMILY ALTER web anchor VERSIONS 2", "%W~web:anchor", ["~web:contents", "%R~web:*"]),
    "family|drop": ("FAMILY DROP web contents", "%W~web:contents", ["~web:anchor", "%R~web:*"]),
    "family|info": ("FAMILY INFO web anchor", "%R~web:anchor", ["~web:contents", "%W~web:*"]),
    "index|create": ("INDEX CREATE web new ON 1 anchor:z INCLUDE 1 contents", "~web:anchor ~web:contents",
                     ["~web:anchor", "%R~web:*", "%W~web:*"]),
    "index|drop": ("INDEX DROP web by_a", "~web:anchor", ["~web:contents", "%R~web:*"]),
    "index|list": ("INDEX LIST web", "%R~web:anchor", ["%W~web:*"]),
    "index|info": ("INDEX INFO web by_a", "%R~web:anchor", ["~web:contents", "%W~web:*"]),
    "flushdb": ("FLUSHDB", "%W~*", ["~web:*", "%R~*"]),
    "flushall": ("FLUSHALL", "%W~*", ["~web:*", "%R~*"]),
    "keyspace|drop": ("KEYSPACE DROP ks", "%W~*", ["~ks/*", "%R~*"]),
    "debug|digest": ("DEBUG DIGEST", "%R~*", ["~web:*", "%W~*"]),
    "debug|tablets": ("DEBUG TABLETS web", "%W~web:*", ["~web:anchor", "%R~web:*"]),
    "eval": ("EVAL return 1 web", "%W~web:*", ["%R~web:*"]),
    "evalsha": ("EVALSHA 0 1 web", "%W~web:*", ["%R~web:*"]),
    "fcall": ("FCALL f 1 web", "%W~web:*", ["%R~web:*"]),
    "eval_ro": ("EVAL_RO return 1 web", "%R~web:*", ["%W~web:*"]),
    "evalsha_ro": ("EVALSHA_RO 0 1 web", "%R~web:*", ["%W~web:*"]),
    "fcall_ro": ("FCALL_RO f 1 web", "%R~web:*", ["%W~web:*"]),
    "snapshot|create": ("SNAPSHOT CREATE s TABLE 1 web REPLACE", "%W~web:*", ["~web:anchor", "%R~web:*"]),
    "snapshot|drop": ("SNAPSHOT DROP kept", "%W~web:*", ["~web:anchor", "%R~web:*"]),
    "snapshot|info": ("SNAPSHOT INFO kept", "%R~web:anchor", []),
    "copy": ("COPY web copied", "%R~web:* %W~copied:*", ["%R~web:*", "~web:anchor %W~copied:*", "%W~web:* %W~copied:*"]),
    "feed|create": ("FEED CREATE fresh ON 1 web:anchor", "%W~web:*", ["~web:anchor", "%R~web:*"]),
    "feed|drop": ("FEED DROP changes", "%W~web:*", ["~web:anchor", "%R~web:*"]),
    "feed|info": ("FEED INFO changes", "%R~web:anchor", ["~web:contents", "%W~web:*"]),
    "feed|entries": ("FEED ENTRIES changes 1-1", "%R~web:anchor", ["~web:contents", "%W~web:*"]),
    "feed|behind": ("FEED BEHIND changes 1-1", "%R~web:anchor", ["~web:contents", "%W~web:*"]),
    "feed|move": ("FEED MOVE changes TO 0", "%W~web:*", ["~web:anchor", "%R~web:*"]),
    "feed|resolved": ("FEED RESOLVED changes", "%R~web:anchor", ["~web:contents", "%W~web:*"]),
    "xlen": ("XLEN changes", "%R~web:anchor", ["~web:contents", "%W~web:*"]),
    "xrange": ("XRANGE changes - +", "%R~web:anchor", ["~web:contents", "%W~web:*"]),
    "xrevrange": ("XREVRANGE changes + -", "%R~web:anchor", ["~web:contents", "%W~web:*"]),
    "xread": ("XREAD STREAMS changes 0", "%R~web:anchor", ["~web:contents", "%W~web:*"]),
    "xinfo|stream": ("XINFO STREAM changes", "%R~web:anchor", ["~web:contents", "%W~web:*"]),
    "xinfo|groups": ("XINFO GROUPS changes", "%R~web:anchor", ["~web:contents", "%W~web:*"]),
    "xinfo|consumers": ("XINFO CONSUMERS changes g", "%R~web:anchor", ["~web:contents", "%W~web:*"]),
    "xgroup|create": ("XGROUP CREATE changes fresh 0", "%R~web:anchor", ["~web:contents", "%W~web:*"]),
    "xgroup|setid": ("XGROUP SETID changes g 0", "%R~web:anchor", ["~web:contents", "%W~web:*"]),
    "xgroup|destroy": ("XGROUP DESTROY changes g", "%R~web:anchor", ["~web:contents", "%W~web:*"]),
    "xgroup|createconsumer": ("XGROUP CREATECONSUMER changes g c", "%R~web:anchor", ["~web:contents", "%W~web:*"]),
    "xgroup|delconsumer": ("XGROUP DELCONSUMER changes g c", "%R~web:anchor", ["~web:contents", "%W~web:*"]),
    "xreadgroup": ("XREADGROUP GROUP g c STREAMS changes >", "%R~web:anchor", ["~web:contents", "%W~web:*"]),
    "xack": ("XACK changes g 1-1", "%R~web:anchor", ["~web:contents", "%W~web:*"]),
    "xpending": ("XPENDING changes g", "%R~web:anchor", ["~web:contents", "%W~web:*"]),
    "xclaim": ("XCLAIM changes g c 0 1-1", "%R~web:anchor", ["~web:contents", "%W~web:*"]),
    "xautoclaim": ("XAUTOCLAIM changes g c 0 0", "%R~web:anchor", ["~web:contents", "%W~web:*"]),
    "publish": ("PUBLISH news x", "&news", ["&other"]),
    "spublish": ("SPUBLISH news x", "&n*s", ["&other"]),
    "subscribe": ("SUBSCRIBE news", "&news", ["&other"]),
    "ssubscribe": ("SSUBSCRIBE news", "&news", ["&other"]),
    "psubscribe": ("PSUBSCRIBE news.*", "&news.*", ["&news*", "&other"]),
}
# Words that a call of a plain command may have, to satisfy its arity.
FILLER = "1"


class Client:
    """One connection, errors as redis.ResponseError objects."""

    def __init__(self, server, user=None):
        self.connection = redis.Connection(port=server.port, decode_responses=True)
        self.connection.connect()
        if user:
            assert self("AUTH", user, "x") == "OK"

    def __call__(self, *words):
        words = words[0].split() if len(words) == 1 else words
        self.connection.send_command(*words)
        return self.read()

    def read(self):
        try:
            return self.connection.read_response()
        except (redis.ResponseError, redis.AuthenticationError) as error:
            return error

    def close(self):
        self.connection.disconnect()


class AclTest(CellarTest):
    OPTIONS = {"enable-debug-command": "yes", "acllog-max-len": "20", "slowlog-log-slower-than": "0"}

    def setUp(self):
        super().setUp()
        self.admin = self.connect()
        self.tables()

    def tables(self):
        """The same tables, whatever has been done to them."""
        self.admin("FLUSHALL")
        for line in ("TABLE CREATE web FAMILY anchor FAMILY contents FAMILY secret", "TABLE CREATE other FAMILY anchor",
                     "TABLE CREATE hidden FAMILY secret", "TABLE CREATE tally FAMILY n AGGREGATE sum FAMILY anchor",
                     "CPUT web r1 anchor:a 1 contents:c 2 secret:s 3",
                     "CPUT web r2 secret:s 4", "CPUT web r3 anchor:a 5", "CPUT hidden r secret:s 1",
                     "INDEX CREATE web by_a ON 1 anchor:a", "INDEX CREATE web by_s ON 1 secret:s"):
            self.assertEqual(self.admin(line), "OK", line)
        self.admin("KEYSPACE CREATE ks")

    def feeds(self):
        """The same feeds."""
        self.admin("FEED DROP changes")
        self.admin("FEED DROP fresh")
        self.assertEqual(self.admin("FEED CREATE changes ON 1 web:anchor"), "OK")
        self.assertEqual(self.admin("SNAPSHOT CREATE kept TABLE 1 web REPLACE"), "OK")
        self.assertEqual(self.admin("XGROUP CREATE changes g 0"), "OK")

    def connect(self, user=None):
        client = Client(self.server, user)
        self.addCleanup(client.close)
        return client

    def user(self, rules, name="u"):
        """A connection of a user with these rules alone."""
        reply = self.admin("ACL", "SETUSER", name, "reset", "on", "nopass", *rules.split())
        self.assertEqual(reply, "OK", rules)
        return self.connect(name)

    def refused(self, client, line, text, reason, item=None):
        """NOPERM in Redis' words, nothing changed, an entry in the log."""
        digest = self.admin(self.server.DIGEST)
        self.admin("ACL LOG RESET")
        reply = client(line)
        self.assertIsInstance(reply, redis.exceptions.NoPermissionError, "%s: %r" % (line, reply))
        self.assertEqual(str(reply), text, line)
        self.assertEqual(self.admin(self.server.DIGEST), digest, line)
        entries = self.admin("ACL LOG")
        if passes_on() and not entries:
            return  # families are judged where the row is, and noted there
        self.assertEqual(len(entries), 1, line)
        entry = dict(zip(entries[0][::2], entries[0][1::2]))
        self.assertEqual((entry["username"], entry["reason"], entry["context"]), ("u", reason, "toplevel"), line)
        if item:
            self.assertEqual(entry["object"], item)
        self.assertTrue(entry["object"], line)

    def command_table(self):
        """{full name: arity} of all that can be run."""
        found = {}

        def add(row):
            name, arity, subcommands = row[0], row[1], row[9]
            if not subcommands or name == "command":
                found[name] = arity
            for sub in subcommands:
                add(sub)

        for row in self.admin("COMMAND"):
            add(row)
        return found

    # --- the matrix

    def test_every_command_has_a_case(self):
        self.assertEqual(sorted(self.command_table()), sorted([*PLAIN, *OPEN, *CASES]))

    def test_the_right_to_run_a_command_decides(self):
        for name, arity in self.command_table().items():
            if name in OPEN:
                continue
            line = name.replace("|", " ")
            line += (" " + FILLER) * (abs(arity) - len(line.split()))
            line = CASES[name][0] if name in CASES else line
            client = self.user("allkeys allchannels +@all -" + name)
            self.refused(client, line, RUN % name, "command", name)
            client.close()
            self.admin("ACL SETUSER u reset allkeys allchannels +" + name)
            self.assertEqual(self.admin("ACL DRYRUN u " + line), "OK", line)
            # The pair of a command and a category: allowed with one of its own, not without any of them.
            categories = self.admin("COMMAND", "INFO", name)[0][6]
            # By PEER a server is trusted with all data: no wider word than these two brings that about.
            own = "@replication" if name == "peer" else categories[0]
            self.admin("ACL SETUSER u reset allkeys allchannels +" + own)
            self.assertEqual(self.admin("ACL DRYRUN u " + line), "OK", line)
            if name == "peer":
                for wider in ("@all", "@admin", "@dangerous"):
                    self.admin("ACL SETUSER u reset on nopass allkeys allchannels +" + wider)
                    client = self.connect("u")
                    self.refused(client, line, RUN % name, "command", name)
                    client.close()
            self.admin("ACL", "SETUSER", "u", "reset", "allkeys", "allchannels", "+@all", *["-" + c for c in categories])
            self.assertEqual(self.admin("ACL DRYRUN u " + line), "This user has no permissions to run the '%s' command" % name)

    def test_too_little_of_a_table_or_channel_is_refused_and_exactly_enough_works(self):
        self.feeds()
        for name, (line, enough, too_little) in CASES.items():
            channel = enough.startswith("&")
            everything = enough in ("%R~*", "%W~*")
            text, reason = (CHANNEL, "channel") if channel else (KEY, "key")
            tried = list(too_little) + [""]
            self.tables()
            self.feeds()
            if not channel and not everything:
                tried += ["~other:*", "~nothing:anchor", "~7/web:* ~7/new:*", "~webs:*"]
            for rules in tried:
                client = self.user("+%s %s %s" % (name, "allkeys" if channel else "allchannels", rules))
                with self.subTest(command=line, rules=rules):
                    self.refused(client, line, text, reason)
                client.close()
            # Whoever reads all of a feed asks other nodes for it with these.
            beside = " +feed|resolved +feed|entries +feed|behind +xrange +xrevrange +xlen +xinfo" if passes_on() else ""
            for rules in [enough] + ([] if channel else ["~*"]) + (
                    [] if channel or everything else [enough.replace("~", "~0/")]):
                client = self.user("+%s%s %s" % (name, beside, rules))
                with self.subTest(command=line, rules=rules):
                    reply = client(line)
                    self.assertNotIsInstance(reply, redis.exceptions.NoPermissionError)
                    if name == "debug|tablets" and passes_on():
                        continue  # each node is asked for itself, and one that does not lead writes nothing
                    if name not in ("object|freq", "feed|move") and not name.startswith(("eval", "fcall", "tablet|")):
                        self.assertNotIsInstance(reply, redis.ResponseError)
                client.close()
                self.tables()
                self.feeds()

    # --- what cannot be learned

    def test_a_hidden_family_is_as_good_as_absent(self):
        """Every read answers the same, whatever is in the family and whether there is one."""
        reads = """CROW web r1|CROW web r2|CSCAN web 0|CSCAN web 0 KEYSONLY|CSCAN web 0 REVERSE|CSCAN web 0 VERSIONS ALL
        CCOUNT web|CCOUNT web BY CELLS|CCOUNT web BY COLUMNS|CCOUNT web WHERE ROW EXISTS|CCOUNT web WHERE ROW MISSING
        CEXISTS web r2|CEXISTS web r1|CNEAR web r2|CNEAR web r0|CNEAR web zz|CSCAN web 0 INDEX by_a|CROW web r1 FILTER pass
        CROW web r2 FILTER pass|CSCAN web 0 FILTER offset(1)|CCOUNT web FILTER value="3"|CSCAN web 0 CELLS 1 COUNT 1
        CGET web r1 secret:s|CMGET web r1 anchor:a secret:s|CEXISTS web r2 secret:s|CROW web r1 COLUMNS 1 secret
        CROW web r1 COLPREFIX secret s|CROW web r1 COLRANGE secret - +|CCOUNT web WHERE secret:s EXISTS
        CCOUNT web WHERE secret:s MISSING|CPUT web r9 IF secret:s MISSING anchor:x 1|CPUT web r2 IF ROW EXISTS anchor:x 1
        CPUT web r2 XX secret:s 1|CPUT web r2 NX secret:s 1|CMUTATE web r1 IF secret:s EQ 3 DEL anchor:none
        CMUTATE web r2 IF ROW EXISTS PUT anchor:z 1 ELSE DEL anchor:none|CMUTATE web r1 DELROW|CDEL web r2|CDEL web r2 secret
        CDELRANGE web ALL|CINCRBY web r2 secret:s 1|CAPPEND web r2 secret:s x|TABLE INFO web|TABLE SHOW web
        TABLE SAMPLE web 3|CEXPLAIN CSCAN web 0|CSCAN web 0 STATS|INDEX LIST web|MEMORY USAGE web|FAMILY INFO web secret
        FAMILY DROP web secret|FAMILY ADD web secret|FAMILY ALTER web secret VERSIONS 1|TABLE LIST|KEYS *|SCAN 0|DBSIZE
        EXISTS hidden|TYPE hidden|MEMORY USAGE hidden|TABLE INFO hidden|CGET hidden r anchor:a|CROW hidden r|WATCH web
        CWATCH web r2|INFO keyspace|INFO cellar|INFO memory|DEBUG DIGEST|INDEX CREATE web z ON 1 secret:s
        TABLE TRUNCATE web|TABLE RENAME web new|FLUSHDB|CLIENT TRACKING ON""".replace("\n", "|").split("|")
        client = self.user("+@all ~web:anchor %R~web:contents")
        answers = []
        for change in ("", "CPUT web r1 secret:s 3 secret:more 4", "CPUT web r2 secret:t 9", "CDEL web r2",
                       "CPUT web a secret:s 1", "CDEL hidden r", "INDEX DROP web by_s", "FAMILY DROP web secret",
                       "TABLE DROP hidden"):
            if change:
                self.assertNotIsInstance(self.admin(change), redis.ResponseError)
            answers.append([(line.strip(), str(client(line))) for line in reads])
            for line in ("CDEL web r9", "CDEL web r2 anchor"):  # what the reads above wrote
                self.admin(line)
        for answer in answers[1:]:
            self.assertEqual(answer, answers[0])
        seen = dict(answers[0])
        self.assertEqual(seen["CROW web r2"], "[]")
        self.assertEqual(seen["CCOUNT web"], "2")
        self.assertEqual(seen["KEYS *"], "['web']")
        self.assertEqual(seen["CGET web r1 secret:s"], KEY)

    def test_an_index_on_a_hidden_family_is_not_read(self):
        client = self.user("+@all ~web:anchor")
        for line in ("CSCAN web 0 INDEX by_s", "CNEAR web INDEX by_s 1 3", "CCOUNT web INDEX by_s", "INDEX INFO web by_s",
                     "INDEX DROP web by_s"):
            self.refused(client, line, KEY, "key")

    def test_inside_a_transaction(self):
        client = self.user("+@all ~web:anchor %R~web:contents")
        self.assertEqual(client("MULTI"), "OK")
        self.assertEqual(str(client("CGET other r anchor:a")), KEY)
        self.assertIsInstance(client("EXEC"), redis.exceptions.ExecAbortError)
        client("MULTI")
        for line in ("CPUT web r1 anchor:a 9", "CGET web r1 secret:s", "CCOUNT web BY CELLS", "CPUT web r1 contents:c 9"):
            self.assertEqual(client(line), "QUEUED")
        replies = client("EXEC")
        self.assertEqual([str(reply) for reply in replies], ["OK", KEY, "3", KEY])
        entry = self.admin("ACL LOG 1")[0]
        self.assertEqual(entry[entry.index("context") + 1], "multi")

    def test_rights_taken_away_between_multi_and_exec(self):
        client = self.user("+@all ~web:*")
        client("MULTI")
        client("CGET web r1 anchor:a")
        client("CPUT web r1 anchor:a 7")
        self.admin("ACL SETUSER u -cput")
        replies = client("EXEC")
        self.assertEqual(replies[0], "1")
        self.assertIn("no permission to execute the command", str(replies[1]))
        self.assertEqual(self.admin("CGET web r1 anchor:a"), "1")

    @not_on_a_follower("MONITOR and SLOWLOG show what each node executes")
    def test_monitor_slow_log_and_notifications_tell_nothing_of_hidden_tables(self):
        self.admin("CONFIG SET notify-keyspace-events AKE")
        watcher = self.user("+@all ~other:* ~web:anchor allchannels")
        listener = self.connect("u")
        listener("PSUBSCRIBE __key*")
        self.assertEqual(watcher("MONITOR"), "OK")
        self.admin("CPUT web r1 secret:s topsecret")
        self.admin("CPUT other r1 anchor:a public")
        self.assertIn("public", watcher.read())
        self.assertEqual([listener.read()[3], listener.read()[3]], ["cput", "other"])
        words = self.connect("u")("SLOWLOG GET -1")
        self.assertNotIn("topsecret", str(words))
        self.assertIn("topsecret", str(self.admin("SLOWLOG GET -1")))
        self.admin("CONFIG", "SET", "notify-keyspace-events", "")

    # --- change of rights while connected

    def test_a_scan_that_runs_ends_with_the_right_to_it(self):
        for first in range(0, 60_000, 20_000):
            self.admin("MULTI")
            for row in range(first, first + 20_000, 1):
                self.admin.connection.send_command("CPUT", "other", "row%06d" % row, "anchor:a", "x" * 20)
                self.assertEqual(self.admin.read(), "QUEUED")
            self.admin("EXEC")
        client = self.user("+@all ~other:*")
        client.connection.send_command("CCOUNT", "other", "FILTER", "value ~ \"y*z\" | value ~ \".*w.*\"")
        # The commands of one read are executed before a slice of the task: it has begun and is not done.
        self.admin("ACL SETUSER u resetkeys ~web:*")
        reply = client.read()
        self.assertIn(str(reply), (KEY, "0"))
        self.assertEqual(str(client("CCOUNT other")), KEY)

    def test_clients_of_a_deleted_user_are_disconnected(self):
        client = self.user("+@all ~*")
        self.assertEqual(client("PING"), "PONG")
        self.assertEqual(self.admin("ACL DELUSER u nobody"), 1)
        with self.assertRaises(redis.ConnectionError):
            client("PING")

    def test_listeners_without_their_channel_are_disconnected(self):
        client = self.user("+@all &news &more")
        self.assertEqual(client("SUBSCRIBE news")[2], 1)
        self.admin("ACL SETUSER u resetchannels &news &else")
        self.admin("PUBLISH news x")
        self.assertEqual(client.read(), ["message", "news", "x"])
        self.admin("ACL SETUSER u resetchannels &else")
        with self.assertRaises(redis.ConnectionError):
            client.read()

    def test_a_user_with_all_rights_loses_them_at_once(self):
        client = self.user("+@all ~* &*")
        self.assertEqual(client("CGET web r1 secret:s"), "3")
        self.admin("ACL SETUSER u resetkeys ~web:anchor")
        self.assertEqual(str(client("CGET web r1 secret:s")), KEY)
        self.admin("ACL SETUSER u allkeys")
        self.assertEqual(client("CGET web r1 secret:s"), "3")

    def test_a_snapshot_cursor_dies_with_the_right_to_it(self):
        client = self.user("+@all ~web:*")
        cursor = client("CSCAN web 0 COUNT 1 SNAPSHOT")[0]
        self.admin("ACL SETUSER u resetkeys ~web:anchor")
        self.assertIn("snapshot", str(client("CSCAN web %s COUNT 1" % cursor)))


    def test_the_users_of_the_manual(self):
        with open(os.path.join(ROOT, "conf", "man", "cellar-admin.7"), encoding="utf-8") as file:
            lines = [line.removeprefix("> ").strip() for line in file if line.startswith("> ACL SETUSER ")]
        self.assertEqual(len(lines), 3)
        for line in lines:
            self.assertEqual(self.admin(line), "OK", line)
        for name, password in (("crawler", "secret1"), ("reader", "secret2"), ("owner", "secret3")):
            client = self.connect()
            self.assertEqual(client("AUTH", name, password), "OK")
        self.admin("KEYSPACE CREATE staging")
        self.assertEqual(client("TABLE CREATE staging/t FAMILY f"), "OK")
        self.assertEqual(str(client("TABLE CREATE t FAMILY f")), KEY)


class AclFileTest(unittest.TestCase):
    def client(self, server, user=None):
        client = Client(server, user)
        self.addCleanup(client.close)
        return client

    def test_users_of_an_aclfile_are_loaded_saved_and_reloaded(self):
        with CellarServer() as server:
            path = os.path.join(server.directory, "users.acl")
            with open(path, "w", encoding="utf-8") as file:
                file.write("user u on nopass ~web:anchor +@all\nuser default on nopass ~* &* +@all\n")
            server.options["aclfile"] = "users.acl"
            server.restart()
            admin = self.client(server)
            self.assertEqual(admin("ACL USERS"), ["default", "u"])
            admin("ACL SETUSER v on >secret (+ping)")
            self.assertEqual(admin("ACL SAVE"), "OK")
            with open(path, encoding="utf-8") as file:
                text = file.read()
            self.assertNotIn("secret", text)
            self.assertIn("user v on #", text)
            client = self.client(server, "u")
            with open(path, "a", encoding="utf-8") as file:
                file.write("user v on\nuser w +nonsense\n")
            reply = str(admin("ACL LOAD"))
            self.assertIn("Duplicate user 'v'", reply)
            self.assertEqual(client("PING"), "PONG")
            with open(path, "w", encoding="utf-8") as file:
                file.write("user x on nopass +ping\n")
            self.assertEqual(admin("ACL LOAD"), "OK")
            self.assertEqual(admin("ACL USERS"), ["default", "x"])
            with self.assertRaises(redis.ConnectionError):
                client("PING")

    def test_users_of_the_configuration_are_rewritten(self):
        with CellarServer() as server:
            conf = os.path.join(server.directory, "cellar.conf")
            with open(conf, "w", encoding="utf-8") as file:
                file.write("# mine\nuser u on >pw ~web:* (+cget\tnothing\n")
            server.stop()
            server.config = conf
            with self.assertRaises(AssertionError):
                server.start()
            with open(conf, "w", encoding="utf-8") as file:
                file.write('# mine\nuser u on >pw ~web:* +@read (+cput ~log:*)\n')
            server.start()
            admin = self.client(server)
            admin("ACL SETUSER v on nopass")
            self.assertEqual(admin("CONFIG REWRITE"), "OK")
            with open(conf, encoding="utf-8") as file:
                text = file.read()
            self.assertTrue(text.startswith("# mine\nuser default on nopass ~* &* +@all\nuser u on #"), text)
            self.assertIn("\nuser v on nopass resetchannels -@all\n", text)
            lines = admin("ACL LIST")
            server.restart()
            self.assertEqual(self.client(server)("ACL LIST"), lines)
            self.assertEqual(self.client(server)("AUTH u pw"), "OK")

    def test_requirepass_is_the_password_of_the_default_user(self):
        with CellarServer(requirepass="secret") as server:
            client = self.client(server)
            self.assertEqual(str(client("PING")), "Authentication required.")
            self.assertIn("invalid username-password", str(client("AUTH wrong")))
            self.assertEqual(client("AUTH secret"), "OK")
            self.assertEqual(client("ACL WHOAMI"), "default")
            entry = client("ACL LOG 1")[0]
            self.assertEqual([entry[3], entry[7], entry[9]], ["auth", "AUTH", "default"])
            self.assertEqual(client("CONFIG", "SET", "requirepass", ""), "OK")
            self.assertEqual(self.client(server)("PING"), "PONG")


class StrangerTest(unittest.TestCase):
    """Before authentication."""

    @classmethod
    def setUpClass(cls):
        cls.server = CellarServer(requirepass="secret")
        cls.addClassCleanup(cls.server.close)
        cls.server.start()

    def ask(self, data, begin):
        """What the server answers to `data`: as much as `begin` is, or until the connection ends. Where nothing is to come,
        what comes within a moment."""
        with self.server.connect() as sock:
            answer = b""
            try:
                sock.sendall(data)
                if not begin:
                    sock.settimeout(0.3)
                while not begin or len(answer) < len(begin):
                    piece = sock.recv(65536)
                    if not piece:
                        return answer + b"<end>"
                    answer += piece
            except socket.timeout:
                pass
            except ConnectionError:
                answer += b"<end>"
            return answer

    def test_only_four_commands_are_answered(self):
        table = Client(self.server)
        table("AUTH secret")
        names = [row[0] for row in table("COMMAND")]
        table.close()
        noauth = b"-NOAUTH Authentication required.\r\n"
        for name in [*names, "nonsense", "GET", "x" * 1000, "client id", "table list", "acl whoami"]:
            if name in ("auth", "hello", "quit", "reset"):
                continue
            words = name.split()
            data = b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w.encode()) for w in words)
            with self.server.connect() as sock:
                sock.sendall(data)
                self.assertEqual(sock.recv(1000), noauth, name)

    def test_inputs(self):
        noauth = b"-NOAUTH"
        for data, begin in [
                (b"PING\r\n", noauth), (b"ping\r\n", noauth), (b"nonsense a b\r\n", noauth), (b"GET x\r\n", noauth),
                (b"*1\r\n$4\r\nPING\r\n", noauth), (b"*2\r\n$4\r\nMULT\r\n$1\r\n1\r\n", noauth), (b"MULTI\r\n", noauth),
                (b"SUBSCRIBE a\r\n", noauth), (b"MONITOR\r\n", noauth), (b"SHUTDOWN\r\n", noauth), (b"CONFIG GET *\r\n", noauth),
                (b"CLIENT SETNAME x\r\n", noauth), (b"CLIENT REPLY OFF\r\n", noauth), (b"COMMAND\r\n", noauth),
                (b"ACL WHOAMI\r\n", noauth), (b"EVAL x 0\r\n", noauth), (b"SELECT 1\r\n", noauth), (b"INFO\r\n", noauth),
                (b"\r\n", b""), (b"*0\r\n", b""), (b"*-1\r\n", b""), (b"\n\n\n", b""),
                (b"AUTH\r\n", b"-ERR wrong number of arguments for 'auth'"), (b"AUTH a b c\r\n", b"-ERR syntax error"),
                (b"AUTH wrong\r\n", b"-WRONGPASS"), (b"AUTH nobody wrong\r\n", b"-WRONGPASS"), (b"AUTH \"\"\r\n", b"-WRONGPASS"),
                (b"AUTH default secre\r\n", b"-WRONGPASS"), (b"AUTH default secrets\r\n", b"-WRONGPASS"),
                (b"AUTH secret\r\n", b"+OK"), (b"AUTH default secret\r\nPING\r\n", b"+OK\r\n+PONG"),
                (b"HELLO\r\n", b"-NOAUTH HELLO"), (b"HELLO 3\r\n", b"-NOAUTH HELLO"), (b"HELLO 9\r\n", b"-NOPROTO"),
                (b"HELLO 3 SETNAME x\r\n", b"-NOAUTH HELLO"), (b"HELLO 3 AUTH default wrong\r\n", b"-WRONGPASS"),
                (b"HELLO 3 AUTH default secret\r\n", b"%7"), (b"HELLO 2 AUTH default secret SETNAME x\r\n", b"*14"),
                (b"RESET\r\nPING\r\n", b"+RESET\r\n-NOAUTH"), (b"QUIT\r\nPING\r\n", b"+OK\r\n<end>"),
                (b"*11\r\n", b"-ERR Protocol error: unauthenticated multibulk length\r\n<end>"),
                (b"*1\r\n$16385\r\n", b"-ERR Protocol error: unauthenticated bulk length\r\n<end>"),
                (b"*x\r\n", b"-ERR Protocol error"), (b"*1\r\n!\r\n", b"-ERR Protocol error"),
                (b"POST / HTTP/1.1\r\n", b"<end>"), (b"a \"b\r\n", b"-ERR Protocol error"),
                (b"x" * 70_000, b""), (b"AUTH secret\r\nAUTH wrong\r\nPING\r\n", b"+OK\r\n-WRONGPASS")]:
            with self.subTest(data=data[:40]):
                answer = self.ask(data, begin)
                self.assertTrue(answer.startswith(begin), answer[:100])

    def test_a_stranger_takes_little_memory(self):
        admin = Client(self.server)
        admin("AUTH secret")
        self.addCleanup(admin.close)
        attacks = [
            b"*10\r\n" + b"$16384\r\n" + b"x" * 16384 + (b"\r\n$16384\r\n" + b"x" * 16384) * 8,  # never complete
            b"$" * 30_000, b"x" * 60_000, b"PING\r\n" * 100_000, b"AUTH wrong\r\n" * 50_000,
            b"*2\r\n$4\r\nAUTH\r\n$16384\r\n" + b"x" * 16384, (b"HELLO\r\n" * 60_000),
        ]
        for attack in attacks:
            socks = []
            for _ in range(3):
                sock = self.server.connect()
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                sock.settimeout(1)
                try:
                    sock.sendall(attack)  # and nothing is read
                except OSError:
                    pass
                socks.append(sock)
            time.sleep(0.3)  # it could take more meanwhile
            for line in admin("CLIENT LIST").splitlines():
                fields = dict(word.split("=", 1) for word in line.split() if "=" in word)
                if fields["id"] == str(admin("CLIENT ID")):
                    continue
                if "A" in fields["flags"]:  # disconnected at the end of this turn
                    continue
                self.assertLess(int(fields["tot-mem"]), 64 * 1024, "%r: %s" % (attack[:30], line))
            for sock in socks:
                sock.close()


if __name__ == "__main__":
    unittest.main()
