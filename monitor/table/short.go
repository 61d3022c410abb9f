package table

import (
	"fmt"
	"math/bits"
	"time"

	"redlockctl/monitor"
	"redlockctl/monitor/internal/packed"
	"redlockctl/monitor/words"
)

const (
	shortWindow = time.Second      // within which the nodes of a grant are read
	shortEvery  = 10 * time.Second // between two events
	shortKeys   = 10_000           // per window
	endedFor    = 30 * time.Second // within which a node reports that a key has expired
	endedKeys   = 50_000           // of which that is awaited
)

// shortGrants counts locks that were gone before they were read: a node reported a change
// of a key, and then had no such key.
type shortGrants struct {
	began packed.Moment     // of the window
	keys  map[string]uint64 // by key: a bit for each node, in this window
	count int               // of locks that were so on a quorum, since told
	told  packed.Moment
	// Copies that have expired here, by key: the node has yet to report that. older are
	// those of the time before turned.
	expired, older map[string]uint64
	turned         packed.Moment
}

// cameAndWent records that node i has no key that it reported, and of which no copy was
// known.
func (t *Table) cameAndWent(i int, key string, now packed.Moment) {
	s := &t.short
	if !t.settled || i >= 64 {
		return
	}
	bit := uint64(1) << i
	for _, m := range []map[string]uint64{s.expired, s.older} {
		if m[key]&bit != 0 {
			m[key] &^= bit
			return
		}
	}
	t.countShort(now)
	if s.keys == nil {
		s.keys = map[string]uint64{}
	}
	if len(s.keys) < shortKeys {
		s.keys[key] |= bit
	}
}

// hasExpired records that copy i of a key has expired: its node will report that.
func (s *shortGrants) hasExpired(i int, key string, now packed.Moment) {
	if time.Duration(now-s.turned) >= endedFor {
		s.older, s.expired, s.turned = s.expired, map[string]uint64{}, now
	}
	if i < 64 && len(s.expired) < endedKeys {
		s.expired[key] |= 1 << i
	}
}

// countShort counts the missed grants of a window that has ended, and begins the next.
func (t *Table) countShort(now packed.Moment) {
	s := &t.short
	if time.Duration(now-s.began) < shortWindow {
		return
	}
	for _, nodes := range s.keys {
		if bits.OnesCount64(nodes) >= t.quorum {
			s.count++
		}
	}
	clear(s.keys)
	s.began = now
}

// tellShort reports the grants that were perhaps missed.
func (t *Table) tellShort(now packed.Moment) {
	s := &t.short
	if t.countShort(now); s.count == 0 || s.told != 0 && time.Duration(now-s.told) < shortEvery {
		return
	}
	or := "" // a server does not say in which database a key changed
	if t.OtherDatabase != nil {
		if db := t.OtherDatabase(); db >= 0 {
			or = fmt.Sprintf(", or keys of another database changed (db%d)", db)
		}
	}
	t.emit(monitor.NodeEvent(t.Time(now), monitor.LevelNotice, "missed grants", "", "at least %s perhaps missed: the locks were gone before they could be read%s",
		words.Count(s.count, "grant was", "grants were"), or))
	s.count, s.told = 0, now
}
