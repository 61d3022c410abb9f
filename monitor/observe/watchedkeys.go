package observe

import (
	"slices"
	"strings"

	"redlockctl/monitor/glob"
	"redlockctl/monitor/wire"
)

// watchedKeys says which keys are watched.
type watchedKeys struct {
	patterns glob.Patterns // scanned one after the other
	also     glob.Patterns // a key must match one of these too; nil: any key
	keys     []string      // only these, without a scan; nil: all that match
}

func newWatchedKeys(opt Options) watchedKeys {
	switch {
	case opt.NoLocks:
		return watchedKeys{}
	case len(opt.Keys) > 0:
		s := watchedKeys{}
		for _, key := range opt.Keys {
			if len(key) <= wire.LongestKey && !strings.HasPrefix(key, glob.Own) {
				s.also, s.keys = append(s.also, glob.Quote(key)), append(s.keys, key)
			}
		}
		return s
	case opt.Match != "":
		return watchedKeys{patterns: glob.Patterns{glob.Pattern(opt.Match)}, also: glob.New(opt.LockPatterns)}
	}
	return watchedKeys{patterns: glob.New(opt.LockPatterns)}
}

// keeps reports whether a key that a scan found is watched.
func (s watchedKeys) keeps(key string) bool {
	return !strings.HasPrefix(key, glob.Own) && (s.also == nil || s.also.Match([]byte(key)))
}

// match reports whether a key is watched.
func (s watchedKeys) match(key []byte) bool {
	return (s.patterns == nil || s.patterns.Match(key)) && (s.also == nil || s.also.Match(key))
}

// prefixes returns the smallest set of prefixes that covers all these keys.
func (s watchedKeys) prefixes() []string {
	p := s.patterns.Prefixes()
	if s.also != nil && (len(p) == 0 || slices.Contains(p, "")) {
		return s.also.Prefixes()
	}
	return p
}
