"""What an operator installs: the unit, the package, man pages, completion, log rotation."""

import contextlib
import glob
import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import redis
from cellar_server import ROOT, START_SECONDS_MAX, CellarServer, binary, free_port, is_sanitized, wait_until

sys.path.insert(0, os.path.join(ROOT, "tools"))

import man  # noqa: E402

EXPOSURE_MAX = 1.2
BUILD = os.path.dirname(os.path.realpath(binary()))


def run(*words, **options):
    return subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT,
                          stdin=subprocess.DEVNULL, timeout=600, check=False, **options)


def packages(said):
    """Paths of cellar, libcellar-dev, python3-cellar, as `make deb` has said them."""
    return [os.path.join(ROOT, re.search(rf"deb: (build/{name}_\S+\.deb)", said).group(1))
            for name in ("cellar", "libcellar-dev", "python3-cellar")]


def need(test, program):
    if shutil.which(program) is None:
        test.skipTest(f"{program} is not installed")


def wait_until_served(test, process, client):
    """Until a server that was just started answers, or wants another password."""
    def served():
        test.assertIsNone(process.poll())
        with contextlib.suppress(redis.ConnectionError, redis.exceptions.BusyLoadingError):
            client.execute_command("DBSIZE")
            return True
        return False
    wait_until(served, "the server does not begin to serve", 0.05)


class FirstBuildTest(unittest.TestCase):
    """What `make run` would do, without doing it."""

    def told(self, *words):
        done = run("make", "-n", "-B", *words)
        self.assertEqual(0, done.returncode, done.stdout[-2000:])
        return done.stdout

    def test_run_builds_the_server_alone(self):
        told = self.told("build/cellar", "OF=9")
        self.assertIn("-o build/release/cellar ", told)
        self.assertNotIn("tools/cellar-", told)
        self.assertRegex(run("make", "-n", "run").stdout, r"(?m)^\S*make\S* -j\d+ build/cellar OF=")

    def test_it_says_how_far_it_is(self):
        steps = re.findall(r'(?m)^echo "compile (\d+) of 9 ', self.told("build/cellar", "OF=9"))
        self.assertEqual([str(i + 1) for i in range(len(steps))], steps)
        self.assertGreater(len(steps), 100)

    def test_each_file_is_compiled_once(self):
        told = re.findall(r'(?m)^echo "compile (.*)"$', self.told("build/cellar", "build/cellar-web"))
        files = [name for line in told for name in line.split() if name.startswith("src/") and name.endswith(".cc")]
        there = [os.path.relpath(path, ROOT) for path in glob.glob(os.path.join(ROOT, "src", "**", "*.cc"), recursive=True)]
        self.assertEqual(sorted(there), sorted(files))


