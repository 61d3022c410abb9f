package monitor

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// rig is a table over servers that exist only here.
type rig struct {
	*table
	now     time.Time
	servers []map[string]held
	events  []Event
}

type held struct {
	typ, token string
	expires    time.Time // zero: never
}

func newRig(n int, maxTTL time.Duration) *rig {
	r := &rig{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprint("n", i+1)
	}
	r.table = newTable(names, n/2+1, maxTTL, time.Second, r.now, func(e Event) { r.events = append(r.events, e) })
	for i := range n {
		r.servers = append(r.servers, map[string]held{})
		r.reachable(i, false)
	}
	return r
}

// set puts a copy of key on some nodes; ttl 0: without TTL.
func (r *rig) set(key, token string, ttl time.Duration, nodes ...int) {
	for _, i := range nodes {
		h := held{typ: "string", token: token}
		if ttl > 0 {
			h.expires = r.now.Add(ttl)
		}
		r.servers[i][key] = h
	}
}

func (r *rig) del(key string, nodes ...int) {
	for _, i := range nodes {
		delete(r.servers[i], key)
	}
}

// scan reads node i whole; reading takes a millisecond.
func (r *rig) scan(i int) {
	if !r.nodes[i].reachable {
		return
	}
	r.now = r.now.Add(time.Millisecond) // later than the last read
	began := r.now
	r.now = r.now.Add(time.Millisecond)
	var rows []row
	for key, h := range r.servers[i] {
		switch {
		case h.expires.IsZero():
			rows = append(rows, makeRow(key, h.typ, -1, int64(len(h.token)), h.token))
		case h.expires.After(r.now):
			rows = append(rows, makeRow(key, h.typ, h.expires.Sub(r.now).Milliseconds(), int64(len(h.token)), h.token))
		default:
			delete(r.servers[i], key)
		}
	}
	r.read(i, r.now, r.now, rows)
	r.scanned(i, r.nodes[i].epoch, began, r.now)
	r.refresh(r.now)
}

func (r *rig) scanAll() {
	for i := range r.servers {
		r.scan(i)
	}
}

func (r *rig) first() *rig {
	r.scanAll()
	r.settle(r.now)
	return r
}

func (r *rig) pass(d time.Duration) {
	r.now = r.now.Add(d)
	r.refresh(r.now)
}

func (r *rig) lock(key string) Lock {
	if l := r.view().Get(key); l != nil {
		return *l
	}
	return Lock{}
}

