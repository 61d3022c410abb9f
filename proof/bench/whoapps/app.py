"""app.py NAME POOL CONNECTIONS HOST:PORT...: an application of redis-py that holds the
lock held:NAME on all servers, extends it about once a second, and takes and releases
others, one to three in a second. POOL is lifo, fifo or single."""
import queue
import random
import sys
import threading
import time
import uuid

import redis

name, kind, conns = sys.argv[1], sys.argv[2], int(sys.argv[3])
queues = {"fifo": queue.Queue}
clients = []
for addr in sys.argv[4:]:
    host, port = addr.split(":")
    pool = redis.BlockingConnectionPool(
        host=host, port=int(port), client_name=name, max_connections=conns, queue_class=queues.get(kind, queue.LifoQueue))
    for c in [pool.get_connection("PING") for _ in range(conns)]:
        pool.release(c)
    clients.append(redis.Redis(connection_pool=pool))


def acquire(key, seconds):
    token = uuid.uuid1().hex
    locks = [c.lock(key, timeout=seconds, thread_local=False) for c in clients]
    return locks, [lock.acquire(blocking=False, token=token) for lock in locks]


def extend(held):
    while True:
        time.sleep(random.uniform(0.75, 1.25))
        for lock in held:
            lock.reacquire()


held, got = acquire("held:" + name, 60)
assert all(got), got
threading.Thread(target=extend, args=[held], daemon=True).start()
while True:
    locks, got = acquire(f"short:{name}:{random.randrange(100)}", 10)
    time.sleep(random.uniform(0.01, 0.11))
    for lock, ours in zip(locks, got):
        if ours:
            lock.release()
    time.sleep(random.uniform(0.25, 0.75))
