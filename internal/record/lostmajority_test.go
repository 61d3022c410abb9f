package record

import (
	"context"
	"encoding/hex"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"redlockctl/monitor"
	"redlockctl/monitor/monitortest"
)

// changing is a source that knows what has changed.
type changing struct{ *told }

func (changing) ChangedSince(uint64) ([]string, bool) { return []string{"import"}, true }

// A lock loses its majority before one was ever seen, and is extended without an event.
// The record knows who relied on it until when, and no grant that ended earlier.
func TestALostMajorityAtAMoment(t *testing.T) {
	path, now := filepath.Join(t.TempDir(), "record.db"), time.Now().Truncate(time.Second)
	second := func(n int) time.Time { return now.Add(time.Duration(n) * time.Second) }
	from := &told{s: *monitortest.Safe(now)}
	from.s.Settled, from.s.Version = now.Add(-takeInAfter), 1
	w := begin(t, path, from, now)
	write(t, w, from, now)
	write := func(at int) {
		t.Helper()
		from.s.At = second(at)
		if err := w.write(t.Context(), changing{from}, second(at)); err != nil {
			t.Fatal(err)
		}
	}
	put := func(at int, state monitor.LockState, copies string, until int) {
		from.s.Version++
		monitortest.Put(&from.s, monitortest.LockOf(second(at), "import", state, monitortest.TokenA, copies).Until(second(until)))
		write(at)
	}
	from.tell(lostMajority, "import", monitortest.TokenA, second(5), second(20))
	put(5, monitor.LockLostMajority, "15 15 - - -", 20)
	put(6, monitor.LockLostMajority, "20 20 - - -", 26) // no event for this extension
	from.tell("released", "import", monitortest.TokenA, second(8), time.Time{})
	write(9) // the state ends a second after the grant
	r := read(t, path)
	for at, want := range map[int]int{7: 26, 8: 0} {
		m, err := r.At(second(at))
		if err != nil {
			t.Fatal(err)
		}
		l := m.Snapshot.Locks.Get("import")
		switch {
		case want == 0 && l != nil:
			t.Errorf("after %d s: %+v", at, l)
		case want > 0 && (l == nil || l.State != monitor.LockLostMajority || !l.HeldUntil().Equal(second(want))):
			t.Errorf("after %d s: %+v", at, l)
		}
	}
	got, err := r.GrantsOf("import", Span{now.Add(-time.Hour), now.Add(time.Hour)}, 10)
	if err != nil || len(got) != 1 || !got[0].Partly || !got[0].Began.Equal(second(5)) || got[0].How != "released" {
		t.Errorf("%+v: %v", got, err)
	}
}

// What says until when a lost majority is held says also the later end that the grant has, if it was known
// only then.
func TestALaterEndOfALostMajorityIsTold(t *testing.T) {
	path, now := filepath.Join(t.TempDir(), "record.db"), time.Now().Truncate(time.Second)
	second := func(n int) time.Time { return now.Add(time.Duration(n) * time.Second) }
	from := &told{s: *monitortest.Safe(now)}
	from.s.Settled = now.Add(-takeInAfter)
	w := begin(t, path, from, now)
	write(t, w, from, now)
	put := func(at, until int) {
		from.s.Version++
		from.s.At = second(at)
		monitortest.Put(&from.s, monitortest.LockOf(second(at), "import", monitor.LockLostMajority, monitortest.TokenA, "15 15 - - -").Until(second(until)))
		if err := w.write(t.Context(), changing{from}, second(at)); err != nil {
			t.Fatal(err)
		}
	}
	from.tell(lostMajority, "import", monitortest.TokenA, second(5), second(20))
	from.finding("restart", "n3", "n3 restarted: 1 lock lost a copy, 1 lost its majority: held to "+second(20).Format("15:04:05"), second(5))
	from.events[0].Level = monitor.LevelAlarm
	put(5, 20)
	put(6, 26)
	r := read(t, path)
	for until, want := range map[int]string{6: "", 30: "; held to " + second(26).Format("15:04:05") + " by an extension that may have come before the loss"} {
		in := Span{now.Add(-time.Hour), second(until)}
		lost, err := r.LostMajorities(in)
		if err != nil || len(lost) != 1 || lost[0].Text != lostMajority+want {
			t.Errorf("until %d s: %+v: %v", until, lost, err)
		}
		causes, err := r.Causes("n3", in)
		if told := from.events[1].Text.Raw() + want; err != nil || len(causes) != 1 || causes[0].Text != told {
			t.Errorf("until %d s: %+v, want %q: %v", until, causes, told, err)
		}
	}
}

