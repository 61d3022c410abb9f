package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/redis/go-redis/v9/logging"
	"go.uber.org/goleak"

	"redlockctl/internal/lab"
	"redlockctl/internal/lab/labtest"
	"redlockctl/redlock"
	"redlockctl/restartguard"
	"redlockctl/restartguard/watch"
)

func TestMain(m *testing.M) {
	logging.Disable() // go-redis writes each failed dial to stderr
	goleak.VerifyTestMain(m)
}

// The specification is a mutex with leases. A lock is free or has one holder.
//
//   - acquired: a free lock gets a holder, somewhere between the call and its
//     return.
//   - extended: by the holder, who stays it.
//   - ended: the holder's lease has ended. It does not end before the holder lets go of
//     it, which is the earliest of: the call of its release, the end of its validity,
//     and the return of an extension that found it lost. Where a quorum has confirmed
//     the release, it has ended when that returns. Otherwise it ends some time: when
//     the copies have expired, or a release that was not answered has arrived, or at
//     once. A holder that crashed without a release has its lease to the end of the
//     validity.
//
// A grant has a fencing token, if it was asked for, above those of all grants
// before it.
//
// A failed or cancelled attempt is not part of a history: nobody relies on the copies
// that it left, and any attempt may fail.
type action uint8

const (
	acquired action = iota
	extended
	ended
)

func (a action) String() string { return [...]string{"acquired", "extended", "ended"}[a] }

// step is what somebody did to a lock.
type step struct {
	resource, token string
	action          action
	fencing         uint64 // of acquired; zero: none was asked for
}

// lease is the state of a lock.
type lease struct {
	holder  string // its token; empty: free
	fencing uint64 // the highest that was given out
}

func leases() porcupine.Model {
	return porcupine.Model{
		Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
			by := make(map[string][]porcupine.Operation)
			for _, op := range history {
				by[op.Input.(step).resource] = append(by[op.Input.(step).resource], op)
			}
			parts := make([][]porcupine.Operation, 0, len(by))
			for _, part := range by {
				parts = append(parts, part)
			}
			return parts
		},
		Init: func() any { return lease{} },
		Step: func(state, input, _ any) (bool, any) {
			at, s := state.(lease), input.(step)
			switch s.action {
			case acquired:
				if at.holder != "" || s.fencing != 0 && s.fencing <= at.fencing {
					return false, at
				}
				return true, lease{s.token, max(at.fencing, s.fencing)}
			case extended:
				return at.holder == s.token, at
			default:
				return at.holder == s.token, lease{fencing: at.fencing}
			}
		},
		DescribeOperation: func(input, _ any) string {
			s := input.(step)
			return fmt.Sprintf("%s %.5s %d", s.action, s.token, s.fencing)
		},
		DescribeState: func(state any) string { return fmt.Sprintf("%.5s %d", state.(lease).holder, state.(lease).fencing) },
	}
}

// never is when an operation returns of which nobody knows the end.
const never = math.MaxInt64

// history is what clients did, on one monotonic clock.
type history struct {
	base time.Time

	mu     sync.Mutex
	ops    []porcupine.Operation
	grants int
}

func newHistory() *history { return &history{base: time.Now()} }

func (h *history) add(client int, s step, call, end int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, porcupine.Operation{ClientId: client, Input: s, Call: call, Return: end})
	if s.action == acquired {
		h.grants++
	}
}

// take returns the recorded actions, and starts again without any.
func (h *history) take() (ops []porcupine.Operation, grants int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	ops, grants = h.ops, h.grants
	h.ops, h.grants = nil, 0
	return ops, grants
}

func (h *history) at(t time.Time) int64 { return t.Sub(h.base).Nanoseconds() }
func (h *history) now() int64           { return h.at(time.Now()) }

// grant is one lock of a client, with what has to be written down about it.
type grant struct {
	*redlock.Lock
	history *history
	client  int
	over    int64 // no later than this the holder let go of it
}

