package who

import (
	"strings"
	"testing"

	"redlockctl/redlock"
)

// TestSelfFits: whatever the names of user and host, the owner fits a token, and the pid
// is complete.
func TestSelfFits(t *testing.T) {
	for name, c := range map[string]struct{ user, host, want string }{
		"short":         {"ann", "web-7", "ann@web-7:4711"},
		"a domain goes": {"ann", "web-7.very.long.domain.example.com", "ann@web-7:4711"},
		"a long host":   {"ann", strings.Repeat("h", 80), "ann@" + strings.Repeat("h", 27) + ":4711"},
		"both long":     {strings.Repeat("u", 80), strings.Repeat("h", 80), strings.Repeat("u", 15) + "@" + strings.Repeat("h", 15) + ":4711"},
		"odd":           {"a n\x1bé", "h:1", "a-n--@h-1:4711"},
	} {
		got := self(c.user, c.host, 4711)
		if got != c.want || len(got) > redlock.MostOwner {
			t.Errorf("%s: %q (%d bytes); want %q", name, got, len(got), c.want)
		}
	}
}

// TestNoConnectionIsTakenForAFence: a guard that starts ends connections of earlier
// guards, by their name.
func TestNoConnectionIsTakenForAFence(t *testing.T) {
	for _, what := range []string{"guard", "guard status", "console"} {
		if n := ConnName(what, "a@b:1"); strings.HasPrefix(n, "redlockctl:guard:") {
			t.Errorf("%s: %s", what, n)
		}
	}
}
