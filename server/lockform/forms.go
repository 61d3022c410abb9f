package lockform

import (
	"strings"
	"time"
	"unicode/utf8"
)

// row is one form: what it matches, and what that means.
type row struct {
	typ   string
	size  int // of the whole value, in bytes; 0: any size, even if the value is not known whole
	match matcher
	Form
}

// fits reports whether type and size match the row.
func (r *row) fits(typ string, s sight) bool {
	return r.typ == typ && (r.size == 0 || s.whole && r.size == len(s.value))
}

// Sentences that several rows share.
const (
	extendCreates = "its extend recreates missing copies"
	allTogether   = "if node-redlock made it: one lock may be several keys with this token, which are to be removed together"
)

// forms is tried in order: first the forms with a mark of their own, last those that only
// have a length and an alphabet. Libraries that cannot be told apart share a row.
var forms = [...]row{
	// This program.
	{"string", 46, ownTombstone, Form{
		Library: "redlockctl", SharedToken: true,
		TakingAway: "it is revoked: its last holder cannot extend it, and may work until its TTL ends, or without end if it had none; a force-release frees it at once",
	}},
	{"string", 0, ownKey("fencing:"), Form{
		Library: "redlockctl", Companion: true,
		Refused: "it counts the fencing tokens of a lock, and must never go back",
	}},
	{"string", 0, ownKey(""), Form{
		Library: "redlockctl", Companion: true,
		Refused: "it is a key of this program's own, not a lock",
	}},

	{"string", 0, ownedTokens, Form{Library: "redlockctl"}},

	// Forms with a mark in the key or the value.
	{"string", 0, shedLock, Form{
		Library: "ShedLock", BareDel: true,
		TakingAway: "unless made with safeUpdate its unlock is a bare DEL: a holder that is alive then deletes the lock of the next one when its job ends",
	}},
	{"string", rueidisLen, rueidisLock, Form{
		Library:    "rueidislock",
		TakingAway: "it is several keys, PREFIX:0:NAME, PREFIX:1:NAME and so on: all of them go together",
	}},
	{"string", 0, distributedLock, Form{
		Library:    "DistributedLock (.NET)",
		TakingAway: "its holder learns of the loss from a handle that is watched in the background, if its program listens",
	}},
	{"string", 0, distributedLockWaiting, Form{
		Library:    "DistributedLock (.NET)",
		TakingAway: "it is a writer that waits for the readers of a read-write lock to end: without it new readers get in before it",
	}},
	{"string", 0, redissonToken, Form{
		Library: "Redisson", Companion: true,
		Refused: "it counts the fencing tokens of a Redisson lock, and must never go back",
	}},
	{"string", 1, redissonLatch, Form{
		Library: "Redisson", Companion: true,
		Refused: "it is the answer to an unlock of a Redisson lock, kept for retries: it ends by itself",
	}},
	{"string", 1, redissonReader, Form{
		Library: "Redisson", Companion: true,
		Refused: "it is the time limit of one reader of a Redisson read-write lock, and ends with it",
	}},
	{"hash", 0, redissonReadWrite, Form{
		Library: "Redisson",
		Refused: "a Redisson read-write lock keeps its mode, its readers and its writer in one hash, and a time limit of each reader beside it",
	}},
	{"hash", 0, redissonLock, Form{
		Library:    "Redisson",
		TakingAway: "its waiters are told by a message on redisson_lock__channel:{NAME}, which force-release sends; a fair lock, which has a queue beside it, is refused",
	}},
	{"list", 0, redissonCompanion("redisson_lock_queue:"), Form{
		Library: "Redisson", Companion: true,
		Refused: "it is the queue of those who wait for a Redisson fair lock",
	}},
	{"zset", 0, redissonCompanion("redisson_lock_timeout:"), Form{
		Library: "Redisson", Companion: true,
		Refused: "it is the time limits of those who wait for a Redisson fair lock",
	}},

	// Sorted sets: several holders, or a read-write lock.
	{"zset", 0, symfonyWrite, Form{
		Library: "Symfony Lock",
		Refused: "it is a sorted set of holders with an end of their own each, which only Symfony takes apart",
	}},
	{"zset", 0, symfonyRead, Form{
		Library: "Symfony Lock (readers)", Shared: true,
		Refused: "several readers hold it at once, each with an end of its own",
	}},
	{"zset", 0, semaphore, Form{
		Library: "redis-semaphore (semaphore)", Shared: true,
		Refused: "it is a semaphore: several hold it at once, each with an end of its own",
	}},
	{"string", 1, only("symfony_check_support_time"), Form{
		Library: "Symfony Lock", Companion: true,
		Refused: "it is a question to the server, and ends after a millisecond",
	}},

	// Other marks of libraries for Node.js.
	{"hash", 0, nodeRedisson, Form{
		Library:    "node-redisson",
		TakingAway: "its waiters are told by a message on redisson_lock__channel:{NAME}, which force-release sends",
	}},
	{"hash", 0, ioredfour, Form{
		Library: "ioredfour",
		Refused: "its holder is a number in a hash, which this program does not compare",
	}},
	{"string", 0, counter("lockindex"), Form{
		Library: "ioredfour", Companion: true,
		Refused: "it counts the grants of all locks of ioredfour, and must never go back",
	}},
	{"string", 0, counter(simpleRedisMutexPrefix + "fencing-tokens"), Form{
		Library: "simple-redis-mutex", Companion: true,
		Refused: "it counts the fencing tokens of simple-redis-mutex, and must never go back",
	}},
	{"string", 0, simpleRedisMutex, Form{
		Library:    "simple-redis-mutex",
		TakingAway: "those who wait for it are told by a message on @simple-redis-mutex:locks-releases, which does not come: they look again after their polling interval",
	}},
	{"string", 0, redisPromiseLock, Form{
		Library:    "redis-promise-lock",
		TakingAway: "its unlock is a bare DEL: a holder that is alive then deletes the lock of the next one; it may have no TTL, since that is set by a second command",
	}},

	// UUIDs as text.
	{"string", 36, uuidV1, Form{Library: "ioredis-lock"}},
	{"string", 0, uuidMutex, Form{
		Library:    "redis-semaphore, redlock-rb, aioredlock, @microfleet/ioredis-lock or Spring Integration",
		TakingAway: "if redlock-rb made it: " + extendCreates + ", unless told extend_only_if_locked",
	}},
	{"string", 36, under("redlock:", uuid), Form{
		Library:    "RedLock.net or pottery",
		TakingAway: "if RedLock.net made it: " + extendCreates + ", so a holder that is alive gets it back within half its TTL; revoke it instead",
	}},
	{"string", 36, uuidUnderPath, Form{
		Library:    "redlock-rb, aioredlock, @microfleet/ioredis-lock or Spring Integration",
		TakingAway: "if redlock-rb made it: " + extendCreates + ", unless told extend_only_if_locked; if Spring made it: those who wait for its message on REGISTRY-channel:PATH are not notified, and try again later",
	}},
	{"string", 36, uuid, Form{
		Library:    "redlock-rb, aioredlock or @microfleet/ioredis-lock",
		TakingAway: "if redlock-rb made it: " + extendCreates + ", unless told extend_only_if_locked",
	}},

	// Lengths and alphabets.
	{"string", 32, hexUUIDv1, Form{
		Library:    "redis-py",
		TakingAway: "it may have been made without a TTL: then only its holder, or a revoke or force-release, ends it",
	}},
	{"string", 32, under("lock_", hexDigits), Form{
		Library: "php-lock, node-redlock or redlock-universal", SharedToken: true,
		TakingAway: allTogether,
	}},
	{"string", 32, hexDigits, Form{
		Library: "node-redlock or redlock-universal", SharedToken: true,
		TakingAway: allTogether,
	}},
	{"string", 64, under("php-malkusch-lock:", hexDigits), Form{Library: "php-lock"}},
	{"string", 40, upperHex40, Form{Library: "redlock-cpp"}},
	{"string", 13, uniqid, Form{Library: "redlock-php"}},
	{"string", 24, warlock, Form{Library: "node-redis-warlock"}},
	{"string", 24, redsync, Form{
		Library:    "redsync",
		TakingAway: extendCreates + ", if it was made with WithSetNXOnExtend",
	}},
	{"string", 24, under("lock:", mixedOf(&base64Std)), Form{
		Library:    "python-redis-lock",
		TakingAway: "those who wait for it are woken by a push to lock-signal:NAME, which does not come: they go on waiting until their time limit",
	}},
	{"string", 27, ownTokens, Form{Library: "redlockctl"}},
	{"string", 32, mixedOf(&base64Std), Form{
		Library:    "Redis::DistLock",
		TakingAway: extendCreates + ", if asked to",
	}},
	{"string", 22, bsmOrPy, Form{Library: "bsm/redislock, redlock-py or @redis-kit/lock"}},
	{"string", 0, bsmRedislock, Form{Library: "bsm/redislock"}},
	{"string", 22, mixedOf(&letters), Form{Library: "redlock-py or @redis-kit/lock"}},
	{"string", 22, mixedOf(&base64Std), Form{Library: "@redis-kit/lock"}},
	{"string", 16, alphanumeric16, Form{Library: "go-zero or Laravel"}},
	{"string", 20, mixedOf(&letters), Form{Library: "redis-plus-plus"}},

	// Raw bytes.
	{"string", 16, rawGUID, Form{Library: "redlock-cs"}},
	{"string", 20, raw20, Form{Library: "redlock-rs or rslock"}},

	// Times.
	{"string", 0, timestamp, Form{
		Library: "SETNX with a time stamp", BareDel: true,
		TakingAway: "without a TTL its value says when it ends, and whoever comes after that takes it over by GETSET; its holder does not look whether it still has it",
	}},
}

