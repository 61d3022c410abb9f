package table

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"redlockctl/monitor"
)

func shown(r *rig) (keys []string) {
	for l := range r.Locks().All() {
		keys = append(keys, l.Key.Raw())
	}
	return keys
}

// total checks that the counts match the number of locks in the view.
func total(t *testing.T, r *rig) {
	t.Helper()
	if r.counts.Total() != r.Locks().Len() {
		t.Errorf("%d counted, %d shown", r.counts.Total(), r.Locks().Len())
	}
}

// Some libraries set several keys for one lock: it is shown as one lock, under the first
// key.
func TestSeveralKeysAreOneLock(t *testing.T) {
	hex := strings.Repeat("0123456789abcdef", 2)
	other := strings.Repeat("fedcba9876543210", 2)
	raw := strings.Repeat("\x07\xfe\x80", 8)
	for name, c := range map[string]struct {
		keys  []string
		token string
	}{
		"node-redlock: one token": {[]string{"a:stock", "b:order"}, hex},
		"rueidislock: one name":   {[]string{"redislock:0:jobs", "redislock:1:jobs", "redislock:2:jobs"}, raw},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(3, 0)
			last := len(c.keys) - 1
			for _, k := range slices.Backward(c.keys) {
				r.set(k, c.token, time.Minute, 0, 1, 2)
			}
			r.set("by itself", other, time.Minute, 0, 1, 2)
			r.first()
			if r.lock(c.keys[0]).Form == nil {
				t.Fatal("the form is not known")
			}
			if got := shown(r); !slices.Contains(got, "by itself") || len(got) != 2 {
				t.Fatal(got)
			}
			l := r.lock(c.keys[0])
			if len(l.Keys()) != len(c.keys) || l.Keys()[last].Raw() != c.keys[last] || l.State != monitor.LockHeld || r.counts[monitor.LockHeld] != 2 {
				t.Errorf("%+v", l)
			}
			total(t, r)
			// The worst state is shown.
			r.del(c.keys[last], 0)
			r.scanAll()
			r.scanAll()
			if l := r.lock(c.keys[0]); l.State != monitor.LockBareMajority || l.Held != 2 || len(l.Keys()) != len(c.keys) {
				t.Errorf("%+v", l)
			}
			total(t, r)
			// Without its first key, the lock is shown under the next.
			r.del(c.keys[0], 0, 1, 2)
			r.scanAll()
			r.scanAll()
			if l := r.lock(c.keys[1]); l.Key.Raw() != c.keys[1] || len(l.Keys()) == len(c.keys) {
				t.Errorf("%+v", l)
			}
			total(t, r)
			// Another token makes it another lock.
			r.set(c.keys[1], "something else", time.Minute, 0, 1, 2)
			r.scanAll()
			r.scanAll()
			total(t, r)
			if l := r.lock(c.keys[1]); l.Keys() != nil || l.Holder.Raw() != "something else" {
				t.Errorf("%+v", l)
			}
			r.pass(2 * time.Minute)
			total(t, r)
			if r.Locks().Len() != 0 || len(r.groups) != 0 {
				t.Error("something is left")
			}
		})
	}
}

// Who can get in, and whether it can be extended, is the least of a lock's keys, also where
// another key is shown for its state.
func TestAccessIsTheLeastOfTheKeys(t *testing.T) {
	r, token := newRig(5, 0), strings.Repeat("0123456789abcdef", 2)
	r.set("a", token, time.Minute, 0, 1, 2, 3)
	r.set("a", token, 0, 4) // without TTL: more urgent than a bare majority
	r.set("b", token, time.Minute, 0, 1, 2)
	r.first()
	s := monitor.Snapshot{At: r.now, Cluster: monitor.Cluster{N: 5, Quorum: 3}}
	for i := range 5 {
		s.Nodes = append(s.Nodes, monitor.Node{Name: fmt.Sprint("n", i+1), State: monitor.NodeServing})
	}
	l := r.lock("a")
	if a := s.Access(l); l.State != monitor.LockNoTTL || len(l.Keys()) != 2 || a.Spare != 0 || a.Restarts != 1 {
		t.Errorf("%s of %d keys: %+v", l.State, len(l.Keys()), a)
	}
	r.restart(0, false, true)
	delete(r.servers[0], "b")
	r.scanAll()
	r.scanAll()
	if a := s.Access(r.lock("a")); !a.Now || a.Spare != -1 {
		t.Errorf("b is lost on a node that serves: %+v", a)
	}
}

