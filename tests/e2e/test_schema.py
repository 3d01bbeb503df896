"""Schema commands and the generic commands that take a table for a key (cellar-commands(7), "SCHEMA COMMANDS")."""

import unittest

from wire import M, OK, S, WireTest, words_of

from model import resp


class SchemaTest(WireTest):
    def setUp(self):
        super().setUp()
        for name in self.call("KEYSPACE LIST"):
            if not name.isdigit():
                self.call([b"KEYSPACE", b"DROP", name])

    def info(self, line, protocol=2):
        return {name.decode(): value for name, value in resp.as_map(self.call(line, protocol))}


class KeyspaceTest(SchemaTest):
    BUILT_IN = sorted(str(i) for i in range(16))

    def test_commands_in_a_keyspace_that_another_client_dropped(self):
        self.write("KEYSPACE CREATE fleet")
        self.read("SELECT fleet", OK)
        self.write("TABLE CREATE planes FAMILY f")
        self.read("TABLE LIST", ["planes"])
        self.redis.execute_command("KEYSPACE DROP", "fleet")
        for refused in ("TABLE LIST", "TABLE LIST MATCH p*", "TABLE CREATE planes FAMILY f", "CROW planes r"):
            self.refused(refused, "NOKEYSPACE no keyspace 'fleet'")

    def test_create_list_drop(self):
        self.read("KEYSPACE LIST", self.BUILT_IN)
        self.write("KEYSPACE CREATE fleet")
        self.write("keyspace create Zoo")
        self.read("KEYSPACE LIST", sorted(self.BUILT_IN + ["Zoo", "fleet"]))
        self.refused("KEYSPACE CREATE fleet", "BUSYKEY")
        self.refused("KEYSPACE CREATE 3", "BUSYKEY")
        self.write("TABLE CREATE fleet/planes FAMILY f")
        self.write("KEYSPACE DROP fleet")
        self.refused("CROW fleet/planes r", "NOKEYSPACE no keyspace 'fleet'")
        self.refused("KEYSPACE DROP fleet", "NOKEYSPACE")
        self.refused("KEYSPACE DROP 0", "ERR")
        self.refused("KEYSPACE DROP 15", "ERR")
        self.refused("KEYSPACE CREATE a/b", "ERR")
        self.refused('KEYSPACE CREATE ""', "ERR")
        self.refused("KEYSPACE CREATE", "ERR wrong number of arguments")
        self.refused("KEYSPACE", "ERR wrong number of arguments")
        self.refused("KEYSPACE EAT a", "ERR unknown subcommand 'EAT'. Try KEYSPACE HELP.")

    def test_select_a_keyspace_by_name(self):
        self.write("KEYSPACE CREATE fleet")
        self.write("SELECT fleet")
        self.write("TABLE CREATE planes FAMILY f")
        self.write("SELECT 0")
        self.read("TABLE LIST", [])
        self.read("CROW fleet/planes r", M())
        self.refused("SELECT ghosts", "NOKEYSPACE")