func (r *rig) kinds() (kinds []string) {
	for _, e := range r.events {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

func TestStatesOfALock(t *testing.T) {
	const s = time.Second
	for name, c := range map[string]struct {
		nodes  int
		make   func(*rig)
		state  LockState
		held   int
		margin int
		tokens int
		end    time.Duration // of the majority; 0: none
	}{
		"a lock on all five may lose two":      {5, func(r *rig) { r.set("k", "a", 9*s, 0, 1, 2, 3, 4) }, LockHeld, 5, 2, 1, 9 * s},
		"on four it may lose one":              {5, func(r *rig) { r.set("k", "a", 9*s, 0, 1, 2, 3) }, LockHeld, 4, 1, 1, 9 * s},
		"on three it is bare":                  {5, func(r *rig) { r.set("k", "a", 9*s, 0, 1, 2) }, LockBare, 3, 0, 1, 9 * s},
		"three of four may lose one":           {4, func(r *rig) { r.set("k", "a", 9*s, 0, 1, 2) }, LockHeld, 3, 1, 1, 9 * s},
		"two of three is bare":                 {3, func(r *rig) { r.set("k", "a", 9*s, 0, 1) }, LockBare, 2, 0, 1, 9 * s},
		"a single instance is always bare":     {1, func(r *rig) { r.set("k", "a", 9*s, 0) }, LockBare, 1, 0, 1, 9 * s},
		"it ends with the third latest":        {5, func(r *rig) { r.set("k", "a", 9*s, 0, 1); r.set("k", "a", 5*s, 2); r.set("k", "a", 3*s, 3, 4) }, LockHeld, 5, 2, 1, 5 * s},
		"it ends within a second":              {5, func(r *rig) { r.set("k", "a", 900*time.Millisecond, 0, 1, 2, 3, 4) }, LockExpiring, 5, 2, 1, 900 * time.Millisecond},
		"a minority is partial at first":       {5, func(r *rig) { r.set("k", "a", 9*s, 0, 1) }, LockPartial, 2, -1, 1, 0},
		"a copy without TTL is immortal":       {5, func(r *rig) { r.set("k", "a", 9*s, 0, 1, 2); r.set("k", "a", 0, 3) }, LockImmortal, 4, 1, 1, 9 * s},
		"an immortal majority has no end":      {5, func(r *rig) { r.set("k", "a", 0, 0, 1, 2) }, LockImmortal, 3, 0, 1, 0},
		"two tokens are a split":               {5, func(r *rig) { r.set("k", "a", 9*s, 0, 1, 2); r.set("k", "b", 9*s, 3) }, LockSplit, 3, 0, 2, 9 * s},
		"another's copies guard no margin":     {5, func(r *rig) { r.set("k", "a", 9*s, 0, 1, 2); r.set("k", "b", 9*s, 3, 4) }, LockSplit, 3, 0, 2, 9 * s},
		"a number without TTL counts fences":   {5, func(r *rig) { r.set("k", "41", 0, 0, 1, 2); r.set("k", "42", 0, 3) }, LockNotALock, 3, 0, 2, 0},
		"a number with a TTL is a lock":        {5, func(r *rig) { r.set("k", "1", 9*s, 0, 1, 2, 3, 4) }, LockHeld, 5, 2, 1, 9 * s},
		"a long tombstone is revoked":          {5, func(r *rig) { r.set("k", "redlockctl:revoked:x", 11*s, 0, 1, 2, 3, 4) }, LockRevoked, 5, 2, 1, 11 * s},
		"a TTL above the maximum":              {5, func(r *rig) { r.set("k", "a", 11*s, 0, 1, 2, 3, 4) }, LockOverTTL, 5, 2, 1, 11 * s},
		"a list is no lock":                    {5, func(r *rig) { r.servers[1]["k"] = held{typ: "list"} }, LockNotALock, 0, -3, 0, 0},
		"a list among the copies is a split":   {3, func(r *rig) { r.set("k", "a", 9*s, 0, 2); r.servers[1]["k"] = held{typ: "list"} }, LockSplit, 2, 0, 1, 9 * s},
		"a token of another length is another": {3, func(r *rig) { r.set("k", "a", 9*s, 0, 2); r.set("k", "aa", 9*s, 1) }, LockSplit, 2, 0, 2, 9 * s},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(c.nodes, 10*s)
			c.make(r)
			begun := r.now
			r.scanAll()
			if r.doubtful() {
				r.scanAll()
			}
			l := r.lock("k")
			if l.State != c.state || l.Held != c.held || l.Margin() != c.margin || l.Tokens != c.tokens {
				t.Errorf("state %s, held %d, margin %d, tokens %d", l.State, l.Held, l.Margin(), l.Tokens)
			}
			end := time.Duration(0)
			if !l.MajorityEnd.IsZero() {
				end = l.MajorityEnd.Sub(begun)
			}
			if end != c.end {
				t.Errorf("the majority ends in %s, not %s", end, c.end)
			}
		})
	}
}

func TestAMinorityBecomesAnOrphanWhenNobodyCompletesIt(t *testing.T) {
	r := newRig(5, 0).first()
	r.set("k", "a", time.Minute, 0, 1)
	r.scanAll()
	r.pass(2 * time.Second)
	// The other nodes were read before it can have been completed there.
	if s := r.lock("k").State; s != LockPartial {
		t.Errorf("%s before the others were read again", s)
	}
	r.scanAll()
	if s := r.lock("k").State; s != LockOrphan || !slices.Equal(r.kinds(), []string{"orphan"}) {
		t.Error(s, r.kinds())
	}
}

