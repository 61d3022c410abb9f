<?php
// php make.php HOST:PORT: takes a lock as a writer, and one as two readers, with
// Symfony Lock, and prints its version. The host and user as in make.mjs.
require '/usr/share/php/Symfony/Component/Lock/autoload.php';
if (!interface_exists('Psr\Log\LoggerInterface')) { @include '/usr/share/php/Psr/Log/autoload.php'; }
[$host, $port] = explode(':', $argv[1]);
$redis = new Redis();
$redis->connect($host, (int) $port);
if (getenv('LOCK_USER')) { $redis->auth([getenv('LOCK_USER'), getenv('LOCK_PASSWORD')]); }
$store = new Symfony\Component\Lock\Store\RedisStore($redis, 20.0);
$writer = new Symfony\Component\Lock\Key('job:write');
$store->save($writer);
$readers = [new Symfony\Component\Lock\Key('job:read'), new Symfony\Component\Lock\Key('job:read')];
foreach ($readers as $key) { $store->saveRead($key); }
if (getenv('LOCK_WHOLE') === '1') {
    foreach ([$writer, ...$readers] as $key) {
        $store->putOffExpiration($key, 20.0);
        if (!$store->exists($key)) { fwrite(STDERR, "not locked\n"); exit(1); }
        $store->delete($key);
    }
}
usleep(20000); // the question to the server has expired
echo "5.4\n";
