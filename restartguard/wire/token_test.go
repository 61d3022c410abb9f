package wire

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"redlockctl/restartguard"
)

// Two copies of one value count for one attempt only where nobody else can have
// written the same.
func TestWhatIsNoToken(t *testing.T) {
	for name, c := range map[string]struct{ key, value, part string }{
		"this program's":        {"a", "AZaz09-_AZaz09-_AZaz09-_AZA", ""},
		"this program's revoke": {"a", "redlockctl:revoked:AZaz09-_AZaz09-_AZaz09-_AZA", ""},
		"redsync":               {"a", "AZaz09+/AZaz09+/AZaz0A==", ""},
		"node-redlock":          {"a", "0123456789abcdef0123456789abcdef", ""},
		"a UUID":                {"a", "123e4567-e89b-42d3-a456-426614174000", ""},
		"a constant":            {"a", "1", "library"},
		"a word":                {"a", "locked", "library"},
		"the name of a machine": {"a", "web-7.example.org", "library"},
		"nothing":               {"a", "", "library"},
		"a time":                {"lock.a", strconv.FormatInt(time.Now().Unix(), 10), "a time"},
		"a counter":             {"redisson_lock_token:{a}", "17", "beside locks by Redisson"},
		"too long":              {"a", strings.Repeat("a", tokenMost+1), "too long"},
	} {
		t.Run(name, func(t *testing.T) {
			why := noToken(c.key, c.value)
			if (why == "") != (c.part == "") || !strings.Contains(why, c.part) {
				t.Errorf("%q", why)
			}
		})
	}
	for key, want := range map[string]bool{
		restartguard.CounterKey: true, canaryPrefix + "x": true, fencingPrefix + "a": true,
		"redlockctl:a": false, "redlockctl:guard": false, "a": false,
	} {
		if isOurKey(key) != want {
			t.Errorf("%s: %t", key, isOurKey(key))
		}
	}
}