func TestAMinorityThatMayBeAMajorityIsNoOrphan(t *testing.T) {
	r := newRig(5, 0)
	r.set("k", "a", time.Minute, 0, 1, 2)
	r.first()
	r.unreachable(2, r.now)
	r.pass(5 * time.Second)
	r.scanAll()
	if l := r.lock("k"); l.State != LockBare || l.Held != 2 || l.MajorityEnd.IsZero() || l.Copies.At(2).State != CopyUnknown {
		t.Errorf("%+v", l)
	}
	// A lock that is taken while a node is down is not on it.
	r.set("new", "b", time.Minute, 0, 1)
	r.scanAll()
	r.pass(2 * time.Second)
	r.scanAll()
	if l := r.lock("new"); l.State != LockOrphan {
		t.Errorf("%+v", l)
	}
}

func TestAMinorityBesideNodesNeverSeenIsNoOrphan(t *testing.T) {
	r := newRig(5, 0)
	for i := 2; i < 5; i++ {
		r.nodes[i].reachable = false
	}
	r.set("k", "a", time.Minute, 0, 1)
	r.first()
	r.pass(5 * time.Second)
	r.scanAll()
	if l := r.lock("k"); l.State != LockPartial {
		t.Error(l.State)
	}
}

func TestANodeThatComesBackIsReadBeforeItCounts(t *testing.T) {
	r := newRig(3, 0)
	r.set("k", "a", time.Minute, 0, 1, 2)
	r.first()
	r.unreachable(0, r.now)
	r.del("k", 0)
	r.reachable(0, false)
	r.refresh(r.now)
	if l := r.lock("k"); l.Held != 2 || l.Copies.At(0).State != CopyUnread {
		t.Errorf("%+v", l)
	}
	r.scanAll()
	if l := r.lock("k"); l.Held != 2 || l.Copies.At(0).State != CopyAbsent {
		t.Errorf("%+v", l)
	}
}

func TestALockThatPassesFromHandToHandIsNoSplit(t *testing.T) {
	r := newRig(5, 0)
	r.set("k", "a", time.Minute, 0, 1, 2, 3, 4)
	r.first()
	r.set("k", "b", time.Minute, 0, 1, 2, 3, 4) // released and acquired between two scans
	for i := range 5 {
		r.scan(i)
		if s := r.lock("k").State; s == LockSplit || s == LockBare || s == LockOrphan {
			t.Errorf("%s after %d nodes were read", s, i+1)
		}
	}
	r.scanAll()
	if l := r.lock("k"); l.State != LockHeld || l.Holder.Raw() != "b" || !slices.Equal(r.kinds(), []string{"released", "acquired"}) {
		t.Errorf("%+v %v", l, r.kinds())
	}
}

func TestTakingAndReleasingRaisesNoAlarm(t *testing.T) {
	r := newRig(5, 0).first()
	r.set("k", "a", time.Minute, 0, 1, 2, 3, 4)
	for i := range 5 {
		r.scan(i)
		if s := r.lock("k").State; s != LockHeld && s != LockPartial {
			t.Errorf("%s on the way up", s)
		}
	}
	r.scanAll()
	r.del("k", 0, 1, 2, 3, 4)
	for i := range 5 {
		if s := r.lock("k").State; s != LockHeld && s != LockPartial {
			t.Errorf("%s on the way down", s)
		}
		r.scan(i)
	}
	if !slices.Equal(r.kinds(), []string{"acquired", "released"}) {
		t.Error(r.kinds())
	}
}

