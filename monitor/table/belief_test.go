package table

import (
	"slices"
	"strings"
	"testing"
	"time"

	"redlockctl/monitor"
	"redlockctl/server/announce"
)

// restart restarts a server of the rig with or without its keys.
func (r *rig) restart(i int, fenced, kept bool) {
	if !kept {
		clear(r.servers[i])
	}
	r.Restarted(i, Incarnation{Started: r.now, Fenced: fenced, Keys: kept}, r.now)
	r.Reachable(i, fenced)
}

func (r *rig) states(key string) (s monitor.LockState, held, lost int) {
	l := r.lock(key)
	return l.State, l.Held, l.Lost
}

// The holder of a granted lock relies on it until its end, whatever copies are lost. The
// state of the lock follows from that, not from the copies.
func TestWhatAHolderMayRelyOn(t *testing.T) {
	const ttl = 30 * time.Second
	granted := func() *rig {
		r := newRig(5, ttl).first()
		r.pass(time.Hour) // so that the servers are older than any lock
		r.set("k", "a", ttl, 0, 1, 2)
		r.scanAll()
		r.scanAll()
		return r
	}
	until := func(r *rig, want time.Time) {
		t.Helper()
		if l := r.lock("k"); l.HeldUntil().Sub(want).Abs() > 10*time.Millisecond {
			t.Errorf("held until %s, not %s: %+v", l.HeldUntil(), want, l)
		}
	}
	t.Run("one of three copies is lost with a restart", func(t *testing.T) {
		r := granted()
		end := r.lock("k").MajorityEnd()
		r.restart(0, true, false)
		r.scanAll()
		r.scanAll()
		if s, held, lost := r.states("k"); s != monitor.LockLostMajority || held != 2 || lost != 1 {
			t.Error(s, held, lost)
		}
		until(r, end)
		r.pass(ttl + time.Second)
		if got := r.kinds(); !slices.Equal(got, []string{"acquired", "lost majority", "expired"}) || r.Locks().Len() != 0 {
			t.Error(got, r.Locks().Len())
		}
	})
	t.Run("all copies are lost with a power cut", func(t *testing.T) {
		r := granted()
		end := r.lock("k").MajorityEnd()
		for i := range 5 {
			r.restart(i, true, false)
		}
		r.scanAll()
		r.scanAll()
		if s, held, lost := r.states("k"); s != monitor.LockLostMajority || held != 0 || lost != 3 {
			t.Error(s, held, lost)
		}
		until(r, end)
	})
	t.Run("it is released after that", func(t *testing.T) {
		r := granted()
		r.restart(0, true, false)
		r.scanAll()
		r.scanAll()
		r.del("k", 1, 2)
		r.scanAll()
		r.scanAll()
		if got := r.kinds(); !slices.Equal(got, []string{"acquired", "lost majority", "released"}) || r.Locks().Len() != 0 {
			t.Error(got, r.Locks().Len())
		}
	})
	t.Run("a left-over of another client does not make nobody of it", func(t *testing.T) {
		r := granted()
		r.set("k", "b", ttl, 3, 4)
		r.restart(0, true, false)
		r.scanAll()
		r.scanAll()
		if l := r.lock("k"); l.Nobody || l.Holder.Raw() != "a" || l.State != monitor.LockSplit {
			t.Errorf("%+v", l)
		}
		r.pass(2 * alarmPatience)
		if text := r.text("split"); text == "" || strings.Contains(text, "two clients rely") {
			t.Errorf("told: %q", text)
		}
	})
	t.Run("another client gets in before the end", func(t *testing.T) {
		r := granted()
		end := r.lock("k").MajorityEnd()
		r.restart(0, false, false)
		r.scanAll()
		r.scanAll()
		r.set("k", "b", ttl, 0, 3, 4)
		r.scanAll()
		r.scanAll()
		l := r.lock("k")
		if l.State != monitor.LockSplit || l.Holder.Raw() != "b" || l.Earlier == nil || l.Earlier.Token.Raw() != "a" || !l.Earlier.Until.Equal(end) {
			t.Errorf("%+v", l)
		}
		r.pass(2 * doublePatience)
		if text := r.text("split"); !strings.Contains(text, "two clients rely") {
			t.Errorf("told: %q", text)
		}
	})
	t.Run("the data of all nodes are wiped", func(t *testing.T) {
		r := granted()
		end := r.lock("k").MajorityEnd()
		var cost monitor.RestartCost
		r.OnRestart = func(_ int, c monitor.RestartCost, _ time.Time) {
			cost.Lost += c.Lost
			cost.LostMajority += c.LostMajority
			cost.Cause = c.Cause
		}
		for i := range 5 {
			clear(r.servers[i])
			r.Wiped(i, r.now)
		}
		r.scanAll()
		r.scanAll()
		if s, held, lost := r.states("k"); s != monitor.LockLostMajority || held != 0 || lost != 3 || slices.Contains(r.kinds(), "released") {
			t.Error(s, held, lost, r.kinds())
		}
		until(r, end)
		if cost.Lost != 3 || cost.LostMajority != 1 || cost.Cause != monitor.LostByWipe {
			t.Errorf("%+v", cost)
		}
	})
	t.Run("its copies come back from disk", func(t *testing.T) {
		r := granted()
		r.restart(0, true, true)
		if s, _, _ := r.states("k"); s != monitor.LockPartial { // it is being read
			t.Error(s)
		}
		r.scanAll()
		r.scanAll()
		if s, held, lost := r.states("k"); s != monitor.LockBareMajority || held != 3 || lost != 0 || !slices.Equal(r.kinds(), []string{"acquired"}) {
			t.Error(s, held, lost, r.kinds())
		}
	})
	t.Run("a released lock comes back from disk", func(t *testing.T) {
		r := granted()
		was := r.servers[0]["k"]
		r.del("k", 0, 1, 2)
		r.scanAll()
		r.scanAll()
		var cost monitor.RestartCost
		r.OnRestart = func(_ int, c monitor.RestartCost, _ time.Time) { cost.Loaded.LeftOver += c.Loaded.LeftOver }
		for i := range 3 {
			r.servers[i]["k"] = was
			r.restart(i, true, true)
		}
		r.scanAll()
		r.scanAll()
		if s, held, _ := r.states("k"); s != monitor.LockOrphaned || held != 3 || !slices.Equal(r.kinds(), []string{"acquired", "released"}) {
			t.Error(s, held, r.kinds())
		}
		if cost.Loaded.LeftOver != 3 {
			t.Errorf("%+v", cost)
		}
		for i := range 3 { // read again on a busy machine, it seems to end a little later
			h := r.servers[i]["k"]
			h.expires = h.expires.Add(40 * time.Millisecond)
			r.servers[i]["k"] = h
		}
		r.scanAll()
		r.scanAll()
		if s, held, _ := r.states("k"); s != monitor.LockOrphaned || held != 3 {
			t.Error(s, held, r.kinds())
		}
	})
	t.Run("taken as the nodes rejoin", func(t *testing.T) {
		r := newRig(5, ttl)
		for i := range 5 {
			r.Met(i, Incarnation{Started: r.now, Fenced: true}, r.now)
			r.Reachable(i, true)
		}
		r.scanAll()
		r.pass(time.Minute)
		r.set("k", "token-a", ttl, 0, 1, 2) // they serve again, which is not seen yet
		r.scanAll()
		r.scanAll()
		if s, held, _ := r.states("k"); s != monitor.LockBareMajority || held != 3 {
			t.Error(s, held)
		}
	})
	t.Run("a lock never seen comes from disk", func(t *testing.T) {
		r := granted()
		r.set("z", "zB", ttl, 3, 4, 0)
		for _, i := range []int{3, 4, 0} {
			r.restart(i, true, true)
		}
		r.scanAll()
		r.scanAll()
		r.pass(2 * time.Second)
		if s, held, _ := r.states("z"); s != monitor.LockMayBeHeld || held != 3 || slices.Contains(r.kinds()[1:], "acquired") {
			t.Error(s, held, r.kinds())
		}
		if got, want := r.lock("z").HeldUntil(), r.servers[3]["z"].expires; got.Sub(want).Abs() > 10*time.Millisecond {
			t.Error(got, want)
		}
	})
}