// A value shared by many keys is no token: each key is shown alone, so that the change of
// one does not cost time for all.
func TestAConstantMakesNoLockOfManyKeys(t *testing.T) {
	token := strings.Repeat("0123456789abcdef", 2)
	key := func(k int) string { return fmt.Sprintf("k%05d", k) }
	r := newRig(3, 0)
	for k := range groupMost {
		r.set(key(k), token, time.Minute, 0, 1, 2)
	}
	r.first()
	if r.Locks().Len() != 1 || len(r.lock(key(0)).Keys()) != groupMost {
		t.Fatalf("%d locks", r.Locks().Len())
	}
	for k := groupMost; k < 20_000; k++ {
		r.set(key(k), token, time.Minute, 0, 1, 2)
	}
	r.scanAll()
	if r.Locks().Len() != 20_000 || r.counts[monitor.LockHeld] != 20_000 || r.lock(key(0)).Keys() != nil {
		t.Errorf("%d locks, %d held", r.Locks().Len(), r.counts[monitor.LockHeld])
	}
	total(t, r)
	r.set(key(7), "another", time.Minute, 0, 1, 2)
	r.del(key(8), 0, 1, 2)
	r.del(key(9), 0)
	r.scanAll()
	r.scanAll()
	if r.Locks().Len() != 19_999 || r.lock(key(7)).Holder.Raw() != "another" || r.lock(key(9)).State != monitor.LockBareMajority {
		t.Errorf("%d locks", r.Locks().Len())
	}
	total(t, r)
	// The group ends with its last key, and may form again.
	r.pass(2 * time.Minute)
	if r.Locks().Len() != 0 || len(r.groups) != 0 {
		t.Error("something is left")
	}
	total(t, r)
	r.set(key(1), token, time.Minute, 0, 1, 2)
	r.set(key(2), token, time.Minute, 0, 1, 2)
	r.scanAll()
	if r.Locks().Len() != 1 || len(r.lock(key(1)).Keys()) != 2 {
		t.Error("two keys are one lock again")
	}
	total(t, r)
}

// The old SETNX pattern has no TTL: the value says when the lock ends.
func TestADeadlineInTheValue(t *testing.T) {
	r := newRig(3, 0)
	end := r.now.Add(30 * time.Second)
	r.set("lock.jobs", fmt.Sprint(end.Unix()), 0, 0, 1, 2)
	r.first()
	l := r.lock("lock.jobs")
	if l.Form == nil || l.Form.Deadline.IsZero() {
		t.Fatal("the form is not known")
	}
	if l.State != monitor.LockHeld || l.MajorityEnd().Sub(end).Abs() > time.Second {
		t.Errorf("%s until %s", l.State, l.MajorityEnd())
	}
	r.pass(31 * time.Second)
	if s := r.lock("lock.jobs").State; s != monitor.LockOrphaned {
		t.Error(s)
	}
}

// What a library keeps beside its locks is shown as such, whatever its type.
func TestCompanionsOfLocks(t *testing.T) {
	r := newRig(3, 0)
	for i := range r.servers {
		r.servers[i]["redisson_lock_queue:{job}"] = held{typ: "list"}
		r.servers[i]["other"] = held{typ: "list"}
	}
	r.first()
	l := r.lock("redisson_lock_queue:{job}")
	if l.State != monitor.LockNotALock || l.Form == nil || !l.Form.Companion || l.Form.Group.Raw() != "job" {
		t.Fatalf("%+v", l)
	}
	l = r.lock("other")
	if l.State != monitor.LockNotALock || l.Form != nil {
		t.Errorf("%+v", l)
	}
	// When it changes, it is assessed again.
	for i := range r.servers {
		r.servers[i]["other"] = held{typ: "string", token: "RweP1MW6aqyOT7sm1ILONQ=="}
	}
	r.scanAll()
	r.scanAll()
	if l := r.lock("other"); l.State != monitor.LockHeld && l.State != monitor.LockNoTTL || l.Form == nil || l.Form.Library != "redsync" {
		t.Errorf("%+v", l)
	}
	for i := range r.servers {
		r.servers[i]["other"] = held{typ: "zset"}
	}
	r.scanAll()
	r.scanAll()
	if l := r.lock("other"); l.State != monitor.LockNotALock || l.Form != nil {
		t.Errorf("%+v", l)
	}
}