@unittest.skipIf(is_sanitized(), "packages the release build")
class PackagingTest(unittest.TestCase):
    """Everything is installed into a directory of the test's own."""

    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.root = os.path.join(directory.name, "root")
        done = run("make", f"VARIANT={os.path.basename(BUILD)}", f"DESTDIR={cls.root}", "PREFIX=/usr", "install")
        assert done.returncode == 0, done.stdout

    def path(self, name):
        return os.path.join(self.root, name)

    def test_the_programs_are_installed_and_run(self):
        for name in ("cellar", "cellar-cluster", "cellar-import"):
            self.assertEqual(0, run(self.path(f"usr/bin/{name}"), "--help").returncode)
        self.assertRegex(run(self.path("usr/bin/cellar"), "--version").stdout, r"\d+\.\d+\.\d+")

    def test_the_public_headers_stand_alone(self):
        for header in glob.glob(self.path("usr/include/cellar/*.h")):
            done = run("g++", "-std=c++20", "-fsyntax-only", "-I", self.path("usr/include"), "-include", header,
                       "-x", "c++", "/dev/null")
            self.assertEqual((0, ""), (done.returncode, done.stdout), header)

    def test_what_the_operator_sets_at_run_time_outlasts_a_restart(self):
        """The packaged configuration, which the server may read and not write: users and options are kept in `dir`."""
        with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as cleanup:
            os.chmod(directory, 0o755)
            etc, data = os.path.join(directory, "etc"), os.path.join(directory, "lib")
            os.mkdir(etc)
            os.mkdir(data, 0o750)
            conf = os.path.join(etc, "cellar.conf")
            shutil.copy(self.path("etc/cellar/cellar.conf"), conf)
            program = shutil.copy(self.path("usr/bin/cellar"), os.path.join(directory, "cellar"))
            owner = {}
            if os.getuid() == 0:  # as the unit: a user who owns the data and reads the configuration
                nobody = pwd.getpwnam("nobody")
                owner = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
                os.chown(conf, 0, nobody.pw_gid)
                os.chown(data, nobody.pw_uid, nobody.pw_gid)
            os.chmod(conf, 0o440)
            os.chmod(etc, 0o555)
            cleanup.callback(os.chmod, etc, 0o755)
            port = free_port()

            def serve(password=None):
                process = subprocess.Popen([program, conf, "--dir", data, "--port", str(port)], umask=0o077, cwd=data,
                                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                           stderr=subprocess.DEVNULL, **owner)
                cleanup.callback(process.kill)
                client = redis.Redis(port=port, password=password)
                cleanup.callback(client.close)
                wait_until_served(self, process, client)
                return process, client

            def stop(process, client):
                client.close()
                process.terminate()
                self.assertEqual(0, process.wait(START_SECONDS_MAX))

            done = run(program, conf, "--dir", data, "--port", str(port), **owner)  # as a disk that is not mounted
            self.assertEqual(1, done.returncode)
            self.assertRegex(done.stdout, "holds no store.*--create-dir yes")
            self.assertEqual([], os.listdir(data))
            with open(os.path.join(data, "cellar.new"), "wb"):  # what a first installation puts there
                pass
            os.chmod(os.path.join(data, "cellar.new"), 0o644)
            process, client = serve()
            self.assertEqual(["default"], client.acl_users())
            client.config_set("maxclients", 777)
            client.config_set("requirepass", "hush")
            client = redis.Redis(port=port, password="hush")
            self.assertTrue(client.config_rewrite())
            client.execute_command("ACL", "SETUSER", "reader", "on", ">pw", "~web:*", "+@read")
            self.assertTrue(client.acl_save())
            stop(process, client)
            for name in ("users.acl", "override.conf"):
                self.assertEqual(0o600, os.stat(os.path.join(data, name)).st_mode & 0o777)
            with open(os.path.join(data, "override.conf"), encoding="utf-8") as file:
                self.assertEqual(["maxclients 777", "requirepass hush"],
                                 [line for line in file.read().splitlines() if not line.startswith("#")])

            process, client = serve("hush")
            self.assertEqual("777", client.config_get("maxclients")["maxclients"])
            self.assertEqual(["default", "reader"], client.acl_users())
            with self.assertRaises(redis.AuthenticationError):
                redis.Redis(port=port).ping()
            client.acl_deluser("reader")
            client.config_set("maxclients", 10_000)
            self.assertTrue(client.acl_load() and client.config_rewrite())
            self.assertEqual(["default", "reader"], client.acl_users())
            stop(process, client)
            process, client = serve("hush")
            self.assertEqual("10000", client.config_get("maxclients")["maxclients"])
            stop(process, client)

            os.remove(os.path.join(data, "users.acl"))  # lost: nobody is let in until somebody has looked
            done = run(program, conf, "--dir", data, "--port", str(port), **owner)
            self.assertEqual(1, done.returncode)
            self.assertRegex(done.stdout, "the aclfile .*/users.acl does not exist")

    def test_the_unit_is_sandboxed(self):
        need(self, "systemd-analyze")
        said = run("systemd-analyze", "security", "--offline=true", "conf/cellar.service").stdout
        exposure = re.search(r"Overall exposure level for cellar.service: ([\d.]+)", said)
        if exposure is None:
            self.skipTest(f"systemd-analyze cannot judge here: {said.strip()[-200:]}")
        self.assertLessEqual(float(exposure.group(1)), EXPOSURE_MAX)

    def test_the_unit_lets_threads_lower_their_priority(self):
        """base/os/thread.cc does without where it may not, and says nothing."""
        need(self, "systemd-analyze")

        def calls(words):
            for word in words:
                if word.startswith("@"):
                    said = run("systemd-analyze", "syscall-filter", word).stdout
                    yield from calls([line.strip() for line in said.splitlines()[1:]
                                      if line.strip() and not line.strip().startswith("#")])
                else:
                    yield word

        for name in ("cellar.service", "cellar@.service"):
            allowed = set()
            with open(self.path("usr/lib/systemd/system/" + name), encoding="utf-8") as file:
                for line in re.findall(r"^SystemCallFilter=(.*)$", file.read(), re.MULTILINE):
                    if line.startswith("~"):
                        allowed -= set(calls(line[1:].split()))
                    else:
                        allowed |= set(calls(line.split()))
            self.assertIn("fdatasync", allowed)
            self.assertIn("setpriority", allowed)
            self.assertIn("sched_setscheduler", allowed)
            self.assertNotIn("sched_setaffinity", allowed)
            self.assertNotIn("mount", allowed)

    def test_the_template_differs_in_its_folders_alone(self):
        units = []
        for name in ("cellar.service", "cellar@.service"):
            with open(self.path("usr/lib/systemd/system/" + name), encoding="utf-8") as file:
                units.append([line for line in file.read().splitlines() if line and not line.startswith("#")])
        differing = [line for line in units[1] if line not in units[0]]
        self.assertEqual(len(units[0]), len(units[1]))
        self.assertEqual(["Description", "ExecStart", "StateDirectory", "RuntimeDirectory", "WorkingDirectory"],
                         [line.partition("=")[0] for line in differing])
        self.assertTrue(all("%i" in line for line in differing), differing)

    def test_the_unit_is_well_formed(self):
        need(self, "systemd-analyze")
        with tempfile.TemporaryDirectory() as directory:
            for name, instance in (("cellar.service", "cellar.service"), ("cellar@.service", "cellar@one.service")):
                with open(self.path("usr/lib/systemd/system/" + name), encoding="utf-8") as file:
                    unit = file.read()
                copy = os.path.join(directory, instance)
                with open(copy, "w", encoding="utf-8") as file:
                    file.write(unit.replace("/usr/bin/cellar", self.path("usr/bin/cellar")))
                said = run("systemd-analyze", "verify", "--man=no", copy).stdout
                self.assertEqual("", "\n".join(line for line in said.splitlines() if "cellar" in line))

    def test_man_pages_are_clean_and_name_the_options(self):
        need(self, "man")
        pages = sorted(glob.glob(self.path("usr/share/man/man[1-8]/*")))
        self.assertIn("cellar.1", [os.path.basename(page) for page in pages])
        self.assertIn("cellar.conf.5", [os.path.basename(page) for page in pages])
        for page in pages:
            done = subprocess.run(["man", "-l", "--warnings", page], capture_output=True, text=True,
                                  env={**os.environ, "MANWIDTH": "100", "LC_ALL": "C.UTF-8"}, check=False)
            self.assertEqual((0, ""), (done.returncode, done.stderr), page)
            self.assertIn("NAME", done.stdout)
            if page.endswith("cellar.conf.5"):
                for option in ("appendfsync", "maxmemory", "requirepass", "bind"):
                    self.assertRegex(done.stdout, rf"(?m)^ +{option}\b")

    def test_completion_is_bash_and_knows_the_options(self):
        completion = self.path("usr/share/bash-completion/completions/cellar")
        self.assertEqual("", run("bash", "-n", completion).stdout)
        script = (f". {completion}; CELLAR_CONF={self.path('etc/cellar/cellar.conf')}; "
                  "COMP_WORDS=(cellar --appendf); COMP_CWORD=1; _cellar; echo ${COMPREPLY[@]}")
        self.assertEqual("--appendfsync", run("bash", "-c", script).stdout.strip())
        script = (f". {completion}; COMP_WORDS=(cellar-import --key-d); COMP_CWORD=1; "
                  f"_cellar_tool {self.path('usr/bin/cellar-import')}; echo ${{COMPREPLY[@]}}")
        self.assertEqual("--key-delimiter", run("bash", "-c", script).stdout.strip())
        for words, said in (("sta", "start status"), ("--vot", "--voters")):
            script = (f". {completion}; COMP_WORDS=(cellar-cluster {words}); COMP_CWORD=1; "
                      f"_cellar_tool {self.path('usr/bin/cellar-cluster')}; echo ${{COMPREPLY[@]}}")
            self.assertEqual(said, run("bash", "-c", script).stdout.strip())

    def test_log_rotation_is_well_formed(self):
        program = shutil.which("logrotate") or "/usr/sbin/logrotate"
        if not os.path.exists(program):
            self.skipTest("logrotate is not installed")
        with tempfile.TemporaryDirectory() as directory:
            with open(self.path("etc/logrotate.d/cellar"), encoding="utf-8") as file:
                text = file.read().replace("cellar cellar", "root root").replace("/var/log/cellar", directory)
            copy = os.path.join(directory, "logrotate.conf")
            with open(copy, "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(copy, 0o644)
            done = run(program, "-d", "-s", os.path.join(directory, "state"), copy)
            self.assertEqual(0, done.returncode, done.stdout)
            self.assertNotIn("error:", done.stdout)

    def test_a_rotated_log_goes_on_in_a_new_file(self):
        program = shutil.which("logrotate") or "/usr/sbin/logrotate"
        if not os.path.exists(program):
            self.skipTest("logrotate is not installed")
        with tempfile.TemporaryDirectory() as directory:
            log = os.path.join(directory, "cellar.log")
            server = CellarServer(logfile=log)
            self.addCleanup(server.close)
            server.start()
            with open(self.path("etc/logrotate.d/cellar"), encoding="utf-8") as file:
                text = file.read().replace("cellar cellar", "root root").replace("/var/log/cellar", directory)
            self.assertEqual(1, text.count("systemctl kill"))
            hang_up = f"kill -HUP {server.process.pid}"  # what systemctl does where the unit runs
            text = re.sub("systemctl kill.*", hang_up, text)
            copy = os.path.join(directory, "logrotate.conf")
            with open(copy, "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(copy, 0o644)
            done = run(program, "-f", "-s", os.path.join(directory, "state"), copy)
            self.assertEqual(0, done.returncode, done.stdout)

            def told():
                with open(log, encoding="utf-8") as file:
                    return file.read()
            wait_until(lambda: "SIGHUP: there is no configuration file" in told(), told)
            self.assertRegex(told(), r"^\d+:M .*SIGHUP: there is no")
            with open(log + ".1", encoding="utf-8") as file:
                self.assertIn("Ready to accept connections", file.read())

    def test_the_package_holds_what_it_should(self):
        need(self, "dpkg-deb")
        done = run("make", f"VARIANT={os.path.basename(BUILD)}", "deb")
        self.assertEqual(0, done.returncode, done.stdout)
        package, development, python = packages(done.stdout)
        listing = run("dpkg-deb", "--contents", package).stdout
        for name in ("usr/bin/cellar", "usr/bin/cellar-import", "usr/lib/systemd/system/cellar.service",
                     "usr/lib/systemd/system/cellar@.service",
                     "usr/lib/sysusers.d/cellar.conf", "usr/lib/tmpfiles.d/cellar.conf", "etc/cellar/cellar.conf",
                     "etc/logrotate.d/cellar", "usr/share/man/man1/cellar.1.gz", "usr/share/man/man5/cellar.conf.5.gz",
                     "usr/share/bash-completion/completions/cellar", "usr/share/doc/cellar/copyright",
                     "usr/share/doc/cellar/containers/compose.yaml"):
            self.assertIn(f"./{name}\n", listing)
        for name in map(os.path.basename, man.sources()):
            if name != "libcellar.3":
                self.assertIn(f"./usr/share/man/man{name[-1]}/{name}.gz\n", listing)
        self.assertNotIn("usr/include", listing)
        self.assertNotIn("bench-btree", listing)  # for developers of Cellar alone
        self.check_library(package, development)
        self.check_python(python)
        depends = run("dpkg-deb", "--field", package, "Depends").stdout
        for library in ("libc6", "libstdc++6", "libuv1", "libssl3", "libre2"):
            self.assertIn(library, depends)
        with tempfile.TemporaryDirectory() as directory:
            self.assertEqual(0, run("dpkg-deb", "--control", package, directory).returncode)
            for script in ("postinst", "prerm", "postrm"):
                self.assertEqual("", run("sh", "-n", os.path.join(directory, script)).stdout)
            with open(os.path.join(directory, "conffiles"), encoding="utf-8") as file:
                self.assertIn("/etc/cellar/cellar.conf", file.read().splitlines())


    def check_library(self, package, development):
        """What libcellar(3) tells of is in the packages: a program is compiled with it, and runs."""
        version = run("dpkg-deb", "--field", package, "Version").stdout.strip()
        self.assertEqual(f"cellar (= {version})", run("dpkg-deb", "--field", development, "Depends").stdout.strip())
        self.assertIn("./usr/share/man/man3/libcellar.3.gz\n", run("dpkg-deb", "--contents", development).stdout)
        with tempfile.TemporaryDirectory() as directory:
            for each in (package, development):
                self.assertEqual(0, run("dpkg-deb", "--extract", each, directory).returncode)
            library, work = os.path.join(directory, "usr/lib"), os.path.join(directory, "work")
            os.mkdir(work)
            source, program = os.path.join(work, "p.cc"), os.path.join(work, "p")
            with open(source, "w", encoding="utf-8") as file:
                file.write('#include <cellar/store.h>\n#include <cellar/version.h>\n#include <cstdio>\n'
                           'int main() { std::puts(std::string(cellar::kVersion).c_str()); }\n')
            flags = run("pkg-config", "--cflags", "--libs", f"--define-variable=prefix={directory}/usr", "cellar",
                        env={**os.environ, "PKG_CONFIG_PATH": os.path.join(library, "pkgconfig")}).stdout.split()
            built = run("g++", "-o", program, source, *flags)
            self.assertEqual(0, built.returncode, built.stdout)
            ran = run(program, env={**os.environ, "LD_LIBRARY_PATH": library})
            self.assertEqual((0, version), (ran.returncode, ran.stdout.strip()))
            # Its functions too, and all that it is linked with.
            linked = run("ldd", "-r", os.path.realpath(os.path.join(library, "libcellar.so")))
            self.assertNotIn("not found", linked.stdout)
            self.assertNotIn("undefined symbol", linked.stdout)
            control = os.path.join(directory, "control")
            self.assertEqual(0, run("dpkg-deb", "--control", package, control).returncode)
            with open(os.path.join(control, "triggers"), encoding="utf-8") as file:
                self.assertIn("ldconfig", file.read())


    def check_python(self, package):
        """The client with all its modules, of the server's version, which Python finds by its name."""
        tree = os.path.join(ROOT, "tools", "clients", "python")
        version = run("dpkg-deb", "--field", package, "Version").stdout.strip()
        self.assertIn("python3-redis", run("dpkg-deb", "--field", package, "Depends").stdout)
        with tempfile.TemporaryDirectory() as directory:
            self.assertEqual(0, run("dpkg-deb", "--extract", package, directory).returncode)
            modules = os.path.join(directory, "usr/lib/python3/dist-packages")
            self.assertEqual({os.path.basename(path) for path in glob.glob(os.path.join(tree, "cellar", "*.py*"))} | {"py.typed"},
                             set(os.listdir(os.path.join(modules, "cellar"))) - {"__pycache__"})
            for name in ("README.md", "copyright", "examples/pages.py"):
                self.assertTrue(os.path.isfile(os.path.join(directory, "usr/share/doc/python3-cellar", name)), name)
            ran = run("/usr/bin/python3", "-c", "import cellar.aio, importlib.metadata as m; print(cellar.__version__, "
                      "m.version('cellar'))", env={**os.environ, "PYTHONPATH": modules})
            self.assertEqual(f"{version} {version}\n", ran.stdout)
        for path, said in (("pyproject.toml", f'version = "{version}"'), ("../node/package.json", f'"version": "{version}"')):
            with open(os.path.join(tree, path), encoding="utf-8") as file:
                self.assertIn(said, file.read())


class InstallTest(unittest.TestCase):
    """The package's life on this very machine: only with CELLAR_INSTALL_TESTS=1, as root, where none is installed."""

    def setUp(self):
        if os.environ.get("CELLAR_INSTALL_TESTS") != "1":
            self.skipTest("changes the machine: CELLAR_INSTALL_TESTS=1 runs it")
        self.assertEqual(0, os.getuid())
        self.assertFalse(os.path.exists("/var/lib/cellar"), "there is a Cellar on this machine")
        self.addCleanup(run, "dpkg", "--purge", "cellar")
        self.work = tempfile.TemporaryDirectory()
        self.addCleanup(self.work.cleanup)

    def done(self, *words, **options):
        """A program that must succeed; what it says."""
        ended = run(*words, **options)
        self.assertEqual(0, ended.returncode, f"{words}\n{ended.stdout}")
        return ended.stdout

    def upgraded(self, package):
        """The same package with a higher version."""
        root, path = os.path.join(self.work.name, "root"), os.path.join(self.work.name, "upgrade.deb")
        self.done("dpkg-deb", "--raw-extract", package, root)
        with open(os.path.join(root, "DEBIAN", "control"), encoding="utf-8") as file:
            control = file.read()
        with open(os.path.join(root, "DEBIAN", "control"), "w", encoding="utf-8") as file:
            file.write(re.sub(r"(?m)^(Version: \S+)$", r"\1+upgraded", control))
        self.done("dpkg-deb", "--root-owner-group", "--build", root, path)
        return path

    def serve(self, port):
        """The server as the unit starts it: its user, its configuration, its working directory."""
        os.makedirs("/run/cellar", exist_ok=True)
        process = subprocess.Popen(["/usr/bin/cellar", "/etc/cellar/cellar.conf", "--port", str(port)], user="cellar",
                                   group="cellar", extra_groups=[], umask=0o077, cwd="/var/lib/cellar",
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.kill)
        client = redis.Redis(port=port)
        self.addCleanup(client.close)
        wait_until_served(self, process, client)
        return process, client

    def test_install_use_upgrade_remove_purge(self):
        said = self.done("make", f"VARIANT={os.path.basename(BUILD)}", "deb")
        package, development, python = packages(said)
        self.done("dpkg", "--install", package)
        owner = self.done("stat", "--format", "%U %G %a", "/etc/cellar/cellar.conf", "/var/lib/cellar", "/var/log/cellar")
        self.assertEqual("root cellar 640\ncellar cellar 750\ncellar cellar 750\n", owner)
        self.assertEqual("", self.done("dpkg", "--verify", "cellar"))
        port = free_port()
        process, client = self.serve(port)
        client.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
        client.execute_command("CPUT", "t", "r", "f:a", "kept")
        with open("/etc/cellar/cellar.conf", "a", encoding="utf-8") as file:
            file.write("maxclients 777\n")
        client.config_set("timeout", 55)
        self.assertTrue(client.config_rewrite())
        client.execute_command("ACL", "SETUSER", "reader", "on", ">pw", "~web:*", "+@read")
        self.assertTrue(client.acl_save())

        newer = self.upgraded(package)
        self.done("dpkg", "--install", newer)
        self.assertIn("+upgraded", self.done("dpkg-query", "--show", "cellar"))
        self.assertEqual(b"kept", client.execute_command("CGET", "t", "r", "f:a"))  # the old one serves until the restart
        client.close()
        process.terminate()
        self.assertEqual(0, process.wait(START_SECONDS_MAX))
        process, client = self.serve(port)
        self.assertEqual(b"kept", client.execute_command("CGET", "t", "r", "f:a"))
        self.assertEqual("777", client.config_get("maxclients")["maxclients"])
        self.assertEqual("55", client.config_get("timeout")["timeout"])
        self.assertEqual(["default", "reader"], client.acl_users())
        client.close()
        process.terminate()
        self.assertEqual(0, process.wait(START_SECONDS_MAX))

        # A store of a version that knew no aclfile.
        os.remove("/var/lib/cellar/users.acl")
        self.done("dpkg", "--install", newer)
        process, client = self.serve(port)
        self.assertEqual(["default"], client.acl_users())
        client.close()
        process.terminate()
        self.assertEqual(0, process.wait(START_SECONDS_MAX))

        self.addCleanup(run, "dpkg", "--purge", "libcellar-dev", "python3-cellar")
        self.assertNotEqual(0, run("dpkg", "--install", development).returncode)  # of another version
        self.done("dpkg", "--remove", "libcellar-dev")
        self.done("dpkg", "--install", package, development, python)
        self.assertIn("-lcellar", self.done("pkg-config", "--libs", "cellar"))
        self.done("/usr/bin/python3", "-c", "import cellar.aio")
        self.done("dpkg", "--remove", "libcellar-dev", "python3-cellar")
        self.assertFalse(os.path.exists("/usr/lib/python3/dist-packages/cellar"))

        self.done("dpkg", "--remove", "cellar")
        self.assertFalse(os.path.exists("/usr/bin/cellar"))
        self.assertTrue(os.path.exists("/var/lib/cellar/cellar.manifest"))
        self.assertTrue(os.path.exists("/etc/cellar/cellar.conf"))
        self.done("dpkg", "--purge", "cellar")
        for path in ("/var/lib/cellar", "/var/log/cellar", "/etc/cellar", "/run/cellar", "/usr/share/doc/cellar"):
            self.assertFalse(os.path.exists(path), path)


if __name__ == "__main__":
    sys.exit(unittest.main())
