package table

import (
	"strings"
	"testing"
	"time"

	"redlockctl/monitor"
)

// A copy that a release left on a cordoned node rivals nobody, also once the node serves: not for the
// view that saw the release, and not for one that hears of it. If nobody saw it, it may be a rival.
func TestACopyLeftOnACordonedNode(t *testing.T) {
	r := newRig(5, time.Minute).first()
	r.pass(time.Hour)
	r.set("k", "0123456789abcdefghij", 30*time.Second, 0, 1, 2, 3, 4)
	r.scanAll()
	r.scanAll()
	r.Reachable(3, true) // cordoned
	r.del("k", 0, 1, 2, 4)
	r.scanAll()
	r.scanAll()
	r.set("k", "b", 30*time.Second, 0, 1, 2, 4)
	r.scanAll()
	r.scanAll()
	r.pass(time.Second)
	r.Reachable(3, false)
	first, alone := r.beside(), r.beside()
	r.events = nil
	for range 8 {
		for _, view := range []*rig{r, first, alone} {
			view.scanAll()
			view.pass(500 * time.Millisecond)
		}
		first.Heard(r.Vouches(r.now), first.now)
	}
	for view, r := range map[string]*rig{"goes on": r, "begins": first} {
		if l := r.lock("k"); l.State != monitor.LockHeld || l.Holder.Raw() != "b" || l.Tokens != 2 {
			t.Errorf("the view that %s: %+v", view, l)
		}
	}
	if len(r.events) > 0 {
		t.Errorf("%+v", r.events)
	}
	if l := alone.lock("k"); l.State != monitor.LockSplit {
		t.Errorf("a view that nobody told: %+v", l)
	}
}

// Two tokens with two copies each may both have had a majority. That stays so when all nodes are
// fenced: a first view names neither as the holder, and both as rivals.
func TestASplitWhoseNodesAreFenced(t *testing.T) {
	for name, restarts := range map[string][]int{"the fifth restarted": {4}, "all were fenced": nil} {
		r := newRig(5, time.Minute)
		for i := range 5 {
			r.Met(i, Incarnation{Started: r.now.Add(-time.Hour), Fenced: restarts == nil}, r.now)
			r.Reachable(i, true)
		}
		for _, i := range restarts {
			r.restart(i, true, false)
		}
		r.set("k", "a", 40*time.Second, 0, 1)
		r.set("k", "b", 40*time.Second, 2, 3)
		r.first()
		for range 12 {
			r.pass(500 * time.Millisecond)
			r.scanAll()
		}
		l := r.lock("k")
		if l.State != monitor.LockSplit || !l.Contested || l.Nobody || l.NobodyText() != "not known: 2 + 2 of 5" {
			t.Errorf("%s: %+v", name, l)
		}
	}
}

// A copy that a release left on a dead node is nobody's, and an orphan when the node is back, also with
// a TTL above the maximum.
func TestALeftOverCopyAboveTheMaximum(t *testing.T) {
	r := newRig(5, 10*time.Second).first()
	r.pass(time.Hour)
	r.set("k", "a", time.Minute, 0, 1, 2, 3, 4)
	r.scanAll()
	r.pass(2 * time.Second)
	r.Unreachable(2, r.now)
	r.restart(0, true, false)
	r.restart(1, true, false)
	r.scanAll()
	r.pass(2 * time.Second)
	if l := r.lock("k"); l.State != monitor.LockOverTTL || !l.ReliedOn() {
		t.Fatalf("%+v", l)
	}
	r.del("k", 3, 4)
	r.scanAll()
	r.scanAll()
	r.pass(2 * time.Second)
	if r.Locks().Get("k") != nil || r.text("released") == "" {
		t.Errorf("%+v %v", r.lock("k"), r.kinds())
	}
	r.Reachable(2, false)
	r.scanAll()
	r.pass(2 * time.Second)
	r.scanAll()
	if l := r.lock("k"); l.State != monitor.LockOrphaned || l.ReliedOn() {
		t.Errorf("%+v %v", l, r.kinds())
	}
}

// A copy without TTL that a client left behind on a minority is no holder beside the next client: neither for who
// saw it come, nor for a view that begins now, whenever the servers started.
func TestACopyWithoutTTLLeftBehindIsNoHolder(t *testing.T) {
	for first, copies := range map[bool][]int{false: {3, 4}, true: {4}} {
		r := newRig(5, 30*time.Second)
		meet := func() *rig {
			for i := range 5 {
				r.Met(i, Incarnation{Started: r.now.Add(-20 * time.Minute)}, r.now)
			}
			return r.first()
		}
		if !first {
			meet().pass(time.Hour)
			r.scanAll()
		}
		r.set("k", "left", 0, copies...)
		if !first {
			r.rounds()
		}
		r.set("k", "a", 20*time.Second, 0, 1, 2)
		if first {
			meet()
		}
		r.rounds()
		if l := r.lock("k"); l.State != monitor.LockNoTTL || l.Holder.Raw() != "a" || l.Earlier != nil {
			t.Errorf("first look %v: %s of %s, %+v", first, l.State, l.Holder.Raw(), l.Earlier)
		}
	}
}

// Neither are copies above the maximum on two halves: nobody who saw them come takes them for two holders.
func TestCopiesAboveTheMaximumThatNeverHadAMajority(t *testing.T) {
	r := newRig(5, 12*time.Second)
	for i := range 5 {
		r.Met(i, Incarnation{Started: r.now.Add(-20 * time.Minute)}, r.now)
	}
	r.first().pass(time.Minute)
	r.scanAll()
	r.set("k", "a", 20*time.Second, 0, 1)
	r.set("k", "b", 20*time.Second, 2, 3)
	r.rounds()
	if l := r.lock("k"); !l.Nobody || l.ReliedOn() || l.Earlier != nil {
		t.Errorf("%s, %+v", l.State, l)
	}
}

// Nobody holds a lock of which several tokens have copies without TTL, none a majority; the text tells
// what the other nodes can do now.
func TestSeveralTokensWithoutTTL(t *testing.T) {
	for name, c := range map[string]struct {
		ttl    time.Duration // of the second token
		closed []int
		want   string
	}{
		"both have none":              {0, nil, "nobody else gets the lock"},
		"the other one expires":       {10 * time.Second, nil, "too few of the others serve without a copy"},
		"other nodes are cordoned":    {-1, []int{3, 4}, "too few of the others serve without a copy"},
		"the others serve without it": {-1, nil, "the others can still grant the lock"},
	} {
		r := newRig(5, 30*time.Second).first()
		r.pass(time.Hour)
		r.scanAll()
		r.set("k", "a", 0, 0, 1)
		if c.ttl >= 0 {
			r.set("k", "b", c.ttl, 2, 3)
		}
		r.rounds()
		for _, i := range c.closed {
			r.Reachable(i, true)
		}
		r.rounds()
		l := r.lock("k")
		if text := l.EndlessText(func(i int) bool { return !r.nodes[i].closed }); l.State != monitor.LockNoTTL || l.Nobody != (c.ttl >= 0) || !strings.Contains(text, c.want) {
			t.Errorf("%s: %s, nobody %v: %s", name, l.State, l.Nobody, text)
		}
	}
}
