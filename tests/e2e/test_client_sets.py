"""The packages of tools/clients against a replica set: who leads is found, also behind a kill -9 of the leader; no write
that was acknowledged is lost, each read sees the client's own writes, no refusal is seen that `wait` can bridge, and
where nobody leads waiting has an end."""

import asyncio
import json
import os
import subprocess
import sys
import threading
import unittest

import redis

from cellar_server import ROOT
from replica_sets import STEADY_MS, ReplicaSetCase
from test_node_client import installed

sys.path.insert(0, os.path.join(ROOT, "tools", "clients", "python"))

import cellar  # noqa: E402
import cellar.aio  # noqa: E402

SCRIPT = os.path.join(ROOT, "tests", "e2e", "clients", "set_node.js")
WAIT_SECONDS = 300  # for a leader, however busy the machine is


class Writes(threading.Thread):
    """A client that writes rows and reads back each at once."""

    def __init__(self, url, run):
        super().__init__(daemon=True)
        self.url, self.work = url, run
        self.acknowledged, self.ends, self.failure = [], False, None
        self.start()

    def run(self):
        try:
            self.work(self)
        except BaseException as error:
            self.failure = error

    def end(self):
        self.ends = True
        self.join()
        if self.failure:
            raise self.failure


def sync_writes(told):
    with cellar.Cellar(told.url, wait=WAIT_SECONDS) as db:
        table, number = db.table("t"), 0
        while not told.ends:
            number += 1
            try:
                table.put(f"s{number}", {"f:n": number})
            except redis.ConnectionError:
                continue  # it may have been done
            told.acknowledged.append(f"s{number}")
            assert table.get(f"s{number}", "f:n") == number


def asyncio_writes(told):
    async def one(db, name):
        number = 0
        while not told.ends:
            number += 1
            try:
                async with db.transaction() as tx:
                    await tx.table("t").put(f"{name}{number}", {"f:n": number})
            except redis.ConnectionError:
                continue  # it may have been done
            told.acknowledged.append(f"{name}{number}")
            assert await db.table("t").get(f"{name}{number}", "f:n") == number

    async def all_of_them():
        async with cellar.aio.Cellar(told.url, wait=WAIT_SECONDS) as db:
            await asyncio.gather(*(one(db, name) for name in "abc"))
    asyncio.run(all_of_them())


class ClientSets(ReplicaSetCase):
    def begin(self, **options):
        """A set of three with a table; its URL, a follower's first; its leader."""
        self.members = self.found(3, replica_election_timeout=STEADY_MS, **options)
        leader = self.wait_leader(self.members)
        leader.run("TABLE CREATE t FAMILY f TYPE i64")
        self.followers = [member for member in self.members if member is not leader]
        for follower in self.followers:
            self.wait_until(lambda: "t" in follower.run("TABLE LIST"), "the table has not come")
        return "redis://" + ",".join(f"127.0.0.1:{member.port}" for member in [*self.followers, leader]), leader

    def check(self, rows, leader):
        found = {row for row in rows if str(leader.run("CGET", "t", row, "f:n")) == row[1:]}
        self.assertEqual(set(rows), found)

    def test_a_leader_is_killed(self):
        url, leader = self.begin()
        writers = [Writes(url, sync_writes), Writes(url, asyncio_writes)]
        for writer in writers:
            self.wait_until(lambda: len(writer.acknowledged) > 50 or writer.failure, "it does not write")
        leader.server.kill()
        before = [len(writer.acknowledged) for writer in writers]
        for writer, count in zip(writers, before):
            self.wait_until(lambda: len(writer.acknowledged) > count + 50 or writer.failure, "it does not go on")
            writer.end()
        for writer in writers:
            self.check(writer.acknowledged, self.wait_leader(self.followers))

    def run_node(self, which):
        modules = installed(self, which)
        url, leader = self.begin()
        process = subprocess.Popen(["node", SCRIPT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, env={**os.environ, "NODE_PATH": modules, "CELLAR_URL": url})
        self.addCleanup(process.kill)
        self.assertEqual("written\n", process.stdout.readline(), lambda: process.stderr.read())
        leader.server.kill()
        second = self.wait_leader(self.followers)
        begun = int(second.info("commandstats").get("cmdstat_cput", {}).get("calls", 0))
        self.wait_until(lambda: process.poll() is not None or second.info("commandstats").get(
            "cmdstat_cput", {}).get("calls", 0) > begun + 50, "it does not go on")
        told, errors = process.communicate()
        self.assertEqual((0, ""), (process.returncode, errors))
        self.check([f"n{number}" for number in json.loads(told)], second)

    def test_a_leader_is_killed_over_node_redis_4(self):
        self.run_node("4")

    def test_a_leader_is_killed_over_the_newest_node_redis(self):
        self.run_node("newest")

    def test_one_node_is_enough_to_find_the_leader(self):
        """By READONLY, or by REDIRECT where commands are passed on."""
        for forward in ("no", "yes"):
            _, leader = self.begin(cluster_forward=forward)
            with cellar.Cellar(f"redis://127.0.0.1:{self.followers[0].port}", wait=WAIT_SECONDS) as db:
                self.assertTrue(db.table("t").put("a", {"f:n": 1}))
                self.assertEqual(leader.port, db.redis.connection_pool.connection_kwargs["port"])
            with cellar.Cellar(f"redis://127.0.0.1:{self.followers[0].port}", wait=WAIT_SECONDS) as db:
                with db.transaction() as tx:
                    tx.table("t").put("b", {"f:n": 1})
                    tx.table("t").increment("b", "f:n")
                self.assertEqual([True, 2], tx.results)
                self.assertEqual(leader.port, db.redis.connection_pool.connection_kwargs["port"])
                self.hand_over(self.members, former=leader)
                second = self.wait_leader(self.followers)
                self.assertEqual(2, db.table("t").increment("a", "f:n"))
                self.wait_until(lambda: second.run("CGET", "t", "a", "f:n") == 2, "the increment has not come")
            for member in self.members:
                member.stop()

    def test_waiting_has_an_end(self):
        url, leader = self.begin()
        leader.server.kill()
        self.followers[0].server.kill()
        with cellar.Cellar(url, wait=0.2) as db, self.assertRaises((cellar.ClusterDown, redis.ConnectionError)):
            db.table("t").put("a", {"f:n": 1})

        async def run():
            async with cellar.aio.Cellar(url, wait=0.2) as db:
                await db.table("t").put("a", {"f:n": 1})
        with self.assertRaises((cellar.ClusterDown, redis.ConnectionError)):
            asyncio.run(run())


if __name__ == "__main__":
    unittest.main()
