package record

import (
	"time"

	"redlockctl/monitor"
)

// taking is a pass through all locks, some at a time, in the order of their keys: there may be a
// million. What happens to them meanwhile is followed as ever.
type taking struct {
	on    bool
	next  string // the first that is not taken in yet
	again bool   // more has changed meanwhile than is known: once more
	// noneOpen: no grant was open when it began, but of locks of which something was told since.
	noneOpen bool
	told     map[string]bool
}

// none reports whether a lock has no open grant: it is not taken in yet.
func (t *taking) none(lock string) bool { return t.noneOpen && lock >= t.next && !t.told[lock] }

// takeIn begins to bring the open grants in line with what is there, and to look at each lock.
func (b *batch) takeIn(s *monitor.Snapshot) {
	b.endGone(s)
	b.looks.version = s.Version
	b.lookAtAll(s)
	b.taking.noneOpen, b.taking.told = b.grants.all && len(b.grants.open) == 0, map[string]bool{}
}

// lookAtAll begins to look at all locks.
func (b *batch) lookAtAll(s *monitor.Snapshot) {
	for key := range b.looks.open {
		if s.Locks.Get(key) == nil {
			b.look(key, nil)
		}
	}
	b.taking = taking{on: true}
}

// goOn takes in locks for a while, with pauses, or until the context ends.
func (b *batch) goOn(s *monitor.Snapshot) {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for begun := time.Now(); b.err == nil && b.ctx.Err() == nil; {
		from := time.Now()
		if b.takeInNext(s); !b.taking.on || time.Since(begun) >= b.most {
			return
		}
		pause.Reset(takeInPause * time.Since(from))
		select {
		case <-b.ctx.Done():
		case <-pause.C:
		}
	}
}

// takeInNext takes in the next locks. What changes is written as it goes.
func (b *batch) takeInNext(s *monitor.Snapshot) {
	left := takeInSome
	for l := range s.Locks.From(b.taking.next) {
		if left--; left < 0 {
			b.writeGrants()
			b.taking.next = l.Key.Raw()
			return
		}
		if granted(l, s.Cluster.Quorum) {
			b.takeInGrant(l)
		}
		b.look(l.Key.Raw(), l)
		if b.err != nil {
			return
		}
	}
	if !b.follows {
		b.follows = true
		b.exec(`UPDATE runs SET locks_ms = ? WHERE id = ?`, millis(b.now), b.run)
	}
	if b.taking = (taking{on: b.taking.again}); b.taking.on {
		b.lookAtAll(s)
	}
}
