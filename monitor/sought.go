package monitor

import (
	"slices"
	"strings"
)

// sought is which keys are looked at.
type sought struct {
	patterns globs    // that are scanned for, one after the other
	also     globs    // a key has to match one of these too; nil: it need not
	keys     []string // these alone, and nothing is scanned for; nil: all that match
}

func newSought(opt Options) sought {
	switch {
	case opt.NoLocks:
		return sought{}
	case len(opt.Keys) > 0:
		s := sought{}
		for _, key := range opt.Keys {
			if len(key) <= longestKey && !strings.HasPrefix(key, ownPrefix) {
				s.also, s.keys = append(s.also, quoteGlob(key)), append(s.keys, key)
			}
		}
		return s
	case opt.Match != "":
		return sought{patterns: globs{glob(opt.Match)}, also: newGlobs(opt.LockPatterns)}
	}
	return sought{patterns: newGlobs(opt.LockPatterns)}
}

// keeps reports whether a key that a scan found is looked at.
func (s sought) keeps(key string) bool {
	return !strings.HasPrefix(key, ownPrefix) && (s.also == nil || s.also.match([]byte(key)))
}

// match reports whether a key is looked at.
func (s sought) match(key []byte) bool {
	return (s.patterns == nil || s.patterns.match(key)) && (s.also == nil || s.also.match(key))
}

// prefixes are beginnings that all these keys have, as few as do.
func (s sought) prefixes() []string {
	p := s.patterns.prefixes()
	if s.also != nil && (len(p) == 0 || slices.Contains(p, "")) {
		return s.also.prefixes()
	}
	return p
}
