"""make.py HOST:PORT: takes a lock with redis-py, prints the version of the
library, and ends without releasing it; the user and LOCK_WHOLE as in make.mjs."""
import os
import sys

import redis

host, port = sys.argv[1].split(":")
client = redis.Redis(host=host, port=int(port), username=os.environ.get("LOCK_USER"), password=os.environ.get("LOCK_PASSWORD"))
lock = client.lock("job:redis-py", timeout=20)
if not lock.acquire(blocking=False):
    sys.exit("not acquired")
if os.environ.get("LOCK_WHOLE") == "1":
    lock.extend(20)
    lock.reacquire()
    lock.release()
print(getattr(redis, "__version__", "unknown"))
