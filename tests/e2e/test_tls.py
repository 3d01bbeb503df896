"""TLS: who gets in and who does not, certificates that change, and that all else is as without it."""

import os
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import unittest

import redis
from cellar_server import START_SECONDS_MAX, CellarServer, free_port, is_sanitized, wait_until
from certificates import Authority, openssl
from test_clients import CLIENTS, NPM, STEPS, install_npm_clients, run
from test_protocol import command

READ_SECONDS_MAX = 60


def make_certificates(directory):
    """What all tests here need: an authority that the server trusts, and another one."""
    authority = Authority(directory, "ca")
    authority.issue("server")
    authority.issue("client")
    authority.issue("expired", days=-1)
    stranger = Authority(directory, "other")
    stranger.issue("stranger")
    return authority


class TlsServer(CellarServer):
    """A server whose TLS port is `tls_port`, with the certificates of `certificates`."""

    def __init__(self, certificates, plain=False, **options):
        self.certificates = certificates
        self.tls_port = free_port()
        settings = {"tls_port": self.tls_port, "tls_cert_file": self.file("server.crt"),
                    "tls_key_file": self.file("server.key"), "tls_ca_cert_file": self.file("ca.crt"),
                    "save": "", **({} if plain else {"port": 0})}
        settings.update(options)
        super().__init__(**{name: value for name, value in settings.items() if name != "port"})
        if not plain:
            self.options["port"] = 0

    def file(self, name):
        return os.path.join(self.certificates, name)

    def context(self, who="client", trust="ca", **settings):
        """A client's side: its certificate (None: none) and whom it trusts."""
        context = ssl.create_default_context(cafile=self.file(trust + ".crt"))
        if who:
            context.load_cert_chain(self.file(who + ".crt"), self.file(who + ".key"))
        for name, value in settings.items():
            setattr(context, name, value)
        return context

    def probe(self):
        return self.tls()

    def tls(self, context=None, session=None):
        """A TLS connection."""
        plain = socket.create_connection(("127.0.0.1", self.tls_port), timeout=READ_SECONDS_MAX)
        plain.settimeout(START_SECONDS_MAX)
        try:
            return (context or self.context()).wrap_socket(plain, server_hostname="localhost", session=session)
        except BaseException:
            plain.close()
            raise

    def tls_client(self, who="client", **options):
        """A redis-py client."""
        if who:
            options.update(ssl_certfile=self.file(who + ".crt"), ssl_keyfile=self.file(who + ".key"))
        return redis.Redis(host="127.0.0.1", port=self.tls_port, ssl=True, ssl_ca_certs=self.file("ca.crt"), **options)


def read_exactly(connection, size):
    """`size` bytes, or AssertionError."""
    got = bytearray()
    while len(got) < size:
        piece = connection.recv(min(1 << 20, size - len(got)))
        assert piece, f"the end after {len(got)} of {size} bytes"
        got += piece
    return bytes(got)


class TlsTest(unittest.TestCase):
    """One directory of certificates for each class."""

    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.certificates = directory.name
        cls.authority = make_certificates(directory.name)

    def server(self, **options):
        server = TlsServer(self.certificates, **options)
        self.addCleanup(server.close)
        return server

    def ping(self, server, context):
        """What a client with this context gets; in TLS 1.3 a refusal comes with the first read only."""
        with server.tls(context) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(100)

    def assert_refused(self, server, context):
        with self.assertRaises((ssl.SSLError, ConnectionError)):
            self.assertNotEqual(b"+PONG\r\n", self.ping(server, context))
            raise ConnectionError
        self.assertIsNone(server.process.poll())