func TestHowAGrantEnds(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(*rig)
		want []string
	}{
		"released everywhere": {func(r *rig) { r.del("k", 0, 1, 2, 3, 4); r.scanAll() }, []string{"released"}},
		"its time runs out":   {func(r *rig) { r.pass(time.Minute) }, []string{"expired"}},
		"released while a node is down": {func(r *rig) {
			r.unreachable(4, r.now)
			r.del("k", 0, 1, 2, 3)
			r.scanAll()
			r.scanAll()
		}, []string{"released"}},
		"released while a node is held": {func(r *rig) {
			r.reachable(4, true)
			r.del("k", 0, 1, 2, 3)
			r.scanAll()
			r.scanAll()
		}, []string{"released"}},
		"three copies are deleted by somebody": {func(r *rig) {
			r.del("k", 0, 1, 2)
			r.scanAll()
			r.scanAll()
		}, []string{"lost majority"}},
		"three nodes restart": {func(r *rig) {
			for i := range 3 {
				r.del("k", i)
				r.restarted(i, r.now)
			}
			r.scanAll()
			r.scanAll()
		}, []string{"lost majority"}},
		"released while a node restarts": {func(r *rig) {
			r.del("k", 0, 1, 2, 3, 4)
			r.scan(0)
			r.scan(1)
			r.restarted(4, r.now)
			r.scanAll()
			r.scanAll()
		}, []string{"released"}},
		"a bare lock, released as a node restarts": {func(r *rig) {
			r.del("k", 3, 4)
			r.scanAll()
			r.scanAll() // all agree: three copies
			r.del("k", 0, 1, 2)
			r.restarted(2, r.now)
			r.scan(2)
			r.scanAll()
			r.scanAll()
		}, []string{"released"}},
		"a bare lock, and a node restarts": {func(r *rig) {
			r.del("k", 2, 3, 4)
			r.set("k", "a", 30*time.Second, 2)
			r.scanAll()
			r.scanAll()
			r.del("k", 2)
			r.restarted(2, r.now)
			r.scanAll()
			r.scanAll()
		}, []string{"lost majority"}},
		"a minority of nodes restarts": {func(r *rig) {
			for i := range 2 {
				r.del("k", i)
				r.restarted(i, r.now)
			}
			r.scanAll()
		}, []string{"lost copy", "lost copy"}},
		"two copies are deleted by somebody": {func(r *rig) {
			r.del("k", 0, 1)
			r.scanAll()
			r.scanAll() // all agree, but a release may be under way
			if k := r.kinds(); len(k) != 0 {
				r.emit(Event{Kind: "too early"})
			}
			r.pass(time.Second)
		}, []string{"lost copy", "lost copy"}},
		"a copy goes and comes back": {func(r *rig) {
			r.del("k", 0)
			r.scanAll()
			r.set("k", "a", 30*time.Second, 0)
			r.scanAll()
			r.pass(2 * time.Second)
			r.scanAll()
		}, nil},
		"a copy is overwritten": {func(r *rig) {
			r.set("k", "b", 30*time.Second, 4)
			r.scanAll()
			r.scanAll()
			r.pass(time.Second)
			r.pass(alarmPatience)
		}, []string{"lost copy", "split"}},
		"a slow release": {func(r *rig) {
			r.del("k", 0)
			r.scanAll()
			r.scanAll()
			r.pass(900 * time.Millisecond)
			r.del("k", 1, 2, 3, 4)
			r.scanAll()
			r.pass(2 * time.Second)
		}, []string{"released"}},
		"a copy that was not extended runs out": {func(r *rig) {
			r.pass(20 * time.Second)
			r.set("k", "a", 30*time.Second, 0, 1, 2, 3)
			r.scanAll()
			r.pass(15 * time.Second)
			r.scanAll()
			r.pass(2 * time.Second)
		}, []string{"extended"}},
		"three nodes are down": {func(r *rig) {
			for i := range 3 {
				r.unreachable(i, r.now)
			}
			r.scanAll()
			for i := range 3 {
				r.reachable(i, false)
			}
			r.scanAll()
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(5, 0)
			r.set("k", "a", 30*time.Second, 0, 1, 2, 3, 4)
			r.first()
			c.do(r)
			if !slices.Equal(r.kinds(), c.want) {
				t.Error(r.kinds())
			}
		})
	}
}

