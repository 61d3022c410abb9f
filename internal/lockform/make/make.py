"""make.py HOST:PORT: takes a lock with redis-py, prints the version of the
library, and ends without releasing it."""
import sys

import redis

host, port = sys.argv[1].split(":")
lock = redis.Redis(host=host, port=int(port)).lock("job:redis-py", timeout=20)
if not lock.acquire(blocking=False):
    sys.exit("not acquired")
print(getattr(redis, "__version__", "unknown"))
