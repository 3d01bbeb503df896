"""archive-dir s3://bucket/prefix: the archive in an object store, and stores of any moment made from it.

Against object_server.py, which checks signatures and can be hostile, and against a server of somebody else's
(s3rver, from npm), which is skipped and named where it cannot be installed.
"""

import os
import random
import re
import shutil
import ssl
import subprocess
import tempfile
import threading
import time
import unittest
from unittest import mock

import redis
from cellar_server import CellarServer, begin_snapshot, binary, free_port, is_sanitized, measured_run, wait_until
from certificates import Authority
from object_server import ObjectServer
from test_clients import NPM, run

SEED = int(os.environ.get("CELLAR_TEST_SEED", random.randrange(1 << 30)))
LATE = "2100-01-01T00:00:00Z"
PLACE = "s3://bucket/deep/archive"
PREFIX = "bucket/deep/archive/"


class ObjectTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="cellar-objects-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.new = os.path.join(self.folder, "new")
        self.place = PLACE
        self.store = ObjectServer()
        self.addCleanup(self.store.__exit__)
        self.environment = {**os.environ, **self.store.environment()}

    def server(self, start=True, directory=None, **options):
        words = {"save": "", "enable-debug-command": "local", "archive-dir": self.place, "archive-timeout": "1s",
                 "appendfsync": "always"}
        server = CellarServer(directory=directory, options={**words, **options})
        server.environment = self.environment
        self.addCleanup(server.close)
        return server.start() if start else server

    def cellar(self, *words):
        return subprocess.run([binary(), *words], capture_output=True, text=True, timeout=300, check=False,
                              env=self.environment)

    def wait(self, what, ready):
        wait_until(ready, what, pause=0.05)

    def persistence(self, client):
        return client.info("persistence")

    def archived(self, client):
        """Until the archive has all that there is."""
        def is_there():
            info = self.persistence(client)
            return info["archive_lag_bytes"] == 0 and info["archive_error"] == ""
        self.wait(lambda: f"all is archived: {self.persistence(client)}", is_there)

    def digest(self, directory):
        with CellarServer(directory=directory, options={"save": "", "enable-debug-command": "local"}) as served:
            client = served.client()
            digest = client.execute_command("DEBUG", "DIGEST", "t")
            client.close()
        return digest

    def recovered(self, until, *places):
        shutil.rmtree(self.new, ignore_errors=True)
        done = self.cellar("--recover", *(places or (self.place,)), "--until", until, "--dir", self.new)
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        return self.digest(self.new)

    def history(self, server, steps, chance, between=lambda i: None):
        """Writes a history; [(id, digest)] of moments in it."""
        client = server.client()
        run_command = client.execute_command
        run_command("TABLE", "CREATE", "t", "FAMILY", "f")
        run_command("FEED", "CREATE", "steps", "ON", 1, "t", "KEEP", "1s")
        moments = []
        for i in range(steps):
            row = f"r{chance.randrange(9)}"
            if chance.randrange(5) == 0:
                run_command("CDEL", "t", row)
            run_command("CPUT", "t", row, f"f:{chance.randrange(3)}", i)
            if i % 20 == 10:
                run_command("SAVE")
            if i % 4 == 3:
                last = run_command("XREVRANGE", "steps", "+", "-", "COUNT", 1)
                moments.append((last[0][0].decode(), run_command("DEBUG", "DIGEST", "t")))
            between(i)
        client.close()
        return moments

    def names(self, ending):
        return sorted(key for key in self.store.objects if key.startswith(PREFIX) and key.endswith(ending))