// Many copies that a node loses at once are told in one sentence.
func TestLostCopiesAreToldWithinBounds(t *testing.T) {
	r := newRig(5, 0)
	for k := range 5000 {
		r.set(fmt.Sprint("k", k), "a", 30*time.Second, 0, 1, 2, 3, 4)
	}
	r.first()
	clear(r.servers[1])
	r.scanAll()
	r.scanAll()
	for range 3 {
		r.pass(time.Second)
	}
	last := r.events[len(r.events)-1]
	if len(r.events) != lostTold+1 || last.Node != "n2" || last.Text.Raw() != "n2: 4980 more copies of held locks gone before their time, and not released" {
		t.Errorf("%d: %+v", len(r.events), last)
	}
	if e := r.events[0]; e.Kind != "lost copy" || e.Node != "n2" || e.Level != LevelNotice ||
		e.Text.Raw() != "lost its copy on n2 (gone before its time, and not released): 4 left" {
		t.Errorf("%+v", e)
	}
}

func TestARestartDropsCopiesAtOnce(t *testing.T) {
	r := newRig(5, 0)
	r.set("wide", "a", time.Minute, 0, 1, 2, 3, 4)
	r.set("four", "a", time.Minute, 0, 1, 2, 3)
	r.set("long gone", "a", time.Second, 0)
	r.first()
	r.unreachable(0, r.now)
	r.pass(2 * time.Second)
	r.reachable(0, false)
	var copies, bare int
	r.restart = func(_, c, b int, _ time.Time) { copies, bare = c, b }
	r.restarted(0, r.now)
	if copies != 2 || bare != 1 {
		t.Errorf("%d copies, %d locks", copies, bare)
	}
	if l := r.lock("wide"); l.Held != 4 || l.Copies.At(0).State == CopyPresent || !l.Copies.At(0).Token.Empty() {
		t.Errorf("%+v", l)
	}
}

func TestACopyOfANodeThatIsDownIsKeptUntilItExpires(t *testing.T) {
	r := newRig(3, 0)
	r.set("k", "a", 10*time.Second, 0)
	r.set("k", "a", 20*time.Second, 1, 2)
	r.first()
	r.unreachable(0, r.now)
	r.refresh(r.now)
	if c := r.lock("k").Copies.At(0); c.State != CopyUnknown || c.Token.Raw() != "a" || c.Expires.IsZero() {
		t.Errorf("%+v", c)
	}
	r.pass(10 * time.Second)
	if c := r.lock("k").Copies.At(0); c.State != CopyUnknown || !c.Token.Empty() || c.Type != "" {
		t.Errorf("%+v", c)
	}
	if r.unreachable(1, r.now); r.nodes[1].present != 1 {
		t.Error("counted before it was judged")
	}
	r.refresh(r.now)
	if r.nodes[0].present != 0 || r.nodes[1].present != 0 || r.nodes[2].present != 1 {
		t.Error(r.nodes)
	}
	r.pass(10 * time.Second)
	if r.view().Len() != 0 || len(r.records) != 0 || len(r.timers) != 0 || len(r.all) != 0 || r.unconfirmed() {
		t.Error("something is left of an expired lock")
	}
}

// A slow answer makes a lock look shorter than it is, never longer.
// A read that was overtaken by a later one changes nothing.
func TestALateReadChangesNothing(t *testing.T) {
	r := newRig(1, 0)
	early := r.now
	r.pass(time.Second)
	r.read(0, r.now, r.now, []row{makeRow("k", "string", 9000, 1, "b")})
	r.read(0, early, r.now, []row{makeRow("k", "string", 9000, 1, "a"), makeRow("k", "none", -2, 0, "")})
	r.refresh(r.now)
	if l := r.lock("k"); l.Holder.Raw() != "b" || l.Tokens != 1 {
		t.Errorf("%+v", l)
	}
}

func TestAnExpiryIsNeverShownTooLate(t *testing.T) {
	r := newRig(1, 0)
	sent := r.now
	r.now = r.now.Add(400 * time.Millisecond)
	r.read(0, sent, r.now, []row{makeRow("k", "string", 10_000, 1, "a"), makeRow("short", "string", 300, 1, "a")})
	r.refresh(r.now)
	if end := r.lock("k").MajorityEnd; !end.Equal(sent.Add(10 * time.Second)) {
		t.Error(end.Sub(sent))
	}
	if l := r.lock("short"); l.Copies.Len() != 0 {
		t.Errorf("%+v", l)
	}
}

