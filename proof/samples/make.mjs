// node make.mjs LIBRARY HOST:PORT: takes a lock with an npm package, prints the
// package's version and ends without releasing it. Run where node_modules is.
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const [library, addr] = process.argv.slice(2);
const [host, port] = addr.split(':');
const require = createRequire(join(process.cwd(), 'here.js'));
const Redis = require('ioredis');
// Without a user it logs in as nobody.
const [username, password] = [process.env.LOCK_USER, process.env.LOCK_PASSWORD];
const client = new Redis({ host, port: Number(port), username, password });
// LOCK_WHOLE: the lock is extended and released as well.
const whole = process.env.LOCK_WHOLE === '1';
async function nodeRedis() {
  const { createClient } = require('redis');
  const c = createClient({ socket: { host, port: Number(port) }, username, password });
  c.on('error', (err) => { throw err; });
  await c.connect();
  return c;
}
const must = (ok, what) => { if (!ok) throw new Error(`${what} failed`); };
const ttl = 20000;

switch (library) {
  case 'redlock': {
    const Redlock = require('redlock');
    const lock = await new Redlock([client]).lock('job:node-redlock-4', ttl);
    if (whole) await (await lock.extend(ttl)).unlock();
    break;
  }
  case 'redlock5': {
    const { default: Redlock } = require('redlock5');
    // One lock that is two keys.
    const lock = await new Redlock([client]).acquire(['job:node-redlock-5a', 'job:node-redlock-5b'], ttl);
    if (whole) await (await lock.extend(ttl)).release();
    break;
  }
  case 'redlock-universal': {
    const { createLock, IoredisAdapter } = require('redlock-universal');
    const lock = createLock({ adapter: new IoredisAdapter(client), key: 'job:redlock-universal', ttl });
    const handle = await lock.acquire();
    if (whole) {
      await lock.extend(handle, ttl);
      must(await lock.release(handle), 'release');
    }
    break;
  }
  case 'redis-semaphore': {
    const { Mutex, Semaphore } = require('redis-semaphore');
    const options = { lockTimeout: ttl, refreshInterval: whole ? 50 : 0 };
    const locks = [new Mutex(client, 'job', options), new Semaphore(client, 'job', 3, options), new Semaphore(client, 'job', 3, options)];
    for (const lock of locks) await lock.acquire();
    if (whole) {
      await new Promise((resolve) => setTimeout(resolve, 200));
      for (const lock of locks) { must(lock.isAcquired, 'refresh'); await lock.release(); }
    }
    break;
  }
  case 'ioredis-lock': {
    const lock = require('ioredis-lock').createLock(client, { timeout: ttl });
    await lock.acquire('job:ioredis-lock');
    if (whole) { await lock.extend(ttl); await lock.release(); }
    break;
  }
  case '@microfleet/ioredis-lock': {
    const { createLock } = await import(join(process.cwd(), 'node_modules/@microfleet/ioredis-lock/lib/redislock.js'));
    const lock = createLock(client, { timeout: ttl });
    await lock.acquire('job:microfleet');
    if (whole) { await lock.extend(ttl); await lock.release(); }
    break;
  }
  case 'node-redis-warlock': {
    const warlock = require('node-redis-warlock')(client);
    const [unlock, id] = await new Promise((resolve, reject) => warlock.lock('job', ttl, (err, unlock, id) => (err ? reject(err) : resolve([unlock, id]))));
    must(unlock, 'lock');
    if (whole) {
      // Its touch names TTL and token as keys, which no rule for the locks' names allows.
      if (!username) await warlock.touch('job', id, ttl);
      await new Promise((resolve, reject) => unlock((err) => (err ? reject(err) : resolve())));
    }
    break;
  }
  case 'redis-promise-lock': {
    const { Lock } = require('redis-promise-lock');
    const lock = new Lock(await nodeRedis(), { ttl: 20 });
    must(await lock.acquireLock('job'), 'lock');
    if (whole) await lock.releaseLock('job');
    break;
  }
  case 'simple-redis-mutex': {
    const { lock } = require('simple-redis-mutex');
    const release = await lock(await nodeRedis(), 'job', { timeout: ttl });
    if (whole) { await release.refreshTimeout(); await release(); }
    break;
  }
  case '@redis-kit/lock': {
    const { Redlock } = require('@redis-kit/lock');
    const redlock = new Redlock([await nodeRedis()]);
    const lock = await redlock.acquire('job:redis-kit', ttl);
    must(lock, 'lock');
    if (whole) { await lock.extend(ttl); await lock.release(); }
    break;
  }
  case 'ioredfour': {
    const Lock = require('ioredfour');
    const lock = new Lock({ redis: { host, port: Number(port), username, password }, namespace: 'lock' });
    let held = await lock.acquireLock('job', ttl);
    must(held.success, 'lock');
    if (whole) { held = await lock.extendLock(held, ttl); must((await lock.releaseLock(held)).success, 'release'); }
    break;
  }
  default:
    throw new Error(`no maker for ${library}`);
}
const manifest = join(process.cwd(), 'node_modules', library, 'package.json');
console.log(JSON.parse(readFileSync(manifest)).version);
process.exit(0);
