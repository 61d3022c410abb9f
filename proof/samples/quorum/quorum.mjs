// node quorum.mjs URL...: takes, extends and releases a lock by node-redlock on several
// masters at once, as the user LOCK_USER. Run where node_modules is.
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const require = createRequire(join(process.cwd(), 'here.js'));
const Redis = require('ioredis');
const { default: Redlock } = require('redlock5');
const clients = process.argv.slice(2).map((text) => {
  const url = new URL(text);
  return new Redis({
    host: url.hostname,
    port: Number(url.port),
    username: process.env.LOCK_USER,
    password: process.env.LOCK_PASSWORD,
    tls: url.protocol === 'rediss:' ? { ca: readFileSync(process.env.LOCK_CA) } : undefined,
  });
});
// Each of them: a quorum would do with fewer.
for (const c of clients) await c.set('lock:node-redlock:alone', 'token', 'PX', 1, 'NX');
let lock = await new Redlock(clients).acquire(['lock:node-redlock'], 2000);
lock = await lock.extend(2000);
await lock.release();
console.log('node-redlock: acquired, extended, released');
process.exit(0);
