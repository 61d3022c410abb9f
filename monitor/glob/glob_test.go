package glob

import (
	"path"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestPatternsMatchAsServersMatch(t *testing.T) {
	for _, c := range []struct {
		pattern, key string
		want         bool
	}{
		{"*", "", true}, {"*", "a", true}, {"", "", true}, {"", "a", false},
		{"lock:*", "lock:", true}, {"lock:*", "lock", false}, {"lock:*", "xlock:1", false},
		{"*:lock", "a:lock", true}, {"*:lock", "a:lock:b", false}, {"*a*b*", "xxaxxbxx", true}, {"*a*b*", "xxbxxaxx", false},
		{"h?llo", "hello", true}, {"h?llo", "hllo", false}, {"h[ae]llo", "hallo", true}, {"h[ae]llo", "hillo", false},
		{"h[^e]llo", "hallo", true}, {"h[^e]llo", "hello", false}, {"h[a-c]llo", "hbllo", true}, {"h[c-a]llo", "hbllo", true},
		{`a\*b`, "a*b", true}, {`a\*b`, "axb", false}, {`a[\]]b`, "a]b", true}, {`a\`, `a\`, true},
		{"a[bc", "ab", true}, {"a[bc", "ad", false}, {"**a", "ba", true}, {"a*", "a\x00\xff", true},
	} {
		if got := Pattern(c.pattern).Match([]byte(c.key)); got != c.want {
			t.Errorf("%q %q: %t", c.pattern, c.key, got)
		}
	}
	if Pattern(strings.Repeat("*a", 30) + "b").Match([]byte(strings.Repeat("a", 2000))) {
		t.Error("it matches")
	}
}

// If both can read a pattern, path.Match gives the expected result.
func TestPatternsMatchAsPathsMatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		letters := rapid.StringOfN(rapid.RuneFrom([]rune("ab*?")), 0, 8, -1)
		pattern, key := letters.Draw(t, "pattern"), rapid.StringOfN(rapid.RuneFrom([]rune("ab")), 0, 8, -1).Draw(t, "key")
		want, err := path.Match(pattern, key)
		if got := Pattern(pattern).Match([]byte(key)); err != nil || got != want {
			t.Errorf("%q %q: %t", pattern, key, got)
		}
		if want && !strings.HasPrefix(key, Pattern(pattern).Literal()) {
			t.Errorf("%q does not begin with %q", key, Pattern(pattern).Literal())
		}
	})
}

func TestPrefixesDoNotOverlap(t *testing.T) {
	for _, c := range []struct{ patterns, want []string }{
		{[]string{"*"}, []string{""}},
		{[]string{"lock:*", "*:lock"}, []string{""}},
		{[]string{"lock:*", "lock:a*", "job:*"}, []string{"lock:", "job:"}},
		{[]string{"lock:ab*", "lock:cd*", "lock:*"}, []string{"lock:"}},
		{[]string{"a?", "ab*", "a"}, []string{"a"}},
		{[]string{`x\*y*`, "x[ab]"}, []string{"x"}},
		{[]string{"one", "one"}, []string{"one"}},
	} {
		if got := New(c.patterns).Prefixes(); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q", c.patterns, got)
		}
	}
}

func TestOwnKeysAreNoLocks(t *testing.T) {
	g := New([]string{"*"})
	if g.Match([]byte("redlockctl:canary")) || !g.Match([]byte("redlockct")) {
		t.Error("wrong keys")
	}
}
