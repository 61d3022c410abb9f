package record

import (
	"path/filepath"
	"testing"
	"time"

	"redlockctl/monitor"
)

// A recorder that was stopped saw nothing of that time, though its run goes on: an answer about it is
// that nothing was recorded, and what was first seen after it may have begun in it.
func TestAPauseIsNotRecorded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record.db")
	start := time.Now().Add(-time.Hour).Truncate(time.Second)
	at := func(s float64) time.Time { return start.Add(time.Duration(s * float64(time.Second))) }
	from := &told{s: cluster(start)}
	from.s.Cluster.Verdict = monitor.VerdictSafe
	w := begin(t, path, from, start)
	write(t, w, from, at(1))
	from.tell("acquired", "job", "token-a", at(2), at(32))
	write(t, w, from, at(3))

	// Stopped from 3.5 to 9; the nodes were read again by 10.
	from.tell("own clock", "", "", at(9), time.Time{})
	from.tell("restart", "", "", at(9.1), time.Time{})
	from.events[len(from.events)-1].Node = "n3"
	from.tell("acquired", "other", "token-b", at(9.2), at(39))
	from.s.Pause = monitor.Pause{Since: at(3.5)}
	write(t, w, from, at(9.5))
	r := read(t, path)
	if m, err := r.At(at(9.4)); err != nil || m.By != "" {
		t.Errorf("before the nodes are read: by %q, %v", m.By, err)
	}
	from.s.Pause.Until = at(10)
	write(t, w, from, at(10.5))
	from.tell("acquired", "late", "token-c", at(11), at(39))
	write(t, w, from, at(12))

	if err := r.Refresh(); err != nil {
		t.Fatal(err)
	}
	for s, known := range map[float64]bool{3.4: true, 3.6: false, 6: false, 9.9: false, 10.1: true, 11: true} {
		m, err := r.At(at(s))
		if err != nil {
			t.Fatal(err)
		}
		if known != (m.By == "test") || known == (m.Snapshot.Cluster.Verdict == monitor.VerdictUnknown) {
			t.Errorf("at %v s: by %q, %s (%s)", s, m.By, m.Snapshot.Cluster.Verdict, m.Snapshot.Cluster.Reason)
		}
		if l := m.Snapshot.LockNamed("job"); known && (l == nil || !l.Since().Equal(at(2)) || m.Snapshot.Pause.Includes(l.Since())) {
			t.Errorf("at %v s: job is %+v", s, l)
		}
		if l := m.Snapshot.LockNamed("other"); s > 10 && (l == nil || !m.Snapshot.Pause.Includes(l.Since())) {
			t.Errorf("at %v s: other is %+v", s, l)
		}
	}
	c, err := r.Coverage(Span{start, at(12)})
	if err != nil || len(c.Gaps) != 1 || !c.Gaps[0].Since.Equal(at(3.5)) || !c.Gaps[0].Until.Equal(at(10)) || len(c.Locks) != 2 {
		t.Errorf("%+v, %v", c, err)
	}
	for lock, partly := range map[string]bool{"job": false, "other": true, "late": false} {
		all, err := r.GrantsOf(lock, Span{start, at(12)}, 9)
		if err != nil || len(all) != 1 || all[0].Partly != partly {
			t.Errorf("%s: %+v, %v", lock, all, err)
		}
	}
	if all, err := r.GrantsOf("other", Span{start, at(6)}, 9); err != nil || len(all) != 0 {
		t.Errorf("as known in the pause: %+v, %v", all, err)
	}
}

// A pause that had ended before it was written, and one that is followed by another, leave no time
// that counts as recorded although it was not.
func TestPausesThatAreSeenLate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record.db")
	start := time.Now().Add(-time.Hour).Truncate(time.Second)
	at := func(s float64) time.Time { return start.Add(time.Duration(s * float64(time.Second))) }
	from := &told{s: cluster(start)}
	from.s.Pause = monitor.Pause{Since: at(-9), Until: at(-5)} // before this recorder
	w := begin(t, path, from, start)
	write(t, w, from, at(1))
	from.s.Pause = monitor.Pause{Since: at(2), Until: at(5)}
	write(t, w, from, at(6))
	from.s.Pause.Until = time.Time{} // another one, taken for the same
	write(t, w, from, at(10))
	from.s.Pause.Until = at(11)
	write(t, w, from, at(12))
	write(t, w, from, at(13))
	c, err := read(t, path).Coverage(Span{start, at(13)})
	want := []Span{{at(2), at(5)}, {at(6), at(11)}}
	if err != nil || len(c.Gaps) != len(want) {
		t.Fatalf("%+v, %v", c, err)
	}
	for i, gap := range c.Gaps {
		if !gap.Since.Equal(want[i].Since) || !gap.Until.Equal(want[i].Until) {
			t.Errorf("%v to %v, want %v", gap.Since, gap.Until, want[i])
		}
	}
}

// Where events were missed, who held a lock is not known until all locks were taken in again: what a
// node was is.
func TestMissedEventsAreAGapOfTheLocks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record.db")
	start := time.Now().Add(-time.Hour).Truncate(time.Second)
	at := func(s float64) time.Time { return start.Add(time.Duration(s * float64(time.Second))) }
	from := &told{s: cluster(start)}
	from.s.Cluster.Verdict = monitor.VerdictSafe
	w := begin(t, path, from, start)
	write(t, w, from, start)
	from.tell("acquired", "job", "token-a", at(2), at(32))
	write(t, w, from, at(3))
	from.missed = 7
	from.tell("acquired", "other", "token-b", at(3.5), at(39))
	write(t, w, from, at(4))
	write(t, w, from, at(5))
	from.missed = 1 // twice in a row
	write(t, w, from, at(20))
	from.missed = 1
	write(t, w, from, at(21))
	write(t, w, from, at(22))

	r := read(t, path)
	for s, known := range map[float64]bool{2.9: true, 3.1: false, 3.9: false, 4.5: true, 15: false, 21.5: true} {
		m, err := r.At(at(s))
		if err != nil {
			t.Fatal(err)
		}
		if m.By != "test" || m.Snapshot.Cluster.Verdict != monitor.VerdictSafe || known != m.Snapshot.Complete {
			t.Errorf("at %v s: by %q, %s, complete %v", s, m.By, m.Snapshot.Cluster.Verdict, m.Snapshot.Complete)
		}
	}
	c, err := r.Coverage(Span{start, at(22)})
	if err != nil || len(c.Gaps) != 0 || len(c.Locks) != 3 || len(c.LockGaps) != 2 || !c.LockGaps[0].Since.Equal(at(3)) || !c.LockGaps[0].Until.Equal(at(4)) {
		t.Errorf("%+v, %v", c, err)
	}
}
