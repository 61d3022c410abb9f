package monitor

import (
	"strings"
)

// glob is a pattern as SCAN MATCH understands it.
type glob string

// match reports whether a key matches, in time that grows with the product of the
// lengths at most: patterns are the operator's, keys are anybody's.
func (g glob) match(key []byte) bool {
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
func (g glob) one(p int, c byte) (n int, ok bool) {
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

// literal is the beginning that all matching keys have.
func (g glob) literal() string {
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

// ownPrefix begins the names of counters and canaries of this program: no locks.
const ownPrefix = "redlockctl:"

// globs are the patterns of keys that are locks.
type globs []glob

func newGlobs(patterns []string) globs {
	out := make(globs, len(patterns))
	for i, p := range patterns {
		out[i] = glob(p)
	}
	return out
}

// match reports whether a key may be a lock: one of the patterns fits, and it is none
// of the counters and canaries of this program.
func (g globs) match(key []byte) bool {
	if len(key) >= len(ownPrefix) && string(key[:len(ownPrefix)]) == ownPrefix {
		return false
	}
	for _, p := range g {
		if p.match(key) {
			return true
		}
	}
	return false
}

// prefixes are the literal beginnings of the patterns, as few as do: none of
// them begins another, which servers refuse. An empty one stands alone.
func (g globs) prefixes() []string {
	var out []string
	for _, p := range g {
		lit := p.literal()
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

// quoteGlob is the pattern that only this key matches.
func quoteGlob(key string) glob {
	var b strings.Builder
	for i := range len(key) {
		switch key[i] {
		case '*', '?', '[', ']', '\\':
			b.WriteByte('\\')
		}
		b.WriteByte(key[i])
	}
	return glob(b.String())
}

// PrefixPattern is the pattern of all keys that begin so; empty for no beginning.
func PrefixPattern(begun string) string {
	if begun == "" {
		return ""
	}
	return string(quoteGlob(begun)) + "*"
}
