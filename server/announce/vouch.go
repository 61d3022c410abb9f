package announce

import (
	"crypto/sha256"
	"encoding/base64"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"redlockctl/server/safetext"
)

// LockPrefix is the beginning of an announcement about a lock. [Pattern] matches it too.
const LockPrefix = Prefix + "lock:"

const (
	mostKey = 512 // bytes of a key; locks with longer keys are not announced
	// MostLocks is how many locks a guard announces on a node, and how many are read.
	MostLocks = 200
)

// Lock is what a guard knows about a lock that the remaining copies do not show: a grant
// that still runs although copies were lost, one that has ended although copies
// reappeared, or that there are no lost copies besides.
type Lock struct {
	Key   safetext.Text
	Token [8]byte // the beginning of the SHA-256 of the token, see [TokenSum]
	Short string  // the first characters of the token, for people
	Ended bool    // nobody relies on this token
	// LeftByStep: its copies are left because clocks of their nodes were stepped back; only with Ended.
	LeftByStep bool
	// Certain: nodes that lost their data have forgotten no other vote of this token than
	// its holder relies on until Until; zero: than those of an attempt that is under way.
	Certain bool
	// Until is how long the holder may rely on the lock, by the clock of the node with the
	// announcement; zero: no TTL.
	Until time.Time
	Lost  []string // names of the nodes that lost a copy
}

// TokenSum identifies a token without revealing it.
func TokenSum(token string) [8]byte {
	sum := sha256.Sum256([]byte(token))
	return [8]byte(sum[:8])
}

const mostShort = 6 // characters of a token that are announced

// ShortToken returns the part of a token that is announced.
func ShortToken(token string) string {
	return token[:min(len(token), mostShort, max(0, len(token)/3))]
}

// Channel returns the announcement; ok is false if the key is too long.
func (l Lock) Channel() (string, bool) {
	if len(l.Key.Raw()) > mostKey {
		return "", false
	}
	f := url.Values{"key": {l.Key.Raw()}, "token": {base64.RawURLEncoding.EncodeToString(l.Token[:])}}
	if l.Short != "" {
		f.Set("short", l.Short)
	}
	switch {
	case l.Ended:
		f.Set("ended", "1")
		if l.LeftByStep {
			f.Set("step", "1")
		}
	case !l.Until.IsZero():
		f.Set("until", strconv.FormatInt(l.Until.UnixMilli(), 10))
	}
	if l.Certain {
		f.Set("certain", "1")
	}
	if len(l.Lost) > 0 {
		f.Set("lost", strings.Join(l.Lost, " "))
	}
	c := LockPrefix + version + ":" + f.Encode()
	return c, len(c) <= 4*mostChannel
}

// DecodeLocks decodes the announcements about locks among the names of channels, at most
// a bounded number.
func DecodeLocks(channels []string) []Lock {
	var all []Lock
	for _, c := range channels {
		if l, ok := decodeLock(c); ok && len(all) < MostLocks {
			all = append(all, l)
		}
	}
	return all
}

func decodeLock(channel string) (l Lock, ok bool) {
	rest, ok := strings.CutPrefix(channel, LockPrefix+version+":")
	if !ok || len(channel) > 4*mostChannel {
		return l, false
	}
	f, err := url.ParseQuery(rest)
	if err != nil || f.Get("key") == "" || len(f.Get("key")) > mostKey {
		return l, false
	}
	sum, err := base64.RawURLEncoding.DecodeString(f.Get("token"))
	if err != nil || len(sum) != len(l.Token) {
		return l, false
	}
	l.Key, l.Token, l.Ended, l.Certain = safetext.New(f.Get("key")), [8]byte(sum), f.Get("ended") == "1", f.Get("certain") == "1"
	l.LeftByStep = l.Ended && f.Get("step") == "1"
	l.Short = f.Get("short")
	l.Short = l.Short[:min(len(l.Short), mostShort)]
	if text := f.Get("until"); text != "" {
		ms, err := strconv.ParseInt(text, 10, 64)
		if err != nil || ms <= 0 || ms > 1<<53 {
			return l, false
		}
		l.Until = time.UnixMilli(ms)
	}
	if names := strings.Fields(f.Get("lost")); len(names) > 0 {
		l.Lost = slices.Clip(names[:min(len(names), 64)])
	}
	return l, true
}
