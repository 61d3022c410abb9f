package observe

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"redlockctl/monitor"
	"redlockctl/monitor/table"
	"redlockctl/monitor/wire"
	"redlockctl/server/announce"
	"redlockctl/server/resp"
	"redlockctl/server/safetext"
)

// placed is a copy on a server.
type placed struct {
	token   string
	expires time.Time // zero: never
}

// story runs a world over simulated servers, step by step.
type story struct {
	*world
	at      time.Time
	servers []map[string]placed
	lives   []string
	fences  []string
	clocks  []time.Duration
	fails   []error // error of each node's probe; nil: it works
	info    [][]string
	version uint64
	step    time.Duration // between two reads of all nodes
	shown   *monitor.Snapshot
}

func newStory(t *testing.T, n int) *story {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprint("n", i+1)
	}
	s := &story{at: time.Now(), step: 200 * time.Millisecond}
	s.world = newTestWorldWith(t, Options{MaxTTL: 30 * time.Second}, s.at, names...)
	for i := range n {
		s.servers = append(s.servers, map[string]placed{})
		s.lives, s.fences = append(s.lives, fmt.Sprint("run", i)), append(s.fences, "0")
		s.clocks, s.fails, s.info = append(s.clocks, 0), append(s.fails, nil), append(s.info, nil)
	}
	return s
}

// pass lets time pass: all nodes are probed and read in each step.
func (s *story) pass(d time.Duration) {
	for end := s.at.Add(d); s.at.Before(end); {
		s.at = s.at.Add(s.step)
		for i := range s.servers {
			if s.fails[i] != nil {
				s.failed(i, s.fails[i], s.at)
				continue
			}
			s.answered(i, sight{
				sent: s.at, received: s.at, server: s.at.Round(0).Add(s.clocks[i]),
				info: master(append(s.info[i], "run_id", s.lives[i])...), config: fence(s.fences[i]),
			}, s.at)
			epoch, ok := s.scanStarts(i, s.lives[i])
			if !ok {
				continue
			}
			var rows []table.Row
			for key, h := range s.servers[i] {
				left := int64(-1)
				if !h.expires.IsZero() {
					if left = h.expires.Sub(s.at).Milliseconds(); left <= 0 {
						delete(s.servers[i], key)
						continue
					}
				}
				rows = append(rows, table.NewRow(key, "string", left, int64(len(h.token)), h.token))
			}
			s.read(i, s.lives[i], s.at, s.at, rows)
			s.scanned(i, s.lives[i], epoch, s.at, s.at)
		}
		for s.tick(s.at) {
		}
		s.version++
		s.shown = s.snapshot(s.at, s.version)
	}
}

func (s *story) set(key, token string, ttl time.Duration, nodes ...int) {
	for _, i := range nodes {
		h := placed{token: token}
		if ttl > 0 {
			h.expires = s.at.Add(ttl)
		}
		s.servers[i][key] = h
	}
}

func (s *story) del(key string, nodes ...int) {
	for _, i := range nodes {
		delete(s.servers[i], key)
	}
}

