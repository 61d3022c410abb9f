package glob

import (
	"strings"
	"testing"
)

// FuzzGlob: a key matches its own quoted form; a matching key starts with the literal
// part and with one of the prefixes.
func FuzzGlob(f *testing.F) {
	f.Add("lock:*", "lock:1")
	f.Add(`h[^a-c]l\*?[`, "hxl*\x00")
	f.Add(strings.Repeat("*a", 30)+"b", strings.Repeat("a", 200))
	f.Fuzz(func(t *testing.T, pattern, key string) {
		if len(pattern) > 256 || len(key) > 1<<10 {
			t.Skip("more of the same")
		}
		if !Quote(key).Match([]byte(key)) {
			t.Fatalf("%q does not match itself", key)
		}
		if key != "" && !Pattern(Prefix(key)).Match([]byte(key+"x")) {
			t.Fatalf("%q does not begin with itself", key)
		}
		g := New([]string{pattern})
		if !g.Match([]byte(key)) {
			return
		}
		if !strings.HasPrefix(key, Pattern(pattern).Literal()) {
			t.Fatalf("%q matches %q and does not begin with %q", key, pattern, Pattern(pattern).Literal())
		}
		for _, prefix := range g.Prefixes() {
			if strings.HasPrefix(key, prefix) {
				return
			}
		}
		t.Fatalf("%q matches %q and has none of %q", key, pattern, g.Prefixes())
	})
}
