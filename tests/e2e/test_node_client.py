"""The package `cellar` of tools/clients/node: the script clients/package_node.js over node-redis 4 and the newest,
types by tsc, `npm pack`."""

import fcntl
import filecmp
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
import unittest

from cellar_server import ROOT, CellarServer

PACKAGE = os.path.join(ROOT, "tools", "clients", "node")
SCRIPT = os.path.join(ROOT, "tests", "e2e", "clients", "package_node.js")
FOLDER = os.path.join(ROOT, "build", "npm-node")
NODE_REDIS = {"4": ["redis@4"], "newest": ["redis@latest", "typescript@5", "@types/node@20"]}

USE_OF_TYPES = """
import { Cellar, typed, Row, Key } from 'cellar';
async function use(): Promise<void> {
  const db = await Cellar.connect('redis://localhost', { wait: 5 });
  const t = await db.createTable('t', { f: 'TYPE i64' }, { key: 'utf8' });
  const held: boolean = await t.put('r', { 'f:a': 1, 'f:b': typed(2n, 'u64') }, { when: ['f:a', 'GT', 1] });
  for await (const [key, row] of t.scan({ prefix: 'a', where: [['f:a', 'EQ', 1]], limit: 5 })) {
    const k: Key = key, r: Row = row;
    console.log(k, r['f:a'], held);
  }
  const rows: [Key, Row][] = await t.scanAll({ limit: 5, reverse: true });
  const feed = await db.createFeed('changes', ['t'], { slice: [0, 4] });
  for await (const entry of feed.group('g').entries('ann', { claim: 60000 })) console.log(entry.value, rows.length);
  // @ts-expect-error: there is no such option
  await t.count({ nonsense: 1 });
}
use();
"""


def installed(test, which):
    """The node_modules folder with that node-redis; skips `test` if npm cannot bring it."""
    folder = os.path.join(FOLDER, which)
    if not os.path.isdir(os.path.join(folder, "node_modules", "redis")):
        if shutil.which("npm") is None:
            test.skipTest("npm is not installed")
        os.makedirs(folder, exist_ok=True)
        done = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--prefix", folder, *NODE_REDIS[which]],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            test.skipTest("npm cannot reach its registry: " + done.stderr.strip().split("\n")[-1])
    modules = os.path.join(folder, "node_modules")
    target = os.path.join(modules, "cellar")  # a copy: a linked package would look for redis beside itself
    with open(os.path.join(PACKAGE, "package.json"), encoding="utf-8") as file:
        names = sorted([*json.load(file)["files"], "package.json"])
    with open(os.path.join(folder, "lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # other tests use it, too: only what has changed is made anew
        if not os.path.isdir(target) or sorted(os.listdir(target)) != names or filecmp.cmpfiles(
                PACKAGE, target, names, shallow=False)[0] != names:
            shutil.rmtree(target, ignore_errors=True)
            os.mkdir(target)
            for name in names:
                shutil.copy(os.path.join(PACKAGE, name), target)
    return modules


class NodeClientTest(unittest.TestCase):
    def run_script(self, which):
        modules = installed(self, which)
        with CellarServer(save="") as server:
            done = subprocess.run(["node", SCRIPT], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                                  env={**os.environ, "NODE_PATH": modules, "CELLAR_PORT": str(server.port),
                                       "CELLAR_CLIENT": PACKAGE})
        self.assertEqual((0, ""), (done.returncode, done.stderr + done.stdout))

    def test_over_node_redis_4(self):
        self.run_script("4")

    def test_over_the_newest_node_redis(self):
        self.run_script("newest")

    def test_types(self):
        modules = installed(self, "newest")
        path = os.path.join(os.path.dirname(modules), "use.ts")
        with open(path, "w", encoding="utf-8") as file:
            file.write(USE_OF_TYPES)
        done = subprocess.run([os.path.join(modules, ".bin", "tsc"), "--noEmit", "--strict", "--target", "es2022",
                               "--module", "nodenext", "--types", "node", path], cwd=os.path.dirname(modules),
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        self.assertEqual((0, ""), (done.returncode, done.stdout))

    def test_npm_pack(self):
        modules = installed(self, "newest")
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(["npm", "pack", "--pack-destination", folder], cwd=PACKAGE, stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, check=False)
            self.assertEqual(0, done.returncode, done.stderr)
            self.assertEqual(["cellar-1.0.0.tgz"], os.listdir(folder))
            with tarfile.open(os.path.join(folder, "cellar-1.0.0.tgz")) as packed:
                packed.extractall(folder)
            done = subprocess.run(["node", "-p", "Object.keys(require('./package')).includes('Cellar')"], cwd=folder,
                                  env={**os.environ, "NODE_PATH": modules}, stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, check=False)
            self.assertEqual(("true\n", ""), (done.stdout, done.stderr))


if __name__ == "__main__":
    unittest.main()
