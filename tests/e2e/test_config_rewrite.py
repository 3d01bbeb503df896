"""What CONFIG REWRITE and ACL SAVE write is what the next start reads: users and passwords, files that are included, links."""

import os
import shutil
import tempfile
import unittest

import redis

from cellar_server import CellarServer


class RewriteTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="cellar-")
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def server(self, **options):
        server = CellarServer(save="", **options)
        self.addCleanup(server.close)
        return server

    def test_users_of_an_included_file(self):
        self.write("users.inc", "user alice on >a ~* +@all\nuser bob on >b ~* +@read\n")
        conf = self.write("cellar.conf", f"# mine\ninclude {self.path('users.inc')}\ntimeout 5\n")
        server = self.server(config=conf).start()
        client = server.client()
        lines = client.acl_list()
        self.assertEqual(b"OK", client.execute_command("CONFIG REWRITE"))
        self.assertEqual(b"OK", client.execute_command("CONFIG REWRITE"))
        self.assertNotIn("alice", self.read("cellar.conf"))
        client.execute_command("ACL SETUSER carol on >c ~* +@read")
        self.assertEqual(b"OK", client.execute_command("CONFIG REWRITE"))
        self.assertIn("user carol", self.read("cellar.conf"))
        client.close()
        server.stop()
        client = server.start().client()
        self.assertEqual(3 + 1, len(client.acl_list()))
        self.assertTrue(set(lines) <= set(client.acl_list()))
        # What has changed there cannot be written here, and nothing is.
        before = self.read("cellar.conf")
        client.config_set("timeout", 9)
        for change, back, said in (("ACL SETUSER bob +@write", "ACL SETUSER bob -@write", "'bob' has changed"),
                                   ("ACL DELUSER alice", None, "'alice' is gone")):
            client.execute_command(change)
            with self.assertRaisesRegex(redis.ResponseError, said):
                client.execute_command("CONFIG REWRITE")
            self.assertEqual(before, self.read("cellar.conf"))
            if back:
                client.execute_command(back)
        self.assertEqual([], [name for name in os.listdir(self.folder) if name.endswith(".new")])

    def test_a_file_with_a_mistake_of_its_owners_is_not_written_over(self):
        conf = self.write("cellar.conf", "timeout 5\n")
        client = self.server(config=conf).start().client()
        text = "timeout 5\nnonsense 7\n"
        self.write("cellar.conf", text)
        with self.assertRaisesRegex(redis.ResponseError, "nonsense"):
            client.execute_command("CONFIG REWRITE")
        self.assertEqual(text, self.read("cellar.conf"))

    def test_a_password_of_included_files_is_not_copied(self):
        secret = self.write("secret.inc", "requirepass hush\nhz 20\n")
        conf = self.write("cellar.conf", f"include {secret}\n")
        server = self.server(config=conf)
        server.start()
        client = server.client(password="hush")
        client.config_set("timeout", 3)
        client.execute_command("CONFIG REWRITE")
        self.assertNotIn("hush", self.read("cellar.conf"))
        self.assertNotRegex(self.read("cellar.conf"), r"(?m)^hz ")
        self.assertIn("timeout 3", self.read("cellar.conf"))

    def test_acl_save_follows_a_link(self):
        self.write("real.acl", "user default on >a ~* &* +@all\n")
        os.symlink(self.path("real.acl"), self.path("users.acl"))
        server = self.server(aclfile=self.path("users.acl")).start()
        client = server.client(password="a")
        client.execute_command("ACL SETUSER bob on >b ~* +@read")
        self.assertTrue(client.execute_command("ACL SAVE"))
        self.assertTrue(os.path.islink(self.path("users.acl")))
        self.assertIn("user bob", self.read("real.acl"))

    def test_a_save_that_fails_leaves_no_secrets_behind(self):
        users = self.write("users.acl", "user default on >a ~* &* +@all\n")
        server = self.server(aclfile=users).start()
        client = server.client(password="a")
        os.unlink(users)
        os.mkdir(users)  # the rename fails
        with self.assertRaises(redis.ResponseError):
            client.execute_command("ACL SAVE")
        self.assertEqual(["users.acl"], os.listdir(self.folder))

    def test_the_password_that_was_set_last_is_the_next_starts(self):
        """By each way to set one, whatever there was before and whatever is written then."""
        for first in ("", "old"):
            for password in ("", "new", "old"):
                for rewrite in (False, True):
                    with self.subTest(first=first, password=password, rewrite=rewrite):
                        users = self.write("users.acl", "user bob on >b ~* +@all\n")
                        conf = self.write("cellar.conf", f'requirepass "{first}"\naclfile {users}\n')
                        server = self.server(config=conf)
                        server.start()
                        client = server.client(password=first or None)
                        client.config_set("requirepass", password)
                        if rewrite:
                            client.execute_command("CONFIG REWRITE")
                        client.execute_command("ACL SAVE")
                        client.close()
                        server.stop()
                        server.start()
                        if password:
                            with self.assertRaises(redis.AuthenticationError):
                                server.client().ping()
                            self.assertTrue(server.client(password=password).ping())
                        else:
                            self.assertTrue(server.client().ping())
                        if rewrite:  # requirepass goes on counting
                            self.assertNotIn("default", self.read("users.acl"))
                        server.stop()


if __name__ == "__main__":
    unittest.main()