// shedLock matches ADDED:TIME@HOST:UUID, in old versions without the UUID.
func shedLock(s sight) (telling, bool) {
	rest, ok := strings.CutPrefix(s.value, "ADDED:")
	at, host, ok2 := strings.Cut(rest, "@")
	if !ok || !ok2 || s.length > 512 {
		return telling{}, false
	}
	created, err := time.Parse("2006-01-02T15:04:05.999999999Z", at)
	if err != nil || !plausible(created, since2010, s.now.Add(day)) {
		return telling{}, false
	}
	if n := len(host) - 37; s.whole && n >= 0 && host[n] == ':' && isUUID(host[n+1:], '4') {
		host = host[:n]
	} else if !s.whole || strings.Contains(host, ":") && strings.Contains(host, "-") {
		host = "" // truncated
	}
	return telling{owner: host, created: created}, true
}

const (
	rueidisLen    = 24
	rueidisPrefix = "rueidislock"
)

// rueidisLock matches 24 random bytes under PREFIX:INDEX:NAME. Its default prefix accepts
// any 24 bytes, another prefix only bytes that are not text.
func rueidisLock(s sight) (telling, bool) {
	prefix, rest, ok := strings.Cut(s.key, ":")
	if prefix != rueidisPrefix && text(s.value) {
		return telling{}, false
	}
	index, name, ok2 := strings.Cut(rest, ":")
	if !ok || !ok2 || len(index) == 0 || len(index) > 3 || !all(index, digits) {
		return telling{}, false
	}
	return telling{group: prefix + ":" + name}, true
}