class ObjectArchiveTest(ObjectTest):
    """One server of objects, well or ill."""

    def test_a_history_out_of_the_bucket_alone(self):
        chance = random.Random(SEED)
        print(f"CELLAR_TEST_SEED={SEED}")
        server = self.server()
        client = server.client()

        def between(i):
            if i % 15 == 14:
                self.archived(client)

        moments = self.history(server, 60, chance, between)
        client.execute_command("SAVE")
        self.archived(client)
        self.assertGreater(self.persistence(client)["archive_bytes"], 0)
        checked = self.cellar("--check", PLACE)
        self.assertEqual(0, checked.returncode, checked.stdout + checked.stderr)
        client.close()
        server.stop()
        for until, digest in moments:
            with self.subTest(until=until):
                self.assertEqual(digest, self.recovered(until))
        self.assertEqual([], self.store.refusals)
        # With a slash more it is the same place.
        self.assertEqual(moments[-1][1], self.recovered(moments[-1][0], PLACE + "/", server.directory))

    def test_a_hostile_server_loses_nothing(self):
        chance = random.Random(SEED)
        print(f"CELLAR_TEST_SEED={SEED}")
        faults = ["500", "503", "cut", "lost", "etag", "damage", "half", "short", "slow", "403", "301", "501", "flip"]
        self.store.fault = lambda request: chance.choice(faults) if chance.randrange(3) == 0 else None
        server = self.server()
        moments = self.history(server, 80, random.Random(SEED), lambda i: server.client().ping())
        self.store.fault = lambda request: None
        client = server.client()
        client.execute_command("SAVE")
        self.archived(client)
        client.close()
        server.stop()
        self.assertEqual({}, self.store.uploads)
        for until, digest in moments:
            with self.subTest(until=until):
                self.assertEqual(digest, self.recovered(until))
        # What comes back badly is asked for again, and what comes wrong is refused, never believed.
        refused = 0
        for kind in ("500", "cut", "half", "short", "flip"):
            is_data = re.compile(r"\.(log|snapshot)$").search
            self.store.fault = lambda request, kind=kind, is_data=is_data: (
                kind if request.method == "GET" and (is_data(request.key) if kind == "flip" else request.number % 3 == 0)
                else None)
            shutil.rmtree(self.new, ignore_errors=True)
            done = self.cellar("--recover", PLACE, "--until", moments[-1][0], "--dir", self.new)
            if done.returncode == 0:
                self.assertEqual(moments[-1][1], self.digest(self.new), kind)
            else:
                self.assertEqual("flip", kind, done.stderr)
                self.assertIn(PLACE, done.stderr)
                self.assertFalse(os.path.exists(self.new))
                refused += 1
        self.assertEqual(1, refused)

    def test_errors_name_bucket_and_key(self):
        server = self.server()
        client = server.client()
        client.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
        self.archived(client)
        for fault, text in (("403", "403 AccessDenied"), ("301", "region mars-1"), ("503", "503 SlowDown"),
                            ("500", "500 InternalError"), ("etag", "has stored other bytes"), ("cut", "PUT: ")):
            with self.subTest(fault=fault):
                self.store.fault = lambda request, fault=fault: fault if request.method == "PUT" else None
                client.execute_command("CPUT", "t", "r", "f:a", fault)

                def told(text=text):
                    return text in self.persistence(client)["archive_error"]
                self.wait(lambda: f"{fault}: {self.persistence(client)['archive_error']}", told)
                self.assertRegex(self.persistence(client)["archive_error"], PLACE + r"/cellar-[0-9]{6}\.(log|snapshot): PUT: ")
                self.assertGreater(self.persistence(client)["archive_lag_bytes"], 0)
                self.store.fault = lambda request: None
                self.archived(client)
        self.assertIn("The archive lags behind", server.log())
        self.assertIn("The archive takes files again", server.log())
        digest = client.execute_command("DEBUG", "DIGEST", "t")
        client.close()
        server.stop()
        self.assertEqual(digest, self.recovered(LATE))

    def test_a_server_that_hangs_holds_up_nobody(self):
        server = self.server()
        client = server.client()
        client.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
        self.archived(client)
        asked = len(self.store.requests)
        self.store.fault = lambda request: "hang"
        client.execute_command("CPUT", "t", "r", "f:a", "1")
        self.wait("it hangs", lambda: len(self.store.requests) > asked)
        for i in range(200):
            client.execute_command("CPUT", "t", f"r{i}", "f:a", "1")
        # The store is closed and opened again meanwhile; a start does not wait either.
        client.execute_command("DEBUG", "RELOAD")
        client.execute_command("CPUT", "t", "later", "f:a", "1")
        client.close()
        server.crash()
        client = server.client()
        client.execute_command("CPUT", "t", "latest", "f:a", "1")
        self.store.fault = lambda request: None
        self.store.release.set()
        self.archived(client)
        digest = client.execute_command("DEBUG", "DIGEST", "t")
        client.close()
        server.stop()
        self.assertEqual(digest, self.recovered(LATE))

    def test_clocks_that_differ_are_said(self):
        server = self.server()
        client = server.client()
        client.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
        self.archived(client)
        for i, (code, ahead, text) in enumerate((
                ("RequestTimeTooSkewed", 3600, "clock is (59|60) minutes behind the server's"),
                ("SignatureDoesNotMatch", -7200, "clock is 120 minutes ahead of the server's"),
                ("AccessDenied", 86400, "clock is (1439|1440) minutes behind"))):
            with self.subTest(code=code):
                self.store.skew_code, self.store.ahead = code, ahead
                client.execute_command("CPUT", "t", "r", "f:a", str(i))
                wait_until(lambda text=text: re.search(text, self.persistence(client)["archive_error"]),
                           lambda: self.persistence(client)["archive_error"])
                checked = self.cellar("--check", self.place)
                self.assertEqual(1, checked.returncode)
                self.assertRegex(checked.stderr, text)
                self.store.ahead = 0
                self.archived(client)
        # A refusal where they agree says nothing of clocks.
        self.store.secret = "another"
        refused = self.cellar("--check", self.place)
        self.assertNotIn("clock", refused.stderr)
        client.close()

    def test_a_server_that_resets_or_never_answers_is_said(self):
        for fault in ("reset", "hang"):
            with self.subTest(fault=fault):
                self.store.fault = lambda request, fault=fault: fault
                server = self.server()
                client = server.client()
                wait_until(lambda: "trying again" in self.persistence(client)["archive_error"],
                           lambda: self.persistence(client)["archive_error"])
                self.assertIn(PLACE, self.persistence(client)["archive_error"])
                wait_until(lambda: "trying again" in server.log(), server.log)
                client.close()
                server.close()
                words = [[binary(), "--check", self.place],
                         [binary(), "--recover", self.place, "--until", LATE, "--dir", self.new]]
                for command in words:
                    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
                                          env=self.environment) as process:
                        self.assertIn("trying again", process.stderr.readline())
                        process.kill()
        self.store.release.set()

    def test_large_files_come_in_parts_and_survive_kills(self):
        server = self.server()
        client = server.client()
        client.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
        self.archived(client)
        held = threading.Event()
        held.set()
        self.store.slow = held.is_set

        def large(request):
            is_second = request.method == "PUT" and request.query.get("partNumber") == "2"
            return "slow" if is_second else None

        pipe = client.pipeline(transaction=False)
        for kill in range(3):
            self.store.fault = large
            for i in range(20):
                pipe.execute_command("CPUT", "t", f"r{i}", "f:a", random.randbytes(1 << 20))
            pipe.execute()
            self.wait("a second part is on its way",
                      lambda: any(1 in upload.parts for upload in list(self.store.uploads.values())))
            client.close()
            server.crash()
            if kill == 1:
                held.clear()  # once it goes through
            client = server.client()
            pipe = client.pipeline(transaction=False)
        self.store.fault = lambda request: None
        held.clear()
        client.execute_command("SAVE")
        self.archived(client)
        digest = client.execute_command("DEBUG", "DIGEST", "t")
        client.close()
        server.stop()
        # What the killed ones left has gone.
        self.assertEqual({}, self.store.uploads)
        self.assertTrue(any("-" in self.store.etags[key] for key in self.names(".log")), "none came in parts")
        checked = self.cellar("--check", PLACE)
        self.assertEqual(0, checked.returncode, checked.stdout + checked.stderr)
        self.assertEqual(digest, self.recovered(LATE))

    def test_parts_that_go_wrong(self):
        server = self.server()
        client = server.client()
        client.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
        self.archived(client)
        seen = []

        def fault(request):
            """Each step of an upload in parts fails once, in each way."""
            step = ("begin" if "uploads" in request.query else "complete" if request.method == "POST"
                    else request.query.get("partNumber")) if request.method in ("PUT", "POST") else None
            ways = ["500", "cut", "lost", "etag", "damage"] if step not in ("begin", "complete") else ["503", "cut", "lost"]
            ways += ["200"] if step == "complete" else []
            for way in ways:
                if step is not None and (step, way) not in seen:
                    seen.append((step, way))
                    return way
            return None

        self.store.fault = fault
        pipe = client.pipeline(transaction=False)
        for i in range(40):
            pipe.execute_command("CPUT", "t", f"r{i}", "f:a", random.randbytes(1 << 20))
        pipe.execute()
        self.archived(client)
        self.assertIn(("complete", "200"), seen)
        digest = client.execute_command("DEBUG", "DIGEST", "t")
        client.close()
        server.stop()
        self.store.fault = lambda request: None
        self.assertEqual(digest, self.recovered(LATE))

    def test_flipped_bits_are_refused_with_name_and_offset(self):
        server = self.server()
        client = server.client()
        client.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
        for i in range(200):
            client.execute_command("CPUT", "t", f"r{i}", "f:a", "v" * 50)
        client.execute_command("SAVE")
        # Two segments behind the snapshot.
        for row in ("last but one", "last"):
            client.execute_command("CPUT", "t", row, "f:a", "v" * 50)
            self.archived(client)
        client.close()
        server.stop()
        chance = random.Random(SEED)
        logs = [key for key in self.names(".log") if len(self.store.objects[key]) > 150]  # not a mark alone
        for key in (self.names(".snapshot")[-1], logs[-1]):
            sound = self.store.objects[key]
            # A mark may stand behind the last record of a log: without it nothing is missing.
            end = len(sound) - (64 if key.endswith(".log") else 0)
            for offset in [70] + [chance.randrange(64, end) for _ in range(8)]:
                with self.subTest(key=key, offset=offset, seed=SEED):
                    self.store.objects[key] = sound[:offset] + bytes([sound[offset] ^ 0x10]) + sound[offset + 1:]
                    for words in (("--check", PLACE), ("--recover", PLACE, "--until", LATE, "--dir", self.new)):
                        done = self.cellar(*words)
                        self.assertEqual(1, done.returncode, done.stdout)
                        self.assertRegex(done.stdout + done.stderr, os.path.basename(key) + ".*offset [0-9]+")
                        self.assertFalse(os.path.exists(self.new))
            self.store.objects[key] = sound[:-20]
            done = self.cellar("--check", PLACE)
            self.assertTrue(done.returncode == 1 or (key.endswith(".log") and " up to 1-203," in done.stdout), done.stdout)
            self.store.objects[key] = sound
        self.assertEqual(0, self.cellar("--check", PLACE).returncode)
        # A gap is refused.
        del self.store.objects[logs[-2]]
        done = self.cellar("--check", PLACE)
        self.assertEqual(1, done.returncode, done.stdout)
        self.assertIn("GAP", done.stdout)

    def test_buckets_of_others(self):
        server = self.server()
        client = server.client()
        client.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
        self.archived(client)
        client.close()
        server.stop()
        before = dict(self.store.objects)
        other = self.server()
        client = other.client()
        client.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
        self.wait("it is refused", lambda: "another store" in self.persistence(client)["archive_error"])
        client.close()
        other.stop()
        self.assertEqual(before, self.store.objects)
        # A copy of the store, at the same time: what one has sent the other does not replace.
        copy = os.path.join(self.folder, "copy")
        shutil.copytree(server.directory, copy)
        twins = [server.start(), self.server(directory=copy)]
        clients = [twin.client() for twin in twins]
        for client in clients:
            self.wait("it is open", lambda client=client: self.persistence(client)["archive_files"] > 0)
        clients[0].execute_command("CPUT", "t", "r", "f:a", "1")
        self.archived(clients[0])
        clients[1].execute_command("CPUT", "t", "r", "f:a", "another")
        self.wait("it is refused", lambda: "another store" in self.persistence(clients[1])["archive_error"])
        digest = clients[0].execute_command("DEBUG", "DIGEST", "t")
        for twin, client in zip(twins, clients):
            client.close()
            twin.stop()
        self.assertEqual(digest, self.recovered(LATE))
        # The right store, the wrong bucket.
        self.store.objects.clear()
        server.start()
        client = server.client()
        self.wait("it is missed", lambda: "is empty, but" in self.persistence(client)["archive_error"])
        self.assertEqual({}, self.store.objects)
        client.close()
        server.stop()
        self.store.buckets.clear()
        server.start()
        client = server.client()
        self.wait("it is told", lambda: "NoSuchBucket" in self.persistence(client)["archive_error"])
        client.close()

    def test_old_objects_go_and_a_base_stays(self):
        for option in ({"archive-keep": "1ms"}, {"archive-max-bytes": "1"}):
            with self.subTest(option=option):
                self.store.clear()
                server = self.server(**option)
                client = server.client()
                client.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
                for i in range(4):
                    client.execute_command("CPUT", "t", f"r{i}", "f:a", "1")
                    client.execute_command("SAVE")
                    self.archived(client)
                self.wait("one base", lambda: len(self.names(".snapshot")) == 1 and len(self.names(".log")) <= 2)
                digest = client.execute_command("DEBUG", "DIGEST", "t")
                self.assertEqual(digest, self.recovered(LATE))
                client.close()
                server.stop()

    def test_a_full_data_disk_drops_what_no_bucket_takes(self):
        disk = os.path.join(self.folder, "disk")
        os.mkdir(disk)
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", disk], capture_output=True, check=False)
        if done.returncode != 0:
            self.skipTest("mounting a tmpfs is not allowed here")
        self.addCleanup(subprocess.run, ["umount", disk], check=True)
        self.store.fault = lambda request: "503"
        directory = os.path.join(disk, "db")
        os.mkdir(directory)
        server = self.server(directory=directory, **{"auto-aof-rewrite-percentage": "0"})
        client = server.client()
        client.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
        refused = 0
        for i in range(60_000):
            try:
                client.execute_command("CPUT", "t", f"r{i % 10}", "f:a", "x" * 2000)
            except Exception:  # MISCONF, for a moment
                refused += 1
                time.sleep(0.05)
            if i % 1000 == 999:
                begin_snapshot(client)
            if self.persistence(client)["archive_gaps"] > 0:
                break
        self.assertGreater(self.persistence(client)["archive_gaps"], 0)
        self.wait("it is logged", lambda: "THE ARCHIVE HAS A GAP" in server.log())
        self.store.fault = lambda request: None
        client.execute_command("CPUT", "t", "later", "f:a", "1")
        self.wait(lambda: f"it goes on: {self.persistence(client)}",
                  lambda: self.persistence(client)["archive_error"] == "" and self.persistence(client)["archive_files"] > 0)
        digest = client.execute_command("DEBUG", "DIGEST", "t")
        client.close()
        server.stop()
        checked = self.cellar("--check", PLACE)
        self.assertEqual(0, checked.returncode, checked.stdout + checked.stderr)
        self.assertRegex(self.store.objects[PREFIX + "cellar.archive"].decode(), "gap after [0-9]+-[0-9]+ to [0-9]+-[0-9]+\n")
        self.assertEqual(digest, self.recovered(LATE, PLACE, directory))

    def test_credentials(self):
        # From a file, whose token changes while the server runs.
        path = os.path.join(self.folder, "credentials")

        def write(token, secret=None):
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"# for the archive\n[other]\naws_access_key_id=x\n\n[default]\naws_access_key_id = {self.store.key_id}\n"
                           f"aws_secret_access_key={secret or self.store.secret}\naws_session_token = {token}\n")
        write("first+/=")
        self.store.session_token = "first+/="
        self.store.region = "moon-2"
        endpoint = self.environment["AWS_ENDPOINT_URL"]
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL"):
            del self.environment[name]
        options = {"s3-credentials-file": path, "s3-endpoint": endpoint, "s3-region": "moon-2"}
        server = self.server(**options)
        client = server.client()
        client.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
        self.archived(client)
        self.store.session_token = "second"
        client.execute_command("CPUT", "t", "r", "f:a", "1")
        self.wait("it is told", lambda: "403" in self.persistence(client)["archive_error"])  # HEAD says no more
        write("second")
        self.archived(client)
        digest = client.execute_command("DEBUG", "DIGEST", "t")
        client.close()
        server.stop()
        words = [word for name, value in options.items() for word in ("--" + name, value)]
        self.new += "er"
        done = self.cellar("--recover", PLACE, *words, "--until", LATE, "--dir", self.new)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual(digest, self.digest(self.new))
        self.assertEqual(0, self.cellar("--check", PLACE, *words).returncode)
        write("second", "wrong")
        done = self.cellar("--check", PLACE, *words)
        self.assertEqual(1, done.returncode)
        self.assertIn("403", done.stderr)

    def test_wrong_use(self):
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            del self.environment[name]
        for place, text in ((PLACE, "there are no credentials"), ("s3://b", "a bucket's name has"),
                            ("s3://bucket/a//b", "between single slashes"), ("s3://bucket/../x", "between single slashes"),
                            ("s3://bucket/a?b", "between single slashes"), ("s3://Bucket/a", "a bucket's name has")):
            with self.subTest(place=place):
                for words in (("--check", place), ("--recover", place, "--until", LATE, "--dir", self.new)):
                    done = self.cellar(*words)
                    self.assertEqual(1, done.returncode)
                    self.assertIn(text, done.stderr)
                for option in ("archive-dir", "backupdirname"):
                    with self.assertRaisesRegex(AssertionError, text):
                        self.server(**{"archive-dir": "", option: place})
        self.environment.update({"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"})
        for words, status, text in ((("--check", PLACE, "--s3-endpoint", "ftp://x"), 1, "is no endpoint"),
                                    (("--check", PLACE, "--s3-endpoint", "http://x/y"), 1, "is no endpoint"),
                                    (("--check", PLACE, "--s3-endpoint", "http://a:b@x"), 1, "is no endpoint"),
                                    (("--check", PLACE, "--s3-region", "a b"), 1, "is no region"),
                                    (("--check", PLACE, "--s3-region"), 2, "needs a value"),
                                    (("--check", PLACE, "--repair"), 2, "--repair works in a directory"),
                                    (("--check", PLACE, "--s3-credentials-file", self.folder + "/none"), 1, "/none"),
                                    (("--check", PLACE, "--s3-credentials-file", "/dev/null"), 1, "aws_access_key_id"),
                                    (("--recover", PLACE, "--until", LATE, "--dir", "s3://bucket/new"), 2, "this machine"),
                                    (("--check", PLACE), 1, "403 Forbidden"),
                                    (("--recover", PLACE, "--until", LATE, "--dir", self.new), 1, "403")):
            with self.subTest(words=words):
                done = self.cellar(*words)
                self.assertEqual(status, done.returncode, done.stderr)
                self.assertIn(text, done.stdout + done.stderr)
        self.environment.update(self.store.environment())
        done = self.cellar("--recover", "s3://bucket/nothing", "--until", LATE, "--dir", self.new)
        self.assertEqual(1, done.returncode)
        self.assertIn("holds neither a snapshot nor a log", done.stderr)

    def test_a_list_without_end_is_no_list(self):
        """Page by page of names that never end, and from the front again and again: refused, and little is held."""
        self.store.endless = 250
        with mock.patch.dict(os.environ, self.environment):
            status, said, kib = measured_run([binary(), "--check", PLACE], 300)
        self.assertEqual(1, status)
        self.assertIn("a list of objects is longer than can be", said)
        self.assertGreater(self.store.endless, 0)
        if not is_sanitized():
            self.assertLess(kib, 700 << 10)


