"""A feed as redis-py reads it: one line of JSON for each of XREAD, XRANGE, XREVRANGE, XLEN, XINFO STREAM, and for a group."""

import json
import sys

import redis


def show(call, found):
    print(json.dumps({"call": call, "found": found}))


def main():
    host, port, feed = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    client = redis.Redis(host=host, port=port, decode_responses=True)
    last, entries = "0", []
    while True:
        reply = client.xread({feed: last}, count=3, block=300)
        if not reply:
            break
        entries += reply[0][1]
        last = entries[-1][0]
    show("xread", entries)
    show("xrange", client.xrange(feed, "-", "+"))
    show("xrevrange", client.xrevrange(feed, "+", "-", count=2))
    show("xlen", client.xlen(feed))
    info = client.xinfo_stream(feed)
    show("xinfo", [info["length"], info["last-generated-id"], info["last-entry"][0]])
    client.xgroup_create(feed, "py", "0")
    entries = []
    while True:
        reply = client.xreadgroup("py", "ann", {feed: ">"}, count=3, block=100)
        if not reply:
            break
        entries += reply[0][1]
    show("xreadgroup", entries)
    ids = [id for id, _ in entries]
    show("xack", client.xack(feed, "py", *ids[:2]))
    show("xpending", [client.xpending(feed, "py")["pending"],
                      [one["message_id"] for one in client.xpending_range(feed, "py", "-", "+", 100)]])
    show("xclaim", [id for id, _ in client.xclaim(feed, "py", "bob", 0, ids[2:4])])
    show("xautoclaim", [id for id, _ in client.xautoclaim(feed, "py", "eve", 0, "0-0", count=3)[1]])
    show("xhistory", [id for id, _ in client.xreadgroup("py", "eve", {feed: "0"})[0][1]])
    show("consumers", sorted(one["name"] for one in client.xinfo_consumers(feed, "py")))
    show("lag", [one["lag"] for one in client.xinfo_groups(feed)])
    client.xgroup_destroy(feed, "py")


main()
