package observe

import (
	"slices"
	"strings"

	"redlockctl/monitor/glob"
	"redlockctl/monitor/wire"
)

// sought is which keys are looked at.
type sought struct {
	patterns glob.Patterns // that are scanned for, one after the other
	also     glob.Patterns // a key has to match one of these too; nil: it need not
	keys     []string      // these alone, and nothing is scanned for; nil: all that match
}

func newSought(opt Options) sought {
	switch {
	case opt.NoLocks:
		return sought{}
	case len(opt.Keys) > 0:
		s := sought{}
		for _, key := range opt.Keys {
			if len(key) <= wire.LongestKey && !strings.HasPrefix(key, glob.Own) {
				s.also, s.keys = append(s.also, glob.Quote(key)), append(s.keys, key)
			}
		}
		return s
	case opt.Match != "":
		return sought{patterns: glob.Patterns{glob.Pattern(opt.Match)}, also: glob.New(opt.LockPatterns)}
	}
	return sought{patterns: glob.New(opt.LockPatterns)}
}

// keeps reports whether a key that a scan found is looked at.
func (s sought) keeps(key string) bool {
	return !strings.HasPrefix(key, glob.Own) && (s.also == nil || s.also.Match([]byte(key)))
}

// match reports whether a key is looked at.
func (s sought) match(key []byte) bool {
	return (s.patterns == nil || s.patterns.Match(key)) && (s.also == nil || s.also.Match(key))
}

// prefixes are beginnings that all these keys have, as few as do.
func (s sought) prefixes() []string {
	p := s.patterns.Prefixes()
	if s.also != nil && (len(p) == 0 || slices.Contains(p, "")) {
		return s.also.Prefixes()
	}
	return p
}
