package record

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"redlockctl/monitor"
	"redlockctl/monitor/monitortest"
)

// The holder of a lock that lost its majority relies on it until its end: a grant that
// begins before that end overlaps.
func TestALostMajorityIsHeldToItsEnd(t *testing.T) {
	for name, c := range map[string]struct {
		then  func(from *told, now time.Time)
		ended time.Duration
		how   string
		next  bool // another grant, which overlaps
	}{
		"it expires": {func(from *told, now time.Time) {
			from.tell("expired", "job:1", "a", now.Add(20*time.Second), time.Time{})
		}, 20 * time.Second, lostMajority, false},
		"it is released": {func(from *told, now time.Time) {
			from.tell("released", "job:1", "a", now.Add(9*time.Second), time.Time{})
		}, 9 * time.Second, "released", false},
		"another client gets in": {func(from *told, now time.Time) {
			from.tell("acquired", "job:1", "b", now.Add(9*time.Second), now.Add(39*time.Second))
			from.tell("expired", "job:1", "a", now.Add(20*time.Second), time.Time{})
		}, 20 * time.Second, lostMajority, true},
	} {
		t.Run(name, func(t *testing.T) {
			path, now := filepath.Join(t.TempDir(), "record.db"), time.Now().Truncate(time.Second)
			from := &told{s: cluster(now)}
			w := begin(t, path, from, now)
			write(t, w, from, now)
			from.tell("acquired", "job:1", "a", now, now.Add(20*time.Second))
			from.tell(lostMajority, "job:1", "a", now.Add(5*time.Second), now.Add(20*time.Second))
			c.then(from, now)
			write(t, w, from, now.Add(30*time.Second))
			got, err := read(t, path).GrantsOf("job:1", Span{now.Add(-time.Hour), now.Add(time.Hour)}, 10)
			if err != nil || len(got) != 1+map[bool]int{true: 1}[c.next] {
				t.Fatalf("%+v: %v", got, err)
			}
			if one := got[0]; !one.Ended.Equal(now.Add(c.ended)) || one.How != c.how {
				t.Errorf("it ended %s, after %s", one.How, one.Ended.Sub(now))
			}
			if !c.next {
				return
			}
			// While its holder relies on it, it has not ended, whatever is known of its end.
			in := Span{now.Add(-time.Hour), now.Add(12 * time.Second)}
			then, err := read(t, path).GrantsOf("job:1", in, 10)
			longest, err2 := read(t, path).Longest(in, 10)
			for _, all := range [][]Grant{then, longest} {
				if len(all) != 2 || !all[0].Ended.IsZero() || all[0].How != lostMajority || !all[1].Ended.IsZero() || all[1].How != "" {
					t.Errorf("%+v: %v, %v", all, err, err2)
				}
			}
			if !got[1].Overlaps || !got[1].Ended.IsZero() {
				t.Errorf("%+v", got[1])
			}
		})
	}
}