class TableTest(SchemaTest):
    def test_create_info_show_drop(self):
        self.write("TABLE CREATE planes KEY utf8#utf8#-u64 FAMILY pos TYPE f64 VERSIONS 3 TTL 7d "
                   "FAMILY meta GROUP cold FAMILY tag ORDER timeuuid:bytes "
                   'GC "maxversions=3 && maxage=7d || maxage=30d"')
        self.read("TABLE LIST", ["planes"])
        for protocol in (2, 3):
            info = self.info("TABLE INFO planes", protocol)
            self.assertEqual(list(info), ["key", "families", "groups", "indexes", "rows", "cells",
                                          "memory"])
            self.assertEqual(info["key"], b"utf8#utf8#-u64")
            self.assertEqual(info["families"], [b"meta", b"pos", b"tag"])
            self.assertEqual(info["groups"], [b"cold", b"default"])
            self.assertEqual((info["indexes"], info["rows"], info["cells"]), ([], 0, 0))
        shown = self.call("TABLE SHOW planes")
        self.assertEqual(len(shown), 1)
        self.write("TABLE RENAME planes old")
        self.write(shown[0].decode())
        self.assertEqual(self.call("TABLE SHOW planes"), shown)
        for family in ("pos", "meta", "tag"):
            self.assertEqual(self.info(f"FAMILY INFO planes {family}"),
                             self.info(f"FAMILY INFO old {family}"))
        self.write("TABLE DROP old")
        self.refused("TABLE INFO old", "NOTABLE")
        self.refused("TABLE DROP old", "NOTABLE")
        self.refused("TABLE SHOW old", "NOTABLE")

    def test_counts_are_exact(self):
        self.write("TABLE CREATE t FAMILY f FAMILY g VERSIONS 2")
        for at in range(5):
            self.write(f"CPUT t r{at} f:a 1 f:b 2 g:c {at}")
        info = self.info("TABLE INFO t")
        self.assertEqual((info["rows"], info["cells"]), (5, 15))
        for at in range(4):
            self.write(f"CPUT t r0 g:c {at}")
        info = self.info("TABLE INFO t")
        self.assertEqual((info["rows"], info["cells"]), (5, 16))
        self.assertEqual(self.info("FAMILY INFO t g")["cells"], 6)
        self.assertEqual(self.info("FAMILY INFO t f")["cells"], 10)
        self.assertGreater(info["memory"], 0)
        self.write("CDEL t r1 f", 2)
        self.write("CDEL t r2", 3)
        info = self.info("TABLE INFO t", 3)
        self.assertEqual((info["rows"], info["cells"]), (4, 11))
        self.write("FAMILY DROP t g")
        info = self.info("TABLE INFO t")
        self.assertEqual((info["rows"], info["cells"]), (3, 6))
        self.write("TABLE TRUNCATE t")
        info = self.info("TABLE INFO t")
        self.assertEqual((info["rows"], info["cells"]), (0, 0))
        self.assertEqual(info["families"], [b"f"])

    def test_create_refuses(self):
        self.write("TABLE CREATE t FAMILY f")
        self.refused("TABLE CREATE t", "BUSYKEY table 't' exists")
        self.refused("TABLE CREATE u FAMILY f FAMILY f", "BUSYKEY")
        self.refused("TABLE CREATE ghosts/u", "NOKEYSPACE")
        self.syntax_error("TABLE CREATE u KEY", "TABLE CREATE u KEY i64 KEY i64",
                          "TABLE CREATE u FAMILY", "TABLE CREATE u bogus",
                          "TABLE CREATE u FAMILY f TYPE", "TABLE CREATE u FAMILY f TTL 1 TTL 1",
                          "TABLE CREATE u FAMILY f GC maxversions=1 VERSIONS 1",
                          "TABLE CREATE u FAMILY f TTL 1s GC maxversions=1",
                          "TABLE CREATE u FAMILY f COLOUR red")
        for wrong in ("KEY number", "KEY utf8#utf8|utf8", "FAMILY a:b", "FAMILY f TYPE number",
                      "FAMILY f VERSIONS 0", "FAMILY f VERSIONS x", "FAMILY f TTL 0",
                      "FAMILY f TTL soon", "FAMILY f GC maxversion=1", "FAMILY f ORDER a",
                      "FAMILY f GROUP a/b", 'FAMILY ""', "KEY f64.f64"):
            self.refused(f"TABLE CREATE u {wrong}", "ERR")
        for name in ("a:b", "-a", '""', "a" * 65, "a/b/c"):
            self.refused(f"TABLE CREATE {name}", "ERR")
        self.read("TABLE LIST", ["t"])
        families = " ".join(f"FAMILY f{i}" for i in range(257))
        self.refused(f"TABLE CREATE u {families}", "TOOLARGE")
        self.refused("TABLE CREATE", "ERR wrong number of arguments for 'table|create' command")

    def test_list(self):
        for name in ("b", "a1", "a2", "A"):
            self.write(f"TABLE CREATE {name}")
        self.read("TABLE LIST", ["A", "a1", "a2", "b"])
        self.read("TABLE LIST MATCH a*", ["a1", "a2"])
        self.syntax_error("TABLE LIST a*", "TABLE LIST MATCH", "TABLE LIST MATCH a b")

    def test_rename(self):
        self.write("KEYSPACE CREATE fleet")
        self.write("TABLE CREATE a FAMILY f")
        self.write("CPUT a r f:x 1")
        self.write("TABLE CREATE b FAMILY f")
        self.refused("TABLE RENAME a b", "BUSYKEY")
        self.write("TABLE RENAME a fleet/c")
        self.read("CGET fleet/c r f:x", "1")
        self.read("TABLE LIST", ["b"])
        self.write("TABLE RENAME fleet/c a")
        self.read("CGET a r f:x", "1")
        self.refused("TABLE RENAME none c", "NOTABLE")
        self.refused("TABLE RENAME a ghosts/c", "NOKEYSPACE")
        self.refused("TABLE RENAME a x:y", "ERR")
        self.refused("TABLE RENAME a a", "BUSYKEY")

    def test_sample(self):
        self.write("TABLE CREATE t KEY u64 FAMILY f FAMILY big GROUP big")
        self.read("TABLE SAMPLE t 4", [])
        self.wires[2].pipeline([(b"CPUT", b"t", b"%d" % at, b"f:a", b"x" * 50, b"big:b", b"y" * 500)
                                for at in range(2000)])
        keys = [int(key) for key in self.call("TABLE SAMPLE t 4")]
        self.assertEqual(len(keys), 3)
        for at, key in enumerate(keys):
            self.assertLess(abs(key - 500 * (at + 1)), 120, keys)
        self.read("TABLE SAMPLE t 1", [])
        self.assertLessEqual(len(self.call("TABLE SAMPLE t 100000")), 1999)
        self.refused("TABLE SAMPLE t 0", "ERR")
        self.refused("TABLE SAMPLE t x", "ERR")
        self.refused("TABLE SAMPLE none 2", "NOTABLE")

    def test_schema_survives_a_restart(self):
        self.write("KEYSPACE CREATE fleet")
        self.write("TABLE CREATE fleet/t KEY recno FAMILY f TYPE u8 VERSIONS 2 FAMILY g GROUP other")
        self.write("CPUT fleet/t * f:a 1 g:b 2", "1")
        self.write("FAMILY ALTER fleet/t f TTL 5m")
        before = self.call("TABLE SHOW fleet/t")
        self.server.restart()
        self.connect_wires()
        self.assertEqual(self.call("TABLE SHOW fleet/t"), before)
        self.read("CROW fleet/t 1", M(("f:a", 1), ("g:b", "2")))
        self.write("CPUT fleet/t * f:a 3", "2")

    def test_help_and_unknown(self):
        for container in ("TABLE", "FAMILY", "KEYSPACE"):
            lines = self.call(f"{container} HELP")
            self.assertTrue(lines[0].startswith(container.encode() + b" <subcommand>"), lines)
            self.assertIn(b"HELP", lines)
            self.refused(f"{container} BOGUS x", "ERR unknown subcommand 'BOGUS'")


