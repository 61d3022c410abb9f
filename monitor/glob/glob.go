// Package glob implements patterns like those of SCAN MATCH.
package glob

import (
	"strings"
)

// Pattern is a pattern as in SCAN MATCH.
type Pattern string

// Match reports whether a key matches. Its time is at most proportional to the product of
// the lengths: patterns are the operator's, but keys may be anybody's.
func (g Pattern) Match(key []byte) bool {
	p, k := 0, 0
	star, from := -1, 0 // the last *, and where the rest was tried
	for {
		if p < len(g) && g[p] == '*' {
			star, from = p, k
			p++
			continue
		}
		if p == len(g) && k == len(key) {
			return true
		}
		if p < len(g) && k < len(key) {
			if n, ok := g.one(p, key[k]); ok {
				p, k = p+n, k+1
				continue
			}
		}
		if star < 0 || from >= len(key) {
			return false
		}
		from++
		p, k = star+1, from
	}
}

// one matches a byte with the element at p, and returns the element's length.
func (g Pattern) one(p int, c byte) (n int, ok bool) {
	switch g[p] {
	case '?':
		return 1, true
	case '\\':
		if p+1 < len(g) {
			return 2, g[p+1] == c
		}
		return 1, c == '\\'
	case '[':
		i := p + 1
		not := i < len(g) && g[i] == '^'
		if not {
			i++
		}
		for {
			switch {
			case i >= len(g): // not closed: ends with the pattern
				return i - p, ok != not
			case g[i] == '\\' && i+1 < len(g):
				ok = ok || g[i+1] == c
				i += 2
			case g[i] == ']':
				return i + 1 - p, ok != not
			case i+2 < len(g) && g[i+1] == '-':
				lo, hi := min(g[i], g[i+2]), max(g[i], g[i+2])
				ok = ok || lo <= c && c <= hi
				i += 3
			default:
				ok = ok || g[i] == c
				i++
			}
		}
	}
	return 1, g[p] == c
}

// Literal returns the prefix that all matching keys share.
func (g Pattern) Literal() string {
	var b strings.Builder
	for i := 0; i < len(g); i++ {
		switch g[i] {
		case '*', '?', '[':
			return b.String()
		case '\\':
			if i++; i == len(g) {
				return b.String()
			}
		}
		b.WriteByte(g[i])
	}
	return b.String()
}

// Own is the prefix of this program's counters and canaries, which are not locks.
const Own = "redlockctl:"

// Patterns are the patterns of lock keys.
type Patterns []Pattern

func New(patterns []string) Patterns {
	out := make(Patterns, len(patterns))
	for i, p := range patterns {
		out[i] = Pattern(p)
	}
	return out
}

// Match reports whether a key may be a lock: one of the patterns matches, and it is not
// one of this program's counters and canaries.
func (g Patterns) Match(key []byte) bool {
	if len(key) >= len(Own) && string(key[:len(Own)]) == Own {
		return false
	}
	for _, p := range g {
		if p.Match(key) {
			return true
		}
	}
	return false
}

// Prefixes returns the smallest set of literal prefixes of the patterns: none is a prefix
// of another, which servers refuse. An empty one is the only one.
func (g Patterns) Prefixes() []string {
	var out []string
	for _, p := range g {
		lit := p.Literal()
		covered := false
		kept := out[:0]
		for _, have := range out {
			if strings.HasPrefix(lit, have) {
				covered = true
			}
			if !strings.HasPrefix(have, lit) || covered {
				kept = append(kept, have)
			}
		}
		if out = kept; !covered {
			out = append(out, lit)
		}
	}
	return out
}

// Quote returns the pattern that matches only this key.
func Quote(key string) Pattern {
	var b strings.Builder
	for i := range len(key) {
		switch key[i] {
		case '*', '?', '[', ']', '\\':
			b.WriteByte('\\')
		}
		b.WriteByte(key[i])
	}
	return Pattern(b.String())
}

// Prefix returns the pattern of all keys with this prefix; empty for an empty prefix.
func Prefix(begun string) string {
	if begun == "" {
		return ""
	}
	return string(Quote(begun)) + "*"
}
