package monitor

import (
	"math"
	"os"
	"strconv"
	"strings"
)

// The table of locks has a budget in bytes, see Options.MaxMemory. What finds no
// room in it is counted and not kept: what is shown is right, and a finding says
// that it is not all. Each lock that is kept is kept with all its copies.
const (
	// memoryShare is which part of the machine's memory a monitor may use.
	memoryShare = 4
	leastMemory = 32 << 20
	// unknownMemory is taken for the machine's memory where that cannot be read.
	unknownMemory = 2 << 30
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

// DefaultMaxMemory is a quarter of the memory that this process may use: the
// machine's, or that of its control group, if that is less.
func DefaultMaxMemory() int64 { return max(machineMemory(os.ReadFile)/memoryShare, leastMemory) }

// machineMemory is how much memory there is for this process, in bytes.
func machineMemory(read func(string) ([]byte, error)) int64 {
	least := int64(math.MaxInt64)
	if text, err := read("/proc/meminfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if rest, ok := strings.CutPrefix(line, "MemTotal:"); ok {
				if kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64); err == nil && kb > 0 {
					least = kb << 10
				}
			}
		}
	}
	groups := []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}
	if text, err := read("/proc/self/cgroup"); err == nil {
		// Of a service: the limit of each group that it is in.
		for line := range strings.Lines(string(text)) {
			path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::/")
			for ; ok && path != ""; path = path[:max(0, strings.LastIndexByte(path, '/'))] {
				groups = append(groups, "/sys/fs/cgroup/"+path+"/memory.max")
			}
		}
	}
	for _, file := range groups {
		if text, err := read(file); err == nil {
			if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && n > 0 {
				least = min(least, n)
			}
		}
	}
	if least == math.MaxInt64 {
		return unknownMemory
	}
	return least
}

// room is what a table may keep, in bytes, and what it keeps.
type room struct {
	locks   int64 // for all keys; 0: no bound
	foreign int64 // for those that are no locks
	used    int64
	strange int64 // what keys that are no locks use
}

// newRoom is the budget of a monitor that may use so much memory in all.
func newRoom(memory int64) room {
	if memory <= 0 {
		return room{}
	}
	return room{locks: memory / collected, foreign: memory / collected / foreignShare}
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
	costKey   = 412
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