class HandshakeTest(TlsTest):
    """Who gets in."""

    def test_a_client_certificate_is_required_by_default(self):
        server = self.server().start()
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            only = {"minimum_version": version, "maximum_version": version}
            self.assertEqual(b"+PONG\r\n", self.ping(server, server.context(**only)))
            for who in (None, "stranger", "expired"):
                self.assert_refused(server, server.context(who, **only))
        for reason in ("peer did not return a certificate", "certificate has expired", "certificate verify failed"):
            self.assertIn(reason, server.log())

    def test_optional_certificates_are_checked_only_if_shown(self):
        server = self.server(tls_auth_clients="optional").start()
        self.assertEqual(b"+PONG\r\n", self.ping(server, server.context()))
        self.assertEqual(b"+PONG\r\n", self.ping(server, server.context(None)))
        self.assert_refused(server, server.context("stranger"))
        self.assert_refused(server, server.context("expired"))

    def test_without_client_certificates_nobody_is_asked(self):
        server = self.server(tls_auth_clients="no", tls_ca_cert_file="").start()
        for who in ("client", None, "stranger", "expired"):
            self.assertEqual(b"+PONG\r\n", self.ping(server, server.context(who)))

    def test_a_client_that_trusts_another_authority_turns_away(self):
        server = self.server().start()
        with self.assertRaisesRegex(ssl.SSLError, "certificate verify failed"):
            server.tls(server.context(trust="other"))
        self.assertEqual(b"+PONG\r\n", self.ping(server, server.context()))

    def test_an_expired_certificate_is_served_with_a_warning_and_clients_turn_away(self):
        server = self.server(tls_cert_file=os.path.join(self.certificates, "expired.crt"),
                             tls_key_file=os.path.join(self.certificates, "expired.key"))
        server.probe = lambda: server.tls(server.context(check_hostname=False, verify_mode=ssl.CERT_NONE))
        server.start()
        with self.assertRaisesRegex(ssl.SSLError, "certificate has expired"):
            server.tls()
        self.assertIn("HAS ENDED", server.log())

    def test_authorities_in_a_directory(self):
        with tempfile.TemporaryDirectory() as directory:
            shutil.copy(os.path.join(self.certificates, "ca.crt"), directory)
            openssl("rehash", directory)
            server = self.server(tls_ca_cert_file="", tls_ca_cert_dir=directory).start()
            self.assertEqual(b"+PONG\r\n", self.ping(server, server.context()))
            self.assert_refused(server, server.context("stranger"))

    def test_protocols(self):
        versions = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
        server = self.server().start()
        client = server.tls_client()
        self.addCleanup(client.close)
        for allowed in ("TLSv1.2", "TLSv1.3", "tlsv1.3 TLSV1.2", ""):
            client.config_set("tls-protocols", allowed)
            for name, version in versions.items():
                context = server.context(minimum_version=version, maximum_version=version)
                if not allowed or name.lower() in allowed.lower():
                    with server.tls(context) as connection:
                        self.assertEqual(name, connection.version())
                        connection.sendall(b"PING\r\n")
                        self.assertEqual(b"+PONG\r\n", connection.recv(100))
                else:
                    self.assert_refused(server, context)
        for wrong in ("TLSv1.1", "SSLv3", "TLSv1.2,TLSv1.3"):
            with self.assertRaisesRegex(redis.ResponseError, "tls-protocols takes TLSv1.2 and TLSv1.3"):
                client.config_set("tls-protocols", wrong)

    def test_ciphers(self):
        server = self.server(tls_ciphers="ECDHE-ECDSA-AES256-GCM-SHA384", tls_prefer_server_ciphers="yes",
                             tls_ciphersuites="TLS_CHACHA20_POLY1305_SHA256").start()
        with server.tls(server.context(maximum_version=ssl.TLSVersion.TLSv1_2)) as connection:
            self.assertEqual("ECDHE-ECDSA-AES256-GCM-SHA384", connection.cipher()[0])
        with server.tls() as connection:
            self.assertEqual("TLS_CHACHA20_POLY1305_SHA256", connection.cipher()[0])
        client = server.tls_client()
        self.addCleanup(client.close)
        for option in ("tls-ciphers", "tls-ciphersuites"):
            before = client.config_get(option)
            with self.assertRaisesRegex(redis.ResponseError, option + " cannot be used: no cipher match"):
                client.config_set(option, "NOTHING-LIKE-IT")
            self.assertEqual(before, client.config_get(option))

    def test_sessions_are_taken_up_again_only_if_cached(self):
        server = self.server().start()
        client = server.tls_client()
        self.addCleanup(client.close)
        for caching in ("yes", "no"):
            client.config_set("tls-session-caching", caching)
            for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
                context = server.context(minimum_version=version, maximum_version=version)
                with server.tls(context) as connection:
                    connection.sendall(b"PING\r\n")
                    self.assertEqual(b"+PONG\r\n", connection.recv(100))
                    session = connection.session
                    connection.unwrap()
                if session is None:
                    self.assertEqual("no", caching)
                    continue
                with server.tls(context, session) as connection:
                    connection.sendall(b"PING\r\n")
                    self.assertEqual(b"+PONG\r\n", connection.recv(100))
                    self.assertEqual(caching == "yes", connection.session_reused)

    def test_an_encrypted_key_needs_its_password(self):
        self.authority.issue("locked", password="open sesame")
        files = {"tls_cert_file": os.path.join(self.certificates, "locked.crt"),
                 "tls_key_file": os.path.join(self.certificates, "locked.key")}
        server = self.server(tls_key_file_pass="open sesame", **files).start()
        self.assertEqual(b"+PONG\r\n", self.ping(server, server.context()))
        self.assertNotIn("sesame", server.log())
        for password in ("", "shut sesame"):
            server = self.server(tls_key_file_pass=password, **files).spawn()
            self.assertEqual(1, server.process.wait(timeout=START_SECONDS_MAX))
            self.assertIn("cannot load the private key", server.log())

    def test_a_start_without_what_it_needs_says_so(self):
        for options, said in (({"tls_cert_file": ""}, "tls-cert-file is empty"),
                              ({"tls_key_file": ""}, "tls-key-file is empty"),
                              ({"tls_cert_file": "/nowhere/x.crt"}, "cannot load the certificate /nowhere/x.crt: No such"),
                              ({"tls_key_file": "/nowhere/x.key"}, "cannot load the private key /nowhere/x.key: No such"),
                              ({"tls_ca_cert_file": "/nowhere/ca.crt"}, "cannot load the authorities /nowhere/ca.crt"),
                              ({"tls_ca_cert_file": ""}, "client certificates need an authority"),
                              ({"tls_key_file": os.path.join(self.certificates, "client.key")},
                               "key values mismatch")):
            server = self.server(**options).spawn()
            self.assertEqual(1, server.process.wait(timeout=START_SECONDS_MAX))
            self.assertIn(said, server.log())

    def test_a_start_without_tls_warns_of_what_it_could_not_read(self):
        with CellarServer(tls_port=0, tls_cert_file=os.path.join(self.certificates, "server.crt"),
                          tls_key_file="/nowhere/x.key") as server:
            self.assertIn("TLS is off, and could not be turned on: cannot load the private key /nowhere/x.key", server.log())
        with CellarServer(tls_port=0, tls_cert_file=os.path.join(self.certificates, "server.crt"),
                          tls_key_file=os.path.join(self.certificates, "server.key")) as server:
            self.assertNotIn("TLS is off", server.log())

    def test_plaintext_and_noise_on_the_tls_port_run_nothing(self):
        server = self.server(plain=True).start()
        hello = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), outgoing := ssl.MemoryBIO(),
                                                      server_hostname="localhost")
        with self.assertRaises(ssl.SSLWantReadError):
            hello.do_handshake()
        first = outgoing.read()
        for data in (b"PING\r\n", command("PING"), b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", os.urandom(1000),
                     first[:100] + os.urandom(1000), first[:6] + b"\xff" * 1000):
            with socket.create_connection(("127.0.0.1", server.tls_port), timeout=READ_SECONDS_MAX) as plain:
                plain.sendall(data)
                answer = b""
                try:
                    while piece := plain.recv(1000):
                        answer += piece
                except ConnectionError:
                    pass
                self.assertNotIn(b"PONG", answer)
                self.assertIn(answer[:1], (b"", b"\x15"))  # nothing, or an alert
        # The other way round: TLS on the plain port is bad input.
        with socket.create_connection(("127.0.0.1", server.port), timeout=READ_SECONDS_MAX) as plain:
            with self.assertRaises((ssl.SSLError, ConnectionError)):
                server.context().wrap_socket(plain, server_hostname="localhost")
        with server.client() as client:
            self.assertTrue(client.ping())

    def test_any_chunking_of_the_handshake_and_of_commands(self):
        server = self.server().start()
        for size in (1, 7, 1000):
            for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
                self.converse_in_pieces(server, size, version)

    def converse_in_pieces(self, server, size, version):
        context = server.context(minimum_version=version, maximum_version=version)
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
        with socket.create_connection(("127.0.0.1", server.tls_port), timeout=READ_SECONDS_MAX) as plain:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

            def step(call):
                while True:
                    try:
                        done = call()
                    except ssl.SSLWantReadError:
                        done = None
                    data = outgoing.read()
                    for at in range(0, len(data), size):
                        plain.sendall(data[at:at + size])
                    if done is not None:
                        return done
                    incoming.write(plain.recv(size))

            step(lambda: tls.do_handshake() or True)
            step(lambda: tls.write(command("ECHO", "x" * 300) + b"PING\r\n"))
            wanted = b"$300\r\n" + b"x" * 300 + b"\r\n+PONG\r\n"
            got = b""
            while len(got) < len(wanted):
                got += step(lambda: tls.read(1000))
            self.assertEqual(wanted, got)


