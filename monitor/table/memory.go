package table

// The table of locks has a budget in bytes, see Options.MaxMemory. What finds no
// room in it is counted and not kept: what is shown is right, and a finding says
// that it is not all. Each lock that is kept is kept with all its copies.
const (
	// collected: the garbage collector lets the heap grow to this many times what
	// is in use.
	collected = 2
	// foreignShare is which part of the budget keys that are no locks may take: a
	// huge keyspace under "*" must not push out the locks in it.
	foreignShare = 4
	// grownShare: what a lock needs beyond what it had when it was let in (a longer
	// value, several tokens) may exceed the budget by this part of it.
	grownShare = 16
)

// room is what a table may keep, in bytes, and what it keeps.
type room struct {
	locks   int64 // for all keys; 0: no bound
	foreign int64 // for those that are no locks
	used    int64
	strange int64 // what keys that are no locks use
}

// Bound has the table of a monitor that may use so much memory in all keep to its budget;
// 0: there is none.
func (t *Table) Bound(memory int64) {
	t.room.locks, t.room.foreign = memory/collected, memory/collected/foreignShare
}

// full reports whether no further lock finds room.
func (r *room) full() bool { return r.locks > 0 && r.used >= r.locks }

// admits reports whether a key of such a cost finds room.
func (r *room) admits(cost int64, lock bool) bool {
	return r.locks == 0 || r.used+cost <= r.locks && (lock || r.strange+cost <= r.foreign)
}

// bursts reports whether what was let in has grown beyond all bounds.
func (r *room) bursts() bool { return r.locks > 0 && r.used > r.locks+r.locks/grownShare }

// What a key takes, in bytes: a record, a published lock, and its places in the
// map, the tree and the lists, measured; for each node a copy, kept and published;
// for each token its value, and its place.
const (
	costKey   = 472
	costCopy  = 24
	costToken = 32
)

// cost is what r takes.
func (r *record) cost() int64 {
	n := int64(costKey + costCopy*len(r.Copies) + len(r.key()))
	for i := range r.Tokens {
		n += costToken + int64(len(r.Tokens[i].Prefix))
	}
	return n
}

// add reckons bytes of r.
func (m *room) add(r *record, bytes int64) {
	m.used += bytes
	if r.foreign {
		m.strange += bytes
	}
}

// refusals counts keys of a node that are not kept: all of them, and those that may
// be locks.
type refusals struct{ keys, locks int }

func (r *refusals) add(keys int, locks bool) {
	r.keys += keys
	if locks {
		r.locks += keys
	}
}
