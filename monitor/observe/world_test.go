package observe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/monitor"
	"redlockctl/monitor/table"
	"redlockctl/monitor/wire"
	"redlockctl/redlock"
	"redlockctl/server/safetext"
)

func nodes(t *testing.T, names ...string) []*redlock.Node {
	t.Helper()
	var out []*redlock.Node
	for _, name := range names {
		n, err := redlock.NewNode(name, &redis.Options{Addr: "127.0.0.1:1"})
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, n)
	}
	return out
}

func newTestWorld(t *testing.T, now time.Time, names ...string) *world {
	return newTestWorldWith(t, Options{}, now, names...)
}

func newTestWorldWith(t *testing.T, opt Options, now time.Time, names ...string) *world {
	opt, err := opt.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	return newWorld(nodes(t, names...), opt, now)
}

func master(more ...string) map[string]string {
	info := map[string]string{"run_id": "one", "role": "master", "redis_mode": "standalone", "loading": "0"}
	for i := 0; i < len(more); i += 2 {
		info[more[i]] = more[i+1]
	}
	return info
}

func fence(value string) map[string]string {
	return map[string]string{"min-replicas-to-write": value, "min-replicas-max-lag": "10"}
}

func TestStatesOfANode(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		info, config map[string]string
		want         monitor.NodeState
	}{
		"an open master serves":            {master(), fence("0"), monitor.NodeServing},
		"closed":                           {master(), fence("2147483647"), monitor.NodeFenced},
		"held":                             {master(), fence("2147483646"), monitor.NodeCordoned},
		"the fence is switched off":        {master(), map[string]string{"min-replicas-to-write": "2147483647", "min-replicas-max-lag": "0"}, monitor.NodeServing},
		"replicas are asked for and there": {master("connected_slaves", "2", "min_slaves_good_slaves", "2"), fence("2"), monitor.NodeServing},
		"replicas are asked for, too few":  {master("connected_slaves", "2", "min_slaves_good_slaves", "1"), fence("2"), monitor.NodeFenced},
		"loading":                          {master("loading", "1"), fence("0"), monitor.NodeLoading},
		"a replica":                        {master("role", "slave"), fence("0"), monitor.NodeWrongRole},
		"a shard":                          {master("redis_mode", "cluster"), fence("0"), monitor.NodeWrongRole},
		"a shard by its other mark":        {master("cluster_enabled", "1"), fence("0"), monitor.NodeWrongRole},
		"a sentinel":                       {master("redis_mode", "sentinel"), fence("0"), monitor.NodeWrongRole},
		"CONFIG denied, no fence in force": {master(), map[string]string{}, monitor.NodeServing},
		"CONFIG denied, a fence in force":  {master("min_slaves_good_slaves", "0"), map[string]string{}, monitor.NodeFenced},
		"a fence that is no number":        {master(), fence("many"), monitor.NodeServing},
		"INFO denied, closed":              {map[string]string{}, fence("2147483647"), monitor.NodeFenced},
		"a replica that is closed":         {master("role", "slave"), fence("2147483647"), monitor.NodeWrongRole},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTestWorld(t, now, "n1")
			w.answered(0, sight{sent: now, received: now.Add(time.Millisecond), info: c.info, config: c.config}, now)
			if got := w.nodes[0].State; got != c.want {
				t.Error(got)
			}
		})
	}
}

func TestVerdict(t *testing.T) {
	now := time.Now()
	w := newTestWorld(t, now, "n1", "n2", "n3")
	up := func(i int, value string) {
		w.answered(i, sight{sent: now, received: now, info: master(), config: fence(value)}, now)
	}
	is := func(want monitor.Verdict, lose int, reason string) {
		t.Helper()
		if c := w.snapshot(now, 1).Cluster; c.Verdict != want || c.CanLose != lose || c.Absent != reason {
			t.Errorf("%+v", c)
		}
	}
	is(monitor.VerdictUnknown, -2, "n1 unknown, n2 unknown, n3 unknown")
	up(0, "0")
	up(1, "0")
	is(monitor.VerdictUnknown, 0, "n3 unknown")
	w.failed(2, wire.DialError{Err: errors.New("refused")}, now)
	is(monitor.VerdictDegraded, 0, "n3 down")
	up(2, "0")
	is(monitor.VerdictUnknown, 1, "") // the locks are not read yet
	up(1, "2147483647")
	w.failed(2, wire.DialError{Err: errors.New("refused")}, now)
	is(monitor.VerdictUnavailable, -1, "n2 fenced, n3 down")
}

