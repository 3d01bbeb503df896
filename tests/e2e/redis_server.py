"""redis-server itself, to compare with."""

import contextlib
import os
import shutil
import subprocess
import tempfile

import redis

from cellar_server import free_port, wait_until


def start_redis(test):
    """Its port; Debian's redis-tools has it as redis-check-rdb too. The test is skipped where there is none."""
    program = shutil.which("redis-server") or shutil.which("redis-check-rdb")
    if program is None:
        test.skipTest("there is no redis-server to compare with")
    directory = tempfile.TemporaryDirectory()
    test.addCleanup(directory.cleanup)
    name = os.path.join(directory.name, "redis-server")
    os.symlink(os.path.realpath(program), name)
    port = free_port()
    process = subprocess.Popen([name, "--port", str(port), "--save", "", "--dir", directory.name],
                               stdout=subprocess.DEVNULL)
    test.addCleanup(process.wait)
    test.addCleanup(process.kill)
    with redis.Redis(port=port) as client:
        def serves():
            with contextlib.suppress(redis.ConnectionError):
                return client.ping()
            test.assertIsNone(process.poll())
            return False
        wait_until(serves, "redis-server serves")
    return port