func TestTheFirstViewIsNoNews(t *testing.T) {
	r := newRig(3, time.Minute)
	r.set("held", "a", 10*time.Second, 0, 1, 2)
	for i := range 20 {
		r.set(fmt.Sprint("endless", i), "x", 0, 0)
		r.set(fmt.Sprint("counter", i), "7", 0, 0) // no lock
	}
	r.set("long", "a", time.Hour, 0, 1, 2)
	r.set("slow", "old pattern", 0, 0, 1, 2)
	r.first()
	r.set("slow", "old pattern", 10*time.Second, 0, 1, 2) // its EXPIRE comes later
	r.scanAll()
	r.pass(alarmPatience)
	if want := []string{"over-TTL", "immortal"}; !slices.Equal(r.kinds(), want) {
		t.Fatal(r.kinds())
	}
	if r.events[0].Key.Raw() != "long" || r.events[1].Text.Raw() != "20 locks: a copy without TTL: it never ends by itself" {
		t.Error(r.events)
	}
	r.set("more", "a", 0, 0)
	r.scanAll()
	r.pass(alarmPatience)
	if len(r.events) != 3 || r.events[2].Key.Raw() != "more" {
		t.Error(r.kinds())
	}
}

func TestExtensionsAreToldOnceInAWhile(t *testing.T) {
	r := newRig(3, 0).first()
	for range 60 {
		r.set("k", "a", 5*time.Second, 0, 1, 2)
		r.scanAll()
		r.pass(time.Second)
	}
	k := r.kinds()
	if len(k) < 4 || len(k) > 8 || k[0] != "acquired" || k[1] != "extended" {
		t.Fatal(k)
	}
	// The first is told at once, and none is swallowed: a line says for how many it
	// stands.
	if first := r.events[1].At.Sub(r.events[0].At); first > 2*time.Second {
		t.Errorf("the first extension is told after %s", first)
	}
	if text := r.events[2].Text.Raw(); !strings.Contains(text, "(10 times since that was last told)") {
		t.Error(text)
	}
}

func TestAReadThatChangesNothingCostsNoView(t *testing.T) {
	r := newRig(3, 0)
	r.set("k", "a", time.Hour, 0, 1, 2)
	r.first()
	r.scanAll()
	r.view()
	r.scanAll()
	if r.locks == nil {
		t.Error("the view was thrown away")
	}
	// But news of a shorter TTL are not lost.
	r.set("k", "a", time.Minute, 0, 1, 2)
	r.scanAll()
	if left := r.lock("k").MajorityEnd.Sub(r.now); left > time.Minute {
		t.Error(left)
	}
}

// crowd is a table of n locks on five nodes.
func crowd(n int) *rig {
	r := newRig(5, 0)
	rows := make([]row, n)
	for k := range rows {
		rows[k] = makeRow(fmt.Sprintf("lock:%08d", k), "string", 3_600_000, 1, "a")
	}
	for i := range r.servers {
		r.now = r.now.Add(time.Millisecond)
		r.read(i, r.now, r.now, rows)
		r.scanned(i, r.nodes[i].epoch, r.now, r.now)
	}
	r.refresh(r.now)
	r.settle(r.now)
	return r
}

// change lets one lock change hands on one node, and shows it.
func (r *rig) change(key, token string) {
	r.now = r.now.Add(time.Millisecond)
	r.read(0, r.now, r.now, []row{makeRow(key, "string", 3_600_000, 1, token)})
}