// Each kind of event is reported when its time has come, not earlier.
func TestEachKindOfEventIsTold(t *testing.T) {
	s := newStory(t, 5)
	s.pass(3 * time.Second)
	seen := uint64(0)
	all := []int{0, 1, 2, 3, 4}
	told := map[string]bool{}
	for _, c := range []struct {
		do   func()
		for_ time.Duration
		want []string
	}{
		{func() { s.set("a", "t1", 20*time.Second, all...) }, time.Second, []string{"acquired"}},
		{func() {}, 11 * time.Second, nil},
		{func() { s.set("a", "t1", 20*time.Second, all...) }, time.Second, []string{"extended"}},
		{func() { s.del("a", 4) }, 2 * time.Second, []string{"lost copy"}},
		{func() { s.del("a", 0, 1, 2, 3) }, time.Second, []string{"released"}},
		{func() { s.set("b", "t2", time.Second, all...) }, 2 * time.Second, []string{"acquired", "expired"}},
		{func() { s.set("c", "t3", 20*time.Second, all...) }, time.Second, []string{"acquired"}},
		{func() {
			s.set("c", "redlockctl:revoked:oJtNMIGYPabMwBk-P0VNB2JY7Ns", 20*time.Second, all...)
		}, time.Second, []string{"revoked"}},
		{func() { s.set("d", "t4", 20*time.Second, all...) }, time.Second, []string{"acquired"}},
		{func() { s.del("d", 0, 1, 2) }, 3 * time.Second, []string{"lost majority"}},
		{func() { s.del("d", 3, 4); s.del("c", all...); s.set("e", "t5", 20*time.Second, 0, 1, 2) }, time.Second, []string{"released", "acquired"}},
		{func() { s.set("e", "t6", 20*time.Second, 3, 4) }, 3 * time.Second, []string{"split", "finding opened"}},
		{func() { s.set("i", "t7", 4*time.Second, 3, 4) }, 3 * time.Second, []string{"orphaned"}},
		{func() { s.del("e", all...) }, 12 * time.Second, []string{"released", "finding closed"}},
		{func() { s.set("f", "t7", 35*time.Second, all...) }, 500 * time.Millisecond, []string{"acquired", "over max TTL"}},
		{func() { s.del("f", all...); s.set("g", "t8", 0, all...) }, 200 * time.Millisecond, []string{"released", "acquired"}},
		{func() { s.set("g", "t8", 20*time.Second, all...) }, 3 * time.Second, []string{}}, // its EXPIRE: no alarm
		{func() { s.del("g", all...); s.set("g", "t9", 0, all...) }, 3 * time.Second, []string{"released", "acquired", "no TTL", "finding opened"}},
		{func() { s.del("g", all...) }, time.Second, []string{"released"}},
		{func() { s.fails[0] = wire.DialError{Err: errors.New("refused")} }, time.Second, []string{"down"}},
		{func() { s.fails[0] = nil; s.lives[0] = "another" }, time.Second, []string{"up", "restart", "finding opened"}},
		{func() { s.fails[1] = timeoutError{} }, time.Second, []string{"slow"}},
		{func() { s.fails[1] = resp.ServerError("NOAUTH Authentication required.") }, time.Second, []string{"denied"}},
		{func() { s.fails[1] = nil; s.info[1] = []string{"loading", "1"} }, time.Second, []string{"loading"}},
		{func() { s.info[1] = []string{"role", "slave"} }, time.Second, []string{"wrong role", "finding opened"}},
		{func() { s.info[1] = nil; s.fences[1] = "2147483647" }, time.Second, []string{"fenced", "data wiped"}},
		{func() { s.fences[1] = "2147483646" }, time.Second, []string{"cordoned", "finding opened"}},
		{func() { s.fences[1] = "0" }, time.Second, []string{"rejoined"}},
		{func() { s.clocks[2] = time.Second }, time.Second, []string{"clock step", "finding opened"}},
		{func() { s.at = s.at.Add(10 * time.Second) }, time.Second, []string{"own clock", "finding opened"}},
	} {
		c.do()
		s.pass(c.for_)
		events, missed := s.events.since(seen)
		var got []string
		for _, e := range events {
			seen = e.Seq
			if e.Kind != "finding opened" && e.Kind != "finding closed" || !slices.Contains(got, e.Kind) && slices.Contains(c.want, e.Kind) {
				got = append(got, e.Kind)
			}
			if e.Text.Empty() || e.At.IsZero() {
				t.Errorf("%+v", e)
			}
			told[e.Kind] = true
		}
		slices.Sort(got)
		slices.Sort(c.want)
		if missed != 0 || !slices.Equal(got, c.want) {
			t.Errorf("want %q, got %q", c.want, got)
		}
	}
	locks, nodes, others := monitor.EventKinds()
	for _, kind := range slices.Concat(locks, nodes, others) {
		switch kind {
		case "not seen", "not seen from here", "seen again", "force-released", "missed grants", "rejoin late": // see the tests of silence, of removals, of short grants and of promises
		default:
			if !told[kind] {
				t.Errorf("%s was never told", kind)
			}
		}
		delete(told, kind)
	}
	if len(told) > 0 {
		t.Errorf("not among the kinds of events: %v", told)
	}
}