class FamilyTest(SchemaTest):
    def setUp(self):
        super().setUp()
        self.write("TABLE CREATE t FAMILY f")

    def test_add_info_drop(self):
        self.write("FAMILY ADD t g TYPE i64 ORDER -u64 VERSIONS 3 TTL 90s GROUP cold")
        for protocol in (2, 3):
            info = self.info("FAMILY INFO t g", protocol)
            self.assertEqual(list(info), ["name", "type", "columns", "order", "versions", "ttl", "gc", "group",
                                          "aggregate", "bucket", "compress", "cells", "compressed", "saved",
                                          "memory", "disk", "log_bytes", "reclaimed"])
            self.assertEqual([info[name] for name in ("name", "type", "order", "versions", "ttl",
                                                      "gc", "group")],
                             [b"g", b"i64", b"-u64", b"3", b"90000ms", b"NONE", b"cold"])
        info = self.info("FAMILY INFO t f")
        self.assertEqual([info[name] for name in ("type", "order", "versions", "ttl", "gc", "group")],
                         [b"none", b"bytes", b"ALL", b"NONE", b"NONE", b"default"])
        self.write("CPUT t r g:5 1 f:a 2")
        self.write("FAMILY DROP t g")
        self.refused("CPUT t r g:5 1", "NOFAMILY")
        self.read("CROW t r", M(("f:a", "2")))
        self.refused("FAMILY DROP t g", "NOFAMILY")
        self.refused("FAMILY INFO t g", "NOFAMILY no family 'g' in table 't'")
        self.write("FAMILY ADD t g")
        self.read("CROW t r", M(("f:a", "2")))

    def test_add_refuses(self):
        self.refused("FAMILY ADD t f", "BUSYKEY")
        self.refused("FAMILY ADD none f", "NOTABLE")
        self.refused("FAMILY ADD t a:b", "ERR")
        self.syntax_error("FAMILY ADD t g TTL", "FAMILY ADD t g x", "FAMILY ADD t g TTL 1 TTL 2",
                          "FAMILY ADD t g GC maxage=1d TTL 1")
        self.refused("FAMILY ADD t g TYPE x", "ERR unknown type 'x'")
        self.refused("FAMILY ADD t", "ERR wrong number of arguments")

    def test_alter(self):
        self.write("FAMILY ALTER t f TYPE u16 VERSIONS 2")
        self.write("CPUT t r f:a 7")
        self.read("CGET t r f:a", 7)
        self.refused("CPUT t r f:a x", "BADVALUE")
        self.write("FAMILY ALTER t f TTL 1h")
        info = self.info("FAMILY INFO t f")
        self.assertEqual([info["versions"], info["ttl"], info["type"]], [b"2", b"3600000ms", b"u16"])
        self.write('FAMILY ALTER t f GC "maxversions=3 && maxage=1d"')
        info = self.info("FAMILY INFO t f")
        self.assertEqual([info["versions"], info["ttl"]], [b"ALL", b"NONE"])
        self.assertIn(b"maxversions=3", info["gc"])
        self.write("FAMILY ALTER t f VERSIONS 5")
        info = self.info("FAMILY INFO t f")
        self.assertEqual([info["versions"], info["ttl"], info["gc"]], [b"5", b"NONE", b"NONE"])
        self.write("FAMILY ALTER t f GC NONE TYPE NONE")
        info = self.info("FAMILY INFO t f")
        self.assertEqual([info["versions"], info["type"]], [b"ALL", b"none"])
        self.write("CPUT t r f:b text")

    def test_what_an_old_policy_dropped_stays_gone(self):
        for at in range(5):
            self.write(f"CPUT t r f:a {at} TS {at}")
        self.write("FAMILY ALTER t f VERSIONS 2")
        self.read("CROW t r VERSIONS ALL", M(("f:a", [[4, "4"], [3, "3"]])))
        self.write("FAMILY ALTER t f VERSIONS ALL")
        self.read("CROW t r VERSIONS ALL", M(("f:a", [[4, "4"], [3, "3"]])))

    def known(self, line):
        """A column that has been named so often that the server knows it."""
        for _ in range(3):
            self.write(line)
        return line

    def test_a_column_named_often_is_what_the_schema_says(self):
        self.write("TABLE CREATE k FAMILY f FAMILY n TYPE i64")
        put = self.known("CPUT k r f:a x")
        self.known("CPUT k r n:a 7")
        for _ in range(3):
            self.read("CGET k r f:a", "x")
            self.read("CGET k r f:b", None)
            self.read("CMGET k r f:a n:a f:b n:b", ["x", 7, None, None])
        self.refused("CMGET k r f:a f:b n", "ERR")  # and nothing of the reply before
        self.refused('CMGET k "" f:a f:b', "BADKEY")
        self.refused("CPUT k r n:a x", "BADVALUE column")
        self.refused('CPUT k "" f:a x', "BADKEY")
        self.write("FAMILY DROP k f")
        self.refused(put, "NOFAMILY")
        self.refused("CGET k r f:a", "NOFAMILY")
        self.refused("CMGET k r n:a f:a", "NOFAMILY")
        self.read("CGET k r n:a", 7)

        self.write("FAMILY ADD k f TYPE i64 VERSIONS 1")
        self.refused(put, "BADVALUE column")
        self.read("CGET k r f:a", None)
        self.known("CPUT k r f:a 5")
        self.read("CGET k r f:a", 5)
        self.write("FAMILY ADD k e")  # the families behind it move
        self.known("CPUT k r f:a 6")
        self.read("CGET k r f:a", 6)
        self.read("CCOUNT k BY CELLS", 2)

        self.write("TABLE CREATE u FAMILY f ORDER u64")
        self.known("CPUT u r f:5 five")
        self.write("TABLE RENAME k old")
        self.write("TABLE RENAME u k")
        self.refused("CPUT k r f:a 1", "BADKEY")
        self.read("CGET k r f:5", "five")
        self.read("CGET old r f:a", 6)
        self.write("TABLE TRUNCATE k")
        self.read("CGET k r f:5", None)
        self.write("CPUT k r f:5 again")
        self.read("CGET k r f:5", "again")
        self.write("TABLE DROP k")
        self.refused("CGET k r f:5", "NOTABLE")
        self.write("TABLE CREATE k FAMILY f")
        self.read("CGET k r f:5", None)

    def test_a_column_named_often_and_exec_that_changes_the_schema(self):
        self.write("TABLE CREATE k FAMILY f")
        self.known("CPUT k r f:a x")
        self.write("MULTI")
        for line in ("FAMILY DROP k f", "CPUT k r f:a y", "FAMILY ADD k f", "CPUT k r f:a z"):
            self.write(line, S("QUEUED"))
        replies = self.call("EXEC")
        self.assertEqual(replies[0], OK)
        self.assertEqual(replies[1].code, "NOFAMILY")
        self.assertEqual(replies[2:], [OK, OK])
        self.read("CGET k r f:a", "z")

    def test_a_column_named_often_and_a_write_that_finishes_an_index(self):
        self.write("TABLE CREATE k FAMILY f")
        self.write("INDEX CREATE k u ON 1 f:a UNIQUE")
        for i in range(3000):
            self.write(f"CPUT k r{i} f:a v{i}")
        lines = ["INDEX CREATE k b ON 1 f:b", "MULTI", "FAMILY ALTER k f VERSIONS 3",
                 "CGET k r1 f:a", "CGET k r1 f:a", "CPUT k r1 f:a new", "EXEC"]
        wire = self.wires[2]
        replies = wire.pipeline([words_of(line) for line in lines])
        self.assertEqual(replies[-1], [OK, b"v1", b"v1", OK])
        self.read("CGET k r1 f:a", "new")
        self.refused("CPUT k r2 f:a new", "NOTUNIQUE")
        self.read("CGET k r2 f:a", "v2")

    def test_alter_refuses(self):
        self.syntax_error("FAMILY ALTER t f x", "FAMILY ALTER t f TTL 1 GC NONE")
        self.refused("FAMILY ALTER t f", "ERR")
        self.refused("FAMILY ALTER t f ORDER i64", "ERR")
        self.refused("FAMILY ALTER t f GROUP g", "ERR")
        self.refused("FAMILY ALTER t none TTL 1", "NOFAMILY")
        self.refused("FAMILY ALTER none f TTL 1", "NOTABLE")


