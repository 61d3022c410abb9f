// node app.mjs NAME POOL CONNECTIONS HOST:PORT...: an application of node-redlock that
// holds the lock held:NAME, extends it about once a second, and takes and releases others,
// one to three in a second. ioredis has one connection and no pool: of CONNECTIONS clients
// for each server it takes the first that is free (lifo), or the next one (fifo).
import { createRequire } from 'node:module';
import { join } from 'node:path';

const require = createRequire(join(process.cwd(), 'here.js'));
const Redis = require('ioredis');
const { default: Redlock } = require('redlock5');

const [name, kind, conns, ...addrs] = process.argv.slice(2);
const free = [];
for (let i = 0; i < Number(conns); i++) {
  free.push(new Redlock(addrs.map((a) => new Redis({ host: a.split(':')[0], port: Number(a.split(':')[1]), connectionName: name })), { retryCount: 0 }));
}
async function using(work) {
  const one = kind === 'single' ? free[0] : kind === 'fifo' ? free.shift() : free.pop();
  try { return await work(one); } finally { if (kind !== 'single') free.push(one); }
}
const sleep = (least, more) => new Promise((done) => setTimeout(done, least + Math.random() * more));

await sleep(500, 0);
let held = await using((r) => r.acquire([`held:${name}`], 60000));
(async () => {
  for (;;) {
    await sleep(750, 500);
    held = await using((r) => r.extend(held, 60000));
  }
})();
for (;;) {
  try {
    const lock = await using((r) => r.acquire([`short:${name}:${Math.floor(Math.random() * 100)}`], 10000));
    await sleep(10, 100);
    await using((r) => r.release(lock));
  } catch { /* another try */ }
  await sleep(250, 500);
}