// What is dangerous is an event, a finding and the verdict, which every page shows, within
// 300 ms after it happened, of which it takes 50 ms to read the nodes.
func TestADangerIsAnnouncedSoon(t *testing.T) {
	restart := func(s *story, nodes ...int) {
		for _, i := range nodes {
			clear(s.servers[i])
			s.lives[i] += "'"
		}
	}
	for name, c := range map[string]struct {
		before, do  func(*story)
		kind, found string
	}{
		"another client gets in before the end": {func(s *story) { s.set("k", "a", 20*time.Second, 0, 1, 2); s.pass(time.Second); restart(s, 0) },
			func(s *story) { s.set("k", "b", 20*time.Second, 0, 3, 4) }, "split", "split-lock"},
		"and copies of the first were deleted": {func(s *story) { s.set("k", "a", 20*time.Second, 0, 1, 2, 3, 4) },
			func(s *story) { s.set("k", "b", 20*time.Second, 0, 1, 2) }, "split", "split-lock"},
		"two clients that were not known": {func(*story) {},
			func(s *story) { s.set("k", "a", 20*time.Second, 0, 1); s.set("k", "b", 20*time.Second, 2, 3) }, "split", "split-lock"},
		"a lock without a TTL": {func(*story) {},
			func(s *story) { s.set("k", "a", 0, 0, 1, 2) }, "no TTL", "no-ttl-lock"},
		"a TTL that was removed": {func(s *story) { s.set("k", "a", 20*time.Second, 0, 1, 2) },
			func(s *story) { s.set("k", "a", 0, 0, 1, 2) }, "no TTL", "no-ttl-lock"},
		"a TTL above the maximum": {func(*story) {},
			func(s *story) { s.set("k", "a", 40*time.Second, 0, 1, 2) }, "over max TTL", "over-ttl"},
		"a lost majority": {func(s *story) { s.set("k", "a", 20*time.Second, 0, 1, 2) },
			func(s *story) { restart(s, 0, 1) }, "lost majority", "exposed-lock"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t, 5)
			s.pass(5 * time.Second)
			c.before(s)
			s.pass(5 * time.Second)
			s.step = 10 * time.Millisecond
			s.pass(200 * time.Millisecond)
			c.do(s)
			seen, from := s.events.seq, s.at
			s.at = s.at.Add(40 * time.Millisecond)
			s.pass(250 * time.Millisecond)
			told := func(kind string) bool {
				events, _ := s.events.since(seen)
				return slices.ContainsFunc(events, func(e monitor.Event) bool { return e.Kind == kind })
			}
			found := slices.ContainsFunc(s.shown.Findings, func(f monitor.Finding) bool { return f.ID == c.found && f.Severity == monitor.SeverityDanger })
			if !told(c.kind) || !found || s.shown.Cluster.Verdict != monitor.VerdictDanger {
				t.Errorf("after %s: event %t, finding %t, %v %s: %+v", s.at.Sub(from), told(c.kind), found, s.shown.Cluster.Verdict, s.shown.Cluster.Reason, s.shown.Locks.Get("k"))
			}
		})
	}
}

// What passes by itself raises an alarm at most once; from then on alarms wait longer, for
// ten minutes.
func TestAnAlarmThatWasTooEarlyTeaches(t *testing.T) {
	for name, c := range map[string]struct {
		begins, ends func(*story)
		lasts        time.Duration
		kind         string
	}{
		"an attempt that fails":        {func(s *story) { s.set("k", "a", 9*time.Second, 0, 1); s.set("k", "b", 9*time.Second, 2) }, func(s *story) { s.del("k", 0, 1, 2) }, 380 * time.Millisecond, "split"},
		"an EXPIRE that follows later": {func(s *story) { s.set("k", "a", 0, 0, 1, 2) }, func(s *story) { s.set("k", "a", 9*time.Second, 0, 1, 2) }, 380 * time.Millisecond, "no TTL"},
		"a slow release": {func(s *story) {
			s.set("k", "a", 9*time.Second, 0, 1, 2, 3, 4)
			s.pass(200 * time.Millisecond)
			s.del("k", 0, 1, 2)
		}, func(s *story) { s.del("k", 3, 4) }, 1300 * time.Millisecond, "lost majority"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t, 5)
			s.pass(5 * time.Second)
			s.step = 20 * time.Millisecond
			told := func() (n int) {
				seen := s.events.seq
				c.begins(s)
				s.pass(c.lasts)
				c.ends(s)
				s.pass(time.Second)
				s.del("k", 0, 1, 2, 3, 4)
				s.pass(time.Second)
				events, _ := s.events.since(seen)
				for _, e := range events {
					if e.Kind == c.kind {
						n++
					}
				}
				return n
			}
			first, second := told(), told()
			s.step = 10 * time.Second
			s.pass(11 * time.Minute)
			s.step = 20 * time.Millisecond
			if third := told(); first != 1 || second != 0 || third != 1 {
				t.Error(first, second, third)
			}
		})
	}
}