class ReloadTest(TlsTest):
    """Certificates change while the server runs."""

    def serial(self, server):
        """The serial number of the certificate that new connections see."""
        with server.tls() as connection:
            return connection.getpeercert()["serialNumber"]

    def test_config_set_changes_the_certificate_of_new_connections(self):
        self.authority.issue("second")
        server = self.server().start()
        client = server.tls_client()
        self.addCleanup(client.close)
        client.ping()
        with server.tls() as old:
            first = self.serial(server)
            client.execute_command("CONFIG", "SET", "tls-cert-file", server.file("second.crt"),
                                   "tls-key-file", server.file("second.key"))
            self.assertNotEqual(first, self.serial(server))
            old.sendall(b"PING\r\n")
            self.assertEqual(b"+PONG\r\n", old.recv(100))
            self.assertEqual(first, old.getpeercert()["serialNumber"])
        client.config_set("tls-auth-clients", "no")
        self.assertEqual(b"+PONG\r\n", self.ping(server, server.context(None)))

    def test_what_cannot_be_used_is_refused_and_nothing_changes(self):
        server = self.server().start()
        client = server.tls_client()
        self.addCleanup(client.close)
        before, serial = client.config_get("tls-*"), self.serial(server)
        garbage = os.path.join(self.certificates, "garbage.pem")
        with open(garbage, "w", encoding="ascii") as file:
            file.write("-----BEGIN CERTIFICATE-----\nno\n-----END CERTIFICATE-----\n")
        busy = socket.socket()
        self.addCleanup(busy.close)
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        for words, said in ((("tls-cert-file", garbage), "cannot load the certificate " + garbage),
                            (("tls-cert-file", "/nowhere"), "cannot load the certificate /nowhere: No such file"),
                            (("tls-cert-file", ""), "tls-cert-file is empty"),
                            (("tls-key-file", server.file("client.key")), "key values mismatch"),
                            (("tls-cert-file", server.file("client.crt")), "does not fit|key values mismatch"),
                            (("tls-ca-cert-file", garbage), "cannot load the authorities"),
                            (("tls-ca-cert-file", ""), "need an authority"),
                            (("timeout", "7", "tls-key-file", garbage), "cannot load the private key"),
                            (("tls-port", str(busy.getsockname()[1])), "Unable to listen on this port")):
            with self.assertRaisesRegex(redis.ResponseError, said):
                client.execute_command("CONFIG", "SET", *words)
        self.assertEqual(before, client.config_get("tls-*"))
        self.assertEqual("0", client.config_get("timeout")["timeout"])
        self.assertEqual(serial, self.serial(server))

    def test_what_cannot_be_used_is_refused_while_nobody_speaks_tls(self):
        server = self.server(plain=True)
        for option in ("tls-port", "tls-cert-file", "tls-key-file", "tls-ca-cert-file"):
            del server.options[option]
        server.probe = lambda: CellarServer.probe(server)
        client = CellarServer.client(server.start())
        self.addCleanup(client.close)
        garbage = os.path.join(self.certificates, "garbage.pem")
        with open(garbage, "w", encoding="ascii") as file:
            file.write("-----BEGIN CERTIFICATE-----\nno\n-----END CERTIFICATE-----\n")
        wrong = [garbage, "/nowhere", self.certificates, "/dev/null"]
        for option in ("tls-cert-file", "tls-key-file", "tls-ca-cert-file"):
            for path in wrong:
                with self.assertRaisesRegex(redis.ResponseError, "cannot load", msg=(option, path)):
                    client.config_set(option, path)
                self.assertEqual("", client.config_get(option)[option])
        # One after the other, in either order; a pair that does not fit is none.
        for order in (("cert", "key"), ("key", "cert")):
            for kind, ending in zip(order, ("crt" if order[0] == "cert" else "key", "key" if order[0] == "cert" else "crt")):
                client.config_set(f"tls-{kind}-file", server.file(f"server.{ending}"))
            with self.assertRaisesRegex(redis.ResponseError, "key values mismatch"):
                client.config_set("tls-key-file", server.file("client.key"))
            client.execute_command("CONFIG", "SET", "tls-cert-file", "", "tls-key-file", "")
        client.execute_command("CONFIG", "SET", "tls-cert-file", server.file("client.crt"), "tls-key-file",
                               server.file("client.key"), "tls-ca-cert-file", server.file("ca.crt"))

    def test_half_a_handshake_does_not_stay(self):
        for threads in (1, 2):
            server = self.server(plain=True, io_threads=threads).start()
            client = CellarServer.client(server)
            self.addCleanup(client.close)
            half = [socket.create_connection(("127.0.0.1", server.tls_port), timeout=READ_SECONDS_MAX) for _ in range(3)]
            half[1].sendall(b"\x16\x03\x01")
            addresses = {f"127.0.0.1:{each.getsockname()[1]}" for each in half}
            seen = []

            def are_closed(client=client, addresses=addresses, seen=seen):
                ages = [int(each["age"]) for each in client.client_list() if each["addr"] in addresses]
                seen.extend(ages)
                return not ages
            wait_until(are_closed, lambda seen=seen: seen, 0.2)
            # The server's own seconds: 10, and what a busy machine is late; TLS had 60 before.
            self.assertGreater(max(seen), 0)
            self.assertLess(max(seen), 55)
            for each in half:
                each.close()

    def test_the_port_can_be_set_while_the_server_runs(self):
        def start_plain(**options):
            server = self.server(plain=True, **options)
            del server.options["tls-port"]
            server.probe = lambda: CellarServer.probe(server)
            client = CellarServer.client(server.start())
            self.addCleanup(client.close)
            return server, client
        server, client = start_plain()
        for _ in range(2):
            client.config_set("tls-port", server.tls_port)
            self.assertEqual(b"+PONG\r\n", self.ping(server, server.context()))
            self.assertTrue(client.ping())
            client.config_set("tls-port", 0)
            with self.assertRaises(OSError):
                self.ping(server, server.context())
        server, client = start_plain(tls_cert_file=server.file("client.crt"))
        with self.assertRaisesRegex(redis.ResponseError, "tls-port.*key values mismatch"):
            client.config_set("tls-port", server.tls_port)
        self.assertEqual("0", client.config_get("tls-port")["tls-port"])
        self.assertTrue(client.ping())

    def test_sighup_reads_files_of_the_same_name_again(self):
        with tempfile.TemporaryDirectory() as directory:
            authority = make_certificates(directory)
            server = TlsServer(directory)
            self.addCleanup(server.close)
            server.start()
            first = self.serial(server)
            authority.issue("server")
            self.hang_up(server)
            second = self.serial(server)
            self.assertNotEqual(first, second)
            with open(server.file("server.crt"), "w", encoding="ascii") as file:
                file.write("nothing\n")
            server.process.send_signal(signal.SIGHUP)
            self.wait_for(server, "SIGHUP: nothing has changed: cannot load the certificate")
            self.assertEqual(second, self.serial(server))

    def test_one_sighup_takes_over_configuration_users_and_certificate(self):
        with tempfile.TemporaryDirectory() as directory:
            authority = make_certificates(directory)
            users, conf = os.path.join(directory, "users.acl"), os.path.join(directory, "cellar.conf")
            self.write(users, "user default on nopass ~* &* +@all\n")
            self.write(conf, f"maxclients 500\naclfile {users}\n")
            server = TlsServer(directory)
            self.addCleanup(server.close)
            server.config = conf
            server.start()
            first = self.serial(server)
            authority.issue("server")
            self.write(users, "user default on nopass ~* &* +@all\nuser reader on >secret ~* +ping\n")
            self.write(conf, f"maxclients 600\naclfile {users}\n")
            self.hang_up(server)
            self.assertNotEqual(first, self.serial(server))
            with server.tls() as connection:
                connection.sendall(command("CONFIG", "GET", "maxclients") + command("AUTH", "reader", "secret") + b"PING\r\n")
                expected = b"*2\r\n$10\r\nmaxclients\r\n$3\r\n600\r\n+OK\r\n+PONG\r\n"
                self.assertEqual(expected, read_exactly(connection, len(expected)))

    def test_a_sighup_that_is_refused_leaves_configuration_users_and_certificate(self):
        with tempfile.TemporaryDirectory() as directory:
            authority = make_certificates(directory)
            users, conf = os.path.join(directory, "users.acl"), os.path.join(directory, "cellar.conf")
            good_users = "user default on nopass ~* &* +@all\n"
            good_conf = f"maxclients 500\nbind 127.0.0.1\naclfile {users}\n"
            self.write(users, good_users)
            self.write(conf, good_conf)
            server = TlsServer(directory)
            self.addCleanup(server.close)
            server.config = conf
            # What stands on the command line would beat the file.
            given = server.arguments()
            at = given.index("--bind")
            server.arguments = lambda: given[:at] + given[at + 2:]
            server.start()
            first = self.serial(server)
            with open(server.file("server.key"), encoding="ascii") as file:
                first_key = file.read()
            authority.issue("server")
            more_users = good_users + "user reader on >secret ~* +ping\n"
            more_conf = good_conf.replace("500", "600")
            with open(server.file("server.key"), encoding="ascii") as file:
                second_key = file.read()
            # In each round all but one of the files would do.
            for round_, (key, user_lines, lines, said) in enumerate((
                    (second_key, more_users, more_conf + "appendfsync sometimes\n", "appendfsync"),
                    (second_key, more_users, more_conf.replace("127.0.0.1", "192.0.2.1"), "bind: "),
                    (second_key, more_users + "user x +@nosuch\n", more_conf, "nosuch"),
                    (first_key, more_users, more_conf, "cannot load the private key"),
                    (second_key, more_users, more_conf + "tls-ciphers nonsense\n", "tls-ciphers cannot be used"))):
                self.write(server.file("server.key"), key)
                self.write(users, user_lines)
                self.write(conf, lines)
                server.process.send_signal(signal.SIGHUP)
                self.wait_for(server, "SIGHUP: nothing has changed: ", round_ + 1)
                self.assertIn(said, server.log().splitlines()[-1])
                self.assertEqual(first, self.serial(server))
                with server.tls() as connection:
                    connection.sendall(command("CONFIG", "GET", "maxclients") + command("ACL", "USERS"))
                    expected = b"*2\r\n$10\r\nmaxclients\r\n$3\r\n500\r\n*1\r\n$7\r\ndefault\r\n"
                    self.assertEqual(expected, read_exactly(connection, len(expected)))
            self.write(conf, more_conf)
            self.hang_up(server)
            self.assertNotEqual(first, self.serial(server))

    @staticmethod
    def write(file, text):
        with open(file, "w", encoding="ascii") as out:
            out.write(text)

    def hang_up(self, server):
        known = server.log().count("TLS: the certificate is")
        server.process.send_signal(signal.SIGHUP)
        self.wait_for(server, "TLS: the certificate is", known + 1)

    def wait_for(self, server, words, count=1):
        wait_until(lambda: server.log().count(words) >= count, server.log)

    def test_reload_under_load_disturbs_nobody(self):
        self.authority.issue("second")
        server = self.server().start()
        admin = server.tls_client()
        self.addCleanup(admin.close)
        admin.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
        stop, failures, rounds = threading.Event(), [], [0, 0, 0]

        def work(number):
            client = server.tls_client(retry_on_timeout=False, socket_timeout=READ_SECONDS_MAX)
            try:
                while not stop.is_set():
                    pipe = client.pipeline(transaction=False)
                    for i in range(100):
                        pipe.execute_command("CPUT", "t", f"{number}-{i}", "f:a", "x" * 500)
                        pipe.execute_command("CGET", "t", f"{number}-{i}", "f:a")
                    assert pipe.execute() == [b"OK", b"x" * 500] * 100
                    rounds[number] += 1
                    if number == 0:
                        client.connection_pool.disconnect()  # this one shakes hands each time
            except Exception as error:  # pylint: disable=broad-except
                failures.append(error)
            client.close()

        workers = [threading.Thread(target=work, args=(i,)) for i in range(3)]
        for worker in workers:
            worker.start()
        for i in range(40):
            name = ("second", "server")[i % 2]
            admin.execute_command("CONFIG", "SET", "tls-cert-file", server.file(name + ".crt"),
                                  "tls-key-file", server.file(name + ".key"))
            if i % 5 == 0:
                server.process.send_signal(signal.SIGHUP)
            time.sleep(0.02)
        stop.set()
        for worker in workers:
            worker.join()
        self.assertEqual([], failures)
        self.assertTrue(all(rounds), rounds)


