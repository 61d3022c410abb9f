package lockform

import (
	"strings"
	"time"
)

// sight is what was read of a key.
type sight struct {
	key    string
	value  string
	length int64
	whole  bool // value is complete
	now    time.Time
}

// telling is what one key tells in addition to its row.
type telling struct {
	owner    string
	group    string
	created  time.Time
	deadline time.Time
}

// most is the greatest length of a value, in bytes, that can be a lock: the longest form is
// a token followed by metadata.
const most = 4096

// matcher reports whether a key has a form, and what it tells.
type matcher func(s sight) (telling, bool)

// named returns the name of a lock from a companion key: PREFIX:{NAME}, or PREFIX:NAME if
// NAME contains a brace.
func named(key, prefix string) (name string, ok bool) {
	name, ok = strings.CutPrefix(key, prefix)
	if inner, braces := strings.CutPrefix(name, "{"); braces && strings.HasSuffix(inner, "}") && !strings.Contains(inner[:len(inner)-1], "{") {
		return inner[:len(inner)-1], ok
	}
	return name, ok && strings.Contains(name, "{")
}

// plausible reports whether t lies between first and last.
func plausible(t, first, last time.Time) bool { return t.After(first) && t.Before(last) }

// hexUUIDv1 matches a UUID without hyphens that contains a time. One in 64 random hex
// values has the marks of such a UUID; one in 30,000 also has a plausible time.
func hexUUIDv1(s sight) (telling, bool) {
	v := s.value
	if v[12] != '1' || strings.IndexByte("89ab", v[16]) < 0 || !all(v, lowerHex) {
		return telling{}, false
	}
	// 60 bits in three parts, the lowest first.
	ticks := parseHex(v[13:16])<<48 | parseHex(v[8:12])<<32 | parseHex(v[:8])
	const gregorian = 122_192_928_000_000_000 // 1582-10-15 to 1970, in units of 100 ns
	if ticks < gregorian {
		return telling{}, false
	}
	ticks -= gregorian
	created := time.Unix(ticks/1e7, ticks%1e7*100).UTC()
	return telling{created: created}, plausible(created, since2020, s.now.Add(day))
}
