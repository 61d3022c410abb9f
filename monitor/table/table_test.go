package table

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"redlockctl/monitor"
	"redlockctl/server/announce"
)

// rig is a table over simulated servers.
type rig struct {
	*Table
	now     time.Time
	servers []map[string]held
	events  []monitor.Event
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
	r.Table = New(names, n/2+1, maxTTL, time.Second, r.now, func(e monitor.Event) { r.events = append(r.events, e) })
	for i := range n {
		r.servers = append(r.servers, map[string]held{})
		r.Reachable(i, false)
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

// scan reads all of node i; reading takes a millisecond.
func (r *rig) scan(i int) {
	if !r.nodes[i].reachable {
		return
	}
	r.now = r.now.Add(time.Millisecond) // later than the last read
	began := r.now
	r.now = r.now.Add(time.Millisecond)
	var rows []Row
	for key, h := range r.servers[i] {
		switch {
		case h.expires.IsZero():
			rows = append(rows, NewRow(key, h.typ, -1, int64(len(h.token)), h.token))
		case h.expires.After(r.now):
			rows = append(rows, NewRow(key, h.typ, h.expires.Sub(r.now).Milliseconds(), int64(len(h.token)), h.token))
		default:
			delete(r.servers[i], key)
		}
	}
	r.Read(i, r.now, r.now, rows)
	r.Scanned(i, r.nodes[i].epoch, began, r.now)
	r.Sync(i, began) // it reports its changes
	r.Refresh(r.now)
}

func (r *rig) scanAll() {
	for i := range r.servers {
		r.scan(i)
	}
}

func (r *rig) first() *rig {
	r.scanAll()
	r.Settle(r.now)
	return r
}

func (r *rig) pass(d time.Duration) {
	r.now = r.now.Add(d)
	r.Refresh(r.now)
}

func (r *rig) lock(key string) *monitor.Lock { return cmp.Or(r.Locks().Get(key), &monitor.Lock{}) }

// rounds reads all for so long that an attempt is over.
func (r *rig) rounds() {
	for range 12 {
		r.scanAll()
		r.pass(r.Attempt / 4)
	}
}

// text returns the text of the last event of a kind; "": there was none.
func (r *rig) text(kind string) (text string) {
	for _, e := range r.events {
		if e.Kind == kind {
			text = e.Text.Raw()
		}
	}
	return text
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
		state  monitor.LockState
		held   int
		margin int
		tokens int
		end    time.Duration // of the majority; 0: none
	}{
		"a lock on all five may lose two":      {5, func(r *rig) { r.set("k", "a", 9*s, 0, 1, 2, 3, 4) }, monitor.LockHeld, 5, 2, 1, 9 * s},
		"on four it may lose one":              {5, func(r *rig) { r.set("k", "a", 9*s, 0, 1, 2, 3) }, monitor.LockHeld, 4, 1, 1, 9 * s},
		"on three it is bare":                  {5, func(r *rig) { r.set("k", "a", 9*s, 0, 1, 2) }, monitor.LockBareMajority, 3, 0, 1, 9 * s},
		"three of four may lose one":           {4, func(r *rig) { r.set("k", "a", 9*s, 0, 1, 2) }, monitor.LockHeld, 3, 1, 1, 9 * s},
		"two of three is bare":                 {3, func(r *rig) { r.set("k", "a", 9*s, 0, 1) }, monitor.LockBareMajority, 2, 0, 1, 9 * s},
		"a single instance is always bare":     {1, func(r *rig) { r.set("k", "a", 9*s, 0) }, monitor.LockBareMajority, 1, 0, 1, 9 * s},
		"it ends with the third latest":        {5, func(r *rig) { r.set("k", "a", 9*s, 0, 1); r.set("k", "a", 5*s, 2); r.set("k", "a", 3*s, 3, 4) }, monitor.LockHeld, 5, 2, 1, 5 * s},
		"it ends within a second":              {5, func(r *rig) { r.set("k", "a", 900*time.Millisecond, 0, 1, 2, 3, 4) }, monitor.LockExpiring, 5, 2, 1, 900 * time.Millisecond},
		"a minority is partial at first":       {5, func(r *rig) { r.set("k", "a", 9*s, 0, 1) }, monitor.LockPartial, 2, -1, 1, 0},
		"a copy without TTL is immortal":       {5, func(r *rig) { r.set("k", "a", 9*s, 0, 1, 2); r.set("k", "a", 0, 3) }, monitor.LockNoTTL, 4, 1, 1, 9 * s},
		"an immortal majority has no end":      {5, func(r *rig) { r.set("k", "a", 0, 0, 1, 2) }, monitor.LockNoTTL, 3, 0, 1, 0},
		"two tokens are a split":               {5, func(r *rig) { r.set("k", "a", 9*s, 0, 1, 2); r.set("k", "b", 9*s, 3) }, monitor.LockSplit, 3, 0, 2, 9 * s},
		"another's copies guard no margin":     {5, func(r *rig) { r.set("k", "a", 9*s, 0, 1, 2); r.set("k", "b", 9*s, 3, 4) }, monitor.LockSplit, 3, 0, 2, 9 * s},
		"a number without TTL counts fences":   {5, func(r *rig) { r.set("k", "41", 0, 0, 1, 2); r.set("k", "42", 0, 3) }, monitor.LockNotALock, 3, 0, 2, 0},
		"a number with a TTL is a lock":        {5, func(r *rig) { r.set("k", "1", 9*s, 0, 1, 2, 3, 4) }, monitor.LockHeld, 5, 2, 1, 9 * s},
		"a long tombstone is revoked":          {5, func(r *rig) { r.set("k", "redlockctl:revoked:x", 11*s, 0, 1, 2, 3, 4) }, monitor.LockRevoked, 5, 2, 1, 11 * s},
		"a TTL above the maximum":              {5, func(r *rig) { r.set("k", "a", 11*s, 0, 1, 2, 3, 4) }, monitor.LockOverTTL, 5, 2, 1, 11 * s},
		"a list is no lock":                    {5, func(r *rig) { r.servers[1]["k"] = held{typ: "list"} }, monitor.LockNotALock, 0, -3, 0, 0},
		"a list among the copies is a split":   {3, func(r *rig) { r.set("k", "a", 9*s, 0, 2); r.servers[1]["k"] = held{typ: "list"} }, monitor.LockSplit, 2, 0, 1, 9 * s},
		"a token of another length is another": {3, func(r *rig) { r.set("k", "a", 9*s, 0, 2); r.set("k", "aa", 9*s, 1) }, monitor.LockSplit, 2, 0, 2, 9 * s},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(c.nodes, 10*s)
			c.make(r)
			begun := r.now
			r.scanAll()
			if r.Doubtful() {
				r.scanAll()
			}
			l := r.lock("k")
			if l.State != c.state || l.Held != c.held || l.Margin() != c.margin || l.Tokens != c.tokens {
				t.Errorf("state %s, held %d, margin %d, tokens %d", l.State, l.Held, l.Margin(), l.Tokens)
			}
			end := time.Duration(0)
			if !l.MajorityEnd().IsZero() {
				end = l.MajorityEnd().Sub(begun)
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
	if s := r.lock("k").State; s != monitor.LockPartial {
		t.Errorf("%s before the others were read again", s)
	}
	r.scanAll()
	if s := r.lock("k").State; s != monitor.LockOrphaned || !slices.Equal(r.kinds(), []string{"orphaned"}) {
		t.Error(s, r.kinds())
	}
}

// Two of five copies are seen: they are no majority, but not orphaned either.
func TestAMinorityThatMayBeAMajorityIsNoOrphan(t *testing.T) {
	r := newRig(5, 0)
	r.set("k", "a", time.Minute, 0, 1, 2)
	r.first()
	r.Unreachable(2, r.now)
	r.pass(5 * time.Second)
	r.scanAll()
	if l := r.lock("k"); l.State != monitor.LockMayBeHeld || l.Held != 2 || !l.MajorityEnd().IsZero() || l.Copies.At(2).State != monitor.CopyUnknown {
		t.Errorf("%+v", l)
	}
	// A client may reach a node that cannot be seen from here.
	r.set("new", "b", time.Minute, 0, 1)
	r.scanAll()
	r.pass(2 * time.Second)
	r.scanAll()
	if l := r.lock("new"); l.State != monitor.LockMayBeHeld {
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
	if l := r.lock("k"); l.State != monitor.LockMayBeHeld {
		t.Error(l.State)
	}
}

func TestANodeThatComesBackIsReadBeforeItCounts(t *testing.T) {
	r := newRig(3, 0)
	r.set("k", "a", time.Minute, 0, 1, 2)
	r.first()
	r.Unreachable(0, r.now)
	r.del("k", 0)
	r.Reachable(0, false)
	r.Refresh(r.now)
	if l := r.lock("k"); l.Held != 2 || l.Copies.At(0).State != monitor.CopyUnread {
		t.Errorf("%+v", l)
	}
	r.scanAll()
	if l := r.lock("k"); l.Held != 2 || l.Copies.At(0).State != monitor.CopyAbsent {
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
		if s := r.lock("k").State; s == monitor.LockSplit || s == monitor.LockBareMajority || s == monitor.LockOrphaned {
			t.Errorf("%s after %d nodes were read", s, i+1)
		}
	}
	r.scanAll()
	if l := r.lock("k"); l.State != monitor.LockHeld || l.Holder.Raw() != "b" || !slices.Equal(r.kinds(), []string{"released", "acquired"}) {
		t.Errorf("%+v %v", l, r.kinds())
	}
}

func TestTakingAndReleasingRaisesNoAlarm(t *testing.T) {
	r := newRig(5, 0).first()
	r.set("k", "a", time.Minute, 0, 1, 2, 3, 4)
	for i := range 5 {
		r.scan(i)
		if s := r.lock("k").State; s != monitor.LockHeld && s != monitor.LockPartial {
			t.Errorf("%s on the way up", s)
		}
	}
	r.scanAll()
	r.del("k", 0, 1, 2, 3, 4)
	for i := range 5 {
		if s := r.lock("k").State; s != monitor.LockHeld && s != monitor.LockPartial {
			t.Errorf("%s on the way down", s)
		}
		r.scan(i)
	}
	if !slices.Equal(r.kinds(), []string{"acquired", "released"}) {
		t.Error(r.kinds())
	}
}

func TestARestartDropsCopiesAtOnce(t *testing.T) {
	r := newRig(5, 0)
	r.set("wide", "a", time.Minute, 0, 1, 2, 3, 4)
	r.set("four", "a", time.Minute, 0, 1, 2, 3)
	r.set("long gone", "a", time.Second, 0)
	r.first()
	r.Unreachable(0, r.now)
	r.pass(2 * time.Second)
	r.Reachable(0, false)
	var copies, bare int
	r.OnRestart = func(_ int, c monitor.RestartCost, _ time.Time) { copies, bare = c.Lost, c.Bare }
	r.Restarted(0, Incarnation{}, r.now)
	if copies != 2 || bare != 1 {
		t.Errorf("%d copies, %d locks", copies, bare)
	}
	if l := r.lock("wide"); l.Held != 4 || l.Copies.At(0).State != monitor.CopyLost || l.Copies.At(0).Token.Raw() != "a" {
		t.Errorf("%+v", l)
	}
}

func TestACopyOfANodeThatIsDownIsKeptUntilItExpires(t *testing.T) {
	r := newRig(3, 0)
	r.set("k", "a", 10*time.Second, 0)
	r.set("k", "a", 20*time.Second, 1, 2)
	r.first()
	r.Unreachable(0, r.now)
	r.Refresh(r.now)
	if c := r.lock("k").Copies.At(0); c.State != monitor.CopyUnknown || c.Token.Raw() != "a" || c.Expires.IsZero() {
		t.Errorf("%+v", c)
	}
	r.pass(10 * time.Second)
	if c := r.lock("k").Copies.At(0); c.State != monitor.CopyUnknown || !c.Token.Empty() || c.Type != "" {
		t.Errorf("%+v", c)
	}
	if r.Unreachable(1, r.now); r.nodes[1].present != 1 {
		t.Error("counted before it was judged")
	}
	r.Refresh(r.now)
	if r.nodes[0].present != 0 || r.nodes[1].present != 0 || r.nodes[2].present != 1 {
		t.Error(r.nodes)
	}
	r.pass(10 * time.Second)
	if r.Locks().Len() != 0 || len(r.records) != 0 || len(r.timers) != 0 || len(r.all) != 0 || r.Unconfirmed() {
		t.Error("something is left of an expired lock")
	}
}

// A slow answer makes the TTL of a lock look shorter, never longer. A read that a later
// one overtook changes nothing.
func TestALateReadChangesNothing(t *testing.T) {
	r := newRig(1, 0)
	early := r.now
	r.pass(time.Second)
	r.Read(0, r.now, r.now, []Row{NewRow("k", "string", 9000, 1, "b")})
	r.Read(0, early, r.now, []Row{NewRow("k", "string", 9000, 1, "a"), NewRow("k", "none", -2, 0, "")})
	r.Refresh(r.now)
	if l := r.lock("k"); l.Holder.Raw() != "b" || l.Tokens != 1 {
		t.Errorf("%+v", l)
	}
}

func TestAnExpiryIsNeverShownTooLate(t *testing.T) {
	r := newRig(1, 0)
	sent := r.now
	r.now = r.now.Add(400 * time.Millisecond)
	r.Read(0, sent, r.now, []Row{NewRow("k", "string", 10_000, 1, "a"), NewRow("short", "string", 300, 1, "a")})
	r.Refresh(r.now)
	if end := r.lock("k").MajorityEnd(); !end.Equal(sent.Add(10 * time.Second)) {
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
		r.set(fmt.Sprint("counter", i), "7", 0, 0) // not a lock
	}
	r.set("long", "a", time.Hour, 0, 1, 2)
	r.set("slow", "old pattern", 0, 0, 1, 2)
	r.first()
	r.set("slow", "old pattern", 10*time.Second, 0, 1, 2) // its EXPIRE follows later
	r.scanAll()
	r.pass(alarmPatience)
	if want := []string{"over max TTL", "no TTL"}; !slices.Equal(r.kinds(), want) {
		t.Fatal(r.kinds())
	}
	if r.events[0].Key.Raw() != "long" || r.events[1].Text.Raw() != "20 locks: a copy without TTL: it never expires" {
		t.Error(r.events)
	}
	r.set("more", "a", 0, 0)
	r.scanAll()
	r.pass(alarmPatience)
	if len(r.events) != 3 || r.events[2].Key.Raw() != "more" {
		t.Error(r.kinds())
	}
}

func TestAReadThatChangesNothingCostsNoView(t *testing.T) {
	r := newRig(3, 0)
	r.set("k", "a", time.Hour, 0, 1, 2)
	r.first()
	r.scanAll()
	r.Locks()
	r.scanAll()
	if r.locks == nil {
		t.Error("the view was thrown away")
	}
	// But a shorter TTL is not ignored.
	r.set("k", "a", time.Minute, 0, 1, 2)
	r.scanAll()
	if left := r.lock("k").MajorityEnd().Sub(r.now); left > time.Minute {
		t.Error(left)
	}
}

// crowd makes a table of n locks on five nodes.
func crowd(n int) *rig {
	r := newRig(5, 0)
	rows := make([]Row, n)
	for k := range rows {
		rows[k] = NewRow(fmt.Sprintf("lock:%08d", k), "string", 3_600_000, 1, "a")
	}
	for i := range r.servers {
		r.now = r.now.Add(time.Millisecond)
		r.Read(i, r.now, r.now, rows)
		r.Scanned(i, r.nodes[i].epoch, r.now, r.now)
	}
	r.Refresh(r.now)
	r.Settle(r.now)
	return r
}

// change gives a lock another holder on one node, and reads it.
func (r *rig) change(key, token string) {
	r.now = r.now.Add(time.Millisecond)
	r.Read(0, r.now, r.now, []Row{NewRow(key, "string", 3_600_000, 1, token)})
}

// A lock is assessed when it changes, expires or is confirmed by the nodes, and at no
// other time.
func TestAChangeCostsItsCopies(t *testing.T) {
	r := crowd(50_000)
	r.fresh = nil
	before := r.Locks()
	r.change("lock:00000007", "b")
	if len(r.dirty) != 1 || r.sweep != 0 {
		t.Errorf("%d to be judged, %d to be swept", len(r.dirty), r.sweep)
	}
	r.Refresh(r.now)
	if len(r.fresh) != 1 || len(r.waiting) != 1 {
		t.Errorf("%d shown anew, %d wait", len(r.fresh), len(r.waiting))
	}
	for i := range r.nodes {
		r.Sync(i, r.now)
	}
	r.fresh = nil
	r.pass(time.Millisecond)
	if len(r.fresh) != 1 || len(r.waiting) > 1 {
		t.Errorf("%d confirmed", len(r.fresh))
	}
	if r.lock("lock:00000007").State != monitor.LockSplit || r.counts[monitor.LockHeld] != 49_999 {
		t.Error(r.counts)
	}
	// An old view never changes; unchanged locks are shared in memory.
	if before.Get("lock:00000007").State != monitor.LockHeld || before.Get("lock:00000008") != r.Locks().Get("lock:00000008") {
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
				r.Refresh(r.now)
				r.fresh = r.fresh[:0]
				_ = r.Locks()
			}
		})
	}
}

// checkLock compares l with the servers by the simplest calculation.
func checkLock(t *rapid.T, r *rig, l monitor.Lock) {
	q, tokens, lists := len(r.servers)/2+1, map[string][]time.Time{}, 0
	immortal := false
	for i, s := range r.servers {
		h, ok := s[l.Key.Raw()]
		ok = ok && (h.expires.IsZero() || h.expires.After(r.now))
		c := l.Copies.At(i)
		if ok != (c.State == monitor.CopyPresent) || (ok && (c.Type != h.typ || c.Token.Raw() != h.token || !c.Expires.Equal(h.expires))) {
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
	most, rivals := 0, map[string]bool{}
	for token, ends := range tokens {
		most = max(most, len(ends))
		if len(ends) >= q || !r.ended.has(l.Key.Raw(), announce.TokenSum(token)) {
			rivals[token] = true // another's copies may be left of a grant that ended, on a node that restarted
		}
	}
	// The client that was granted the lock may rely on it with fewer copies than another
	// token has.
	if l.Held != len(tokens[l.Holder.Raw()]) || most >= q && l.Held != most || l.Tokens != len(tokens) || l.Margin() != l.Held-(len(r.servers)-q+1) {
		t.Fatalf("%+v", l)
	}
	if most >= q {
		ends := tokens[l.Holder.Raw()]
		slices.SortFunc(ends, time.Time.Compare)
		end := ends[len(ends)-q]
		if forever := end.Sub(r.now) > 100*time.Hour; forever != l.MajorityEnd().IsZero() || (!forever && !end.Equal(l.MajorityEnd())) {
			t.Fatalf("the majority ends at %s, not %s", end, l.MajorityEnd())
		}
	} else if !l.MajorityEnd().IsZero() {
		t.Fatalf("a majority of %d", most)
	}
	// Beside a holder that lost its majority, or may hold the lock, a minority of another token is no split.
	contended := most < q && l.ReliedOn()
	switch {
	case most == 0 && l.State != monitor.LockNotALock && l.State != monitor.LockLostMajority && !l.ReliedOn(),
		immortal && l.State != monitor.LockNoTTL && !twoRely(&l),
		len(rivals) > 1 && l.State < monitor.LockSplit && !contended,
		len(rivals) > 0 && lists > 0 && l.State < monitor.LockSplit,
		len(tokens) == 1 && lists == 0 && l.Earlier == nil && l.State == monitor.LockSplit,
		most > 0 && most < q && l.State < monitor.LockPartial,
		most >= q && (l.State == monitor.LockPartial || l.State == monitor.LockOrphaned),
		most >= q && l.Margin() <= 0 && l.State < monitor.LockBareMajority,
		l.Margin() > 0 && l.State == monitor.LockBareMajority:
		t.Fatalf("%s is %s: %+v", l.Key, l.State, l)
	}
}
