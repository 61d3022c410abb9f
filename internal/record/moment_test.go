package record

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"redlockctl/monitor"
	"redlockctl/monitor/monitortest"
	"redlockctl/restartguard"
	"redlockctl/server/announce"
	"redlockctl/server/safetext"
)

// A recorded time reads back as it was seen, before and after each change. What was not
// recorded is unknown, never invented.
func TestWhatWasKnownAtAMoment(t *testing.T) {
	path, now := filepath.Join(t.TempDir(), "record.db"), time.Now().Truncate(time.Millisecond)
	second := func(n int) time.Time { return now.Add(time.Duration(n) * time.Second) }
	from := &told{s: *monitortest.Safe(now)}
	from.s.Settled, from.s.Version = now.Add(-takeInAfter), 1
	from.s.Nodes[1].Guards = []announce.Guard{{ID: "g1", Delay: 30350 * time.Millisecond, Host: safetext.New("ops-1"), Boot: announce.BootFenced}}
	w := begin(t, path, from, now)
	rejoins := second(31)
	w.fences = func() []restartguard.NodeStatus {
		if from.s.Nodes[1].State != monitor.NodeFenced {
			return nil
		}
		return []restartguard.NodeStatus{{Node: "n2", Phase: restartguard.PhaseFenced, Until: rejoins}}
	}
	write(t, w, from, now)
	bad := monitortest.Degraded(second(10))
	bad.Settled, bad.Version = now.Add(-takeInAfter), 2
	monitortest.Put(bad, monitortest.LockOf(second(10), "import", monitor.LockSplit, monitortest.TokenA, "4.4 - 4.3 ? 4.1b"),
		monitortest.LockOf(second(10), "on-a-fenced-node", monitor.LockHeld, monitortest.TokenA, "9.8 9.8 9.7 ? 9.6"),
		monitortest.LockOf(second(10), "orders:42", monitor.LockBareMajority, "web-7_811_77c0aa3f0d614b0c9a1c5a5c3b7b2d1e", "9.8 - 9.7 ? 9.6"))
	from.s = *bad
	write(t, w, from, second(10))
	r := read(t, path)
	at := func(n int) *Moment {
		m, err := r.At(second(n))
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	write(t, w, from, second(12))
	during, fences, by := at(12).Snapshot, at(12).Fences, at(12).By
	from.s = *monitortest.Safe(second(20))
	from.s.Settled, from.s.Version = now.Add(-takeInAfter), 3
	write(t, w, from, second(20))
	before, after := at(5).Snapshot, at(20).Snapshot
	for name, s := range map[string]*monitor.Snapshot{"before": before, "after": after} {
		if s.Cluster.Verdict != monitor.VerdictSafe || s.Cluster.Serving != 5 || s.Cluster.CanLose != 2 || s.Locks.Get("leader:billing") == nil || len(s.Findings) != 0 || !s.Complete {
			t.Errorf("%s: %+v, %d locks, %d findings", name, s.Cluster, s.Locks.Len(), len(s.Findings))
		}
	}
	c := during.Cluster
	if c.Verdict != monitor.VerdictDanger || c.Reason != bad.Cluster.Reason || c.Serving != 3 || c.Absent != bad.Cluster.Absent {
		t.Errorf("during: %+v", c)
	}
	if len(during.Findings) != len(bad.Findings) || during.Findings[0].Remedy != bad.Findings[0].Remedy {
		t.Errorf("%d of %d findings", len(during.Findings), len(bad.Findings))
	}
	for l := range bad.Locks.All() {
		got := during.Locks.Get(l.Key.Raw())
		switch {
		case l.State == monitor.LockPartial || l.State == monitor.LockNotALock:
			if got != nil {
				t.Errorf("%s is there as %s", l.Key, got.State)
			}
			continue
		case got == nil:
			t.Errorf("%s (%s) is not there", l.Key, l.State)
			continue
		}
		state := l.State
		if state == monitor.LockExpiring || state == monitor.LockHeld { // three copies of five have no margin
			state = got.State
		}
		if got.State != state || got.Held != l.Held || got.Margin() != l.Margin() || got.Tokens != l.Tokens {
			t.Errorf("%s: %s with %d copies and %d tokens, was %s with %d and %d", l.Key, got.State, got.Held, got.Tokens, l.State, l.Held, l.Tokens)
		}
		if is, was := during.Access(got).Spare, bad.Access(l).Spare; is != was {
			t.Errorf("%s can lose %d more nodes, and could lose %d", l.Key, is, was)
		}
		if strings.Contains(got.Holder.Raw(), l.Holder.Raw()) {
			t.Errorf("%s shows its token", l.Key)
		}
		for i, copy := range got.Copies.All() {
			if was := l.Copies.At(i).State; copy.State != was && !(copy.State == monitor.CopySeen && was == monitor.CopyPresent) {
				t.Errorf("%s: copy %d is %d, was %d", l.Key, i, copy.State, was)
			}
			if copy.State == monitor.CopySeen && !copy.Expires.IsZero() {
				t.Errorf("%s: the end of copy %d was made up", l.Key, i)
			}
		}
	}
	if split := during.Locks.Get("import"); split == nil || len(split.Shares()) != 2 {
		t.Error("the split lock does not have two tokens")
	}
	if l := during.Locks.Get("orders:42"); l == nil || l.Form == nil || l.Form.Owner.Empty() {
		t.Error("the owner of orders:42 is not told")
	}
	n := during.Nodes[1]
	if n.State != monitor.NodeFenced || !n.Since.Equal(second(10)) || n.RTT != 0 || n.Offset.Valid {
		t.Errorf("n2: %+v", n)
	}
	if g := before.Nodes[1].Guards; len(g) != 1 || g[0].Host.Raw() != "ops-1" {
		t.Errorf("guards: %+v", g)
	}
	if len(fences) != 1 || !fences[0].Until.Equal(rejoins) {
		t.Errorf("fences: %+v", fences)
	}
	if by != "test" {
		t.Errorf("recorded by %q", by)
	}
	for _, n := range []int{-10, 40} {
		if m := at(n); m.By != "" || m.Snapshot.Cluster.Verdict != monitor.VerdictUnknown || m.Snapshot.Complete || m.Snapshot.Locks.Len() != 0 || len(m.Snapshot.Nodes) != 5 && n > 0 {
			t.Errorf("at %d, of which nothing is recorded: %+v", n, m.Snapshot.Cluster)
		}
	}
}

// A moment lists the findings as the live view does, whichever was found first, and since the same time.
func TestFindingsOfAMomentAreInTheLiveOrder(t *testing.T) {
	path, now := filepath.Join(t.TempDir(), "record.db"), time.Now().Truncate(time.Millisecond)
	from := &told{s: cluster(now)}
	w := begin(t, path, from, now)
	boot := monitor.Finding{ID: "boot-fence", Node: "n3", Severity: monitor.SeverityDanger, Title: "no boot fence"}
	split := monitor.Finding{ID: "split-lock", Since: now.Add(-time.Second), Severity: monitor.SeverityDanger, Title: "two clients may rely on one lock"}
	for _, from.s.Findings = range [][]monitor.Finding{{boot}, {split, boot}} {
		now = now.Add(time.Second)
		write(t, w, from, now)
	}
	m, err := read(t, path).At(now)
	if err != nil || len(m.Snapshot.Findings) != 2 || m.Snapshot.Findings[0].ID != split.ID || !m.Snapshot.Findings[0].Since.Equal(split.Since) || m.Snapshot.Findings[1].Since.IsZero() {
		t.Errorf("%+v: %v", m.Snapshot.Findings, err)
	}
}

// A moment says since when a node has its state, also if another guard came since then. A cordon lasts
// beyond a restart, as in the live view, but not beyond an uncordon.
func TestSinceWhenANodeHasItsState(t *testing.T) {
	path, now := filepath.Join(t.TempDir(), "record.db"), time.Now().Truncate(time.Millisecond)
	second := func(n int) time.Time { return now.Add(time.Duration(n) * time.Second) }
	from := &told{s: *monitortest.Safe(now)}
	w := begin(t, path, from, now)
	n := &from.s.Nodes[1]
	write(t, w, from, now)
	for _, c := range []struct {
		at, since int
		state     monitor.NodeState
		change    func()
	}{
		{5, 0, monitor.NodeServing, func() { n.Guards = []announce.Guard{{ID: "g1", Delay: time.Second}} }},
		{10, 10, monitor.NodeCordoned, nil},
		{20, 10, monitor.NodeCordoned, func() { n.Guards = nil }},
		{30, 30, monitor.NodeDown, nil},
		{31, 30, monitor.NodeDown, func() { n.Err = safetext.New("connection refused") }},
		{35, 35, monitor.NodeFenced, func() {
			from.events = append(from.events, monitor.Event{Seq: 1, At: second(35), Level: monitor.LevelNotice, Kind: "restart", Node: n.Name})
		}},
		{36, 10, monitor.NodeCordoned, nil},
		{40, 40, monitor.NodeFenced, nil},
		{41, 41, monitor.NodeCordoned, nil},
		{50, 50, monitor.NodeServing, nil},
		{60, 60, monitor.NodeCordoned, nil},
	} {
		if n.State = c.state; c.change != nil {
			c.change()
		}
		n.Since = second(c.at)
		write(t, w, from, second(c.at))
		if m, err := read(t, path).At(second(c.at)); err != nil || m.Snapshot.Nodes[1].State != c.state || !m.Snapshot.Nodes[1].Since.Equal(second(c.since)) {
			t.Errorf("after %d s: %s since %s, not %d s: %v", c.at, m.Snapshot.Nodes[1].State, m.Snapshot.Nodes[1].Since.Sub(now), c.since, err)
		}
	}
}

// A moment shows that a node had no guard, or that this was not known.
func TestAMomentKnowsWhatWasKnownOfGuards(t *testing.T) {
	path, now := filepath.Join(t.TempDir(), "record.db"), time.Now().Truncate(time.Millisecond)
	from := &told{s: *monitortest.Safe(now)}
	w := begin(t, path, from, now)
	for i, known := range []bool{true, false, true} {
		from.s.Nodes[1].Guards, from.s.Nodes[1].GuardsKnown = nil, known
		at := now.Add(time.Duration(i) * time.Second)
		write(t, w, from, at)
		if m, err := read(t, path).At(at); err != nil || m.Snapshot.Nodes[1].GuardsKnown != known || len(m.Snapshot.Nodes[1].Guards) != 0 {
			t.Errorf("known %t: %+v %v", known, m, err)
		}
	}
}

// A moment says of nodes what the live view said: when they rejoin at the earliest, how often they
// restarted, and what protects them from a restart, on which it depends who else can get a lock.
func TestAMomentKnowsWhenNodesRejoin(t *testing.T) {
	path, now := filepath.Join(t.TempDir(), "record.db"), time.Now().Truncate(time.Millisecond)
	from := &told{s: *monitortest.Crashed(now)}
	fenced := &from.s.Nodes[1]
	from.s.Nodes[0].StartsFenced, from.s.Nodes[2].Remembered, from.s.Nodes[3].Persistent = true, announce.BootFenced, true
	from.s.Nodes[4].StartedUnfenced, from.s.Nodes[0].ScriptsPass = true, true
	from.s.Nodes[2].Restarts = 2
	restart := func(node string, at time.Time) {
		from.events = append(from.events, monitor.Event{Seq: uint64(len(from.events) + 1), At: at, Level: monitor.LevelAlarm, Kind: "restart", Node: node})
	}
	restart(fenced.Name, now)
	restart("n3", now)
	restart("n3", now.Add(time.Second))
	w := begin(t, path, from, now)
	var rows int
	for i := range 10 {
		fenced.RejoinsAfter = fenced.RejoinsAfter.Add(time.Duration(i%3-1) * time.Millisecond) // its clock is measured
		write(t, w, from, now.Add(time.Duration(i)*time.Second))
	}
	r := read(t, path)
	if err := r.db.QueryRow(`SELECT count(*) FROM states WHERE node = ?`, fenced.Name).Scan(&rows); err != nil || rows != 1 {
		t.Errorf("%d rows of a node that did not change: %v", rows, err)
	}
	m, err := r.At(now.Add(5 * time.Second))
	if err != nil {
		t.Fatal(err)
	}
	for i := range from.s.Nodes {
		live, got := &from.s.Nodes[i], &m.Snapshot.Nodes[i]
		if got.RejoinsAfter.Sub(live.RejoinsAfter).Abs() > notBeforeJitter || got.Restarts != live.Restarts || protectionOf(got) != protectionOf(live) ||
			monitor.ProtectionOf(got, nil) != monitor.ProtectionOf(live, nil) {
			t.Errorf("%s rejoins after %s, restarted %d times, protection %b: live %s, %d, %b", live.Name, got.RejoinsAfter, got.Restarts, protectionOf(got), live.RejoinsAfter, live.Restarts, protectionOf(live))
		}
	}
}

// Step moves in either direction; entries within a second are one step. A finding shows,
// for each time, what was found then, even if it said more when it opened.
func TestAFindingThatChanges(t *testing.T) {
	path, now := filepath.Join(t.TempDir(), "record.db"), time.Now().Truncate(time.Millisecond)
	from := &told{s: *monitortest.Safe(now)}
	from.s.Settled, from.s.Version = now.Add(-takeInAfter), 1
	titles := []string{"start of n1, n2 not seen yet", "start of n1 not seen yet", "start of n1 not seen yet", ""}
	w := begin(t, path, from, now)
	for i, title := range titles {
		from.s.Version, from.s.Findings = uint64(i+1), nil
		if title != "" {
			from.s.Findings = []monitor.Finding{{ID: "boot-fence-unverified", Title: title, Severity: monitor.SeverityWarning, Evidence: safetext.New("5 nodes")}}
		}
		write(t, w, from, now.Add(time.Duration(i)*10*time.Second))
	}
	for i, title := range titles {
		m, err := read(t, path).At(now.Add(time.Duration(i)*10*time.Second + 5*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range m.Snapshot.Findings {
			got = append(got, f.Title)
			if text := f.Evidence.Raw(); !strings.HasPrefix(text, "found at ") || !strings.HasSuffix(text, ": 5 nodes") {
				t.Errorf("%q does not say when it was so", text)
			}
		}
		if want := slices.DeleteFunc([]string{title}, func(s string) bool { return s == "" }); !slices.Equal(got, want) {
			t.Errorf("after %d s: %q, want %q", 10*i+5, got, want)
		}
	}
	if all, err := read(t, path).Findings(Span{now.Add(-time.Hour), now.Add(time.Hour)}); err != nil || len(all) != 2 {
		t.Errorf("%d rows: %v", len(all), err)
	}
}

// A state that this program does not know, as in a record of another version, is no
// state: the lock is omitted, and the snapshot says so.
func TestUnknownLockState(t *testing.T) {
	path, now := filepath.Join(t.TempDir(), "record.db"), time.Now().Truncate(time.Millisecond)
	from := &told{s: *monitortest.Safe(now)}
	from.s.Settled, from.s.Version = now.Add(-takeInAfter), 1
	monitortest.Put(&from.s, monitortest.LockOf(now, "import", monitor.LockSplit, monitortest.TokenA, "4 - 4 ? 4b"))
	w := begin(t, path, from, now)
	write(t, w, from, now)
	if _, err := w.db.Exec(`UPDATE lock_states SET state = 'torn\x1b'`); err != nil {
		t.Fatal(err)
	}
	m, err := read(t, path).At(now)
	if err != nil {
		t.Fatal(err)
	}
	s := m.Snapshot
	if l := s.Locks.Get("import"); l != nil || s.Complete {
		t.Errorf("%v, complete: %t", l, s.Complete)
	}
	if s.Locks.Get("leader:billing") == nil {
		t.Error("the others are gone too")
	}
	if unread := s.Unread(); len(unread) == 0 || !strings.Contains(unread[0].Why, "torn") {
		t.Errorf("unread: %v", unread)
	}
}

// Nodes go down, and no majority of a lock is seen any more: the record says what was
// seen, and the grant continues.
func TestALockOfWhichNoMajorityIsSeen(t *testing.T) {
	path, now := filepath.Join(t.TempDir(), "record.db"), time.Now().Truncate(time.Millisecond)
	from := &told{s: *monitortest.Safe(now)}
	from.s.Settled, from.s.Version = now.Add(-takeInAfter), 1
	monitortest.Put(&from.s, monitortest.LockOf(now, "import", monitor.LockHeld, monitortest.TokenA, "30 30 30 30 30"))
	w := begin(t, path, from, now)
	write(t, w, from, now)
	from.s.Version = 2
	monitortest.Put(&from.s, monitortest.LockOf(now, "import", monitor.LockPartial, monitortest.TokenA, "20 20 ? ? ?"))
	write(t, w, from, now.Add(10*time.Second))
	write(t, w, from, now.Add(11*time.Second))
	for at, want := range map[time.Duration]monitor.Lock{
		time.Second:      {State: monitor.LockHeld, Held: 5},
		11 * time.Second: {State: monitor.LockPartial, Held: 2},
	} {
		m, err := read(t, path).At(now.Add(at))
		if err != nil {
			t.Fatal(err)
		}
		if l := m.Snapshot.Locks.Get("import"); l == nil || l.State != want.State || l.Held != want.Held {
			t.Errorf("after %s: %+v", at, l)
		}
	}
}

// All locks are recorded a second time, by the same recorder and by the next one: each
// that still exists keeps its one grant, and no more grants are remembered than allowed.
func TestLocksThatStayKeepTheirGrant(t *testing.T) { eitherWay(t, testLocksThatStayKeepTheirGrant) }

func testLocksThatStayKeepTheirGrant(t *testing.T, limit func(*writer)) {
	path, now := filepath.Join(t.TempDir(), "record.db"), time.Now().Truncate(time.Millisecond)
	from := &told{s: *monitortest.Safe(now)}
	from.s.Settled, from.s.Version = now.Add(-takeInAfter), 1
	again := func(w *writer, at time.Time) {
		t.Helper()
		w.follows = false
		write(t, w, from, at)
		if n := len(w.grants.open); n > w.grants.most {
			t.Errorf("%d grants are remembered, more than %d", n, w.grants.most)
		}
	}
	w := begin(t, path, from, now)
	limit(w)
	for second := range 2 {
		again(w, now.Add(time.Duration(second)*time.Second))
	}
	next, err := newWriter(w.db, from.s.Cluster, Options{By: "test"}, now.Add(3*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	limit(next)
	again(next, now.Add(3*time.Second))
	held := 0
	for l := range from.s.Locks.All() {
		if !granted(l, &from.s) {
			continue
		}
		held++
		got, err := read(t, path).GrantsOf(l.Key.Raw(), Span{now.Add(-time.Hour), now.Add(time.Hour)}, 10)
		if err != nil || len(got) != 1 || !got[0].Ended.IsZero() {
			t.Errorf("%s has the grants %+v, %v; want one that goes on", l.Key, got, err)
		}
	}
	if held == 0 {
		t.Error("no lock is held")
	}
}

func TestSteps(t *testing.T) {
	path, now := filepath.Join(t.TempDir(), "record.db"), time.Now().Truncate(time.Millisecond)
	from := &told{s: cluster(now)}
	w := begin(t, path, from, now)
	write(t, w, from, now)
	event := func(ms int) {
		from.events = append(from.events, monitor.Event{Seq: uint64(len(from.events) + 1), At: now.Add(time.Duration(ms) * time.Millisecond), Level: monitor.LevelAlarm, Kind: "down", Node: "n1"})
	}
	event(10_000)
	event(10_300)
	event(20_000)
	from.tell("acquired", "job", "a", now.Add(14*time.Second), now.Add(40*time.Second))
	write(t, w, from, now.Add(time.Second))
	r := read(t, path)
	for _, c := range []struct {
		from int
		back bool
		lock string
		want int
	}{
		{30_000, true, "", 20_000}, {20_000, true, "", 10_300}, {10_300, true, "", -1},
		{2000, false, "", 10_300}, {10_300, false, "", 20_000}, {20_000, false, "", -1}, {30_000, true, "job", 14_000}, {30_000, true, "none", -1},
	} {
		got, ok, err := r.Step(now.Add(time.Duration(c.from)*time.Millisecond), c.back, c.lock)
		if err != nil || ok != (c.want >= 0) || ok && !got.Equal(now.Add(time.Duration(c.want)*time.Millisecond)) {
			t.Errorf("from %d (back: %v, %q): %s, %v, %v", c.from, c.back, c.lock, got.Sub(now), ok, err)
		}
	}
}

// Rows are found by their duration, and each query has an index.
func TestQuestionsHaveIndexes(t *testing.T) {
	path, now := filepath.Join(t.TempDir(), "record.db"), time.Now().Truncate(time.Millisecond)
	from := &told{s: cluster(now)}
	w := begin(t, path, from, now)
	write(t, w, from, now)
	lasts := append(lengths[:len(lengths):len(lengths)], 30*time.Hour)
	for i, d := range lasts {
		from.tell("acquired", fmt.Sprint("job:", i), "a", now, now.Add(d))
		from.tell("released", fmt.Sprint("job:", i), "a", now.Add(d), time.Time{})
	}
	from.tell("acquired", "job:on", "a", now, time.Time{})
	write(t, w, from, now.Add(40*time.Hour))
	r := read(t, path)
	for i := range lasts {
		for _, c := range []struct {
			at   time.Time
			want int
		}{{now.Add(lasts[i] - 1), len(lasts) + 1 - i}, {now.Add(lasts[i]), len(lasts) - i}} {
			if got, err := r.HeldAt(c.at); err != nil || len(got) != c.want {
				t.Errorf("at %s: %d locks, want %d: %v", c.at.Sub(now), len(got), c.want, err)
			}
		}
	}
	if got, err := r.Longest(Span{now, now.Add(40 * time.Hour)}, 3); err != nil || len(got) != 3 || got[0].Lock != "job:on" || got[1].Lock != "job:9" {
		t.Errorf("the longest are %+v, %v", got, err)
	}
	const overlaps = "SCAN e USING INDEX grants_cut_short; SEARCH g USING INDEX grants_of_lock (lock=? AND began_ms>? AND began_ms<?); CORRELATED SCALAR SUBQUERY 1; SEARCH n USING INDEX grants_of_lock (lock=? AND began_ms>?)"
	queries := map[string]string{`SELECT g.id ` + overlapping: overlaps, overlapsOf: overlaps}
	for _, query := range append(classes(`?1`), inClass(3)) {
		queries[grantColumns+byLength+query] = "SEARCH g USING INDEX grants_by_length (<expr>=? AND began_ms"
	}
	if _, err := w.db.Exec(`DROP INDEX grants_cut_short`); err != nil { // as in a file of an older program
		t.Fatal(err)
	}
	if err := prepare(w.db); err != nil {
		t.Fatal(err)
	}
	for query, want := range queries {
		var plan []string
		rows, err := r.db.Query(`EXPLAIN QUERY PLAN `+query, 1, 2, 3, 4)
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			var id, parent, unused int
			var detail string
			if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
				t.Fatal(err)
			}
			plan = append(plan, detail)
		}
		if s := strings.Join(plan, "; "); !strings.Contains(s, want) {
			t.Errorf("%s: %s", query, s)
		}
	}
}