// The history of a lock and of a node is bounded, and forgets the oldest first.
func TestHistoriesAreBounded(t *testing.T) {
	l := eventLog{keep: 10}
	for k := range 3 * historyLocks {
		events := 3 * historyKept
		if k%50 != 1 && k < 3*historyLocks-50 {
			events = historyKept / 2 // many that are full, and more that are not
		}
		for range events {
			l.add(monitor.LockEvent(time.Time{}, monitor.LevelInfo, "acquired", fmt.Sprint("k", k), "x"))
		}
	}
	if n := len(l.history.young) + len(l.history.old); n > 2*historyLocks {
		t.Errorf("of %d locks", n)
	}
	last := l.history.of(fmt.Sprint("k", 3*historyLocks-1))
	if len(last) != historyKept || last[historyKept-1].Seq != l.seq || len(l.history.of("k1")) != 0 {
		t.Errorf("%d events of the last, %d of the first", len(last), len(l.history.of("k1")))
	}

	at := time.Unix(1_790_000_000, 0)
	w := newWatch("n1", "addr", at)
	for s := range 3 * 3600 {
		if s%60 == 59 {
			w.measured(at.Add(time.Duration(s)*time.Second), 0, false)
		} else {
			w.measured(at.Add(time.Duration(s)*time.Second), time.Duration(1+s%60)*time.Millisecond, true)
		}
	}
	m := w.Minutes
	if len(m) != minutesKept || !m[0].At.Equal(at.Add(119*time.Minute)) || !m[59].At.Equal(at.Add(178*time.Minute)) {
		t.Fatalf("%d minutes from %s", len(m), m[0].At.Sub(at))
	}
	if got := m[30]; got.Answered != 59 || got.Failed != 1 || got.Least != time.Millisecond || got.Most != 59*time.Millisecond || got.Mean != 30*time.Millisecond {
		t.Errorf("%+v", got)
	}
	// A stop leaves minutes without measurements, but no more than are kept.
	w.measured(at.Add(3*time.Hour+5*time.Minute), time.Millisecond, true)
	if m := w.Minutes; len(m) != minutesKept || m[59].Answered != 0 || !m[59].At.Equal(at.Add(184*time.Minute)) {
		t.Errorf("%+v", m[59])
	}
	w.measured(at.Add(1000*time.Hour), time.Millisecond, true)
	if len(w.Minutes) > 1 {
		t.Errorf("%d minutes", len(w.Minutes))
	}
}

// First contacts of a guard with the same text are one event. An event that this monitor
// reports too is marked as a part of its event.
func TestGuardEventsAreFolded(t *testing.T) {
	now := time.Now()
	w := newWorld(nil, Options{EventsKept: 10}, now)
	for _, n := range []string{"n2", "n1", "n3"} {
		w.note(monitor.Event{At: now, Kind: "guard first contact", Node: n, Text: safetext.New("guard: " + n + " seen for the first time")})
	}
	w.note(monitor.Event{At: now, Kind: "guard waiting", Node: "n1", Text: safetext.New("guard: n1 fenced, may rejoin in 3s")})
	for _, text := range []string{"rejoined", "unfenced by another 3s before this guard would have"} {
		w.note(monitor.Event{At: now, Kind: "guard rejoined", Node: "n1", Text: safetext.New("guard: n1 " + text)})
	}
	w.note(monitor.Event{At: now, Kind: "guard no quorum", Text: safetext.New("guard: no quorum")})
	w.tellContacts(now.Add(time.Second))
	var got []string
	for _, e := range w.events.latest() {
		text := e.Text.Raw()
		if e.Part {
			text = "part: " + text
		}
		got = append(got, text)
	}
	want := []string{"part: guard: n1 fenced, may rejoin in 3s", "part: guard: n1 rejoined", "guard: n1 unfenced by another 3s before this guard would have", "guard: no quorum", "guard: n1, n2, n3 seen for the first time"}
	if !slices.Equal(got, want) {
		t.Errorf("told %q", got)
	}
}