class GenericTest(SchemaTest):
    def setUp(self):
        super().setUp()
        for name in ("a", "b", "c"):
            self.write(f"TABLE CREATE {name} FAMILY f")

    def test_reads(self):
        self.assertEqual(sorted(self.call("KEYS *")), [b"a", b"b", b"c"])
        self.read("KEYS b", ["b"])
        self.read("EXISTS a b none a", 3)
        self.read("TOUCH a none", 1)
        self.read("TYPE a", S("table"))
        self.read("TYPE none", S("none"))
        self.read("DBSIZE", 3)
        self.assertIn(self.call("RANDOMKEY"), (b"a", b"b", b"c"))
        self.read("EXISTS 0/a 1/a ghosts/a", 1)

    def test_scan(self):
        self.read("SCAN 0", ["0", ["a", "b", "c"]])
        found, cursor = [], b"0"
        while True:
            cursor, some = self.call(f"SCAN {cursor.decode()} COUNT 1")
            found += some
            if cursor == b"0":
                break
        self.assertEqual(sorted(found), [b"a", b"b", b"c"])
        self.read("SCAN 0 MATCH b", ["0", ["b"]])
        self.read("SCAN 0 TYPE table MATCH [ab] COUNT 10", ["0", ["a", "b"]])
        self.read("SCAN 0 TYPE string", ["0", []])
        self.refused("SCAN x", "ERR invalid cursor")
        self.syntax_error("SCAN 0 COUNT", "SCAN 0 COUNT 0", "SCAN 0 BOGUS 1")
        self.refused("SCAN 0 COUNT x", "ERR value is not an integer")
        self.assertEqual(sorted(self.redis.scan_iter()), [b"a", b"b", b"c"])

    def test_rename(self):
        self.write("CPUT a r f:x 1")
        self.write("RENAME a b")
        self.read("CGET b r f:x", "1")
        self.read("KEYS *", ["b", "c"])
        self.write("RENAME b b")
        self.refused("RENAME none x", "ERR no such key")
        self.refused("RENAME b a:b", "ERR")
        self.write("RENAMENX b c", 0)
        self.write("RENAMENX b d", 1)

    def test_del_unlink_flush(self):
        self.write("DEL a a none", 1)
        self.write("UNLINK b", 1)
        self.read("DBSIZE", 1)
        self.write("KEYSPACE CREATE fleet")
        self.write("TABLE CREATE fleet/t")
        self.write("FLUSHDB")
        self.read("DBSIZE", 0)
        self.read("EXISTS fleet/t", 1)
        self.write("FLUSHALL ASYNC")
        self.read("EXISTS fleet/t", 0)
        self.assertIn(b"fleet", self.call("KEYSPACE LIST"))
        self.write("FLUSHALL SYNC")
        self.syntax_error("FLUSHALL NOW", "FLUSHDB SYNC ASYNC")
        self.read("RANDOMKEY", None)

    def test_memory_usage(self):
        self.write("CPUT a r f:x 1")
        self.assertGreater(self.call("MEMORY USAGE a"), 0)
        self.assertGreater(self.call("MEMORY USAGE a SAMPLES 5"), 0)
        self.read("MEMORY USAGE none", None)