// Copies on nodes that refuse writes are no rivals of a majority elsewhere.
func TestALeftOverOnAFencedNodeIsNoSplit(t *testing.T) {
	r := newRig(3, 30*time.Second)
	r.set("k", "a", 20*time.Second, 0, 1, 2)
	r.first()
	r.Reachable(0, true)
	r.del("k", 1, 2)
	r.set("k", "b", 20*time.Second, 1, 2)
	r.scanAll()
	r.scanAll()
	r.pass(2 * time.Second)
	if l := r.lock("k"); l.State != monitor.LockBareMajority || l.Holder.Raw() != "b" || l.Tokens != 2 {
		t.Errorf("%+v", l)
	}
	if got := strings.Join(r.kinds(), " "); got != "released acquired" {
		t.Error(got)
	}
}

// A first view cannot tell an orphan from a lock whose votes were lost.
func TestFirstLookAfterALoss(t *testing.T) {
	const ttl = 30 * time.Second
	for name, c := range map[string]struct {
		met  func(r *rig, i int) Incarnation
		left time.Duration
		want monitor.LockState
	}{
		"old servers have forgotten nothing":       {func(r *rig, _ int) Incarnation { return Incarnation{Started: r.now.Add(-time.Hour)} }, 20 * time.Second, monitor.LockOrphaned},
		"one node is fenced":                       {func(r *rig, i int) Incarnation { return Incarnation{Started: r.now.Add(-time.Hour), Fenced: i == 4} }, 20 * time.Second, monitor.LockMayBeHeld},
		"one node has just restarted":              {func(r *rig, i int) Incarnation { return Incarnation{Started: r.now.Add(-ago(i == 4, 5*time.Second))} }, 20 * time.Second, monitor.LockMayBeHeld},
		"it restarted, and the copy was extended":  {func(r *rig, i int) Incarnation { return Incarnation{Started: r.now.Add(-ago(i == 4, 5*time.Second))} }, 28 * time.Second, monitor.LockMayBeHeld},
		"it restarted more than max TTL ago":       {func(r *rig, i int) Incarnation { return Incarnation{Started: r.now.Add(-ago(i == 4, 32*time.Second))} }, 28 * time.Second, monitor.LockOrphaned},
		"durable now, it may not have been before": {func(r *rig, i int) Incarnation { return Incarnation{Started: r.now, Durable: true} }, 20 * time.Second, monitor.LockMayBeHeld},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(5, ttl)
			for i := range 5 {
				r.Met(i, c.met(r, i), r.now)
			}
			r.set("k", "a", c.left, 0, 1)
			r.first()
			r.pass(2 * time.Second)
			r.scanAll()
			r.scanAll()
			if s := r.lock("k").State; s != c.want {
				t.Error(s)
			}
		})
	}
}

