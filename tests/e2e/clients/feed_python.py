"""A feed as redis-py reads it: one line of JSON for each of XREAD, XRANGE, XREVRANGE, XLEN, XINFO STREAM."""

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


main()