// Who held a revoked lock may rely on it until its tombstones end. Where a restart took
// them from so many masters that others can get in, no view calls it a left-over.
func TestARevocationThatRestartsForget(t *testing.T) {
	for name, c := range map[string]struct {
		fenced bool
		want   monitor.LockState
	}{
		"masters that serve":  {false, monitor.LockMayBeHeld},
		"masters with fences": {true, monitor.LockRevoked},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(5, time.Minute).first()
			r.pass(time.Hour)
			r.set("k", "a", time.Minute, 0, 1, 2, 3, 4)
			r.scanAll()
			r.scanAll()
			r.set("k", "redlockctl:revoked:xyz", time.Minute, 0, 1, 2, 3, 4)
			r.scanAll()
			r.scanAll()
			end := r.now.Add(time.Minute)
			first := newRig(5, time.Minute)
			first.now, first.servers = r.now, r.servers
			for i := range 3 {
				r.restart(i, c.fenced, false)
				first.restart(i, c.fenced, false)
			}
			r.scanAll()
			first.first()
			for range 5 {
				r.pass(time.Second)
				first.pass(time.Second)
			}
			for view, r := range map[string]*rig{"goes on": r, "begins": first} {
				if l := r.lock("k"); l.State != c.want || l.ReliedOn() != (c.want == monitor.LockMayBeHeld) || l.HeldUntil().Sub(end).Abs() > 100*time.Millisecond {
					t.Errorf("the view that %s: %+v", view, l)
				}
			}
		})
	}
}

// An orphaned lock that is revoked stays orphaned, also for a first view beside a guard:
// nobody relied on it.
func TestARevokedOrphanIsAnOrphan(t *testing.T) {
	r := newRig(5, time.Minute).first()
	r.pass(time.Hour)
	r.set("k", "a", time.Minute, 1, 3)
	for range 5 {
		r.scanAll()
		r.pass(time.Second)
	}
	if s := r.lock("k").State; s != monitor.LockOrphaned {
		t.Fatal(s)
	}
	r.set("k", "redlockctl:revoked:xyz", 55*time.Second, 1)
	r.scanAll()
	r.set("k", "redlockctl:revoked:xyz", 55*time.Second, 3)
	r.scanAll()
	first := newRig(5, time.Minute)
	first.now, first.servers = r.now, r.servers
	for i := range 5 {
		first.Met(i, Incarnation{Started: r.now.Add(-time.Hour)}, r.now)
		first.Reachable(i, false)
	}
	first.first()
	for range 5 {
		r.pass(time.Second)
		r.scanAll()
		first.pass(time.Second)
		first.scanAll()
		first.Heard(r.Vouches(r.now), first.now)
	}
	for view, r := range map[string]*rig{"goes on": r, "begins": first} {
		if l := r.lock("k"); l.State != monitor.LockOrphaned {
			t.Errorf("the view that %s: %+v", view, l)
		}
	}
}

// Copies of a holder beside too few tombstones may be part of a majority, also where masters
// that refuse writes would keep others out for now.
func TestAPartlyRevokedLockBesideFences(t *testing.T) {
	r := newRig(5, time.Minute)
	r.set("k", "redlockctl:revoked:xyz", 30*time.Second, 0)
	r.set("k", "a", 30*time.Second, 1, 2)
	for i := 3; i < 5; i++ {
		r.restart(i, true, false)
	}
	r.first()
	r.pass(5 * time.Second)
	if l := r.lock("k"); l.State == monitor.LockRevoked || !l.ReliedOn() {
		t.Errorf("%+v", l)
	}
}

// Copies that a holder has left beside a revocation hold nothing.
func TestARevocationThatDidNotReachAll(t *testing.T) {
	tomb := "redlockctl:revoked:xyz"
	for name, c := range map[string]struct {
		tombs, tokens []int
		want          monitor.LockState
	}{
		"all reached":               {[]int{0, 1, 2, 3, 4}, nil, monitor.LockRevoked},
		"two not reached":           {[]int{0, 1, 2}, []int{3, 4}, monitor.LockRevoked},
		"a minority of tombstones":  {[]int{0, 1}, nil, monitor.LockMayBeHeld},
		"the holder has a majority": {[]int{0, 1}, []int{2, 3, 4}, monitor.LockBareMajority}, // nodes with other copies are not part of its margin
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(5, 0).first()
			r.set("k", "a", time.Minute, 0, 1, 2, 3, 4)
			r.scanAll()
			r.scanAll()
			r.del("k", 0, 1, 2, 3, 4)
			r.set("k", tomb, time.Minute, c.tombs...)
			r.set("k", "a", time.Minute, c.tokens...)
			r.scanAll()
			r.scanAll()
			r.pass(10 * time.Second)
			if l := r.lock("k"); l.State != c.want {
				t.Errorf("%+v", l)
			}
			want := []string{"acquired", "revoked"}
			switch {
			case c.want == monitor.LockMayBeHeld:
				want[1] = "lost majority" // others can acquire it
			case len(c.tokens) > 2:
				want = []string{"acquired", "lost copy", "lost copy"} // and continues
			}
			if !slices.Equal(r.kinds(), want) {
				t.Error(r.kinds())
			}
			r.pass(time.Minute)
			if len(r.kinds()) > len(want)+1 || r.Locks().Len() != 0 {
				t.Error(r.kinds())
			}
		})
	}
}

