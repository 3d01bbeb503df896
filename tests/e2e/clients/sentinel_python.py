"""As sentinel_node.js, with redis-py in its default settings: sentinel_python.py python SENTINEL_PORT,... NAME TABLE."""

import os
import sys
import threading
import time

from redis import RedisError
from redis.sentinel import Sentinel

library, ports, name, table = sys.argv[1:]
client = Sentinel([("127.0.0.1", int(port)) for port in ports.split(",")]).master_for(name)


def end_with_input():
    sys.stdin.read()
    os._exit(0)


threading.Thread(target=end_with_input, daemon=True).start()
number = 0
while True:
    try:
        client.execute_command("CPUT", table, f"{library}-{number}", "f:a", str(number))
        print(f"acknowledged {number}", flush=True)
        number += 1
    except RedisError as error:
        print(f"error {type(error).__name__} {error}", flush=True)
    time.sleep(0.005)
