package lockform

import (
	"encoding/base64"
	"encoding/hex"
	"strings"
	"time"
)

// nodeRedisson matches a hash with one field: two UUIDs, of the process and of the lock.
func nodeRedisson(s sight) (telling, bool) {
	v := s.value
	if s.length != 1 || len(v) != 73 || v[36] != ':' || !isUUID(v[:36], '4') || !isUUID(v[37:], '4') {
		return telling{}, false
	}
	return telling{owner: v}, true
}

// ioredfour matches a hash with one field, a number that all its locks share.
func ioredfour(s sight) (telling, bool) {
	return telling{}, s.length == 1 && s.value == "index" && strings.HasPrefix(s.key, "lock:")
}

const simpleRedisMutexPrefix = "@simple-redis-mutex:"

// simpleRedisMutex matches a random number below 1.
func simpleRedisMutex(s sight) (telling, bool) {
	fraction, ok := strings.CutPrefix(s.value, "0.")
	return telling{}, ok && s.whole && strings.HasPrefix(s.key, simpleRedisMutexPrefix+"lock-") && len(fraction) > 0
}

// redisPromiseLock matches {"lockedSince":"TIME"}.
func redisPromiseLock(s sight) (telling, bool) {
	rest, ok := strings.CutPrefix(s.value, `{"lockedSince":"`)
	at, ok2 := strings.CutSuffix(rest, `"}`)
	if !ok || !ok2 || !s.whole || !strings.HasPrefix(s.key, "redis-promise-lock:") {
		return telling{}, false
	}
	created, err := time.Parse("2006-01-02T15:04:05.999Z", at)
	return telling{created: created}, err == nil && plausible(created, since2010, s.now.Add(day))
}

// uuidMutex matches a UUID under mutex:NAME, with or without a suffix of the caller.
func uuidMutex(s sight) (telling, bool) {
	v := s.value
	if !s.whole || len(v) < 36 || !strings.HasPrefix(s.key, "mutex:") || !isUUID(v[:36], '4') {
		return telling{}, false
	}
	owner, ok := "", len(v) == 36
	if len(v) > 37 && v[36] == '-' {
		owner, ok = v[37:], true
	}
	return telling{owner: owner}, ok
}

// warlock matches a version 1 UUID in base64 under NAME:lock. One in 30,000 random tokens
// contains a plausible time.
func warlock(s sight) (telling, bool) {
	if !strings.HasSuffix(s.key, ":lock") || s.value[22:] != "==" {
		return telling{}, false
	}
	raw, err := base64.StdEncoding.DecodeString(s.value)
	if err != nil || len(raw) != 16 {
		return telling{}, false
	}
	s.value = hex.EncodeToString(raw)
	return hexUUIDv1(s)
}
