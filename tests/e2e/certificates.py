"""Certificates for one test, made by the openssl tool.

    authority = Authority(directory, "ca")               # ca.crt, ca.key
    authority.issue("server", names="DNS:localhost,IP:127.0.0.1")
    authority.issue("old", days=-1)                      # ended yesterday
    authority.issue("locked", password="secret")         # its key is encrypted
"""

import os
import subprocess

KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]


def openssl(*words):
    """Runs the tool; what it says is shown when it fails."""
    done = subprocess.run(["openssl", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          stdin=subprocess.DEVNULL, timeout=120, check=False)
    assert done.returncode == 0, f"openssl {' '.join(words)}\n{done.stdout}"


class Authority:
    """Signs certificates; its own is DIRECTORY/NAME.crt, as theirs are."""

    def __init__(self, directory, name):
        self.directory = directory
        self.name = name
        openssl("req", "-x509", *KEY, "-nodes", "-keyout", self.path(name + ".key"), "-out", self.path(name + ".crt"),
                "-days", "30", "-subj", f"/CN={name}")

    def path(self, name):
        return os.path.join(self.directory, name)

    def issue(self, name, days=30, names="DNS:localhost,IP:127.0.0.1", password=None):
        """A key and a certificate for it: NAME.key, NAME.crt."""
        request, extensions = self.path(name + ".csr"), self.path(name + ".ext")
        lock = ["-passout", "pass:" + password] if password else ["-nodes"]
        openssl("req", *KEY, *lock, "-keyout", self.path(name + ".key"), "-out", request, "-subj", f"/CN={name}")
        with open(extensions, "w", encoding="ascii") as file:
            file.write(f"subjectAltName={names}\n")
        openssl("x509", "-req", "-in", request, "-CA", self.path(self.name + ".crt"),
                "-CAkey", self.path(self.name + ".key"), "-CAcreateserial", "-out", self.path(name + ".crt"),
                "-days", str(days), "-extfile", extensions)