// acquired writes down a grant that was asked for at call.
func (h *history) acquired(client int, l *redlock.Lock, call int64) *grant {
	h.add(client, step{l.Resource(), l.Token(), acquired, l.FencingToken()}, call, h.now())
	return &grant{l, h, client, never}
}

func (g *grant) step(a action) step { return step{g.Resource(), g.Token(), a, 0} }

// extend extends the grant, and reports whether it is to be relied upon still.
func (g *grant) extend(ctx context.Context, ttl time.Duration) bool {
	call := g.history.now()
	err := g.Extend(ctx, ttl)
	switch {
	case err == nil:
		g.history.add(g.client, g.step(extended), call, g.history.now())
	case errors.Is(err, redlock.ErrNotHeld):
		g.over = min(g.over, g.history.now())
	}
	return g.Valid(time.Now())
}

// release releases the grant.
func (g *grant) release(ctx context.Context) {
	g.over = min(g.over, g.history.now())
	until := int64(never)
	if _, err := g.Release(ctx); err == nil {
		until = g.history.now()
	}
	g.end(until)
}

// abandon leaves the grant to its end, as a holder does that has crashed.
func (g *grant) abandon() { g.end(never) }

func (g *grant) end(until int64) {
	from := min(g.over, g.history.at(g.Until()))
	g.history.add(g.client, g.step(ended), from, until)
}

// linearizable checks a history against the specification.
func linearizable(ops []porcupine.Operation) (porcupine.CheckResult, porcupine.LinearizationInfo) {
	return porcupine.CheckOperationsVerbose(leases(), ops, 30*time.Second)
}

// mustBeLinearizable fails the test if it is not so, and leaves a picture.
func mustBeLinearizable(t *testing.T, ops []porcupine.Operation) {
	t.Helper()
	result, info := linearizable(ops)
	if result == porcupine.Ok {
		return
	}
	snapshot := filepath.Join(t.ArtifactDir(), "history.html")
	if err := porcupine.VisualizePath(leases(), info, snapshot); err != nil {
		t.Error(err)
	}
	t.Fatalf("%d operations: %s; see %s with go test -artifacts\n%s", len(ops), result, snapshot, strings.Join(quarrels(ops), "\n"))
}

// quarrels are the pairs of leases that one after the other is not possible
// for, in words.
func quarrels(ops []porcupine.Operation) (found []string) {
	type span struct {
		step
		got, over int64
	}
	spans := make(map[string]*span)
	for _, op := range ops {
		s := op.Input.(step)
		at := spans[s.token]
		if at == nil {
			at = &span{step: s}
			spans[s.token] = at
		}
		switch s.action {
		case acquired:
			at.got = op.Return
		case ended:
			at.over = op.Call
		}
	}
	for _, a := range spans {
		for _, b := range spans {
			if a.resource == b.resource && a.got < b.got && b.got < a.over {
				found = append(found, fmt.Sprintf("%s: %.5s until %s, %.5s from %s on",
					a.resource, a.token, time.Duration(a.over), b.token, time.Duration(b.got)))
			}
		}
	}
	slices.Sort(found)
	return found
}

