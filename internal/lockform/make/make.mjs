// node make.mjs LIBRARY HOST:PORT: takes a lock with an npm package, prints the
// package's version and ends without releasing it. Run where node_modules is.
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const [library, addr] = process.argv.slice(2);
const [host, port] = addr.split(':');
const require = createRequire(join(process.cwd(), 'here.js'));
const Redis = require('ioredis');
const client = new Redis({ host, port: Number(port) });
const ttl = 20000;

switch (library) {
  case 'redlock': {
    const Redlock = require('redlock');
    await new Redlock([client]).lock('job:node-redlock-4', ttl);
    break;
  }
  case 'redlock5': {
    const { default: Redlock } = require('redlock5');
    // One lock that is two keys.
    await new Redlock([client]).acquire(['job:node-redlock-5a', 'job:node-redlock-5b'], ttl);
    break;
  }
  case 'redlock-universal': {
    const { createLock, IoredisAdapter } = require('redlock-universal');
    const lock = createLock({ adapter: new IoredisAdapter(client), key: 'job:redlock-universal', ttl });
    await lock.acquire();
    break;
  }
  default:
    throw new Error(`no maker for ${library}`);
}
const manifest = join(process.cwd(), 'node_modules', library, 'package.json');
console.log(JSON.parse(readFileSync(manifest)).version);
process.exit(0);
