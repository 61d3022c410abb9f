package lockform

import (
	"strings"
	"time"
)

// sight is what is seen of a key.
type sight struct {
	key    string
	value  string
	length int64
	whole  bool // value is all of it
	now    time.Time
}

// telling is what one key tells beyond the row that it matches.
type telling struct {
	owner    string
	group    string
	created  time.Time
	deadline time.Time
}

// most is the length of a value, in bytes, beyond which no string is taken for
// a lock: the longest form is a token with metadata behind it.
const most = 4096

// matcher reports whether a key is of a form, and what it tells.
type matcher func(s sight) (telling, bool)

// named cuts the name of a lock out of a key that is kept beside it: PREFIX:{NAME},
// or PREFIX:NAME where NAME has a brace of its own.
func named(key, prefix string) (name string, ok bool) {
	name, ok = strings.CutPrefix(key, prefix)
	if inner, braces := strings.CutPrefix(name, "{"); braces && strings.HasSuffix(inner, "}") && !strings.Contains(inner[:len(inner)-1], "{") {
		return inner[:len(inner)-1], ok
	}
	return name, ok && strings.Contains(name, "{")
}

// plausible reports whether t lies between the two.
func plausible(t, first, last time.Time) bool { return t.After(first) && t.Before(last) }

// hexUUIDv1 is a UUID with a time in it, without hyphens. One in 64 of random
// hex values has its marks, and one in 30,000 of all a plausible time too.
func hexUUIDv1(s sight) (telling, bool) {
	v := s.value
	if v[12] != '1' || strings.IndexByte("89ab", v[16]) < 0 || !all(v, lowerHex) {
		return telling{}, false
	}
	// 60 bits: the low, middle and high part, from the lowest on.
	ticks := parseHex(v[13:16])<<48 | parseHex(v[8:12])<<32 | parseHex(v[:8])
	const gregorian = 122_192_928_000_000_000 // hundreds of nanoseconds from 1582-10-15 to 1970
	if ticks < gregorian {
		return telling{}, false
	}
	ticks -= gregorian
	created := time.Unix(ticks/1e7, ticks%1e7*100).UTC()
	return telling{created: created}, plausible(created, since2020, s.now.Add(day))
}
