package table

// The lock table has a budget in bytes, see Options.MaxMemory. Keys beyond it are only
// counted: what is shown is right, and a finding says that it is incomplete. A lock is
// kept with all its copies.
const (
	// collected: the garbage collector lets the heap grow to this many times the live
	// data.
	collected = 2
	// foreignShare is the fraction of the budget for keys that are not locks: a huge
	// keyspace under "*" must not push out the locks in it.
	foreignShare = 4
	// grownShare: growth of locks after they were admitted (a longer value, several
	// tokens) may exceed the budget by this fraction.
	grownShare = 16
)

// room is the budget of a table, in bytes, and what is used of it.
type room struct {
	locks   int64 // for all keys; 0: no limit
	foreign int64 // for keys that are not locks
	used    int64
	strange int64 // used by keys that are not locks
}

// Bound sets the budget of the table from the memory that the whole monitor may use; 0:
// no limit.
func (t *Table) Bound(memory int64) {
	t.room.locks, t.room.foreign = memory/collected, memory/collected/foreignShare
}

// full reports whether there is no room for another lock.
func (r *room) full() bool { return r.locks > 0 && r.used >= r.locks }

// admits reports whether there is room for a key of this cost.
func (r *room) admits(cost int64, lock bool) bool {
	return r.locks == 0 || r.used+cost <= r.locks && (lock || r.strange+cost <= r.foreign)
}

// bursts reports whether admitted locks have grown beyond the limit.
func (r *room) bursts() bool { return r.locks > 0 && r.used > r.locks+r.locks/grownShare }

// Measured cost of a key, in bytes: a record, a published lock, and its entries in the
// map, the tree and the lists; for each node a copy, kept and published; for each token
// its value and its entry.
const (
	costKey   = 512
	costCopy  = 24
	costToken = 32
)

// cost returns the bytes that r uses.
func (r *record) cost() int64 {
	n := int64(costKey + costCopy*len(r.Copies) + len(r.key()))
	for i := range r.Tokens {
		n += costToken + int64(len(r.Tokens[i].Prefix))
	}
	return n
}

// add accounts bytes to r.
func (m *room) add(r *record, bytes int64) {
	m.used += bytes
	if r.foreign {
		m.strange += bytes
	}
}

// refusals counts keys of a node that are not kept: all, and those that may be locks.
type refusals struct{ keys, locks int }

func (r *refusals) add(keys int, locks bool) {
	r.keys += keys
	if locks {
		r.locks += keys
	}
}