func TestAScanOfAnEarlierIncarnationIsNotBelieved(t *testing.T) {
	now := time.Now()
	w := newTestWorld(t, now, "n1")
	w.answered(0, sight{sent: now, received: now, info: master(), config: fence("0")}, now)
	rows := []table.Row{{Key: "k", Type: "string", TTL: time.Minute, Len: 1, Prefix: "a"}}
	if !w.read(0, "one", now, now, rows) || !w.scanned(0, "one", 1, now, now) {
		t.Fatal("not believed")
	}
	w.answered(0, sight{sent: now, received: now, info: master("run_id", "two"), config: fence("0")}, now)
	if w.read(0, "one", now, now, rows) || w.scanned(0, "one", w.table.Epoch(0), now, now) {
		t.Error("believed")
	}
	w.tick(now)
	if l := w.table.Locks().Get("k"); l.Held != 0 || w.nodes[0].Restarts != 1 {
		t.Errorf("%+v", l)
	}
	// A node that cannot be read has no scans either.
	w.failed(0, wire.DialError{Err: errors.New("refused")}, now)
	if w.read(0, "two", now, now, rows) {
		t.Error("believed while down")
	}
}

// If the first reads of the nodes do not agree, the first view waits for a second read: a
// lock may have changed hands in between.
func TestTheFirstViewDoesNotMistakeChangeForSplit(t *testing.T) {
	for name, c := range map[string]struct {
		second string // what the first node has at the second read
		want   monitor.LockState
		events int
	}{
		"it passed on":   {"b", monitor.LockHeld, 0},
		"it stays split": {"a", monitor.LockSplit, 1},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Now()
			w := newTestWorld(t, now, "n1", "n2", "n3")
			for i := range w.nodes {
				w.answered(i, sight{sent: now, received: now, info: master(), config: fence("0")}, now)
			}
			scan := func(i int, token string) {
				now = now.Add(time.Millisecond)
				began := now
				now = now.Add(time.Millisecond)
				w.read(i, "one", now, now, []table.Row{{Key: "k", Type: "string", TTL: time.Minute, Len: 1, Prefix: token}})
				w.scanned(i, "one", w.table.Epoch(i), began, now)
			}
			scan(0, "a")
			scan(1, "b")
			scan(2, "b")
			if w.done || !w.hasten {
				t.Fatal("the first view is taken for complete")
			}
			scan(0, c.second)
			scan(1, "b")
			scan(2, "b")
			now = now.Add(1500 * time.Millisecond)
			w.tick(now)
			s := w.snapshot(now, 1)
			told := slices.DeleteFunc(slices.Clone(s.Events), func(e monitor.Event) bool { return e.Key.Empty() })
			if !w.done || s.Locks.Get("k").State != c.want || len(told) != c.events {
				t.Errorf("%t %+v %+v", w.done, s.Locks, s.Events)
			}
		})
	}
}

func TestNodesThatStepTogether(t *testing.T) {
	base := time.Now()
	w := newTestWorld(t, base, "n1", "n2")
	offset := []time.Duration{time.Second, -time.Second}
	at := base
	probe := func() {
		at = at.Add(200 * time.Millisecond)
		for i := range offset {
			w.answered(i, sight{sent: at, received: at, server: at.Round(0).Add(offset[i]), info: master(), config: fence("0")}, at)
		}
	}
	kinds := func() map[string]int {
		k := map[string]int{}
		for _, e := range w.events.latest() {
			k[e.Kind]++
		}
		return k
	}
	for range 10 {
		probe()
	}
	offset[0] += time.Second
	for range 20 {
		probe()
	}
	if k := kinds(); k["clock step"] != 1 || k["own clock"] != 0 {
		t.Error(k)
	}
	step := func(e monitor.Event) bool {
		return e.Text.Raw() == "n1's clock was stepped by +1s: the locks on it end 1s early"
	}
	if !slices.ContainsFunc(w.events.latest(), step) {
		t.Errorf("what the step means is not told: %v", w.events.latest())
	}
	offset[0] += time.Second
	offset[1] += time.Second
	for range 20 {
		probe()
	}
	if k := kinds(); k["clock step"] != 3 || k["own clock"] != 1 {
		t.Error(k)
	}
}

