// Package glob has patterns as SCAN MATCH understands them.
package glob

import (
	"strings"
)

// Pattern is a pattern as SCAN MATCH understands it.
type Pattern string

// Match reports whether a key matches, in time that grows with the product of the
// lengths at most: patterns are the operator's, keys are anybody's.
func (g Pattern) Match(key []byte) bool {
	p, k := 0, 0
	star, from := -1, 0 // the last *, and where its rest was tried
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

// one matches a byte with what stands at p, and tells how long that is.
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
			case i >= len(g): // not closed: it ends with the pattern
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

// Literal is the beginning that all matching keys have.
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

// Own begins the names of counters and canaries of this program: no locks.
const Own = "redlockctl:"

// Patterns are the patterns of keys that are locks.
type Patterns []Pattern

func New(patterns []string) Patterns {
	out := make(Patterns, len(patterns))
	for i, p := range patterns {
		out[i] = Pattern(p)
	}
	return out
}

// Match reports whether a key may be a lock: one of the patterns fits, and it is none
// of the counters and canaries of this program.
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

// Prefixes are the literal beginnings of the patterns, as few as do: none of
// them begins another, which servers refuse. An empty one stands alone.
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

// Quote is the pattern that only this key matches.
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

// PrefixPattern is the pattern of all keys that begin so; empty for no beginning.
func Prefix(begun string) string {
	if begun == "" {
		return ""
	}
	return string(Quote(begun)) + "*"
}