class ObjectBackupTest(ObjectTest):
    """backupdirname s3://bucket/prefix."""

    def setUp(self):
        super().setUp()
        self.place = ""
        self.backup = "s3://bucket/backup"

    def backups(self, **options):
        return self.server(backupdirname=self.backup, **options)

    @staticmethod
    def status(client):
        words = client.execute_command("BACKUP", "STATUS")
        return {words[i].decode(): words[i + 1] for i in range(0, len(words), 2)}

    def state(self, client, state):
        self.wait(lambda: f"{state}: {self.status(client)}", lambda: self.status(client)["state"].decode() == state)

    def start(self, client):
        def started():
            try:
                return client.execute_command("BACKUP", "START") == b"OK"
            except redis.ResponseError as error:  # it is not known yet what is there
                self.assertIn("TRYAGAIN", str(error))
                return False
        self.wait("it starts", started)

    def make(self, client):
        self.start(client)
        self.state(client, "incrementing")
        for i in range(50):
            client.execute_command("CPUT", "t", f"r{i}", "f:a", os.urandom(20).hex())
        client.execute_command("BACKUP", "SEAL")
        self.state(client, "sealed")
        return client.execute_command("DEBUG", "DIGEST", "t")

    def objects(self):
        return sorted(key for key in self.store.objects if key.startswith("bucket/backup/"))

    def test_a_backup_in_a_bucket(self):
        server = self.backups()
        client = server.client()
        client.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
        pipe = client.pipeline(transaction=False)
        for i in range(40):  # a base of several parts
            pipe.execute_command("CPUT", "t", f"large{i}", "f:a", random.randbytes(1 << 20))
        pipe.execute()
        digest = self.make(client)
        client.execute_command("CPUT", "t", "later", "f:a", "1")
        listed = [path.decode() for path in client.execute_command("BACKUP", "LIST")]
        self.assertEqual({path.replace("s3://", "") for path in listed},
                         {key for key in self.objects() if not key.endswith("cellar.backup")})
        checked = self.cellar("--check", self.backup)
        self.assertEqual(0, checked.returncode, checked.stdout + checked.stderr)
        self.assertEqual(digest, self.recovered(LATE, self.backup))
        # It is a data directory, wherever it is copied to.
        copy = os.path.join(self.folder, "copy")
        os.mkdir(copy)
        for path in listed:
            with open(os.path.join(copy, os.path.basename(path)), "wb") as file:
                file.write(self.store.objects[path.replace("s3://", "")])
        self.assertEqual(digest, self.digest(copy))
        # It outlives a restart, also of a server that cannot ask at once.
        self.store.fault = lambda request: "503"
        client.close()
        server.crash()
        client = server.client()
        with self.assertRaisesRegex(redis.ResponseError, "not known yet if s3://bucket/backup"):
            client.execute_command("BACKUP", "START")
        self.store.fault = lambda request: None
        self.state(client, "sealed")
        self.assertEqual(listed, [path.decode() for path in client.execute_command("BACKUP", "LIST")])
        with self.assertRaisesRegex(redis.ResponseError, "a sealed backup is there"):
            client.execute_command("BACKUP", "START")
        client.execute_command("BACKUP", "CLEANUP")
        self.wait("nothing is left", lambda: self.objects() == [])
        client.close()

    def test_what_ends_leaves_nothing(self):
        server = self.backups()
        client = server.client()
        client.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
        pipe = client.pipeline(transaction=False)
        for i in range(40):
            pipe.execute_command("CPUT", "t", f"large{i}", "f:a", random.randbytes(1 << 20))
        pipe.execute()
        # Given up while a part is on its way, for ever.
        self.store.fault = lambda request: "hang" if request.query.get("partNumber") == "2" else None
        self.start(client)
        self.wait("parts", lambda: any(upload.parts for upload in list(self.store.uploads.values())))
        client.execute_command("BACKUP", "ABORT")
        self.state(client, "failed")
        self.wait("nothing is left", lambda: self.objects() == [] and self.store.uploads == {})
        self.store.release.set()
        # Killed meanwhile: the next one removes what is there.
        held = threading.Event()
        held.set()
        self.store.slow = held.is_set
        self.store.fault = lambda request: "slow" if request.query.get("partNumber") == "2" else None
        self.start(client)
        self.wait("parts", lambda: any(upload.parts for upload in list(self.store.uploads.values())))
        client.close()
        server.crash()
        held.clear()
        self.store.fault = lambda request: None
        client = server.client()
        self.assertNotEqual(0, self.cellar("--check", self.backup).returncode)
        digest = self.make(client)
        self.assertEqual({}, self.store.uploads)
        self.assertEqual(digest, self.recovered(LATE, self.backup))
        # Without rights it fails, and says where.
        client.execute_command("BACKUP", "CLEANUP")
        self.wait("nothing is left", lambda: self.objects() == [])
        self.store.fault = lambda request: "403" if request.method == "PUT" else None
        self.start(client)
        self.state(client, "failed")
        self.assertRegex(self.status(client)["error"].decode(), r"s3://bucket/backup/cellar\.backup: PUT: 403 AccessDenied")
        client.close()

    def test_a_place_of_something_else_is_not_touched(self):
        self.store.objects["bucket/backup/cellar-000001.log"] = b"of somebody"
        self.store.etags["bucket/backup/cellar-000001.log"] = '"1"'
        server = self.backups()
        client = server.client()
        self.start(client)
        self.state(client, "failed")
        self.assertIn(b"is in use otherwise", self.status(client)["error"])
        self.assertEqual(["bucket/backup/cellar-000001.log"], self.objects())
        client.close()