// distributedLock matches MACHINE_PID_GUID; the GUID has no hyphens.
func distributedLock(s sight) (telling, bool) {
	if !s.whole {
		return telling{}, false
	}
	owner, ok := machineAndPID(s.value)
	return telling{owner: owner}, ok
}

func distributedLockWaiting(s sight) (telling, bool) {
	value, ok := strings.CutSuffix(s.value, "_WRITERWAITING")
	if !ok || !s.whole {
		return telling{}, false
	}
	owner, ok := machineAndPID(value)
	return telling{owner: owner}, ok
}

func machineAndPID(value string) (owner string, ok bool) {
	n := len(value) - 32
	if n < len("m_1_") || value[n-1] != '_' || !all(value[n:], lowerHex) {
		return "", false
	}
	value = value[:n-1]
	n = strings.LastIndexByte(value, '_')
	if n < 1 || len(value)-n > 11 || n == len(value)-1 || !all(value[n+1:], digits) {
		return "", false
	}
	return value[:n] + " (pid " + value[n+1:] + ")", true
}

func uuid(s sight) (telling, bool) { return telling{}, isUUID(s.value, '4') }

// under matches a value if the key begins with prefix.
func under(prefix string, value matcher) matcher {
	return func(s sight) (telling, bool) {
		if !strings.HasPrefix(s.key, prefix) {
			return telling{}, false
		}
		return value(s)
	}
}

// mixedOf matches values of a class of characters with both upper and lower case.
func mixedOf(c *class) matcher {
	return func(s sight) (telling, bool) { return telling{}, all(s.value, *c) && mixed(s.value) }
}

// only matches one key.
func only(key string) matcher {
	return func(s sight) (telling, bool) { return telling{}, s.key == key }
}

// counter matches a number under one key.
func counter(key string) matcher {
	return func(s sight) (telling, bool) { return telling{}, s.key == key && s.whole && all(s.value, digits) }
}

func uuidUnderPath(s sight) (telling, bool) {
	return telling{}, isUUID(s.value, '4') && strings.IndexByte(s.key, ':') > 0
}

func hexDigits(s sight) (telling, bool) {
	return telling{}, all(s.value, lowerHex) && !all(s.value, digits)
}

func upperHex40(s sight) (telling, bool) {
	return telling{}, all(s.value, upperHex) && !all(s.value, digits)
}

// uniqid matches PHP's uniqid: the time, as 8 hex digits of seconds and 5 of microseconds.
func uniqid(s sight) (telling, bool) {
	v := s.value
	if !all(v, lowerHex) {
		return telling{}, false
	}
	sec, usec := parseHex(v[:8]), parseHex(v[8:])
	created := time.Unix(sec, usec*1000).UTC()
	return telling{created: created}, usec < 1e6 && plausible(created, since2010, s.now.Add(day))
}

// redsync matches 16 bytes in base64; the character before the padding carries 2 bits.
func redsync(s sight) (telling, bool) {
	v := s.value
	return telling{}, v[22:] == "==" && all(v[:22], base64Std) && last(v[:22], base64Std2)
}