// A moment shows the end that was known then; none where it is not known when an
// extension was.
func TestTheEndOfAnExtendedGrantAtAMoment(t *testing.T) {
	path, now := filepath.Join(t.TempDir(), "record.db"), time.Now().Truncate(time.Second)
	from := &told{s: cluster(now)}
	w := begin(t, path, from, now)
	write(t, w, from, now)
	from.tell("acquired", "a", "a", now, now.Add(20*time.Second))
	from.tell("acquired", "b", "b", now, now.Add(20*time.Second))
	from.tell("extended", "b", "b", now.Add(time.Second), now.Add(21*time.Second))
	write(t, w, from, now.Add(2*time.Second))
	for _, c := range []struct {
		lock string
		at   time.Duration
		want time.Time
	}{{"a", 2 * time.Second, now.Add(20 * time.Second)}, {"b", 2 * time.Second, now.Add(21 * time.Second)}, {"b", 500 * time.Millisecond, time.Time{}}} {
		m, err := read(t, path).At(now.Add(c.at))
		if err != nil {
			t.Fatal(err)
		}
		if l := m.Snapshot.Locks.Get(c.lock); l == nil || !l.HeldUntil().Equal(c.want) {
			t.Errorf("%s after %s: %+v", c.lock, c.at, l)
		}
	}
}

// A lock that was extended and is being released shows no end: that is not an extension without TTL.
func TestAnExtensionSeenWhileReleased(t *testing.T) {
	path, now := filepath.Join(t.TempDir(), "record.db"), time.Now().Truncate(time.Second)
	second := func(n int) time.Time { return now.Add(time.Duration(n) * time.Second) }
	from := &told{s: *monitortest.Safe(now)}
	from.s.Settled, from.s.Version = now.Add(-takeInAfter), 1
	w := begin(t, path, from, now)
	write(t, w, from, now)
	from.tell("acquired", "import", monitortest.TokenA, second(1), second(21))
	l := monitortest.LockOf(second(2), "import", monitor.LockPartial, monitortest.TokenA, "18 - - - -")
	l.Extensions, l.Extended = 1, l.Span.Begin
	from.s.Version, from.s.At = 2, second(2)
	monitortest.Put(&from.s, l)
	if err := w.write(t.Context(), changing{from}, second(2)); err != nil {
		t.Fatal(err)
	}
	if got, err := read(t, path).HeldAt(second(2)); err != nil || len(got) == 0 || got[0].Lock != "import" || got[0].EndUnknown || !got[0].Until.Equal(second(21)) {
		t.Errorf("%+v, %v", got, err)
	}
}

// A write that comes late says since when a lock and a node were what they are.
func TestStatesCountFromWhenTheyWereSeen(t *testing.T) {
	path, now := filepath.Join(t.TempDir(), "record.db"), time.Now().Truncate(time.Second)
	second := func(n float64) time.Time { return now.Add(time.Duration(n * float64(time.Second))) }
	from := &told{s: *monitortest.Safe(now)}
	from.s.Settled, from.s.Version = now.Add(-takeInAfter), 1
	w := begin(t, path, from, now)
	write(t, w, from, now)
	see := func(at float64) {
		from.s.Version++
		from.s.At = second(at)
		w.collect(changing{from}, &from.s)
	}
	write := func(at float64) {
		t.Helper()
		from.s.At = second(at)
		if err := w.write(t.Context(), changing{from}, second(at)); err != nil {
			t.Fatal(err)
		}
	}
	node := &from.s.Nodes[1]
	see(0.5)
	monitortest.Put(&from.s, monitortest.LockOf(second(1), "import", monitor.LockMayBeHeld, monitortest.TokenA, "20 - - - -").Until(second(20)))
	node.State, node.Since = monitor.NodeDown, second(1)
	see(1)
	see(2) // nothing else happens
	write(3)
	monitortest.Put(&from.s, monitortest.LockOf(second(4), "import", monitor.LockPartial, monitortest.TokenA, "20 - - - -"))
	node.State, node.Since = monitor.NodeServing, second(4)
	see(4)
	write(5)
	r := read(t, path)
	for at, want := range map[float64]bool{0.9: false, 1.1: true, 2.9: true, 3.9: true, 4.1: false} {
		m, err := r.At(second(at))
		if err != nil {
			t.Fatal(err)
		}
		if l := m.Snapshot.Locks.Get("import"); (l != nil && l.State == monitor.LockMayBeHeld) != want {
			t.Errorf("after %v s: %+v", at, l)
		}
		if n := m.Snapshot.Nodes[1]; (n.State == monitor.NodeDown) != want {
			t.Errorf("after %v s: %s is %s", at, n.Name, n.State)
		}
	}
}