// A change looks at the lock that changed, and so does the end of its time, and
// the nodes' confirmation; at no other.
func TestAChangeCostsItsCopies(t *testing.T) {
	r := crowd(50_000)
	r.fresh = nil
	before := r.view()
	r.change("lock:00000007", "b")
	if len(r.dirty) != 1 || r.sweep != 0 {
		t.Errorf("%d to be judged, %d to be swept", len(r.dirty), r.sweep)
	}
	r.refresh(r.now)
	if len(r.fresh) != 1 || len(r.waiting) != 1 {
		t.Errorf("%d shown anew, %d wait", len(r.fresh), len(r.waiting))
	}
	for i := range r.nodes {
		r.sync(i, r.now)
	}
	r.fresh = nil
	r.pass(time.Millisecond)
	if len(r.fresh) != 1 || len(r.waiting) > 1 {
		t.Errorf("%d confirmed", len(r.fresh))
	}
	if r.lock("lock:00000007").State != LockSplit || r.counts[LockHeld] != 49_999 {
		t.Error(r.counts)
	}
	// Who keeps an old view has it as it was; what did not change is the same in
	// memory.
	if before.Get("lock:00000007").State != LockHeld || before.Get("lock:00000008") != r.view().Get("lock:00000008") {
		t.Error("an old view has changed")
	}
}

func BenchmarkAChange(b *testing.B) {
	for _, n := range []int{1000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			r := crowd(n)
			tokens := []string{"b", "a"}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				r.change(fmt.Sprintf("lock:%08d", i*7919%n), tokens[i/n%2])
				r.refresh(r.now)
				r.fresh = r.fresh[:0]
				_ = r.view()
			}
		})
	}
}

// Whatever happened, once the nodes have been read twice the table says what
// they hold, with the numbers that the definitions give; and at no time does it
// show a copy that has expired.
func TestTheTableFollowsTheNodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 7).Draw(t, "n")
		r := newRig(n, time.Minute)
		if rapid.Bool().Draw(t, "settled") {
			r.first()
		}
		node, key := rapid.IntRange(0, n-1), rapid.SampledFrom([]string{"x", "y", "z"})
		token := rapid.SampledFrom([]string{"a", "b", "ccc"})
		fresh := func() {
			r.refresh(r.now)
			for l := range r.view().All() {
				for _, c := range l.Copies.All() {
					if c.Type != "" && !c.Expires.IsZero() && !c.Expires.After(r.now) {
						t.Fatalf("%s shows an expired copy", l.Key)
					}
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				ttl := rapid.SampledFrom([]time.Duration{0, time.Second, 3 * time.Second, 2 * time.Minute}).Draw(t, "ttl")
				r.set(key.Draw(t, "key"), token.Draw(t, "token"), ttl, node.Draw(t, "node"))
			},
			"acquire": func(t *rapid.T) {
				for i := range n {
					r.set("x", token.Draw(t, "token"), 3*time.Second, i)
				}
			},
			"list":    func(t *rapid.T) { r.servers[node.Draw(t, "node")][key.Draw(t, "key")] = held{typ: "list"} },
			"del":     func(t *rapid.T) { r.del(key.Draw(t, "key"), node.Draw(t, "node")) },
			"scan":    func(t *rapid.T) { r.scan(node.Draw(t, "node")) },
			"down":    func(t *rapid.T) { r.unreachable(node.Draw(t, "node"), r.now) },
			"up":      func(t *rapid.T) { r.reachable(node.Draw(t, "node"), rapid.Bool().Draw(t, "closed")) },
			"restart": func(t *rapid.T) { i := node.Draw(t, "node"); clear(r.servers[i]); r.restarted(i, r.now) },
			"doubt":   func(t *rapid.T) { r.doubt(node.Draw(t, "node")) },
			"pass":    func(t *rapid.T) { r.pass(time.Duration(rapid.IntRange(1, 4000).Draw(t, "ms")) * time.Millisecond) },
			"settle":  func(t *rapid.T) { r.settle(r.now) },
			"":        func(*rapid.T) { fresh() },
		})
		for i := range n {
			r.reachable(i, false)
		}
		r.scanAll()
		r.scanAll()
		fresh()
		keys := map[string]bool{}
		for i := range n {
			locks := 0
			for k, h := range r.servers[i] {
				if !h.expires.IsZero() && !h.expires.After(r.now) {
					continue
				}
				keys[k] = true
				if h.typ == "string" {
					locks++
				}
			}
			if r.nodes[i].present != locks {
				t.Fatalf("node %d has %d locks, not %d", i, locks, r.nodes[i].present)
			}
		}
		var got []string
		for l := range r.view().All() {
			got = append(got, l.Key.Raw())
			checkLock(t, r, *l)
		}
		if !slices.Equal(got, slices.Sorted(maps.Keys(keys))) {
			t.Fatalf("%v, not %v", got, keys)
		}
	})
}

