"""What an operator and a generic client see: transactions, pub/sub, notifications, logs, limits, systemd, the end."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest

import redis

from cellar_server import CellarServer, CellarTest, not_on_a_follower, wait_until


def command(*words):
    """A request as clients send it."""
    out = b"*%d\r\n" % len(words)
    for word in words:
        word = word if isinstance(word, bytes) else str(word).encode()
        out += b"$%d\r\n%s\r\n" % (len(word), word)
    return out


def receive(connection, bytes_wanted):
    """Exactly so many bytes (fewer at the end of the stream)."""
    data = b""
    while len(data) < bytes_wanted:
        chunk = connection.recv(bytes_wanted - len(data))
        if not chunk:
            break
        data += chunk
    return data


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class TransactionTest(CellarTest):
    """MULTI, EXEC, WATCH and CWATCH."""

    def setUp(self):
        super().setUp()
        self.run_command("TABLE", "CREATE", "t", "FAMILY", "f")

    def replies(self, connection, expected):
        """The next bytes are these."""
        self.assertEqual(receive(connection, len(expected)), expected)

    def test_an_error_stays_in_its_place_and_the_others_stand(self):
        with self.redis.pipeline() as pipe:
            pipe.execute_command("CPUT", "t", "r", "f:x", 1)
            pipe.execute_command("CGET", "nosuch", "r", "f:x")
            pipe.execute_command("CGET", "t", "r", "f:x")
            put, error, got = pipe.execute(raise_on_error=False)
        self.assertEqual((put, got), (b"OK", b"1"))
        self.assertIsInstance(error, redis.ResponseError)

    def test_a_watched_table_that_changes_aborts(self):
        with self.redis.pipeline() as pipe:
            pipe.watch("t")
            self.run_command("CPUT", "t", "other", "f:x", 1)
            pipe.multi()
            pipe.execute_command("CPUT", "t", "r", "f:x", 2)
            with self.assertRaises(redis.WatchError):
                pipe.execute()
        self.assertIsNone(self.run_command("CGET", "t", "r", "f:x"))

    def test_cwatch_looks_at_one_row(self):
        with self.server.connect() as connection:
            for changed, answer in (("other", b"*1\r\n+OK\r\n"), ("r", b"*-1\r\n")):
                connection.sendall(command("CWATCH", "t", "r"))
                self.replies(connection, b"+OK\r\n")
                self.run_command("CPUT", "t", changed, "f:y", 1)
                connection.sendall(command("MULTI") + command("CPUT", "t", "r", "f:x", "2") + command("EXEC"))
                self.replies(connection, b"+OK\r\n+QUEUED\r\n" + answer)

    def test_multi_atomic_undoes_all(self):
        with self.server.connect() as connection:
            connection.sendall(command("MULTI", "ATOMIC") + command("CPUT", "t", "z", "f:x", "9") +
                               command("TABLE", "CREATE", "u") + command("SELECT", "3") +
                               command("CPUT", "t", "z", "g:x", "9") + command("EXEC"))
            self.replies(connection, b"+OK\r\n" + b"+QUEUED\r\n" * 4 +
                         b"-EXECABORT NOTABLE no table 't' in keyspace '3'\r\n")
            connection.sendall(command("CGET", "t", "z", "f:x") + command("EXISTS", "u"))
            self.replies(connection, b"$-1\r\n:0\r\n")

    def test_a_refused_command_makes_exec_fail(self):
        with self.server.connect() as connection:
            connection.sendall(command("MULTI") + command("CPUT", "t") + command("EXEC"))
            connection.settimeout(60)
            said = b""
            while not said.endswith(b"errors.\r\n"):
                said += connection.recv(4096)
            self.assertRegex(said, b"^\\+OK\r\n-ERR wrong number of arguments for 'cput' command: CPUT table row .*\r\n"
                                   b"-EXECABORT Transaction discarded because of previous errors.\r\n")

    def test_a_transaction_survives_a_crash_whole(self):
        with self.redis.pipeline() as pipe:
            for i in range(100):
                pipe.execute_command("CPUT", "t", f"r{i}", "f:x", i)
            pipe.execute()
        self.run_command("WAITAOF", 1, 0, 0)
        self.server.crash()
        self.assertEqual(self.server.client().execute_command("CCOUNT", "t"), 100)


class PubSubTest(CellarTest):
    """Channels, patterns, shard channels, keyspace notifications."""

    OPTIONS = {"notify-keyspace-events": "KEA"}

    def messages(self, listener, count):
        """What comes, without confirmations: so many, and nothing more at once."""
        found = []
        while True:
            message = listener.get_message(timeout=0.5, ignore_subscribe_messages=True)
            if message is None and len(found) >= count:
                return found
            if message is not None:
                found.append((message["channel"], message["data"]))

    def test_messages_reach_channels_and_patterns(self):
        listener = self.server.client().pubsub()
        listener.subscribe("news")
        listener.psubscribe("n*")
        for _ in range(2):
            while listener.get_message(timeout=1) is None:
                pass
        self.assertEqual(self.redis.publish("news", "hello"), 2)
        self.assertEqual(self.messages(listener, 2), [(b"news", b"hello"), (b"news", b"hello")])
        self.assertEqual(self.redis.pubsub_numsub("news"), [(b"news", 1)])
        listener.close()

    @not_on_a_follower("its events are those of records, by which DEL is a TABLE DROP")
    def test_writes_are_published(self):
        listener = self.server.client().pubsub()
        listener.psubscribe("__key*")
        self.assertEqual(listener.get_message(timeout=60)["type"], "psubscribe")
        self.run_command("TABLE", "CREATE", "t", "FAMILY", "f")
        self.run_command("CPUT", "t", "r", "f:x", 1)
        self.run_command("CPUT", "t", "r", "NX", "f:x", 1)  # does nothing
        self.run_command("DEL", "t")
        found = self.messages(listener, 6)
        self.assertEqual([m for m in found if m[0].startswith(b"__keyspace")],
                         [(b"__keyspace@0__:t", b"table.create"), (b"__keyspace@0__:t", b"cput"),
                          (b"__keyspace@0__:t", b"del")])
        self.assertIn((b"__keyevent@0__:cput", b"t"), found)
        listener.close()

    def test_confirmations_are_pushes_that_reply_off_lets_through(self):
        """Byte for byte as Redis 7.0."""
        def confirmed(push, *subscriptions):
            return b"".join(b"%s3\r\n$%d\r\n%s\r\n$1\r\n%s\r\n:%d\r\n" % (push, len(word), word, name, count)
                            for word, name, count in subscriptions)
        for hello, push in ((b"", b"*"), (b"HELLO 3\r\n", b">")):
            for sent, expected in (
                    (b"CLIENT REPLY OFF\r\nSUBSCRIBE a b\r\nPSUBSCRIBE p\r\nUNSUBSCRIBE a\r\nUNSUBSCRIBE\r\nPING\r\n",
                     confirmed(push, (b"subscribe", b"a", 1), (b"subscribe", b"b", 2), (b"psubscribe", b"p", 3),
                               (b"unsubscribe", b"a", 2), (b"unsubscribe", b"b", 1))),
                    (b"CLIENT REPLY SKIP\r\nSUBSCRIBE a\r\n", confirmed(push, (b"subscribe", b"a", 1)) + b"+OK\r\n"),
                    (b"CLIENT REPLY OFF\r\nMULTI\r\nSUBSCRIBE x\r\nPING\r\nEXEC\r\n",
                     confirmed(push, (b"subscribe", b"x", 1)))):
                with self.subTest((hello, sent)), self.server.connect() as connection:
                    connection.sendall(hello + b"ECHO begin\r\n")
                    seen = b""
                    while not seen.endswith(b"begin\r\n"):
                        seen += connection.recv(10000)
                    connection.sendall(sent + b"QUIT\r\n")
                    seen = b""
                    while chunk := connection.recv(10000):
                        seen += chunk
                    self.assertEqual(seen, expected)

    def test_resp3_pushes_come_behind_the_reply(self):
        greeting = b""
        with self.server.connect() as connection:
            connection.sendall(command("HELLO", "3") + command("ECHO", "greeted"))
            while not greeting.endswith(b"$7\r\ngreeted\r\n"):
                greeting += connection.recv(10000)
            connection.sendall(command("SUBSCRIBE", "c") + command("PUBLISH", "c", "x"))
            expected = (b">3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n" b":1\r\n"
                        b">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nx\r\n")
            self.assertEqual(receive(connection, len(expected)), expected)


class OperatorTest(CellarTest):
    """INFO, CONFIG, SLOWLOG, LATENCY, MONITOR, CLIENT."""

    OPTIONS = {"enable-debug-command": "yes"}

    def test_info_has_the_sections_of_redis(self):
        text = self.redis.execute_command("INFO", "everything")
        for name in ("redis_version", "used_memory", "aof_enabled", "total_commands_processed", "role",
                     "used_cpu_user", "connected_clients", "maxmemory"):
            self.assertIn(name, text)
        self.assertGreaterEqual(text["redis_version"], "7.0.0")

    @not_on_a_follower("a set keeps its users beside the tables")
    def test_memory_adds_up(self):
        self.run_command("TABLE", "CREATE", "t", "FAMILY", "f")
        for i in range(100):
            self.run_command("CPUT", "t", f"r{i}", "f:x", "x" * 1000)
        info = self.redis.info("memory")
        self.assertEqual(info["used_memory"], info["used_memory_overhead"] + info["used_memory_dataset"])
        self.assertGreater(info["used_memory_dataset"], 100_000)
        self.assertEqual(self.run_command("MEMORY", "USAGE", "t"), info["used_memory_dataset"])

    def test_config_set_is_all_or_nothing(self):
        before = self.redis.config_get("timeout")
        with self.assertRaises(redis.ResponseError):
            self.run_command("CONFIG", "SET", "timeout", "7", "maxmemory", "nonsense")
        self.assertEqual(self.redis.config_get("timeout"), before)

    def test_slow_commands_and_events_are_kept_without_secrets(self):
        self.run_command("CONFIG", "SET", "slowlog-log-slower-than", 0, "latency-monitor-threshold", 5)
        try:
            self.run_command("DEBUG", "SLEEP", "0.02")
            with self.assertRaises(redis.ResponseError):
                self.run_command("AUTH", "nobody", "topsecret")
            log = self.run_command("SLOWLOG", "GET", "10")
            self.assertNotIn(b"topsecret", [word for entry in log for word in entry[3]])
            self.assertTrue(any(entry[3][:2] == [b"DEBUG", b"SLEEP"] for entry in log))
            self.assertEqual(self.run_command("LATENCY", "LATEST")[0][0], b"command")
            self.assertIn(b"command", self.run_command("LATENCY", "GRAPH", "command"))
        finally:
            self.run_command("CONFIG", "SET", "slowlog-log-slower-than", 10000, "latency-monitor-threshold", 0)

    def test_the_longest_turn_is_told_and_long_ones_are_events(self):
        self.run_command("CONFIG", "SET", "latency-monitor-threshold", 20)
        try:
            self.run_command("DEBUG", "SLEEP", "0.03")
            self.assertLessEqual(30_000, self.redis.info("stats")["eventloop_duration_max"])
            worst = {event[0]: event[3] for event in self.run_command("LATENCY", "LATEST")}
            self.assertLessEqual(30, worst[b"eventloop"])
        finally:
            self.run_command("CONFIG", "SET", "latency-monitor-threshold", 0)

    def test_monitor_sees_the_commands_of_others(self):
        with self.server.connect() as monitor:
            monitor.sendall(b"MONITOR\r\n")
            self.assertEqual(receive(monitor, 5), b"+OK\r\n")
            self.run_command("ECHO", b"a\x00b")
            line = monitor.recv(1000)
            self.assertIn(b'"ECHO" "a\\x00b"\r\n', line)

    def test_monitor_and_slow_log_show_no_secrets(self):
        """As Redis 7.0 shows them, but for what Redis forgets: AUTH with a word too many, tls-key-file-pass."""
        lines = ["AUTH s3cret", "AUTH nobody s3cret", "AUTH nobody s3cret s3cret", "HELLO 2 AUTH default s3cret",
                 "HELLO 2 SETNAME x AUTH nobody s3cret", "MIGRATE h 1 k 0 1 AUTH s3cret KEYS a",
                 "MIGRATE h 1 k 0 1 AUTH2 s3cret s3cret KEYS a", "ACL SETUSER bob on >s3cret ~*", "ACL DELUSER bob",
                 "CONFIG SET requirepass s3cret requirepass s3cret", "CONFIG SET maxmemory 0 masterauth s3cret",
                 "CONFIG SET TLS-KEY-FILE-PASS s3cret", "CONFIG SET tls-client-key-file-pass s3cret",
                 "CONFIG SET masteruser s3cret"]
        self.run_command("CONFIG", "SET", "slowlog-log-slower-than", 0, "slowlog-max-len", 1000)
        self.run_command("SLOWLOG", "RESET")
        self.addCleanup(self.run_command, "CONFIG", "SET", "slowlog-log-slower-than", 10000, "slowlog-max-len", 128)
        seen = b""
        with self.server.connect() as monitor, self.server.connect() as other:
            monitor.sendall(b"MONITOR\r\n")
            self.assertEqual(receive(monitor, 5), b"+OK\r\n")
            for at, line in enumerate(lines + ["ECHO end"]):
                for words in (line, "MULTI", line, "EXEC") if at < len(lines) else (line,):
                    other.sendall(words.encode() + b"\r\n")
            while b'"ECHO" "end"' not in seen:
                seen += monitor.recv(65536)
        self.assertNotIn(b"s3cret", seen)
        self.assertIn(b'"HELLO" "2" "SETNAME" "x" "AUTH" "(redacted)" "(redacted)"\r\n', seen)
        self.assertIn(b'"AUTH" "(redacted)"\r\n', seen)
        log = [b" ".join(entry[3]) for entry in self.run_command("SLOWLOG", "GET", "-1")]
        self.assertFalse([entry for entry in log if b"s3cret" in entry])
        self.assertIn(b"CONFIG SET maxmemory 0 masterauth (redacted)", log)
        self.assertIn(b"ACL SETUSER (redacted) (redacted) (redacted) (redacted)", log)

    def test_debug_is_refused_as_by_redis_unless_allowed(self):
        with CellarServer(enable_debug_command="no") as server:
            client = server.client()
            self.addCleanup(client.close)
            for words in (("SLEEP", "0"), ("NOSUCH",), ("DIGEST",), ("RELOAD",)):
                with self.assertRaisesRegex(redis.ResponseError, "^DEBUG command not allowed. If the enable-debug-command"):
                    client.execute_command("DEBUG", *words)
            with self.assertRaisesRegex(redis.ResponseError, "wrong number of arguments"):
                client.execute_command("DEBUG")
            self.assertIn(b"DEBUG", client.execute_command("DEBUG", "HELP")[0])
        with self.assertRaisesRegex(redis.ResponseError, "unknown subcommand 'NOSUCH'"):
            self.run_command("DEBUG", "NOSUCH")

    def test_appendonly_during_a_save_is_done_behind_it(self):
        with CellarServer(enable_debug_command="yes", save="", appendfsync="always") as server:
            client = server.client()
            self.addCleanup(client.close)
            client.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
            for at in range(0, 100_000, 5000):
                pipe = client.pipeline(transaction=False)
                for row in range(at, at + 5000):
                    pipe.execute_command("CPUT", "t", row, "f:a", "x" * 100)
                pipe.execute()
            waited = 0
            for value in ("no", "yes", "no", "yes"):
                pipe = client.pipeline(transaction=False)
                pipe.execute_command("BGSAVE")
                pipe.execute_command("CONFIG", "SET", "appendonly", value)
                pipe.execute_command("INFO", "persistence")
                _, done, info = pipe.execute(raise_on_error=False)
                self.assertEqual(done, b"OK")
                waited += info["aof_rewrite_scheduled"]
                self.assertEqual(client.config_get("appendonly")["appendonly"], value)
                wait_until(lambda: not (info := client.info("persistence"))["rdb_bgsave_in_progress"] and
                           not info["aof_rewrite_scheduled"])
                info = client.info("persistence")
                self.assertEqual(info["aof_enabled"], int(value == "yes"))
            self.assertGreater(waited, 0)
            client.execute_command("CPUT", "t", "last", "f:a", 1)
            server.crash()
            self.assertEqual(client.execute_command("CCOUNT", "t"), 100_001)

    def test_clients_are_listed_named_and_killed(self):
        other = self.server.client(client_name="other")
        other.ping()
        found = [client for client in self.redis.client_list() if client["name"] == "other"]
        self.assertEqual(len(found), 1)
        self.assertEqual(self.run_command("CLIENT", "KILL", "ID", found[0]["id"]), 1)
        wait_until(lambda: "other" not in [client["name"] for client in self.redis.client_list()])

    def test_redis_cli_knows_the_arguments_of_cput(self):
        out = subprocess.run(["redis-cli", "-p", str(self.server.port)], input="help cput\n", text=True,
                             capture_output=True, check=True).stdout
        self.assertIn("CPUT", out)
        self.assertIn("table row", out)


class ProcessTest(unittest.TestCase):
    """Start, passwords, systemd, configuration files, the end."""

    def test_nothing_is_answered_before_the_password(self):
        with CellarServer(requirepass="secret") as server, server.connect() as connection:
            connection.sendall(b"PING\r\nFOO\r\nAUTH wrong\r\nAUTH secret\r\nPING\r\n")
            refused = b"-NOAUTH Authentication required.\r\n"
            expected = refused * 2 + b"-WRONGPASS invalid username-password pair or user is disabled.\r\n" \
                b"+OK\r\n+PONG\r\n"
            self.assertEqual(receive(connection, len(expected)), expected)

    def test_systemd_hears_of_ready_watchdog_and_stopping(self):
        with tempfile.TemporaryDirectory() as directory, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
            systemd.bind(os.path.join(directory, "notify"))
            systemd.settimeout(120)
            server = CellarServer()
            self.addCleanup(server.close)
            server.environment["NOTIFY_SOCKET"] = os.path.join(directory, "notify")
            server.environment["WATCHDOG_USEC"] = "200000"
            server.start()
            heard = systemd.recv(1000)
            while b"READY=1" not in heard:
                heard = systemd.recv(1000)
            while b"WATCHDOG=1" not in heard:
                heard = systemd.recv(1000)
            self.assertEqual(server.stop(), 0)
            while b"STOPPING=1" not in heard:
                heard = systemd.recv(1000)

    def test_signals_and_shutdown_leave_with_status_0_the_data_and_nothing_else(self):
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        left_behind = [os.path.join(folder, name) for name in ("pid", "socket")]
        with CellarServer(pidfile=left_behind[0], unixsocket=left_behind[1]) as server:
            client = server.client()
            client.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
            for how in ("TERM", "INT", "SHUTDOWN"):
                client.execute_command("CPUT", "t", how, "f:x", 1)
                if how == "SHUTDOWN":
                    with self.assertRaises(redis.ConnectionError):
                        client.execute_command("SHUTDOWN", "SAVE")
                else:
                    server.process.send_signal(signal.SIGTERM if how == "TERM" else signal.SIGINT)
                self.assertEqual(server.process.wait(60), 0)
                self.assertEqual([path for path in left_behind if os.path.exists(path)], [])
                self.assertTrue(server.log().endswith("bye bye...\n"), server.log()[-500:])
                said = "SHUTDOWN by user 'default' from 127.0.0.1:" if how == "SHUTDOWN" else f"SIG{how}: leaving"
                self.assertIn(said, server.log())
                server.start()
                client = server.client()
                self.assertEqual(client.execute_command("CGET", "t", how, "f:x"), b"1")

    def test_config_rewrite_keeps_comments(self):
        with tempfile.NamedTemporaryFile("w", suffix=".conf", delete=False) as file:
            file.write("# mine\ntimeout 5\n")
        self.addCleanup(os.unlink, file.name)
        with CellarServer(config=file.name) as server:
            client = server.client()
            client.config_set("timeout", 6)
            client.execute_command("CONFIG", "REWRITE")
            with open(file.name, encoding="utf-8") as rewritten:
                self.assertTrue(rewritten.read().startswith("# mine\ntimeout 6\n"))

    def test_rewritten_files_are_as_private_as_they_were(self):
        """They hold passwords."""
        with CellarServer() as server:
            conf, users = (os.path.join(server.directory, name) for name in ("cellar.conf", "users.acl"))
            for file_path, text in ((conf, "requirepass secret\naclfile users.acl\n"), (users, "user default on >a ~* +@all\n")):
                with open(file_path, "w", encoding="utf-8") as file:
                    file.write(text)
            server.config = conf
            server.restart()
            client = server.client(password="a")
            for mode in (0o600, 0o640, 0o644, None):
                for path, words in ((conf, "CONFIG REWRITE"), (users, "ACL SAVE")):
                    if mode is None:
                        os.unlink(path)
                    else:
                        os.chmod(path, mode)
                        os.chown(path, os.getuid(), os.getgid())
                    before = None if mode is None else os.stat(path)
                    self.assertTrue(client.execute_command(*words.split()))
                    after = os.stat(path)
                    self.assertEqual(oct(mode or 0o600), oct(after.st_mode & 0o777))
                    if before is not None:
                        self.assertNotEqual(before.st_ino, after.st_ino)
                        self.assertEqual((before.st_uid, before.st_gid), (after.st_uid, after.st_gid))
            self.assertEqual([], [name for name in os.listdir(server.directory) if name.endswith(".new")])
            client.close()

    def test_a_unix_socket_serves_too(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "cellar.sock")
            with CellarServer(unixsocket=path, unixsocketperm="700") as server:
                self.assertEqual(os.stat(path).st_mode & 0o777, 0o700)
                self.assertTrue(redis.Redis(unix_socket_path=path).ping())
                self.assertEqual(server.stop(), 0)
            self.assertFalse(os.path.exists(path))

    def test_a_bare_save_is_no_save_point(self):
        for text, points in (("save\n", ""), ('save ""\n', ""), ("save 60 1\nsave\n", "60 1"), ("save\nsave 60 1\n", "60 1")):
            with tempfile.TemporaryDirectory() as directory:
                path = os.path.join(directory, "cellar.conf")
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
                with CellarServer(config=path) as server:
                    self.assertEqual(server.client().config_get("save")["save"], points, text)

    def test_the_log_goes_to_standard_output_and_faults_to_standard_error(self):
        server = CellarServer()
        self.addCleanup(server.close)
        process = subprocess.Popen(server.arguments(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while "Ready to accept connections" not in process.stdout.readline():
            self.assertIsNone(process.poll())
        process.terminate()
        self.assertEqual(process.communicate()[1], "")
        for words, status in ((["--help"], 0), (["--version"], 0), (["--check"], 2)):
            done = subprocess.run(server.arguments()[:1] + words, capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stdout == "", done.stderr == ""), (status, status != 0, status == 0))

    def test_sighup_opens_the_log_file_anew(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "log")
            with CellarServer(logfile=path) as server:
                os.rename(path, path + ".1")
                server.process.send_signal(signal.SIGHUP)
                wait_until(lambda: os.path.exists(path) and "SIGHUP" in read(path))
                self.assertNotIn("SIGHUP", read(path + ".1"))
                # One that cannot be opened does not end the one that is open.
                os.rename(path, path + ".2")
                os.mkdir(path)
                server.process.send_signal(signal.SIGHUP)
                wait_until(lambda: "cannot open the logfile" in read(path + ".2"))

    def test_bad_options_stop_the_start_with_a_message(self):
        """With 2, but for what the command line names and the machine does not have."""
        later = ("cannot read the configuration: open 'nosuch.conf'", "/nowhere/x: no such file or directory",
                 "'here': bind takes IP addresses")
        for words, said in ((["--port", "x"], "integer"), (["--nonsense", "1"], "'nonsense'"),
                            (["nosuch.conf"], "cannot read the configuration: open 'nosuch.conf'"),
                            (["--port", "x"], "--port x: argument couldn't be parsed"), (["--prot", "1"], "did you mean 'port'?"),
                            (["--bind", "here"], "'here': bind takes IP addresses"),
                            (["-p", "1"], "'-p' is not an option"), (["--port=1"], "without '='"),
                            (["--port", "0", "--unixsocket", "/nowhere/x"], "/nowhere/x: no such file or directory")):
            server = CellarServer()
            self.addCleanup(server.close)
            done = subprocess.run(server.arguments()[:1] + words, capture_output=True, text=True, timeout=60,
                                  cwd=server.directory)
            self.assertEqual(done.returncode, 1 if said in later else 2)
            self.assertIn("cellar: ", done.stderr)
            self.assertIn(said, done.stderr.splitlines()[-1])


if __name__ == "__main__":
    unittest.main()