// The state of a lock is written when it changes, otherwise once a second.
func TestStatesAreWrittenAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record.db")
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		from := &told{s: *monitortest.Safe(now)}
		from.s.Settled, from.s.Version = now.Add(-takeInAfter), 1
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); New(Options{Path: path, By: "test"}).Run(ctx, from) }()
		time.Sleep(3050 * time.Millisecond)
		changed := time.Now()
		from.mu.Lock()
		from.s.Version, from.missed, from.s.At = 2, 1, changed.Add(300*time.Millisecond)
		monitortest.Put(&from.s, monitortest.LockOf(changed, "import", monitor.LockOrphaned, monitortest.TokenA, "30 30 - - -"))
		from.s.Counts[monitor.LockOrphaned]++
		from.mu.Unlock()
		time.Sleep(500 * time.Millisecond)
		stop()
		<-done
		m, err := read(t, path).At(changed.Add(200 * time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		if l := m.Snapshot.Locks.Get("import"); l == nil || l.State != monitor.LockOrphaned {
			t.Errorf("%+v", l)
		}
	})
}

// A node is exposed in a replay for as long as it was: what it is recorded by is written when it
// changes, otherwise once a second.
func TestAnExposureIsWrittenAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record.db")
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		from := &told{s: *monitortest.Safe(began)}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); New(Options{Path: path, By: "test"}).Run(ctx, from) }()
		set := func(findings ...monitor.Finding) time.Time {
			from.mu.Lock()
			defer from.mu.Unlock()
			from.s.Findings, from.s.At = findings, time.Now().Add(5*time.Second)
			return time.Now()
		}
		time.Sleep(3050 * time.Millisecond)
		exposed := set(monitor.Finding{ID: monitor.ServesEarlyID, Node: "n2", Severity: monitor.SeverityDanger, Title: "serves before it may vote"})
		time.Sleep(5050 * time.Millisecond)
		ended := set()
		time.Sleep(2 * time.Second)
		stop()
		<-done
		for at, want := range map[time.Time]bool{
			exposed.Add(-50 * time.Millisecond): false, exposed.Add(200 * time.Millisecond): true,
			ended.Add(-50 * time.Millisecond): true, ended.Add(200 * time.Millisecond): false,
		} {
			m, err := read(t, path).At(at)
			if err != nil {
				t.Fatal(err)
			}
			if n := m.Snapshot.Node("n2"); n.Early != want {
				t.Errorf("after %s: exposed %t", at.Sub(began), n.Early)
			}
		}
	})
}

// A lock that lost its majority, and of which another token is shown then, is held to the
// end of its grant.
func TestASplitBesideALostMajority(t *testing.T) {
	path, now := filepath.Join(t.TempDir(), "record.db"), time.Now().Truncate(time.Second)
	second := func(n int) time.Time { return now.Add(time.Duration(n) * time.Second) }
	from := &told{s: *monitortest.Safe(now)}
	from.s.Settled, from.s.Version = now.Add(-takeInAfter), 1
	w := begin(t, path, from, now)
	write(t, w, from, now)
	put := func(at int, state monitor.LockState, token, copies string, until int) {
		t.Helper()
		from.s.Version++
		from.s.At = second(at)
		monitortest.Put(&from.s, monitortest.LockOf(second(at), "import", state, token, copies).Until(second(until)))
		if err := w.write(t.Context(), changing{from}, second(at)); err != nil {
			t.Fatal(err)
		}
	}
	from.tell(lostMajority, "import", monitortest.TokenA, second(5), second(20))
	put(5, monitor.LockLostMajority, monitortest.TokenA, "15 15 - - -", 20)
	put(6, monitor.LockSplit, monitortest.TokenB, "14b 14b - 14 14", 20)
	put(9, monitor.LockSplit, monitortest.TokenB, "11b 11b - 11 11", 20) // recorded until then
	m, err := read(t, path).At(second(8))
	if err != nil {
		t.Fatal(err)
	}
	l := m.Snapshot.Locks.Get("import")
	if l == nil || l.State != monitor.LockSplit || l.Nobody || !l.ReliedOn() || !l.HeldUntil().Equal(second(20)) || l.Earlier == nil {
		t.Errorf("%+v", l)
	}
}