// bsmRedislock matches 16 bytes in base64url, whose last character carries 2 bits, followed
// by the caller's metadata.
func bsmRedislock(s sight) (telling, bool) {
	if len(s.value) < 22 || s.length > most {
		return telling{}, false
	}
	token := s.value[:22]
	owner := ""
	if s.whole {
		owner = strings.TrimSpace(s.value[22:])
	}
	return telling{owner: owner}, all(token, base64URL) && last(token, base64URL2) && mixed(token)
}

// bsmOrPy matches values that either library could have made.
func bsmOrPy(s sight) (telling, bool) {
	if !all(s.value, letters) {
		return telling{}, false
	}
	return bsmRedislock(s)
}

// rawGUID matches the 16 bytes of a random GUID in .NET's layout.
func rawGUID(s sight) (telling, bool) {
	v := s.value
	return telling{}, v[7]>>4 == 4 && v[8]>>6 == 2 && !utf8.ValidString(v)
}

// raw20 matches 20 random bytes.
func raw20(s sight) (telling, bool) {
	return telling{}, !utf8.ValidString(s.value)
}

// timestamp matches a UNIX time in seconds, with or without a fraction, or in milliseconds.
// The key's name must say that it is a lock, because any counter might look like a time.
func timestamp(s sight) (telling, bool) {
	if !s.whole || len(s.value) < 10 || len(s.value) > 25 || !lockName(s.key) {
		return telling{}, false
	}
	whole, fraction, point := strings.Cut(s.value, ".")
	if !all(whole, digits) || point && (fraction == "" || !all(fraction, digits)) || strings.HasPrefix(whole, "0") {
		return telling{}, false
	}
	var deadline time.Time
	switch {
	case len(whole) == 10:
		var nsec int64
		for i := range min(len(fraction), 9) {
			nsec += int64(fraction[i]-'0') * pow10(8-i)
		}
		deadline = time.Unix(parseInt(whole), nsec)
	case len(whole) == 13 && !point:
		deadline = time.UnixMilli(parseInt(whole))
	default:
		return telling{}, false
	}
	deadline = deadline.UTC()
	return telling{deadline: deadline}, plausible(deadline, since2010, s.now.Add(year))
}

// lockName reports whether the key's name contains the word lock, ignoring case.
func lockName(key string) bool {
	for i := range key {
		for _, word := range [...]string{"lock", "mutex"} {
			if len(key)-i >= len(word) && strings.EqualFold(key[i:i+len(word)], word) {
				return true
			}
		}
		if i >= 1024 {
			break // a lock's name is never longer
		}
	}
	return false
}

// holders returns the members of a sorted set, one per line, if all are known.
func holders(s sight) []string {
	if s.value == "" || s.length > 1<<20 {
		return nil
	}
	all := strings.Split(s.value, "\n")
	if int64(len(all)) != s.length {
		return nil
	}
	return all
}

const symfonyWriter = "__write__"

// isSymfony reports whether a member is a Symfony token: 32 bytes in base64.
func isSymfony(m string) bool { return len(m) == 44 && m[43] == '=' && all(m[:43], base64Std) }

// symfonyWrite matches a token with the mark of a writer.
func symfonyWrite(s sight) (telling, bool) {
	members := holders(s)
	if len(members) != 2 {
		return telling{}, false
	}
	token, mark := members[0], members[1]
	if token == symfonyWriter {
		token, mark = mark, token
	}
	return telling{owner: token}, mark == symfonyWriter && isSymfony(token)
}

// symfonyRead matches the tokens of readers.
func symfonyRead(s sight) (telling, bool) {
	members := holders(s)
	for _, m := range members {
		if !isSymfony(m) {
			return telling{}, false
		}
	}
	return telling{owner: strings.Join(members, ", ")}, len(members) > 0
}

// semaphore matches UUIDs; a semaphore with several permits adds a number. The key says
// that it is a semaphore.
func semaphore(s sight) (telling, bool) {
	members := holders(s)
	for _, m := range members {
		if len(m) < 36 || !isUUID(m[:36], '4') {
			return telling{}, false
		}
	}
	return telling{owner: strings.Join(members, ", ")}, len(members) > 0
}

// uuidV1 matches a UUID that contains a time. One in 30,000 random texts in UUID form
// contains a plausible time.
func uuidV1(s sight) (telling, bool) {
	v := s.value
	if !isUUID(v, '1') {
		return telling{}, false
	}
	s.value = v[:8] + v[9:13] + v[14:18] + v[19:23] + v[24:]
	return hexUUIDv1(s)
}

// alphanumeric16 matches 16 letters and digits.
func alphanumeric16(s sight) (telling, bool) {
	return telling{}, all(s.value, letters) && mixed(s.value) && strings.ContainsAny(s.value, decimal)
}