class TlsTest(ObjectTest):
    """https, with a certificate that is trusted, or not."""

    def test_tls(self):
        authority = Authority(self.folder, "ca")
        authority.issue("server")
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(authority.path("server.crt"), authority.path("server.key"))
        secure = ObjectServer(tls=tls)
        self.addCleanup(secure.__exit__)
        self.store = secure
        self.environment.update(secure.environment())
        self.environment["AWS_CA_BUNDLE"] = authority.path("ca.crt")
        server = self.server()
        client = server.client()
        client.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
        self.archived(client)
        digest = client.execute_command("DEBUG", "DIGEST", "t")
        client.close()
        server.stop()
        self.assertEqual(digest, self.recovered(LATE))
        del self.environment["AWS_CA_BUNDLE"]
        done = self.cellar("--check", PLACE)
        self.assertEqual(1, done.returncode)
        self.assertIn("certificate", done.stderr)


class S3rverTest(ObjectTest):
    """s3rver from npm: another one's idea of the protocol."""

    def setUp(self):
        super().setUp()
        if shutil.which("npm") is None:
            self.skipTest("npm is not installed")
        program = os.path.join(NPM, "node_modules", "s3rver", "bin", "s3rver.js")
        if not os.path.exists(program):
            os.makedirs(NPM, exist_ok=True)
            done = run(["npm", "install", "--no-save", "--no-audit", "--no-fund", "--prefix", NPM, "s3rver@3"])
            if done.returncode != 0:
                self.skipTest("npm cannot reach its registry: " + done.stdout.strip().split("\n")[-1])
        port = free_port()
        data = os.path.join(self.folder, "buckets")
        os.mkdir(data)
        with open(os.path.join(self.folder, "s3rver.output"), "wb") as output:
            process = subprocess.Popen(["node", program, "-d", data, "-a", "127.0.0.1", "-p", str(port),
                                        "--configure-bucket", "bucket"], stdout=output, stderr=output)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.environment.update({"AWS_ACCESS_KEY_ID": "S3RVER", "AWS_SECRET_ACCESS_KEY": "S3RVER",
                                 "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}"})

    def test_a_history(self):
        server = self.server()
        client = server.client()
        moments = self.history(server, 40, random.Random(SEED))
        pipe = client.pipeline(transaction=False)
        for i in range(20):  # more than a part
            pipe.execute_command("CPUT", "t", f"large{i}", "f:a", random.randbytes(1 << 20))
        pipe.execute()
        client.execute_command("SAVE")
        self.archived(client)
        digest = client.execute_command("DEBUG", "DIGEST", "t")
        client.close()
        server.stop()
        self.assertEqual(0, self.cellar("--check", PLACE).returncode)
        for until, moment in moments[::3]:
            self.assertEqual(moment, self.recovered(until))
        self.assertEqual(digest, self.recovered(LATE))


if __name__ == "__main__":
    unittest.main()