func TestSpecificationOfLeases(t *testing.T) {
	type op struct {
		action    action
		token     string
		call, end int64
		fencing   uint64
	}
	for _, tt := range []struct {
		name string
		ops  []op
		want porcupine.CheckResult
	}{
		{"one after the other", []op{{acquired, "a", 0, 1, 0}, {ended, "a", 2, 3, 0}, {acquired, "b", 4, 5, 0}}, porcupine.Ok},
		{"two at once", []op{{acquired, "a", 0, 1, 0}, {acquired, "b", 2, 3, 0}, {ended, "a", 4, 5, 0}}, porcupine.Illegal},
		{"two at once, the first without an end", []op{{acquired, "a", 0, 1, 0}, {acquired, "b", 2, 3, 0}, {ended, "a", 4, never, 0}}, porcupine.Illegal},
		{"asked for before the end, granted after it", []op{{acquired, "a", 0, 1, 0}, {acquired, "b", 2, 6, 0}, {ended, "a", 4, never, 0}}, porcupine.Ok},
		{"a release under way", []op{{acquired, "a", 0, 1, 0}, {ended, "a", 2, 9, 0}, {acquired, "b", 3, 4, 0}, {ended, "b", 5, 6, 0}}, porcupine.Ok},
		{"a release that nobody confirmed", []op{{acquired, "a", 0, 1, 0}, {ended, "a", 2, never, 0}, {acquired, "b", 7, 8, 0}}, porcupine.Ok},
		{"extended by the holder", []op{{acquired, "a", 0, 1, 0}, {extended, "a", 2, 3, 0}, {ended, "a", 4, never, 0}}, porcupine.Ok},
		{"extended while another holds it", []op{{acquired, "a", 0, 1, 0}, {ended, "a", 2, 9, 0}, {acquired, "b", 3, 4, 0}, {extended, "a", 5, 6, 0}}, porcupine.Illegal},
		{"fencing tokens rise", []op{{acquired, "a", 0, 1, 7}, {ended, "a", 2, 3, 0}, {acquired, "b", 4, 5, 8}}, porcupine.Ok},
		{"a fencing token twice", []op{{acquired, "a", 0, 1, 7}, {ended, "a", 2, 3, 0}, {acquired, "b", 4, 5, 7}}, porcupine.Illegal},
	} {
		var ops []porcupine.Operation
		for _, o := range tt.ops {
			ops = append(ops, porcupine.Operation{Input: step{"r", o.token, o.action, o.fencing}, Call: o.call, Return: o.end})
		}
		if got, _ := linearizable(ops); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// TestLinearizabilityMutants breaks, on real servers, what the specification
// relies on, and expects the checker to see two holders.
func TestLinearizabilityMutants(t *testing.T) {
	const ttl = 20 * time.Second
	for name, mutant := range map[string]func(t *testing.T, servers []*lab.Server, g *grant){
		"masters that come back at once": func(t *testing.T, servers []*lab.Server, _ *grant) {
			for _, s := range servers[:2] {
				if err := errors.Join(s.Kill(), s.Start()); err != nil {
					t.Fatal(err)
				}
			}
		},
		"a release without a comparison": func(t *testing.T, servers []*lab.Server, g *grant) {
			for _, s := range servers {
				if _, err := s.Do(t.Context(), "DEL", g.Resource()); err != nil {
					t.Fatal(err)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			servers := labtest.Servers(t, 3)
			h := newHistory()
			take := func(client int) *grant {
				c := open(t, servers, patient())
				var g *grant
				eventually(t, "not granted", func() bool {
					call := h.now()
					l, err := c.TryAcquire(t.Context(), "a", ttl)
					if err == nil {
						g = h.acquired(client, l, call)
					}
					return err == nil
				})
				return g
			}
			a := take(0)
			mutant(t, servers, a)
			b := take(1)
			a.abandon()
			b.release(t.Context())
			ops, _ := h.take()
			if got, _ := linearizable(ops); got != porcupine.Illegal || len(quarrels(ops)) != 1 {
				t.Errorf("%s: %v", got, quarrels(ops))
			}
		})
	}
}

const (
	linearFor    = 5 * time.Second // of each test, by default
	linearRound  = 3 * time.Second // after which a history is checked and the next begins
	linearTTL    = 400 * time.Millisecond
	linearMaxTTL = 600 * time.Millisecond // also of extensions
	linearPeople = 5
)

// TestLinearizable lets clients compete for locks on five real servers while servers
// are killed and stopped, and the network between each client and each server delays,
// cuts, loses and reorders. Killed servers restart when the guard's delay has passed.
// REDLOCKCTL_LINEAR=10m makes it run longer; see scripts/soak.
func TestLinearizable(t *testing.T) {
	t.Parallel()
	servers := labtest.Servers(t, 5)
	fight(t, servers, &kills{servers: servers, away: restartguard.Delay(linearMaxTTL, 0.01, 50*time.Millisecond)})
}

// TestLinearizableWithGuard does the same with three servers that come back at
// once, closed, and a real guard that opens them.
func TestLinearizableWithGuard(t *testing.T) {
	t.Parallel()
	servers := labtest.Servers(t, 3, lab.BootFence...)
	guard, err := watch.New(labtest.Nodes(servers), watch.Config{
		Delay: restartguard.Delay(linearMaxTTL, 0.01, 50*time.Millisecond), Poll: 10 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- guard.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	fight(t, servers, &kills{servers: servers, guard: guard})
}

// fight is a campaign: rounds of fighting, each with locks of its own and a
// history that is checked.
func fight(t *testing.T, servers []*lab.Server, k *kills) {
	length := campaign(t, "REDLOCKCTL_LINEAR", linearFor)
	people := make([]*person, linearPeople)
	var networks [][]*labtest.Proxy
	for i := range people {
		proxies := labtest.Proxies(t, servers)
		networks = append(networks, proxies)
		people[i] = &person{t: t, id: i, proxies: proxies}
		people[i].open()
		t.Cleanup(func() { _ = people[i].client.Close() })
	}
	h := newHistory()
	all, longest, took := 0, 0, time.Duration(0)
	// A busy machine gets more time, until something was shown.
	for round, begin := 0, time.Now(); time.Since(begin) < length || all < 30 || k.kills == 0 || k.stops == 0; round++ {
		if time.Since(begin) > length+5*time.Minute {
			t.Fatalf("only %d grants, %d kills, %d stops", all, k.kills, k.stops)
		}
		ctx, cancel := context.WithTimeout(t.Context(), min(linearRound, length))
		var wg sync.WaitGroup
		for _, p := range people {
			wg.Go(func() { p.live(ctx, h, round) })
		}
		wg.Go(func() { storms(ctx, networks) })
		wg.Go(func() { k.run(ctx, t) })
		wg.Wait()
		cancel()
		ops, grants := h.take()
		start := time.Now()
		mustBeLinearizable(t, ops)
		took += time.Since(start)
		all, longest = all+grants, max(longest, len(ops))
	}
	conns := 0
	for _, proxies := range networks {
		for _, p := range proxies {
			conns += p.Conns()
		}
	}
	t.Logf("%d grants, %d kills, %d stops, %d connections; histories of up to %d operations were checked in %s",
		all, k.kills, k.stops, conns, longest, took)
	if k.kills == 0 || k.stops == 0 || conns <= len(people)*len(servers) {
		t.Error("the faults never came: this shows nothing")
	}
}

// person is a client that takes locks, extends them, releases or forgets them,
// and crashes now and then.
type person struct {
	t       *testing.T
	id      int
	proxies []*labtest.Proxy
	client  *redlock.Client
}

func (p *person) open() {
	nodes := make([]*redlock.Node, len(p.proxies))
	for i, proxy := range p.proxies {
		nodes[i] = proxy.Node()
	}
	var err error
	p.client, err = redlock.New(nodes, redlock.Options{
		NodeTimeout: 40 * time.Millisecond, ConnectTimeout: 200 * time.Millisecond, Retries: 5, RetryDelay: 20 * time.Millisecond,
	})
	if err != nil {
		p.t.Fatal(err) // not possible
	}
}

func (p *person) live(ctx context.Context, h *history, round int) {
	for ctx.Err() == nil {
		resource := fmt.Sprintf("round%d:%d", round, rand.IntN(3))
		acquire := p.client.Acquire
		if strings.HasSuffix(resource, ":1") {
			acquire = p.client.AcquireFenced
		}
		call := h.now()
		l, err := acquire(ctx, resource, linearTTL/2+rand.N(linearTTL/2))
		if err != nil {
			if errors.Is(err, redlock.ErrInvalid) || errors.Is(err, redlock.ErrClosed) {
				p.t.Error(err)
				return
			}
			continue
		}
		g := h.acquired(p.id, l, call)
		pause(ctx, rand.N(linearTTL/10))
		for valid := true; valid && rand.IntN(3) == 0; {
			pause(ctx, rand.N(linearTTL/2))
			valid = g.extend(context.Background(), linearTTL/4+rand.N(linearMaxTTL-linearTTL/4))
		}
		switch rand.IntN(10) {
		case 0: // crashes
			_ = p.client.Close()
			g.abandon()
			p.open()
		case 1, 2: // forgets it
			g.abandon()
		case 3: // clings to it, and releases at its end
			pause(context.Background(), time.Until(g.Until()))
			g.release(ctx)
		default:
			g.release(ctx)
		}
	}
}

// storms does bad things to the networks until ctx ends, and then heals them.
func storms(ctx context.Context, networks [][]*labtest.Proxy) {
	var stranded []func()
	for ctx.Err() == nil {
		proxies := networks[rand.IntN(len(networks))]
		p := proxies[rand.IntN(len(proxies))]
		way := labtest.Direction(rand.IntN(2))
		switch rand.IntN(10) {
		case 0, 1:
			p.Delay(way, 0, []time.Duration{3 * time.Millisecond, 30 * time.Millisecond, 300 * time.Millisecond}[rand.IntN(3)])
		case 2:
			p.Hold(way)
		case 3:
			p.Resume()
		case 4: // arrives long after what later connections send
			stranded = append(stranded, p.Strand(labtest.ToServer))
		case 5:
			for _, release := range stranded {
				release()
			}
			stranded = nil
		case 6:
			p.Cut(way, rand.IntN(60))
		case 7:
			p.Drop()
		case 8:
			p.Swallow(true)
		}
		pause(ctx, rand.N(40*time.Millisecond))
		for range 2 { // more good than bad
			proxies = networks[rand.IntN(len(networks))]
			proxies[rand.IntN(len(proxies))].Heal()
		}
	}
	for _, release := range stranded {
		release()
	}
	for _, proxies := range networks {
		for _, p := range proxies {
			p.Heal()
		}
	}
}

// kills ends and stops servers, a minority at a time, and brings them back.
type kills struct {
	servers []*lab.Server
	away    time.Duration // how long a killed server stays away
	guard   *watch.Guard  // nil: nobody but away keeps it from voting

	kills, stops int
}

func (k *kills) run(ctx context.Context, t *testing.T) {
	for ctx.Err() == nil {
		var wg sync.WaitGroup
		few := 1 + rand.IntN(len(k.servers)/2)
		for _, i := range rand.Perm(len(k.servers))[:few] {
			s := k.servers[i]
			if rand.IntN(2) == 0 {
				k.kills++
				wg.Go(func() { k.restart(t, i) })
				continue
			}
			k.stops++
			if err := s.Pause(); err != nil {
				t.Error(err)
			}
			wg.Go(func() {
				pause(ctx, rand.N(600*time.Millisecond))
				if err := s.Resume(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		pause(ctx, rand.N(300*time.Millisecond))
	}
}

// restart kills a server and brings it back; it returns when the server may
// vote again.
func (k *kills) restart(t *testing.T, i int) {
	s := k.servers[i]
	if err := s.Kill(); err != nil {
		t.Error(err)
	}
	pause(context.Background(), k.away)
	if err := s.Start(); err != nil {
		t.Error(err)
		return
	}
	if k.guard == nil {
		return
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		// Open for itself: the guard may not have seen the new incarnation yet.
		v, err := s.Do(context.Background(), "CONFIG", "GET", "min-replicas-to-write")
		if err == nil && strings.Contains(fmt.Sprint(v), "min-replicas-to-write:0") {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("%s was never opened: %v, %v", s.Node().Name(), v, err)
			return
		}
	}
}