// A client known from announcements keeps its token, however often it is announced.
func TestAnEarlierHolderThatGuardsTellOfKeepsItsToken(t *testing.T) {
	const ttl = 30 * time.Second
	guard := newRig(5, ttl).first()
	guard.pass(time.Hour)
	guard.set("k", "token-of-a", ttl, 0, 1, 2)
	guard.scanAll()
	guard.restart(0, true, false)
	guard.scanAll()
	guard.set("k", "token-of-b", ttl, 0, 3, 4)
	guard.scanAll()
	other := newRig(5, ttl)
	other.now, other.servers = guard.now, guard.servers
	other.first()
	other.scanAll()
	for range 5 {
		for _, r := range []*rig{guard, other} {
			all := append(guard.Vouches(guard.now), other.Vouches(other.now)...)
			r.Heard(all, r.now)
			r.scanAll()
		}
	}
	for name, r := range map[string]*rig{"guard": guard, "other": other} {
		if e := r.lock("k").Earlier; e == nil || e.Token.Raw() != "token-of-a" {
			t.Errorf("%s: %+v", name, e)
		}
		for _, v := range r.Vouches(r.now) {
			if v.Token != announce.TokenSum("token-of-a") {
				t.Errorf("%s vouches for %+v", name, v)
			}
		}
	}
}

func ago(recent bool, d time.Duration) time.Duration {
	if recent {
		return d
	}
	return time.Hour
}

