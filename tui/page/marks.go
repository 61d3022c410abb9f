package page

import (
	"maps"
	"slices"

	"redlockctl/monitor"
)

// Marks are the keys of the locks that a person has marked, to act on several.
type Marks map[string]bool

// MostMarks bounds them: nobody reads the results of more.
const MostMarks = 1000

// Sorted are the marked keys in order.
func (m Marks) Sorted() []string {
	return slices.Sorted(maps.Keys(m))
}

// keep forgets the marks of locks that are gone: one that comes again under the
// same name is another one.
func (m Marks) keep(locks monitor.Locks) {
	for key := range m {
		if locks.Get(key) == nil {
			delete(m, key)
		}
	}
}