// During a sweep over all locks, changes are still recorded, and the result is the same
// as of one step.
func TestASweepInSlices(t *testing.T) {
	r := newRig(3, 0)
	const n = 3 * Slice
	for i := range n {
		r.set(fmt.Sprint("k", i), "a", time.Minute, 0, 1, 2)
	}
	r.first()
	told := 0
	r.OnRestart = func(i int, cost monitor.RestartCost, _ time.Time) {
		copies, bare := cost.Lost, cost.Bare
		if told++; i != 1 || copies != n || bare < n-300 {
			t.Errorf("node %d lost %d copies, %d locks are bare", i, copies, bare)
		}
	}
	clear(r.servers[1])
	r.Restarted(1, Incarnation{}, r.now)
	if told != 0 || !r.Pending() {
		t.Fatal("done at once")
	}
	// Meanwhile some locks end, some begin, and some change.
	for i := range 100 {
		r.del(fmt.Sprint("k", i), 0, 2)
		r.set(fmt.Sprint("new", i), "b", time.Minute, 0, 1, 2)
		r.set(fmt.Sprint("k", 200+i), "c", time.Minute, 0, 1, 2)
	}
	for i := range 100 {
		for _, key := range []string{fmt.Sprint("new", i), fmt.Sprint("k", 200+i)} {
			r.Read(1, r.now, r.now, []Row{NewRow(key, "string", 60_000, 1, r.servers[1][key].token)})
		}
		r.Work(r.now, 50)
	}
	r.Refresh(r.now)
	if told != 1 {
		t.Errorf("told %d times", told)
	}
	r.scanAll()
	r.scanAll()
	if got := r.Locks().Len(); got != n || r.nodes[1].present != 200 || r.nodes[0].present != n {
		t.Errorf("%d locks, %d copies on the node, %d on another", got, r.nodes[1].present, r.nodes[0].present)
	}
	total(t, r)
	for l := range r.Locks().All() {
		if l.State != monitor.LockHeld && l.Margin() > 0 || l.Margin() == 0 && l.State != monitor.LockBareMajority {
			t.Fatalf("%+v", l)
		}
	}
}

// Whatever happens to locks, alone and of several keys, each key that is added to the view,
// removed from it or shown otherwise counts as changed: a listing that follows the told keys
// would keep the others for ever.
func TestEachChangeOfTheViewIsTold(t *testing.T) {
	hex := strings.Repeat("0123456789abcdef", 2)
	tokens := []string{"tok0", "tok1", "tok2", hex, "redlockctl:revoked:" + strings.Repeat("a", 27), "redlockctl:revoked:" + strings.Repeat("b", 27)}
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 5))
		keys, all := 12, []int{0, 1, 2}
		if seed%10 == 0 {
			keys = groupMost + 20 // one lock cannot have so many
		}
		r := newRig(3, 0).first()
		before := r.Locks()
		r.TakeFresh()
		for step := range 80 {
			for range 1 + rng.IntN(keys) {
				key, nodes := fmt.Sprintf("k%03d", rng.IntN(keys)), all
				if rng.IntN(3) == 0 {
					nodes = []int{rng.IntN(3)}
				}
				switch rng.IntN(6) {
				case 0:
					r.del(key, nodes...)
				case 1:
					r.set(key, tokens[rng.IntN(len(tokens))], 0, nodes...)
				default:
					r.set(key, tokens[rng.IntN(len(tokens))], time.Duration(1+rng.IntN(9))*time.Second, nodes...)
				}
			}
			if rng.IntN(4) == 0 {
				r.pass(time.Duration(rng.IntN(6)) * time.Second)
			}
			r.scanAll()
			now, told := r.Locks(), r.TakeFresh()
			for i := range keys {
				if key := fmt.Sprintf("k%03d", i); before.Get(key) != now.Get(key) && !slices.Contains(told, key) {
					t.Fatalf("seed %d, step %d: the change of %s is not told", seed, step, key)
				}
			}
			total(t, r)
			before = now
		}
	}
}

// Two locks with the same token are one lock once they are revoked, since their tombstones are
// the same.
func TestLockThatIsShownWithAnotherIsToldAsGone(t *testing.T) {
	r := newRig(3, 0)
	for _, key := range []string{"a", "b"} {
		r.set(key, "tok4", 30*time.Second, 0, 1, 2)
	}
	r.first()
	r.TakeFresh()
	for _, key := range []string{"a", "b"} {
		r.set(key, "redlockctl:revoked:"+strings.Repeat("a", 27), 30*time.Second, 0, 1, 2)
	}
	r.scanAll()
	if told := r.TakeFresh(); len(shown(r)) != 1 || !slices.Contains(told, "a") || !slices.Contains(told, "b") {
		t.Errorf("%q are shown, %q are told as changed", shown(r), told)
	}
}