// The holder of a lock without end that lost its majority relies on it whoever comes
// next. A grant overlaps with every grant that has not ended when it begins, not only
// with the last one. A report counts the same grants, and names the longest.
func TestOverlaps(t *testing.T) {
	path, now := filepath.Join(t.TempDir(), "record.db"), time.Now().Truncate(time.Second)
	second := func(n int) time.Time { return now.Add(time.Duration(n) * time.Second) }
	from := &told{s: cluster(now)}
	w := begin(t, path, from, now)
	write(t, w, from, now)
	from.tell("acquired", "forever", "a", now, time.Time{})
	from.tell(lostMajority, "forever", "a", second(5), time.Time{})
	from.tell("acquired", "forever", "b", second(9), second(39))
	from.tell("released", "forever", "b", second(28), time.Time{})
	from.tell("acquired", "forever", "c", second(29), second(59)) // only the first one after it
	from.tell("acquired", "removed", "a", now, time.Time{})
	from.tell(forceReleased, "removed", "a", second(5), time.Time{})
	from.tell("acquired", "removed", "b", second(20), second(39))
	from.tell("released", "removed", "b", second(21), time.Time{})
	from.tell("acquired", "removed", "c", second(22), second(39))
	from.tell("acquired", "job", "a", now, second(20))
	from.tell(lostMajority, "job", "a", second(5), second(20))
	from.tell("acquired", "job", "b", second(6), second(36))
	from.tell("released", "job", "b", second(7), time.Time{})
	from.tell("acquired", "job", "c", second(8), second(38))
	from.tell("released", "job", "c", second(9), time.Time{})
	from.tell("acquired", "job", "d", second(21), second(38))
	from.tell("acquired", "freed", "a", now, second(20)) // revoked, and its tombstones force-released
	from.tell("revoked", "freed", "a", second(5), time.Time{})
	from.tell(forceReleased, "freed", "redlockctl:revoked:a", second(6), second(20))
	from.tell("acquired", "freed", "b", second(7), second(19))
	from.tell("released", "freed", "b", second(8), time.Time{})
	from.tell("acquired", "freed", "c", second(20), second(39))
	write(t, w, from, second(30))
	r, in := read(t, path), Span{now.Add(-time.Hour), now.Add(time.Hour)}
	for lock, want := range map[string][]bool{"forever": {false, true, false}, "removed": {false, true, false}, "job": {false, true, true, false}, "freed": {false, true, false}} {
		var got []bool
		grants, err := r.GrantsOf(lock, in, 10)
		for _, g := range grants {
			got = append(got, g.Overlaps)
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, not %v: %v", lock, got, want, err)
		}
	}
	all, err := r.Overlaps(in, 2)
	if err != nil || all.Count != 5 || all.Locks != 4 || len(all.Longest) != 2 {
		t.Fatalf("%+v, %v", all, err)
	}
	if o := all.Longest[0]; o.Lock != "forever" || !o.Relied.IsZero() || !o.Later.Began.Equal(second(9)) || o.Both != 19*time.Second || o.Earlier.Token == o.Later.Token {
		t.Errorf("%+v", o)
	}
	if o := all.Longest[1]; o.Lock == "forever" || o.Both != time.Second {
		t.Errorf("%+v", o)
	}
	all, err = r.Overlaps(in, 10) // a lock with many does not hide the others
	others := map[string]int{}
	for _, o := range all.Longest {
		others[o.Lock] = o.Others
	}
	if want := map[string]int{"forever": 0, "removed": 0, "job": 1, "freed": 0}; err != nil || len(all.Longest) != 4 || !maps.Equal(others, want) {
		t.Errorf("%v, not %v: %+v, %v", others, want, all, err)
	}
	for _, c := range []struct{ since, until, count int }{{0, 6, 0}, {0, 7, 1}, {0, 8, 2}, {9, 10, 2}, {10, 20, 1}, {10, 40, 2}} { // what is going on in a span
		if all, err := r.Overlaps(Span{second(c.since), second(c.until)}, 2); err != nil || all.Count != c.count {
			t.Errorf("%+v: %+v, %v", c, all, err)
		}
	}
}

// A recorder that goes on where another one ended counts no extension again: not those that its own
// monitor saw beside the other one, nor an end that differs by the jitter of a read.
func TestASuccessorCountsOn(t *testing.T) { eitherWay(t, testASuccessorCountsOn) }

