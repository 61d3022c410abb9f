package lockform

import (
	"slices"
	"strings"
)

// Needs are the rights that clients of a lock library need on the servers for its locks,
// and for nothing else that a program does.
type Needs struct {
	Library string
	// Commands are what the library sends, directly and in its scripts, as ACL rules name
	// them: "set", "script|load".
	Commands []string
	// Keys are patterns of keys that it keeps beside the locks.
	Keys []string
	// Channels are patterns of channels on which its clients announce a release.
	Channels []string
}

// Plain reports whether the library keeps a lock in one string and needs nothing else.
func (n Needs) Plain() bool { return len(n.Keys) == 0 && len(n.Channels) == 0 && n.Commands != nil }

// words splits a list that is written on one line.
func words(s string) []string { return strings.Fields(s) }

// Commands that some clients send in addition: when they connect, or before a lock.
const (
	onConnect = "ping client|setname "
	scripts   = "eval evalsha script|load "
	// ioredis sends INFO to check that the server has loaded its data.
	ofIoredis = "info " + onConnect + scripts
	// StackExchange.Redis asks for the kind of server.
	ofStackExchange = "echo info " + onConnect + scripts
	// The usual: SET NX PX, and scripts that compare before they delete or extend.
	compareInScript = "set get del pexpire "
)

// Libraries returns the needs of each library with a known form, sorted by name. Those in
// scripts/libraries are tested with the real library on a real server; the others follow
// the library's source.
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

		// Libraries that need more keys or channels, or another type.
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
