package lockform

import "strings"

func redissonCompanion(prefix string) matcher {
	return func(s sight) (telling, bool) {
		name, ok := named(s.key, prefix)
		return telling{group: name}, ok
	}
}

func redissonToken(s sight) (telling, bool) {
	name, ok := named(s.key, "redisson_lock_token:")
	return telling{group: name}, ok && s.whole && all(s.value, digits)
}

// redissonLatch matches redisson_unlock_latch:{NAME}:REQUEST → 0 or 1.
func redissonLatch(s sight) (telling, bool) {
	const prefix = "redisson_unlock_latch:"
	n := strings.LastIndexByte(s.key, ':')
	if n < len(prefix) || !strings.HasPrefix(s.key, prefix) || len(s.key)-n != 33 || !all(s.key[n+1:], lowerHex) {
		return telling{}, false
	}
	name, ok := named(s.key[:n], prefix)
	return telling{group: name}, ok && all(s.value, digits)
}

// redissonReader matches {NAME}:UUID:THREAD:rwlock_timeout:N → 1.
func redissonReader(s sight) (telling, bool) {
	const mark = ":rwlock_timeout:"
	n := strings.LastIndex(s.key, mark)
	if n < 0 || !all(s.key[n+len(mark):], digits) || s.value != "1" {
		return telling{}, false
	}
	key := s.key[:n]
	if n = strings.LastIndexByte(key, ':'); n < 37 || !redissonHolder(key[n-36:]) {
		return telling{}, false
	}
	owner, name := key[n-36:], strings.TrimSuffix(key[:n-36], ":")
	if inner, ok := strings.CutPrefix(name, "{"); ok && strings.HasSuffix(inner, "}") {
		name = inner[:len(inner)-1]
	}
	return telling{owner: owner, group: name}, true
}

// redissonHolder reports whether a field is UUID:THREAD.
func redissonHolder(field string) bool {
	return len(field) > 37 && len(field) <= 37+20 && field[36] == ':' && isUUID(field[:36], '4') && all(field[37:], digits)
}

func redissonLock(s sight) (telling, bool) {
	// Locks that are not re-entrant have one field too; its value is the count.
	if s.length != 1 || !redissonHolder(s.value) {
		return telling{}, false
	}
	return telling{owner: s.value}, true
}

// redissonReadWrite matches a hash with a field "mode", and one field for the writer or
// each reader.
func redissonReadWrite(s sight) (telling, bool) {
	if s.length < 2 || s.length > 1<<20 {
		return telling{}, false
	}
	owner, mode, holders := "", false, 0
	for rest := s.value; rest != ""; {
		var field string
		field, rest, _ = strings.Cut(rest, "\n")
		switch holder, _ := strings.CutSuffix(field, ":write"); {
		case field == "mode":
			mode = true
		case redissonHolder(holder):
			owner = holder
			holders++
		case rest != "": // the last one may be cut off
			return telling{}, false
		}
	}
	if holders != 1 || s.length != 2 {
		owner = ""
	}
	return telling{owner: owner}, mode && holders > 0
}

// RedissonLock returns what belongs to a plain lock of Redisson, which is a hash whose only
// field is the holder, "uuid:threadId". channel is where Redisson's unlock notifies
// waiters. fair are the keys that exist only beside a fair lock. refused says why a lock
// with such a holder is not a plain one; "" if it may be.
func RedissonLock(resource, holder string) (channel string, fair []string, refused string) {
	if holder == "mode" || strings.HasSuffix(holder, ":write") {
		refused = "a Redisson read-write lock keeps its mode and its readers in one hash"
	}
	name := "{" + resource + "}"
	return "redisson_lock__channel:" + name, []string{"redisson_lock_queue:" + name, "redisson_lock_timeout:" + name}, refused
}
