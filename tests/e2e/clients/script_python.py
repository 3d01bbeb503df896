"""The script of test_clients.py for python3-redis: script_python.py HOST PORT TABLE.

CELLAR_TLS_DIRECTORY, if set, holds ca.crt, client.crt and client.key: TLS with these.
"""
import os
import sys
import threading

import redis

host, port, table = sys.argv[1], int(sys.argv[2]), sys.argv[3]
directory = os.environ.get("CELLAR_TLS_DIRECTORY")
tls = {"ssl": True, "ssl_ca_certs": f"{directory}/ca.crt", "ssl_certfile": f"{directory}/client.crt",
       "ssl_keyfile": f"{directory}/client.key"} if directory else {}
one = redis.Redis(host=host, port=port, **tls)
other = redis.Redis(host=host, port=port, **tls)
assert one.ping()
assert one.client_setname("script")
assert one.info()["redis_version"]
print("ok connect")

do = one.execute_command
assert do("TABLE", "CREATE", table, "FAMILY", "f", "FAMILY", "n", "TYPE", "i64") in (b"OK", True)
assert one.exists(table) == 1
assert one.type(table) == b"table"
assert table.encode() in list(one.scan_iter())
assert one.rename(table, table + "2") and one.rename(table + "2", table)
assert one.dbsize() >= 1
print("ok generic")

assert do("CPUT", table, "r", "f:a", "1", "n:x", 42) == b"OK"
assert do("CGET", table, "r", "f:a") == b"1"
assert do("CGET", table, "r", "n:x") == 42
assert do("CGET", table, "r", "f:none") is None
assert do("CMGET", table, "r", "f:a", "f:none") == [b"1", None]
assert do("CINCRBY", table, "r", "n:x", 1) == 43
assert do("CROW", table, "r") == [b"f:a", b"1", b"n:x", 43]
assert do("CSCAN", table, 0) == [b"0", [[b"r", [b"f:a", b"1", b"n:x", 43]]]]
assert do("CDEL", table, "r") == 3  # two versions of n:x
print("ok cells")

try:
    do("CGET", "nosuchtable", "r", "f:a")
    raise SystemExit("not ok: no error")
except redis.ResponseError as error:
    assert str(error).startswith("NOTABLE "), error
print("ok errors")

pipe = one.pipeline(transaction=False)
for i in range(10_000):
    pipe.execute_command("CPUT", table, f"p{i}", "f:a", i)
assert pipe.execute() == [b"OK"] * 10_000
assert do("CCOUNT", table, "PREFIX", "p") == 10_000
print("ok pipeline")

with one.pipeline() as pipe:
    pipe.execute_command("CPUT", table, "m", "f:a", "1")
    pipe.execute_command("CINCRBY", table, "m", "n:x", 5)
    assert pipe.execute() == [b"OK", 5]
with one.pipeline() as pipe:
    pipe.watch(table)
    other.execute_command("CPUT", table, "m", "f:a", "2")
    pipe.multi()
    pipe.execute_command("CPUT", table, "m", "f:a", "3")
    try:
        pipe.execute()
        raise SystemExit("not ok: no conflict")
    except redis.WatchError:
        pass
assert do("CGET", table, "m", "f:a") == b"2"
print("ok transactions")

large = b"x" * 10_000_000
assert do("CPUT", table, "l", "f:a", large) == b"OK"
assert do("CGET", table, "l", "f:a") == large
print("ok large")

binary = bytes(range(256))
assert do("CPUT", table, binary, b"f:" + binary, binary) == b"OK"
assert do("CGET", table, binary, b"f:" + binary) == binary
print("ok binary")

assert other.client_kill_filter(_id=one.client_id()) == 1
assert do("CGET", table, "m", "f:a") == b"2"  # redis-py connects again by itself
print("ok reconnect")

number = one.client_id()
answers = []
waiting = threading.Thread(target=lambda: answers.append(do("WAIT", 1, 0)))
waiting.start()
while other.client_unblock(number) != 1:
    pass
waiting.join()
assert answers == [0]
print("ok blocking")

if "CELLAR_AUTH_PORT" in os.environ:
    port = int(os.environ["CELLAR_AUTH_PORT"])
    for password, code in ((None, "Authentication required"), ("wrong", "WRONGPASS")):
        try:
            redis.Redis(host=host, port=port, password=password).ping()
            raise SystemExit("not ok: let in")
        except (redis.AuthenticationError, redis.ResponseError) as error:
            assert code in str(error), error
    assert redis.Redis(host=host, port=port, password="secret").ping()
    assert redis.Redis(host=host, port=port, username="default", password="secret").ping()
    print("ok auth")

listener = one.pubsub()
listener.subscribe(table + "-news")
assert listener.get_message(timeout=30)["type"] == "subscribe"
assert other.publish(table + "-news", "hello") == 1
assert listener.get_message(timeout=30)["data"] == b"hello"
listener.close()
print("ok pubsub")
