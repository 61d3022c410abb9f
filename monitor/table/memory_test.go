package table

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"redlockctl/monitor"
)

// fillTable reads keys from..to−1 of this type on all nodes of a table.
func fillTable(tb *Table, at time.Time, from, to int, typ, name string, ttl time.Duration) {
	for i := range tb.nodes {
		for k := from; k < to; k += 200 {
			var rows []Row
			for j := k; j < min(to, k+200); j++ {
				rows = append(rows, Row{Key: fmt.Sprintf("%s:%08d", name, j), Type: typ, TTL: ttl, Len: 24, Prefix: fmt.Sprintf("token%019d", j)})
			}
			tb.Read(i, at, at, rows)
		}
	}
}

func budgeted(now time.Time, memory int64) *Table {
	tb := New([]string{"n1", "n2", "n3", "n4", "n5"}, 3, 0, time.Second, now, func(monitor.Event) {})
	tb.Bound(memory)
	for i := range tb.nodes {
		tb.Reachable(i, false)
	}
	return tb
}

func heapInUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// The accounted memory is what the locks use, or slightly more, and all of it is
// returned.
func TestTheTableKnowsWhatItTakes(t *testing.T) {
	const n = 50_000
	before, now := heapInUse(), time.Now()
	tb := budgeted(now, 1<<40)
	fillTable(tb, now, 0, n, "string", "lock", time.Hour)
	for i := range tb.nodes {
		tb.Scanned(i, tb.nodes[i].epoch, now, now)
		tb.Sync(i, now)
	}
	tb.Settle(now)
	tb.fresh = nil
	took := heapInUse() - before
	t.Logf("%d bytes a lock, reckoned at %d", took/n, tb.room.used/n)
	if used := tb.room.used; used < took || used > 3*took/2 {
		t.Errorf("reckoned at %d bytes a lock, and they take %d", used/n, took/n)
	}
	tb.Refresh(now.Add(2 * time.Hour))
	if tb.room.used != 0 || tb.locks.Len() != 0 {
		t.Errorf("%d bytes and %d locks are left", tb.room.used, tb.locks.Len())
	}
}

// A full table keeps what it has, with all copies, up to date; counts what it refuses;
// and admits others when there is room again. Keys that are not locks never push out
// locks, and growing values cannot exceed the limit.
func TestATableWithoutRoom(t *testing.T) {
	now := time.Now()
	tb := budgeted(now, 8<<20)
	whole := func() {
		for i := range tb.nodes {
			tb.Scanned(i, tb.nodes[i].epoch, now, now)
		}
		tb.Refresh(now)
	}
	fillTable(tb, now, 0, 20_000, "list", "other", -1)
	if tb.room.strange > tb.room.foreign || tb.room.strange < tb.room.foreign/2 || tb.room.used != tb.room.strange {
		t.Fatalf("keys that are no locks: %+v", tb.room)
	}
	fillTable(tb, now, 0, 20_000, "string", "lock", time.Hour)
	whole()
	kept := tb.locks.Len()
	if tb.room.used > tb.room.locks || tb.room.used < tb.room.locks/2 || tb.counts[monitor.LockHeld] == 0 {
		t.Fatalf("%+v, %v", tb.room, tb.counts)
	}
	for i := range tb.nodes {
		if want := 40_000 - kept; tb.nodes[i].unkept().keys != want {
			t.Errorf("node %d: %d keys unread, not %d", i, tb.nodes[i].unkept().keys, want)
		}
	}
	for l := range tb.Locks().All() {
		for _, c := range l.Copies.All() {
			if c.State != monitor.CopyPresent {
				t.Fatalf("%s: %v", l.Key, c)
			}
		}
	}
	if got := tb.Wanted(0, []string{"lock:00000001", "lock:00019999"}, true); tb.room.full() && len(got) != 1 {
		t.Errorf("worth reading: %q", got)
	}
	// A known lock changes its holder.
	for i := range tb.nodes {
		tb.Read(i, now, now, []Row{{Key: "lock:00000001", Type: "string", TTL: time.Hour, Len: 5, Prefix: "other"}})
	}
	tb.Refresh(now)
	if l := tb.Locks().Get("lock:00000001"); l == nil || l.Held != 5 || l.Holder.Raw() != "other" {
		t.Errorf("%v", l)
	}
	// Long values replace short ones.
	for round := range 4 {
		for i := range tb.nodes {
			var rows []Row
			for k := range 20_000 {
				rows = append(rows, Row{Key: fmt.Sprintf("lock:%08d", k), Type: "string", TTL: time.Hour, Len: 128, Prefix: fmt.Sprintf("%d%d%0126d", round, i, k)})
			}
			tb.Read(i, now, now, rows)
		}
		if most := tb.room.locks + tb.room.locks/8; tb.room.used > most {
			t.Fatalf("grown to %d, of %d", tb.room.used, tb.room.locks)
		}
	}
	// They end, which makes room for others.
	now = now.Add(2 * time.Hour)
	tb.Refresh(now)
	fillTable(tb, now, 30_000, 30_100, "string", "lock", time.Hour)
	whole()
	if tb.counts[monitor.LockHeld] != 100 {
		t.Errorf("%v", tb.counts)
	}
	for i := range tb.nodes {
		tb.nodes[i].refused = refusals{} // a full read starts
	}
	whole()
	whole()
	if tb.nodes[0].unkept().keys != 0 {
		t.Errorf("%d keys unread", tb.nodes[0].unkept().keys)
	}
}