class SameAsPlainTest(TlsTest):
    """What holds without TLS holds with it."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server_of_all = TlsServer(cls.certificates, enable_debug_command="yes")
        cls.addClassCleanup(cls.server_of_all.close)
        cls.server_of_all.start()

    def setUp(self):
        self.tls = self.server_of_all
        self.client = self.tls.tls_client()
        self.addCleanup(self.client.close)
        self.client.flushall()

    def resident_bytes(self):
        with open(f"/proc/{self.tls.process.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")

    def test_a_pipeline_of_ten_thousand(self):
        with self.tls.tls() as connection:
            connection.sendall(b"".join(command("ECHO", i) for i in range(10_000)))
            expected = b"".join(b"$%d\r\n%d\r\n" % (len(str(i)), i) for i in range(10_000))
            self.assertEqual(expected, read_exactly(connection, len(expected)))

    def test_values_of_ten_megabytes(self):
        self.client.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
        value = os.urandom(10 << 20)
        self.assertEqual(b"OK", self.client.execute_command("CPUT", "t", "r", "f:a", value))
        for _ in range(3):
            self.assertEqual(value, self.client.execute_command("CGET", "t", "r", "f:a"))

    def test_a_slow_reader_gets_everything_and_costs_bounded_memory(self):
        self.client.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
        value = os.urandom(1 << 20)
        self.client.execute_command("CPUT", "t", "r", "f:a", value)
        before = self.resident_bytes()
        count = 60
        with self.tls.tls() as connection:
            connection.sendall(command("CGET", "t", "r", "f:a") * count)
            time.sleep(0.5)  # it could take more meanwhile
            self.assertLess(self.resident_bytes() - before, 24 << 20)
            self.assertTrue(self.client.ping())
            expected = b"$%d\r\n%s\r\n" % (len(value), value)
            for i in range(count):
                if i % 10 == 0:
                    time.sleep(0.02)
                self.assertEqual(expected, read_exactly(connection, len(expected)))

    @unittest.skipIf(is_sanitized(), "bounds memory")
    def test_a_client_that_never_reads_holds_its_own_input_back(self):
        before = self.resident_bytes()
        with self.tls.tls() as connection:
            connection.setblocking(False)
            request, sent = command("ECHO", "x" * 1000) * 100, 0
            deadline = time.monotonic() + 2
            while time.monotonic() < deadline and sent < (64 << 20):
                try:
                    sent += connection.send(request)
                except (ssl.SSLWantWriteError, ssl.SSLWantReadError):
                    time.sleep(0.02)
            self.assertLess(sent, 64 << 20)
            self.assertLess(self.resident_bytes() - before, 24 << 20)
            self.assertTrue(self.client.ping())

    def test_the_output_limit_ends_a_subscriber_that_does_not_read(self):
        self.client.config_set("client-output-buffer-limit", "pubsub 2mb 0 0")
        self.addCleanup(self.client.config_set, "client-output-buffer-limit", "pubsub 32mb 8mb 60")
        with self.tls.tls() as connection:
            connection.sendall(b"SUBSCRIBE c\r\n")
            connection.recv(100)
            heard = 1
            for _ in range(400):
                heard = self.client.publish("c", "x" * 100_000)
                if heard == 0:
                    break
            self.assertEqual(0, heard)
        self.assertIn("closed for exceeding its output buffer limit", self.tls.log())

    def test_client_kill_and_quit(self):
        with self.tls.tls() as connection:
            connection.sendall(b"CLIENT ID\r\n")
            number = int(connection.recv(100)[1:])
            self.assertEqual(1, self.client.execute_command("CLIENT", "KILL", "ID", number))
            self.assertEqual(b"", connection.recv(100))
        plain = socket.create_connection(("127.0.0.1", self.tls.tls_port), timeout=READ_SECONDS_MAX)
        # Without the goodbye of TLS such a client would raise.
        with self.tls.context().wrap_socket(plain, server_hostname="localhost",
                                            suppress_ragged_eofs=False) as connection:
            connection.sendall(b"PING\r\nQUIT\r\n")
            self.assertEqual(b"+PONG\r\n+OK\r\n", read_exactly(connection, 12))
            self.assertEqual(b"", connection.recv(100))

    def test_idle_clients_and_clients_beyond_maxclients(self):
        with self.tls.tls() as idle:
            idle.sendall(b"PING\r\n")
            self.assertEqual(b"+PONG\r\n", idle.recv(100))
            self.client.config_set("timeout", 1)
            self.assertEqual(b"", idle.recv(100))
        self.client.connection_pool.disconnect()  # it was idle too
        self.client.config_set("timeout", 0)
        with self.tls.tls():
            self.client.config_set("maxclients", 2)
            with self.assertRaises((ssl.SSLError, ConnectionError)):
                self.tls.tls()
            self.client.config_set("maxclients", 10_000)

    @unittest.skipIf(is_sanitized(), "bounds memory")
    def test_idle_connections_cost_little(self):
        def many(count):
            return [self.tls.tls(context) for _ in range(count)]
        context = self.tls.context()
        for connection in many(50):
            connection.close()
        before = self.resident_bytes()
        connections = many(300)
        for connection in connections:
            connection.sendall(b"PING\r\n")
            self.assertEqual(b"+PONG\r\n", connection.recv(100))
        self.assertLess((self.resident_bytes() - before) / 300, 48 << 10)
        told = int(self.client.info("memory")["mem_clients_normal"])
        self.assertLess(told / 300, 48 << 10)
        for connection in connections:
            connection.close()

    def test_clients_that_leave_in_the_middle(self):
        for data in (b"", b"PING\r\n", b"*3\r\n$4\r\n", command("ECHO", "x" * 100_000) * 50):
            connection = self.tls.tls()
            connection.sendall(data)
            plain = connection.detach() if not data else None
            if plain is not None:
                os.close(plain)  # without a goodbye
            else:
                connection.close()
        half = socket.create_connection(("127.0.0.1", self.tls.tls_port), timeout=READ_SECONDS_MAX)
        half.sendall(b"\x16\x03\x01")
        half.close()
        self.assertTrue(self.client.ping())

    def test_monitor_and_pubsub_arrive(self):
        listener = self.client.pubsub()
        listener.subscribe("news")
        self.assertEqual("subscribe", listener.get_message(timeout=READ_SECONDS_MAX)["type"])
        for i in range(100):
            self.client.publish("news", f"{i}" * 100)
        for i in range(100):
            self.assertEqual(f"{i}".encode() * 100, listener.get_message(timeout=READ_SECONDS_MAX)["data"])
        listener.close()

    def test_info_names_the_port(self):
        self.assertEqual(self.tls.tls_port, self.client.info("server")["tcp_port"])


class ClientLibraryTest(TlsTest):
    """Other people's clients, with certificates."""

    def run_script(self, server, words):
        environment = {**os.environ, "CELLAR_TLS_DIRECTORY": self.certificates, "NODE_PATH": os.path.join(NPM, "node_modules")}
        done = run(words, env=environment)
        said = [f"ok {step}" for step in STEPS]
        self.assertTrue(done.returncode == 0 and done.stdout.strip().split("\n") == said, done.stdout + server.log())

    def test_redis_cli(self):
        server = self.server().start()
        words = ["redis-cli", "--tls", "-p", str(server.tls_port), "--cacert", server.file("ca.crt")]
        mine = ["--cert", server.file("client.crt"), "--key", server.file("client.key")]
        self.assertEqual("PONG\n", run(words + mine + ["PING"]).stdout)
        text = "".join(f"CPUT t row{i} f:a {i}\r\n" for i in range(10_000))
        self.assertEqual("OK\n", run(words + mine + ["TABLE", "CREATE", "t", "FAMILY", "f"]).stdout)
        piped = subprocess.run(words + mine + ["--pipe"], input=text, capture_output=True, text=True, check=False,
                               timeout=READ_SECONDS_MAX)
        self.assertIn("errors: 0, replies: 10000", piped.stdout)
        self.assertEqual("10000\n", run(words + mine + ["CCOUNT", "t"]).stdout)
        self.assertNotIn("PONG", run(words + ["PING"]).stdout)
        stranger = ["--cert", server.file("stranger.crt"), "--key", server.file("stranger.key")]
        self.assertNotIn("PONG", run(words + stranger + ["PING"]).stdout)

    def test_redis_benchmark(self):
        server = self.server().start()
        done = run(["redis-benchmark", "--tls", "-p", str(server.tls_port), "--cacert", server.file("ca.crt"),
                    "--cert", server.file("client.crt"), "--key", server.file("client.key"), "-t", "ping", "-n", "5000",
                    "-P", "16", "--csv"]).stdout
        self.assertIn('"PING_MBULK"', done)

    def test_python(self):
        server = self.server().start()
        self.run_script(server, ["/usr/bin/python3", os.path.join(CLIENTS, "script_python.py"), "localhost",
                                 str(server.tls_port), "python"])

    def test_npm_clients(self):
        install_npm_clients(self)
        server = self.server().start()
        for client in ("ioredis", "redis"):
            self.run_script(server, ["node", os.path.join(CLIENTS, "script_node.js"), client, "localhost",
                                     str(server.tls_port), client])


if __name__ == "__main__":
    unittest.main()
