package monitor

import (
	"strings"
	"testing"
	"time"
	"unicode"

	"redlockctl/monitor/glob"
	"redlockctl/server/safetext"
)

// FuzzFilter: a filter selects the same each time, whatever is typed, and its errors can
// be shown.
func FuzzFilter(f *testing.F) {
	for _, s := range append(FilterOffers("", nil), "job: -state:held", `"a b" ttl<=5s`, "margin:>=0 copies:3", "-lib:x node:n1", "ttl>1h30m age<2d", `*a[b\*`, "\x1b\"") {
		f.Add(s, "job:1")
	}
	for _, s := range []string{"0", "b0", "backup", "xb0", "ar", "k", "i", "name:a?b", "U0001"} { // keys that are shown with escapes
		for _, key := range []string{"\xb0", "\x0backup", "\bar", "\u212a", "\u0130", "a\u212ab", "\U000e0001"} {
			f.Add(s, key)
		}
	}
	now := time.Unix(1700000000, 0)
	nodes := []Node{{Name: "n1"}, {Name: "n2"}}
	copies := PackCopies(Copy{State: CopyPresent, Expires: now.Add(time.Second)}, Copy{})
	f.Fuzz(func(t *testing.T, text, key string) {
		if len(text) > 1<<10 || len(key) > 1<<10 {
			t.Skip("more of the same")
		}
		filter := ParseFilter(text).At(now)
		l := &Lock{Key: safetext.New(key), State: LockHeld, Copies: copies}
		chosen := filter.Match(l, nodes)
		if chosen != filter.Match(l, nodes) {
			t.Fatal("it chooses and does not choose")
		}
		if err := filter.Check(nodes); err != nil && strings.ContainsFunc(err.Error(), func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) {
			t.Fatalf("raw: %q", err)
		}
		// The pattern sent to a server must match everything that is selected.
		if p := filter.Pattern(); p != "" && chosen && !glob.Pattern(p).Match([]byte(key)) {
			t.Fatalf("%q is chosen by %q, and not found by %q", key, text, p)
		}
	})
}