// A split lock may be held by votes that no copy shows, as those that nodes have forgotten:
// a moment says so as the monitor did, and until when.
func TestASplitThatMayBeHeld(t *testing.T) {
	path, now := filepath.Join(t.TempDir(), "record.db"), time.Now().Truncate(time.Second)
	second := func(n int) time.Time { return now.Add(time.Duration(n) * time.Second) }
	from := &told{s: *monitortest.Safe(now)}
	from.s.Settled, from.s.Version = now.Add(-takeInAfter), 1
	w := begin(t, path, from, now)
	write(t, w, from, now)
	put := func(at int, until time.Time, nobody bool) {
		t.Helper()
		from.s.Version++
		from.s.At = second(at)
		l := monitortest.LockOf(second(at), "import", monitor.LockSplit, monitortest.TokenA, "15 15b - - -").Until(until)
		l.Nobody = nobody
		monitortest.Put(&from.s, l)
		if err := w.write(t.Context(), changing{from}, second(at)); err != nil {
			t.Fatal(err)
		}
	}
	put(5, second(20), false)
	put(10, time.Time{}, true)
	put(12, time.Time{}, true)
	from.s.Version++
	from.s.At = second(14)
	endless := monitortest.LockOf(second(14), "import", monitor.LockSplit, monitortest.TokenA, "i i 9b - -")
	endless.Unending = true
	monitortest.Put(&from.s, endless)
	for _, at := range []int{14, 17} {
		from.s.Version++
		from.s.At = second(at)
		if err := w.write(t.Context(), changing{from}, second(at)); err != nil {
			t.Fatal(err)
		}
	}
	r := read(t, path)
	if m, err := r.At(second(15)); err != nil {
		t.Fatal(err)
	} else if l := m.Snapshot.Locks.Get("import"); l == nil || l.State != monitor.LockSplit || !l.ReliedOn() || !l.Unending || !l.HeldUntil().IsZero() {
		t.Errorf("without end: %+v", l)
	}
	for at, want := range map[int]bool{8: true, 11: false} {
		m, err := r.At(second(at))
		if err != nil {
			t.Fatal(err)
		}
		l := m.Snapshot.Locks.Get("import")
		if l == nil || l.State != monitor.LockSplit || l.ReliedOn() != want || want && !l.HeldUntil().Equal(second(20)) {
			t.Errorf("after %d s: %+v", at, l)
		}
	}
}

// Which locks lost their majority is known also where the event of a restart only counts them.
func TestLostMajorities(t *testing.T) {
	path, now := filepath.Join(t.TempDir(), "record.db"), time.Now().Truncate(time.Second)
	from := &told{s: cluster(now)}
	w := begin(t, path, from, now)
	write(t, w, from, now)
	for _, job := range []string{"job:1", "job:2"} {
		from.tell("acquired", job, "a", now, now.Add(20*time.Second))
		from.tell(lostMajority, job, "a", now.Add(5*time.Second), now.Add(20*time.Second))
		e := &from.events[len(from.events)-1]
		e.Part, e.Level = true, monitor.LevelAlarm
	}
	write(t, w, from, now.Add(30*time.Second))
	r, in := read(t, path), Span{now.Add(-time.Hour), now.Add(time.Hour)}
	lost, err := r.LostMajorities(in)
	if err != nil || len(lost) != 2 || lost[0].Lock != "job:1" || lost[1].Lock != "job:2" {
		t.Errorf("%+v: %v", lost, err)
	}
}