// A first view says the same as a guard that watched all along.
func TestWhatGuardsKnowReachesAFirstLook(t *testing.T) {
	const ttl = 30 * time.Second
	guard := newRig(5, ttl).first()
	guard.pass(time.Hour)
	guard.set("all lost", "token-a", ttl, 0, 1, 2)
	guard.set("one lost", "token-b", ttl, 0, 3, 4)
	guard.set("left over", "token-c", ttl, 0, 1, 2)
	guard.scanAll()
	guard.scanAll()
	guard.Reachable(1, true)
	guard.del("left over", 0, 2) // a release; n2 refuses it
	guard.scanAll()
	guard.scanAll()
	delete(guard.servers[1], "all lost")
	delete(guard.servers[2], "all lost")
	for _, i := range []int{1, 2} {
		guard.Wiped(i, guard.now)
	}
	guard.restart(0, true, false)
	guard.scanAll()
	guard.scanAll()

	other := newRig(5, ttl)
	other.now, other.servers = guard.now, guard.servers
	for i := range 5 {
		other.Met(i, Incarnation{Started: other.now, Fenced: i < 2}, other.now)
		other.Reachable(i, i < 2)
	}
	other.Heard(guard.Vouches(guard.now), other.now)
	other.first()
	other.pass(2 * time.Second)
	other.scanAll()
	other.scanAll()
	guard.now = other.now
	guard.scanAll()
	for _, key := range []string{"all lost", "one lost", "left over"} {
		a, b := guard.lock(key), other.lock(key)
		if a.State != b.State || a.Held != b.Held || a.Lost != b.Lost || a.HeldUntil().Sub(b.HeldUntil()).Abs() > 10*time.Millisecond {
			t.Errorf("%s:\nguard %+v\nother %+v", key, a, b)
		}
	}
	if s := guard.lock("all lost").State; s != monitor.LockLostMajority {
		t.Error(s)
	}
	if s := guard.lock("left over").State; s != monitor.LockOrphaned {
		t.Error(s)
	}
}

// A grant without a TTL never ends, and its event says so.
func TestEventsOfAGrantWithoutTTL(t *testing.T) {
	r := newRig(3, 30*time.Second).first()
	r.set("k", "a", 0, 0, 1, 2)
	r.scanAll()
	for _, e := range r.events {
		if text := e.Text.Raw(); e.Kind == "acquired" && !strings.HasSuffix(text, ", without a TTL") {
			t.Errorf("%q", text)
		}
	}
	if !slices.Contains(r.kinds(), "acquired") {
		t.Error(r.kinds())
	}
}

// The grant of a lock without a TTL goes on while the node with the copy that makes its majority is down,
// or fenced after a restart: it is held without end, or may be, and nobody else can get in. Who looks
// for the first time says so too. Once that node serves without its copy, the others let a client in.
func TestALockWithoutTTLLosesSightOfACopy(t *testing.T) {
	r := newRig(5, 30*time.Second).first()
	r.pass(time.Hour)
	r.set("k", "a", 0, 0, 1, 2)
	r.rounds()
	check := func(when string, r *rig, block, certain bool, text string) {
		t.Helper()
		l := r.lock("k")
		serves := func(i int) bool { return r.nodes[i].reachable && !r.nodes[i].closed }
		if _, blocks := l.Endless(serves); l.State != monitor.LockNoTTL || !l.ReliedOn() || !l.HeldUntil().IsZero() || blocks != block || l.LostMajority() != (l.Held < 3 && certain) || l.MayBeHeld() == certain ||
			!strings.Contains(l.EndlessText(serves), text) {
			t.Errorf("%s: %+v: %s", when, l, l.EndlessText(serves))
		}
	}
	firstLook := func(down, closed bool) *rig {
		o := newRig(5, 30*time.Second)
		o.now = r.now
		o.servers = r.servers
		for i := range o.servers {
			o.Met(i, Incarnation{Started: r.now.Add(-time.Hour)}, o.now)
		}
		if o.Reachable(1, closed); down {
			o.Unreachable(1, o.now)
		}
		o.first().rounds()
		return o
	}
	check("granted", r, true, true, "nobody else gets the lock until its holder or an operator removes it")
	r.Unreachable(1, r.now)
	r.rounds()
	const silent = "no TTL on 2 of 5 nodes: may be held without end; nobody else gets the lock unless a node that does not serve now"
	check("n2 is down", r, true, false, silent)
	check("n2 is down, first look", firstLook(true, false), true, false, silent)
	r.restart(1, true, false)
	r.rounds()
	check("n2 is fenced", r, true, true, "no TTL on 2 of 5 nodes: held without end; nobody else gets the lock unless a node that does not serve now")
	check("n2 is fenced, first look", firstLook(false, true), true, false, silent)
	r.Reachable(1, false)
	r.rounds()
	check("n2 serves", r, false, true, "the others can still grant the lock")
	if o := firstLook(false, false).lock("k"); o.State != monitor.LockNoTTL || o.ReliedOn() {
		t.Errorf("n2 serves, first look: %+v", o)
	}
	if got := r.kinds(); !slices.Equal(got, []string{"acquired", "no TTL", "lost majority"}) {
		t.Error(got)
	}
}
