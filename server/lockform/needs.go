package lockform

import (
	"slices"
	"strings"
)

// Needs are the rights that the clients of one lock library need on the
// servers: for its locks, not for what else a program does there.
type Needs struct {
	Library string
	// Commands are what it sends, by itself and in its scripts, as ACL rules name
	// them: "set", "script|load".
	Commands []string
	// Keys are patterns of what it keeps beside the locks themselves.
	Keys []string
	// Channels are patterns of those by which its clients tell each other of a
	// release.
	Channels []string
}

// Plain reports whether the library keeps a lock in one string, and needs
// nothing beside it.
func (n Needs) Plain() bool { return len(n.Keys) == 0 && len(n.Channels) == 0 && n.Commands != nil }

// words is a list, written as a line.
func words(s string) []string { return strings.Fields(s) }

// What clients of one kind send besides: when they connect, or before a lock.
const (
	onConnect = "ping client|setname "
	scripts   = "eval evalsha script|load "
	// ioredis asks by INFO if the server has read its data.
	ofIoredis = "info " + onConnect + scripts
	// StackExchange.Redis asks what the server is.
	ofStackExchange = "echo info " + onConnect + scripts
	// the usual: SET NX PX, and scripts that compare before they delete or extend.
	compareInScript = "set get del pexpire "
)

// Libraries are the needs of each library whose locks are known, in the order
// of their names. Those that stand in scripts/libraries are tested with the
// library itself on a real server; the others follow its source.
func Libraries() []Needs {
	all := []Needs{
		{"redlockctl", words(onConnect + scripts + compareInScript + "time info strlen getrange pttl type client|tracking multi exec"),
			words("redlockctl:fencing:*"), nil},

		// One string for each lock.
		{"redsync", words(onConnect + scripts + compareInScript), nil, nil},
		{"bsm/redislock", words(onConnect + scripts + compareInScript + "pttl setrange getrange exists mget"), nil, nil},
		{"go-zero", words(onConnect + scripts + compareInScript), nil, nil},
		{"node-redlock", words(ofIoredis + compareInScript + "exists"), nil, nil},
		{"redlock-universal", words(ofIoredis + compareInScript + "exists pttl"), nil, nil},
		{"ioredis-lock", words(ofIoredis + compareInScript), nil, nil},
		{"@microfleet/ioredis-lock", words(ofIoredis + compareInScript), nil, nil},
		{"@redis-kit/lock", words(onConnect + scripts + compareInScript + "info exists mget"), nil, nil},
		{"node-redis-warlock", words(onConnect + scripts + compareInScript + "info"), nil, nil},
		{"redis-promise-lock", words(onConnect + "info setnx expire del"), nil, nil},
		{"redis-semaphore", words(ofIoredis + compareInScript + "time zadd zcard zrem zscore zremrangebyscore"), nil, nil},
		{"RedLock.net", words(ofStackExchange + compareInScript), nil, nil},
		{"redlock-cs", words(ofStackExchange + compareInScript), nil, nil},
		{"DistributedLock (.NET)", words(ofStackExchange + compareInScript +
			"time exists pttl sadd srem scard sismember zadd zrem zcard zscore zrange zremrangebyscore"), nil, nil},
		{"pottery", words(onConnect + scripts + compareInScript + "pttl exists"), nil, nil},
		{"redlock-py", words(onConnect + scripts + compareInScript), nil, nil},
		{"aioredlock", words(onConnect + scripts + compareInScript + "pttl exists"), nil, nil},
		{"redis-py", words(onConnect + scripts + compareInScript + "pttl exists"), nil, nil},
		{"redlock-rb", words(onConnect + scripts + compareInScript + "exists pttl"), nil, nil},
		{"redlock-php", words(onConnect + scripts + compareInScript), nil, nil},
		{"php-lock", words(onConnect + scripts + compareInScript), nil, nil},
		{"Laravel", words(onConnect + scripts + compareInScript + "setnx expire"), nil, nil},
		{"redis-plus-plus", words(onConnect + scripts + compareInScript + "pttl watch unwatch multi exec"), nil, nil},
		{"redlock-cpp", words(onConnect + scripts + compareInScript), nil, nil},
		{"Redis::DistLock", words(onConnect + scripts + compareInScript), nil, nil},
		{"redlock-rs", words(onConnect + scripts + compareInScript), nil, nil},
		{"rslock", words(onConnect + scripts + compareInScript + "pttl"), nil, nil},
		{"ShedLock", words(onConnect + scripts + compareInScript + "info"), nil, nil},
		{"SETNX with a time stamp", words(onConnect + "setnx get getset del expire"), nil, nil},

		// Something besides, or another type.
		{"rueidislock", words(onConnect + scripts + compareInScript + "pexpireat client|tracking client|no-evict cluster|slots"), words("rueidislock:*"), nil},
		{"python-redis-lock", words(onConnect + scripts + compareInScript + "expire blpop lpush rpush"), words("lock-signal:*"), nil},
		{"simple-redis-mutex", words(onConnect + scripts + compareInScript + "info incr publish subscribe unsubscribe"),
			words("@simple-redis-mutex:*"), words("@simple-redis-mutex:*")},
		{"Symfony Lock", words(onConnect + scripts + "type time set get del zadd zrem zscore zcount zrevrange zremrangebyscore pexpire pexpireat"),
			words("symfony_check_support_time"), nil},
		{"ioredfour", words(ofIoredis + "time exists hget hmget hset hmset hgetall del incr pexpire pttl wait publish subscribe unsubscribe"),
			words("lockindex"), words("*-release")},
		{"Spring Integration", words(onConnect + scripts + compareInScript + "unlink publish subscribe unsubscribe"), nil, words("*-channel:*")},
		{"node-redisson", words(ofIoredis + ofRedisson), words(besideRedisson), words("redisson_lock__channel:*")},
		{"Redisson", words(onConnect + scripts + ofRedisson + "lindex lpop lrem lrange rpush llen zadd zrem zrange zscore zincrby mget select info wait"),
			words(besideRedisson + " {*}:*:rwlock_timeout:*"), words("redisson_lock__channel:* redisson_rwlock:* redisson_fair_lock__channel:*")},
	}
	slices.SortFunc(all, func(a, b Needs) int { return strings.Compare(strings.ToLower(a.Library), strings.ToLower(b.Library)) })
	return all
}

const (
	ofRedisson     = "time set get del exists incr pexpire pttl type hexists hget hset hdel hlen hkeys hincrby publish subscribe unsubscribe "
	besideRedisson = "redisson_unlock_latch:* redisson_lock_queue:* redisson_lock_timeout:* redisson_lock_token:*"
)