// Who lost the majority is known until its end, also when another client has the lock by then.
func TestWhoLostTheMajorityNow(t *testing.T) {
	path, now := filepath.Join(t.TempDir(), "record.db"), time.Now().Truncate(time.Millisecond)
	second := func(n int) time.Time { return now.Add(time.Duration(n) * time.Second) }
	from := &told{s: cluster(now)}
	w := begin(t, path, from, now)
	write(t, w, from, now)
	for _, lock := range []string{"job:1", "job:2"} {
		from.tell("acquired", lock, "a", second(1), second(20))
		from.tell("lost majority", lock, "a", second(3), second(20))
	}
	from.tell("acquired", "job:3", "a", second(1), second(20))
	from.tell("acquired", "job:2", "b", second(4), second(9))
	write(t, w, from, second(5))
	for at, want := range map[int]int{5: 2, 19: 2, 21: 0} {
		lost, err := read(t, path).LostNow(second(at), 10)
		if err != nil || len(lost) != want {
			t.Errorf("after %d s: %+v %v", at, lost, err)
		}
		for _, g := range lost {
			if sha := shortSHA("a"); g.Token != hex.EncodeToString(sha[:]) || !g.Until.Equal(second(20)) || !g.Ended.IsZero() {
				t.Errorf("after %d s: %+v", at, g)
			}
		}
	}
	if lost, err := read(t, path).LostNow(second(5), 1); err != nil || len(lost) != 1 {
		t.Errorf("of two one: %+v %v", lost, err)
	}
}

// A grant that lost its majority counts as lost, also when its holder released it before its end, and while it
// goes on.
func TestALostMajorityCounts(t *testing.T) {
	path, now := filepath.Join(t.TempDir(), "record.db"), time.Now().Truncate(time.Second)
	from := &told{s: cluster(now)}
	w := begin(t, path, from, now)
	write(t, w, from, now)
	from.tell("acquired", "a:1", "a", now, now.Add(20*time.Second))
	from.tell(lostMajority, "a:1", "a", now.Add(time.Second), now.Add(20*time.Second))
	from.tell("released", "a:1", "a", now.Add(2*time.Second), now.Add(20*time.Second))
	from.tell("acquired", "a:2", "b", now, now.Add(20*time.Second))
	from.tell(lostMajority, "a:2", "b", now.Add(time.Second), now.Add(20*time.Second))
	write(t, w, from, now.Add(3*time.Second))
	r, in := read(t, path), Span{now.Add(-time.Hour), now.Add(time.Hour)}
	uses, err := r.Busiest(in, 10)
	if err != nil || len(uses) != 2 || uses[0].Lost != 1 || uses[1].Lost != 1 {
		t.Errorf("%+v: %v", uses, err)
	}
	minutes, err := r.Patterns(in, 10)
	if err != nil || len(minutes) != 1 || minutes[0].Grants != 1 || minutes[0].Lost != 1 {
		t.Errorf("%+v: %v", minutes, err)
	}
}

// A grant whose majority did not answer at its end is told; one of which only the recorder saw nothing is not.
func TestNotSeen(t *testing.T) {
	path, now := filepath.Join(t.TempDir(), "record.db"), time.Now().Truncate(time.Second)
	second := func(n int) time.Time { return now.Add(time.Duration(n) * time.Second) }
	from := &told{s: cluster(now)}
	w := begin(t, path, from, now)
	write(t, w, from, now)
	from.tell("acquired", "a:1", "a", now, second(5))
	from.tell("acquired", "a:2", "b", now, second(5))
	from.tell(notSeen, "a:1", "a", second(5), second(5))
	from.tell("released", "a:2", "b", second(5), second(5))
	write(t, w, from, second(9))
	r, in := read(t, path), Span{now.Add(-time.Hour), second(3600)}
	for want, recorded := range map[int][]Span{1: {{now, second(9)}}, 0: {{second(6), second(9)}}} {
		if all, left, err := r.NotSeen(in, recorded, 10); err != nil || left != 0 || len(all) != want || want > 0 && (all[0].Lock != "a:1" || !all[0].Ended.Equal(second(5))) {
			t.Errorf("%+v: %v", all, err)
		}
		if uses, err := r.Busiest(in, 10); err != nil || len(uses) != 2 || uses[0].NotSeen != 1 || uses[1].NotSeen != 0 {
			t.Errorf("%+v: %v", uses, err)
		}
		if all, left, err := r.NotSeen(in, recorded, 0); err != nil || len(all) != 0 || left != want {
			t.Errorf("of none: %+v, %d more: %v", all, left, err)
		}
	}
}
