package monitor

import (
	"iter"

	"github.com/tidwall/btree"

	"redlockctl/internal/safetext"
)

// Locks is a set of locks, sorted by key. It is immutable: what a snapshot holds
// never changes, and the locks that two snapshots have in common are the same in
// memory. The zero value is the empty set.
type Locks struct{ tree *btree.BTreeG[*Lock] }

// NewLocks is the set of these locks; of two with one key the last one counts.
func NewLocks(locks ...Lock) Locks {
	tree := newLockTree()
	for i := range locks {
		tree.Set(&locks[i])
	}
	return Locks{tree}
}

// newLockTree is an empty tree. It has no lock of its own: it is written under
// the monitor's, and what readers have is a copy that is never written.
func newLockTree() *btree.BTreeG[*Lock] {
	return btree.NewBTreeGOptions(func(a, b *Lock) bool { return a.Key.Raw() < b.Key.Raw() }, btree.Options{NoLocks: true})
}

// Len is how many locks there are.
func (l Locks) Len() int {
	if l.tree == nil {
		return 0
	}
	return l.tree.Len()
}

// Get is the lock with this key, or nil. It must not be changed.
func (l Locks) Get(key string) *Lock {
	if l.tree == nil {
		return nil
	}
	found, _ := l.tree.Get(lockAt(key))
	return found
}

// All are the locks in the order of their keys. They must not be changed.
func (l Locks) All() iter.Seq[*Lock] { return l.From("") }

// From are the locks from this key on, in the order of their keys.
func (l Locks) From(key string) iter.Seq[*Lock] {
	return func(yield func(*Lock) bool) {
		if l.tree != nil {
			l.tree.Ascend(lockAt(key), yield)
		}
	}
}

func lockAt(key string) *Lock { return &Lock{Key: safetext.New(key)} }
