package page

import (
	"maps"
	"slices"

	"redlockctl/monitor"
)

// Marks has the keys of the marked locks, for an action on several.
type Marks map[string]bool

// MostMarks bounds the marks: nobody reads more results.
const MostMarks = 1000

// Sorted returns the marked keys in order.
func (m Marks) Sorted() []string {
	return slices.Sorted(maps.Keys(m))
}

// keep drops the marks of locks that are gone: a later lock with the same name is another
// one.
func (m Marks) keep(locks monitor.Locks) {
	for key := range m {
		if locks.Get(key) == nil {
			delete(m, key)
		}
	}
}
