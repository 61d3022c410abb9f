package announce

import (
	"crypto/sha256"
	"encoding/base64"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"redlockctl/internal/safetext"
)

// LockPrefix begins the announcement of what a guard knows of a lock. [Pattern] matches it too.
const LockPrefix = Prefix + "lock:"

const (
	mostKey = 512 // bytes of a key that is announced; a longer one is not
	// MostLocks is how many locks a guard announces on a node at most, and how many are read.
	MostLocks = 200
)

// Lock is what a guard that watches locks knows of one, and what nobody can find out from the
// copies that are left: a grant that runs though copies were lost, or one that has ended
// though copies came back.
type Lock struct {
	Key   safetext.Text
	Token [8]byte // the beginning of the SHA-256 of the token, see [TokenSum]
	Short string  // the first characters of the token, for people
	Ended bool    // nobody relies on this token
	// Until is until when the holder may rely on the lock, by the clock of the node that
	// carries the announcement; zero: without end.
	Until time.Time
	Lost  []string // names of the nodes that lost a copy
}

// TokenSum tells tokens apart without saying what they are.
func TokenSum(token string) [8]byte {
	sum := sha256.Sum256([]byte(token))
	return [8]byte(sum[:8])
}

const mostShort = 6 // characters of a token that are announced

// ShortToken is the part of a token that an announcement has.
func ShortToken(token string) string {
	return token[:min(len(token), mostShort, max(0, len(token)/3))]
}

// Channel is the announcement; false: the key is too long for one.
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
	case !l.Until.IsZero():
		f.Set("until", strconv.FormatInt(l.Until.UnixMilli(), 10))
	}
	if len(l.Lost) > 0 {
		f.Set("lost", strings.Join(l.Lost, " "))
	}
	c := LockPrefix + version + ":" + f.Encode()
	return c, len(c) <= 4*mostChannel
}

// DecodeLocks reads what guards say of locks from the names of channels; no more than a bounded
// number of it.
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
	l.Key, l.Token, l.Ended = safetext.New(f.Get("key")), [8]byte(sum), f.Get("ended") == "1"
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