func TestEverydayEventsDoNotPushOutWhatMatters(t *testing.T) {
	l := eventLog{keep: 10}
	l.add(monitor.Event{Kind: "down", Level: monitor.LevelAlarm})
	for range 1000 {
		l.add(monitor.Event{Kind: "acquired"})
	}
	l.add(monitor.Event{Kind: "up", Level: monitor.LevelNotice})
	got := l.latest()
	if len(got) != 7 || got[0].Kind != "down" || got[6].Kind != "up" || got[6].Seq != 1002 {
		t.Errorf("%+v", got)
	}
	for range 1000 {
		l.add(monitor.Event{Kind: "down", Level: monitor.LevelAlarm})
	}
	if got := l.latest(); len(got) != 10 || got[9].Seq != 2002 {
		t.Errorf("%+v", got)
	}
}

// Changes are collected: many of them make few snapshots, the last one is never missing,
// and nobody has to read them.
func TestSnapshotsAreCollected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, err := New(nodes(t, "n1"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		first := m.Snapshot()
		if first == nil || first.Nodes[0].State != monitor.NodeUnknown || first.Cluster.Verdict != monitor.VerdictUnknown {
			t.Fatalf("%+v", first)
		}
		done := make(chan struct{})
		ctx := t.Context()
		go func() { defer close(done); m.publishUntil(ctx) }()
		time.Sleep(time.Second)
		begun := m.Snapshot().Version
		for range 1000 {
			m.Note(monitor.Event{Kind: "noted", Text: safetext.New("x")})
			time.Sleep(time.Millisecond)
		}
		m.Note(monitor.Event{Kind: "last"})
		time.Sleep(publishEvery + time.Millisecond)
		s := m.Snapshot()
		if n := s.Version - begun; n < 150 || n > 210 {
			t.Errorf("%d snapshots in a second", n)
		}
		if e := s.Events[len(s.Events)-1]; e.Kind != "last" || e.At.IsZero() {
			t.Errorf("%+v", e)
		}
		select {
		case <-m.Changed(s.Version - 1):
		default:
			t.Error("an older version has not changed")
		}
		changed := m.Changed(s.Version)
		select {
		case <-changed:
			t.Error("the latest version has changed")
		default:
		}
		time.Sleep(2 * refreshEvery)
		<-changed
	})
}

// An expired copy disappears by the clock alone.
func TestAnExpiredLockGoesWithoutAScan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, err := New(nodes(t, "n1"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		ctx := t.Context()
		go m.publishUntil(ctx)
		now := time.Now()
		m.answered(0, sight{sent: now, received: now, info: master(), config: fence("0")})
		m.read(0, "one", now, now, []table.Row{{Key: "k", Type: "string", TTL: 1500 * time.Millisecond, Len: 1, Prefix: "a"}})
		m.scanned(0, "one", 1, now, false, nil)
		m.readUpTo(0, "one", now)
		if err := m.Settled(ctx); err != nil {
			t.Fatal(err)
		}
		if s := m.Snapshot(); s.Locks.Len() != 1 || s.Locks.Get("k").State != monitor.LockBareMajority {
			t.Fatalf("%+v", s.Locks)
		}
		time.Sleep(1500*time.Millisecond - time.Since(now) + publishEvery + time.Millisecond)
		if s := m.Snapshot(); s.Locks.Len() != 0 || s.Events[len(s.Events)-1].Kind != "expired" {
			t.Errorf("%+v %+v", s.Locks, s.Events)
		}
	})
}