class DocsTest(SchemaTest):
    NAMES = ("cput cget cmget crow cscan ccount cnear cexists cdel cdelrange cincrby cincrbyfloat "
             "cappend cmutate").split()

    def test_command_info_names_the_table_and_the_categories(self):
        for name in self.NAMES:
            with self.subTest(name):
                row = self.call(f"COMMAND INFO {name}")[0]
                self.assertEqual(row[0], name.encode())
                self.assertEqual(row[3:6], [1, 1, 1])
                self.assertIn(b"@cell", row[6])
                self.assertTrue({b"@read", b"@write"} & set(row[6]))
                self.assertTrue({b"@fast", b"@slow"} & set(row[6]))

    def test_command_docs_are_complete(self):
        docs = self.call("COMMAND DOCS " + " ".join(self.NAMES), 3)
        self.assertEqual(len(docs.pairs), len(self.NAMES))
        for name, doc in docs.pairs:
            with self.subTest(name):
                fields = dict(doc.pairs)
                for field in (b"summary", b"since", b"group", b"complexity", b"arguments"):
                    self.assertIn(field, fields)
                self.assertEqual(fields[b"since"], b"1.0.0")
                self.assertEqual(fields[b"group"], b"cell")

    def test_command_docs_tell_integers_from_floats(self):
        for name, kind in (("cincrby", b"integer"), ("cincrbyfloat", b"double")):
            doc = dict(self.call("COMMAND DOCS " + name, 3).pairs[0][1].pairs)
            delta = dict(doc[b"arguments"][-1].pairs)
            self.assertEqual((delta[b"name"], delta[b"type"]), (b"delta", kind))


if __name__ == "__main__":
    unittest.main()