func testASuccessorCountsOn(t *testing.T, limit func(*writer)) {
	path, now := filepath.Join(t.TempDir(), "record.db"), time.Now().Truncate(time.Second)
	second := func(n float64) time.Time { return now.Add(time.Duration(n * float64(time.Second))) }
	from := &told{s: *monitortest.Safe(now)}
	from.s.Settled, from.s.Version = now.Add(-takeInAfter), 1
	w := begin(t, path, from, now)
	write(t, w, from, now)
	const all = monitortest.TokenA
	for _, lock := range []string{"begun", "late", "on", "jitter", "gone"} { // extended each 4 s to 10 s later
		from.tell("acquired", lock, all, second(0), second(10))
		if lock != "jitter" {
			from.tell("extended", lock, all, second(12), second(22)) // for the third time
		}
	}
	write(t, w, from, second(13))
	other := &told{s: *monitortest.Safe(second(20))}
	other.s.Settled = now.Add(-takeInAfter)
	put := func(lock string, since, until float64, n uint32, at float64) {
		l := monitortest.LockOf(second(20), lock, monitor.LockHeld, all, "1 1 1 1 1").Timed(second(since), second(until))
		l.Extensions, l.Extended = n, l.Timed(second(at), time.Time{}).Span.Begin
		monitortest.Put(&other.s, l)
	}
	put("begun", 0.1, 30, 5, 20) // this monitor saw the whole grant
	put("late", 7, 30, 4, 20)    // and here all but the first extension
	put("on", 7, 22.01, 2, 12)   // and here none since
	put("jitter", 13.1, 10.05, 0, 0)
	other.tell("acquired", "jitter", all, second(13.1), second(10.05))
	other.tell("acquired", "gone", all, second(0.1), second(10))
	other.tell("released", "gone", all, second(18), second(26))
	other.events[2].Times, other.events[2].Extended = 4, second(16)
	next, err := newWriter(w.db, from.s.Cluster, Options{By: "another"}, second(20))
	if err != nil {
		t.Fatal(err)
	}
	limit(next)
	write(t, next, other, second(20))
	for lock, want := range map[string]int{"begun": 5, "late": 5, "on": 3, "jitter": 0, "gone": 4} {
		got, err := read(t, path).GrantsOf(lock, Span{now, second(60)}, 10)
		if err != nil || len(got) != 1 || got[0].Extensions != want {
			t.Errorf("%s, want %d: %+v, %v", lock, want, got, err)
		}
	}
}

// An attempt to extend a lock that reached too few nodes moves the end until which its holder may rely on it. The
// last extension is of those that are counted.
func TestAnEndThatMovesWithoutAnExtension(t *testing.T) {
	path, now := filepath.Join(t.TempDir(), "record.db"), time.Now().Truncate(time.Second)
	second := func(n int) time.Time { return now.Add(time.Duration(n) * time.Second) }
	from := &told{s: cluster(now)}
	w := begin(t, path, from, now)
	write(t, w, from, now)
	tell := func(kind string, at, until, times, extended int) {
		from.tell(kind, "job:1", "a", second(at), second(until))
		if e := &from.events[len(from.events)-1]; times > 0 {
			e.Times, e.Extended = times, second(extended)
		}
	}
	tell("acquired", 0, 20, 0, 0)
	tell("extended", 2, 22, 1, 2)
	tell("extended", 4, 24, 2, 4)
	write(t, w, from, second(5))
	tell(lostMajority, 7, 27, 2, 4)
	write(t, w, from, second(8))
	for at, want := range map[int][2]int{3: {1, 2}, 5: {2, 4}, 10: {2, 4}} {
		got, err := read(t, path).GrantsOf("job:1", Span{now.Add(-time.Hour), second(at)}, 10)
		if err != nil || len(got) != 1 || got[0].Extensions != want[0] || !got[0].Extended.Equal(second(want[1])) {
			t.Errorf("after %d s: %+v: %v", at, got, err)
		}
	}
}

// Nodes that did not answer have no copy once they do: an extension that failed on the others had not reached them
// either, so the grant had expired before. What is asked of a time before that was known, is answered as then.
func TestAnEndThatBecomesKnownLater(t *testing.T) {
	path, now := filepath.Join(t.TempDir(), "record.db"), time.Now().Truncate(time.Second)
	second := func(n int) time.Time { return now.Add(time.Duration(n) * time.Second) }
	from := &told{s: cluster(now)}
	w := begin(t, path, from, now)
	write(t, w, from, now)
	from.tell("acquired", "job:1", "a", now, second(20))
	write(t, w, from, second(1))
	from.s.At = second(10)
	monitortest.Put(&from.s, monitortest.LockOf(second(10), "job:1", monitor.LockMayBeHeld, "a", "20 - -").Until(second(30)))
	write(t, w, from, second(10))
	from.s.At, from.s.Locks = second(27), monitor.NewLocks()
	from.tell("expired", "job:1", "a", second(27), second(20))
	write(t, w, from, second(28))
	for at, want := range map[int]time.Time{25: {}, 30: second(20)} {
		got, err := read(t, path).GrantsOf("job:1", Span{now.Add(-time.Hour), second(at)}, 10)
		if err != nil || len(got) != 1 || !got[0].Ended.Equal(want) {
			t.Errorf("after %d s: %+v: %v", at, got, err)
		}
	}
}