// Work on very many locks may take long. The goroutine that waits for its end sends no
// heartbeat, although this process is not stopped.
func TestLongWorkIsNoStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, err := New(nodes(t, "n1"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go m.live(ctx)
		m.mu.Lock()
		defer m.mu.Unlock()
		m.world.tick(time.Now())
		time.Sleep(10 * time.Second)
		if m.world.tick(time.Now()); !m.world.discontinuity.At.IsZero() {
			t.Errorf("%+v", m.world.discontinuity)
		}
		cancel()
		synctest.Wait()
		time.Sleep(10 * time.Second)
		if m.world.tick(time.Now()); m.world.discontinuity.Gap < 9*time.Second {
			t.Errorf("a stop is not seen: %+v", m.world.discontinuity)
		}
	})
}

// A heartbeat may wake first after a stop: the stop is reported all the same.
func TestASignOfLifeHidesNoStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, err := New(nodes(t, "n1"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		last := m.lives(time.Now())
		m.world.tick(last)
		time.Sleep(10 * time.Second)
		m.lives(last)
		if m.world.tick(time.Now()); m.world.discontinuity.Gap < 9*time.Second {
			t.Errorf("a stop is not seen: %+v", m.world.discontinuity)
		}
	})
}

// After this process was stopped, or its clock stepped, earlier measurements are dropped,
// and a node that could not answer is not down for that.
func TestClockDiscontinuity(t *testing.T) {
	base := time.Now()
	w := newTestWorld(t, base, "n1", "n2", "n3")
	at := base
	probe := func(n int) {
		for range n {
			at = at.Add(200 * time.Millisecond)
			for i := range w.nodes {
				w.answered(i, sight{sent: at, received: at.Add(time.Millisecond), server: at.Round(0), info: master("run_id", fmt.Sprint(i)), config: fence("0")}, at)
			}
			w.tick(at)
		}
	}
	probe(50)
	if !w.nodes[0].clock.Drift().Valid || !w.discontinuity.At.IsZero() {
		t.Fatal("no start")
	}
	at = at.Add(10 * time.Second) // stopped
	if counts, _ := w.failed(1, timeoutError{}, at); counts || w.nodes[1].State != monitor.NodeServing {
		t.Errorf("%s because we were stopped", w.nodes[1].State)
	}
	if w.discontinuity.Gap < 10*time.Second || w.nodes[0].clock.Drift().Valid || len(w.nodes[0].clock.Recent) > 0 || !w.hasten {
		t.Errorf("%+v", w.discontinuity)
	}
	// A node that is really down is reported all the same.
	if w.failed(2, wire.DialError{Err: errors.New("refused")}, at); w.nodes[2].State != monitor.NodeDown {
		t.Error(w.nodes[2].State)
	}
	at = at.Add(w.opt.Timeout + time.Millisecond)
	if w.failed(1, timeoutError{}, at); w.nodes[1].State != monitor.NodeSlow {
		t.Error(w.nodes[1].State)
	}
	probe(50)
	discontinuities := 0
	for _, e := range w.events.latest() {
		if e.Kind == "own clock" {
			discontinuities++
		}
	}
	if discontinuities != 1 {
		t.Errorf("told %d times", discontinuities)
	}
}

// allAnswer records an answer of each node.
func (w *world) allAnswer(at time.Time) {
	for i := range w.nodes {
		w.answered(i, sight{sent: at, received: at, server: at.Round(0), info: master("run_id", fmt.Sprint(i)), config: fence("0")}, at)
	}
	w.tick(at)
}