// Of several operators who force-release a lock, the event names the one who did: it and what comes after
// it wait until that is known, for a moment.
func TestTheEventNamesWhoForceReleased(t *testing.T) {
	for name, c := range map[string]struct {
		decides bool
		want    string
	}{
		"it is known soon": {true, "force-released by main: dead (...)"},
		"it stays unknown": {false, "force-released by main: dead, or by b: dead (...)"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t, 5)
			taking := monitor.Action{Act: "force-release", Actor: "main: dead, or by b", Reason: "dead", Undecided: true}
			s.table.TakenBy = func(_, token string) (monitor.Action, bool) { return taking, token == "a" }
			s.set("k", "a", 20*time.Second, 0, 1, 2, 3, 4)
			s.pass(5 * time.Second)
			from := s.events.seq
			s.set("k", "b", 20*time.Second, 0, 1, 2, 3, 4)
			s.pass(time.Second)
			if events, _ := s.events.since(from); len(events) > 0 || s.shown.Locks.Get("k").Holder.Raw() != "b" {
				t.Errorf("not known yet who did it: %+v", events)
			}
			if c.decides {
				taking.Actor, taking.Undecided = "main", false
			}
			s.pass(time.Second)
			var got []string
			events, _ := s.events.since(from)
			for _, e := range events {
				got = append(got, e.Text.Raw())
			}
			if len(got) < 2 || got[0] != c.want || !strings.HasPrefix(got[1], "acquired by ") {
				t.Errorf("%q", got)
			}
		})
	}
}

// A burst of events about locks pushes out no other event, and what it pushes out is
// counted.
func TestABurstOfLocksPushesOutNoOtherEvent(t *testing.T) {
	l := eventLog{keep: 100}
	l.add(monitor.NodeEvent(time.Now(), monitor.LevelAlarm, "restart", "n1", "n1 restarted"))
	const burst = 50_000
	for range burst {
		l.add(monitor.LockEvent(time.Now(), monitor.LevelAlarm, "over max TTL", "job", "its TTL is above the maximum"))
	}
	events, missed := l.since(0)
	if len(events) == 0 || events[0].Kind != "restart" || uint64(len(events))+missed != burst+1 || missed == 0 {
		t.Errorf("%d events, %d missed", len(events), missed)
	}
	if events, missed := l.since(burst); len(events) != 1 || missed != 0 {
		t.Errorf("%d events, %d missed", len(events), missed)
	}
}

// A guard may announce on a restarted node what it knows of the former incarnation, until it has
// seen the new one: that is no start of the new one.
func TestAnnouncementOfTheFormerIncarnation(t *testing.T) {
	now := time.Now()
	w := newWatch("n1", "h:1", now)
	seen := func(run string, guards *guardsSight) announce.Boot {
		info := master("run_id", run)
		w.answered(sight{sent: now, received: now.Add(time.Millisecond), info: info, guards: guards})
		return w.Guards[0].Boot
	}
	says := func(run string, boot announce.Boot) *guardsSight {
		return &guardsSight{known: true, all: []announce.Guard{{ID: "A", Delay: time.Second, Run: run, Boot: boot}}}
	}
	for i, c := range []struct {
		run    string
		guards *guardsSight
		want   announce.Boot
	}{
		{"earlier", says("earlier", announce.BootUnfenced), announce.BootUnfenced},
		{"later", nil, announce.BootUnknown}, // the guards of the former server
		{"later", says("earlier", announce.BootUnfenced), announce.BootUnknown},
		{"later", says("later", announce.BootFenced), announce.BootFenced},
		{"later", says("", announce.BootUnfenced), announce.BootUnfenced}, // an earlier version does not say
	} {
		if got := seen(c.run, c.guards); got != c.want {
			t.Errorf("%d: %s, not %s", i, got, c.want)
		}
	}
}