// checkLock compares l with what the servers hold, by the plainest reckoning.
func checkLock(t *rapid.T, r *rig, l Lock) {
	q, tokens, lists := len(r.servers)/2+1, map[string][]time.Time{}, 0
	immortal := false
	for i, s := range r.servers {
		h, ok := s[l.Key.Raw()]
		ok = ok && (h.expires.IsZero() || h.expires.After(r.now))
		c := l.Copies.At(i)
		if ok != (c.State == CopyPresent) || (ok && (c.Type != h.typ || c.Token.Raw() != h.token || !c.Expires.Equal(h.expires))) {
			t.Fatalf("%s on %d is %+v, not %+v", l.Key, i, c, h)
		}
		if !ok {
			continue
		}
		if h.typ != "string" {
			lists++
			continue
		}
		end := h.expires
		if end.IsZero() {
			immortal, end = true, r.now.Add(1000*time.Hour)
		}
		tokens[h.token] = append(tokens[h.token], end)
	}
	most := 0
	for _, ends := range tokens {
		most = max(most, len(ends))
	}
	if l.Held != most || len(tokens[l.Holder.Raw()]) != most || l.Tokens != len(tokens) || l.Margin() != most-(len(r.servers)-q+1) {
		t.Fatalf("%+v", l)
	}
	if most >= q {
		ends := tokens[l.Holder.Raw()]
		slices.SortFunc(ends, time.Time.Compare)
		end := ends[len(ends)-q]
		if forever := end.Sub(r.now) > 100*time.Hour; forever != l.MajorityEnd.IsZero() || (!forever && !end.Equal(l.MajorityEnd)) {
			t.Fatalf("the majority ends at %s, not %s", end, l.MajorityEnd)
		}
	} else if !l.MajorityEnd.IsZero() {
		t.Fatalf("a majority of %d", most)
	}
	switch {
	case most == 0 && l.State != LockNotALock,
		immortal && l.State != LockImmortal,
		len(tokens) > 1 && l.State < LockSplit,
		most > 0 && lists > 0 && l.State < LockSplit,
		len(tokens) == 1 && lists == 0 && l.State == LockSplit,
		most > 0 && most < q && l.State < LockPartial,
		most >= q && (l.State == LockPartial || l.State == LockOrphan),
		most >= q && l.Margin() <= 0 && l.State < LockBare,
		l.Margin() > 0 && l.State == LockBare:
		t.Fatalf("%s is %s: %+v", l.Key, l.State, l)
	}
}

// A change that is read between the end of a full scan and the sweep that follows
// it: the copy that the scan did not meet goes, and the lock with it. After a
// FLUSHALL all keys that had just changed are read again at that moment.
func TestReadBetweenScanAndSweep(t *testing.T) {
	r := newRig(1, time.Minute)
	sent := r.now
	r.table.read(0, sent, sent, []row{{key: "job", typ: "string", pttl: -1, length: 1, prefix: "a"}})
	r.table.scanned(0, r.table.nodes[0].epoch, sent, sent)
	r.refresh(r.now)
	if r.view().Get("job") == nil {
		t.Fatal("not there to begin with")
	}
	began := sent.Add(time.Millisecond)
	r.table.scanned(0, r.table.nodes[0].epoch, began, began)
	later := began.Add(time.Millisecond)
	r.table.read(0, later, later, []row{{key: "job", typ: "none"}})
	r.refresh(later)
	if l := r.view().Get("job"); l != nil {
		t.Errorf("still there: %+v", l)
	}
}