// After a clock discontinuity all is read again, and progress is shown as at the start; a
// read that started earlier does not count.
func TestWhatADiscontinuityLeavesUnreadIsTold(t *testing.T) {
	at := time.Now()
	w := newTestWorld(t, at, "n1", "n2")
	answer := func() { at = at.Add(200 * time.Millisecond); w.allAnswer(at) }
	read := func(i int) { w.scanned(i, fmt.Sprint(i), w.table.Epoch(i), at, at) }
	told := func() (complete bool, nodes string) {
		s := w.snapshot(at, 1)
		r, _ := s.Reading()
		return s.Complete, strings.Join(r.Nodes, " ")
	}
	answer()
	read(0)
	read(1)
	if complete, nodes := told(); !complete || nodes != "" || !w.done {
		t.Fatalf("at the start: complete %v, reading %q", complete, nodes)
	}
	began := w.table.Epoch(0) // of a read in progress
	before := at
	at = at.Add(time.Minute)
	answer()
	w.passed(0, began, 1)
	if complete, nodes := told(); complete || nodes != "n1 n2" {
		t.Errorf("after it: complete %v, reading %q", complete, nodes)
	}
	if read(0); w.nodes[0].Read != 1 {
		t.Errorf("n1 is read to %v", w.nodes[0].Read)
	}
	w.passed(1, w.table.Epoch(1), 0.5)
	if complete, nodes := told(); complete || nodes != "n2" || w.nodes[1].Read != 0.5 {
		t.Errorf("meanwhile: complete %v, reading %q", complete, nodes)
	}
	if p := w.snapshot(at, 1).Pause; !p.Since.Equal(before) || !p.Until.IsZero() || !p.Includes(at) {
		t.Errorf("meanwhile: nothing seen from %v to %v", p.Since, p.Until)
	}
	read(1)
	if complete, nodes := told(); !complete || nodes != "" {
		t.Errorf("in the end: complete %v, reading %q", complete, nodes)
	}
	w.tick(at)
	if p := w.snapshot(at, 1).Pause; !p.Until.Equal(at) || p.Includes(before) || p.Includes(at.Add(1)) {
		t.Errorf("in the end: nothing seen from %v to %v", p.Since, p.Until)
	}
}

// A node that was down before this process was stopped may be up again: the pause lasts until the
// node has been probed.
func TestAPauseEndsWhenAllNodesAreProbed(t *testing.T) {
	at := time.Now()
	w := newTestWorld(t, at, "n1", "n2")
	answer := func() {
		at = at.Add(200 * time.Millisecond)
		w.answered(0, sight{sent: at, received: at, server: at.Round(0), info: master("run_id", "0"), config: fence("0")}, at)
		w.tick(at)
	}
	answer()
	w.scanned(0, "0", w.table.Epoch(0), at, at)
	w.failed(1, wire.DialError{Err: errors.New("refused")}, at)
	at = at.Add(time.Minute)
	answer()
	w.scanned(0, "0", w.table.Epoch(0), at, at)
	if p := w.snapshot(at, 1).Pause; !p.Until.IsZero() {
		t.Errorf("ended at %v", p.Until)
	}
	w.failed(1, wire.DialError{Err: errors.New("refused")}, at)
	w.tick(at)
	if p := w.snapshot(at, 1).Pause; !p.Until.Equal(at) {
		t.Errorf("to %v", p.Until)
	}
}

// After a clock discontinuity before the first view is complete, earlier reads do not
// complete the view.
func TestADiscontinuityBeforeTheFirstViewIsComplete(t *testing.T) {
	at := time.Now()
	w := newTestWorld(t, at, "n1", "n2")
	answer := func() { at = at.Add(200 * time.Millisecond); w.allAnswer(at) }
	read := func(i int) { w.scanned(i, fmt.Sprint(i), w.table.Epoch(i), at, at) }
	answer()
	read(0)
	at = at.Add(time.Minute)
	answer()
	if read(1); w.done || w.snapshot(at, 1).Complete {
		t.Error("n1 was not read again, and the view is complete")
	}
	if read(0); !w.done || !w.snapshot(at, 2).Complete {
		t.Error("all is read again, and the view is not complete")
	}
}

type timeoutError struct{}

func (timeoutError) Error() string   { return "timeout" }
func (timeoutError) Timeout() bool   { return true }
func (timeoutError) Temporary() bool { return true }

// A node that has keys in another database than that of the locks is noticed, by INFO keyspace.
func TestOtherDatabases(t *testing.T) {
	for _, c := range []struct {
		info map[string]string
		want int
	}{
		{map[string]string{"used_memory": "1", "db0": "keys=3,expires=1"}, -1},
		{map[string]string{"used_memory": "1", "db0": "keys=3,expires=1", "db11": "keys=1", "db2": "keys=1,expires=0", "dbx": "keys=1", "db-1": "keys=1"}, 2},
		{map[string]string{"db0": "keys=3"}, 7}, // it did not ask
	} {
		if got := otherDatabase(c.info, 0, 7); got != c.want {
			t.Errorf("%v: %d, not %d", c.info, got, c.want)
		}
	}
}
