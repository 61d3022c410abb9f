package views

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"redlockctl/base/sleep"
	"redlockctl/cli/app"
	"redlockctl/internal/config"
	"redlockctl/internal/lab"
	"redlockctl/internal/lab/labtest"
	"redlockctl/redlock"
	"redlockctl/restartguard/memory"
)

const (
	maxTTL = 6 * time.Second
	locks  = 6
)

func keyOf(i int) string { return fmt.Sprintf("job:%d", i) }

// stage is the cluster with all who look at it.
type stage struct {
	t       *testing.T
	servers lab.Servers
	proxies []*labtest.Proxy // of the operator
	// guarded and operated are the configurations of the guard, and of the operator, who is behind
	// the proxies.
	guarded, operated *config.Config
	guard, console    *app.Session

	tokens  tokens
	truths  truths
	cutting sync.Mutex
	cuts    []cut
	// happened is what the agent did.
	happened []happening
	stops    stops
}

// stops are the times for which this process did not run, although it had something to do:
// then no view can be in time, and the comparison proves nothing. Beside other tests even a short
// one counts, for as long as a lock lasts: a view that read a copy too late to know what came first
// is on the safe side until the lock ends.
type stops struct {
	mu  sync.Mutex
	all []cut
}

const (
	// stopLeast is how long a stop is at least: half of what views may differ by.
	stopLeast = tolerance / 2
	// stopShort is how long it is at least beside other tests.
	stopShort = 50 * time.Millisecond
	// mostStopped is the largest share of the comparisons that may be left out for stops.
	mostStopped = 0.05
)

// watch takes note of the stops until ctx ends.
func (s *stops) watch(ctx context.Context) {
	const every = 10 * time.Millisecond
	least := stopLeast
	if *events <= short {
		least = stopShort
	}
	for last := time.Now(); ctx.Err() == nil; {
		time.Sleep(every)
		now := time.Now()
		if now.Sub(last)-every >= least {
			s.mu.Lock()
			s.all = append(s.all, cut{last, now})
			s.mu.Unlock()
		}
		last = now
	}
}

// near reports whether the process did not run at a moment, or so shortly before or after
// it that a view may be late by that.
func (s *stops) near(at time.Time) bool {
	lasts := tolerance
	if *events <= short {
		lasts = maxTTL
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.all {
		if at.After(c.from.Add(-tolerance)) && at.Before(c.to.Add(lasts)) {
			return true
		}
	}
	return false
}

// total is how often, and for how long in all.
func (s *stops) total() (n int, d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.all {
		d += c.to.Sub(c.from)
	}
	return len(s.all), d
}

type happening struct {
	at   time.Time
	what string
}

// cut is a time for which the operator does not see some masters.
type cut struct{ from, to time.Time }

func open(t *testing.T) *stage {
	s := &stage{t: t, servers: labtest.Servers(t, 5, lab.BootFence...), tokens: tokens{named: map[string]string{}}}
	for _, one := range s.servers {
		if _, err := one.Do(t.Context(), "config", "set", "min-replicas-to-write", "0"); err != nil {
			t.Fatal(err)
		}
	}
	s.proxies = labtest.Proxies(t, s.servers)
	s.guarded = s.config("guard", func(i int) string { return s.servers[i].Addr() }, true)
	s.operated = s.config("operator", func(i int) string { return s.proxies[i].Node().Addr() }, false)
	s.guard = s.session(s.guarded, app.GuardAlways)
	s.await("the guard has met all nodes", func() bool {
		for _, n := range s.guard.Monitor.Snapshot().Nodes {
			if len(n.Guards) == 0 {
				return false
			}
		}
		return !s.guard.Monitor.Snapshot().Settled.IsZero()
	})
	s.console = s.session(s.operated, app.GuardUnlessSeen)
	s.await("the console sees it", func() bool { return s.console.Monitor.Snapshot().Complete })
	return s
}

func (s *stage) await(what string, is func() bool) {
	for end := time.Now().Add(20 * time.Second); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatal("not: " + what)
		}
	}
}

func (s *stage) config(name string, addr func(int) string, records bool) *config.Config {
	dir := s.t.TempDir()
	var text strings.Builder
	fmt.Fprintf(&text, "[cluster]\nname = \"c\"\nmax_ttl = %q\nlock_patterns = [\"job:*\"]\n[guard]\nstate_dir = %q\n[audit]\npath = %q\n", maxTTL, dir+"/guard", dir+"/audit.log")
	fmt.Fprintf(&text, "[record]\nenabled = %v\ndir = %q\n", records, dir+"/record")
	for i := range s.servers {
		fmt.Fprintf(&text, "[[nodes]]\nname = \"n%d\"\naddr = %q\n", i+1, addr(i))
	}
	path := filepath.Join(dir, name+".toml")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		s.t.Fatal(err)
	}
	env := map[string]string{"HOME": dir, "XDG_STATE_HOME": dir}
	cfg, err := config.Load(path, func(k string) string { return env[k] })
	if err != nil {
		s.t.Fatal(err)
	}
	return cfg
}

func (s *stage) session(cfg *config.Config, mode app.GuardMode) *app.Session {
	spec, err := app.SpecOf(cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	if mode == app.GuardAlways {
		if spec.Guard.Memory, err = memory.Open(spec.Memory); err != nil {
			s.t.Fatal(err)
		}
		s.t.Cleanup(func() { _ = spec.Guard.Memory.Close() })
	}
	ses, err := app.OpenSession(s.t.Context(), spec, mode, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(ses.Close)
	return ses
}

// truth is a client's own belief.
type truth struct {
	key, token  string
	from, until time.Time
}

type truths struct {
	mu  sync.Mutex
	all []*truth
}

func (t *truths) believe(key, token string, until time.Time) *truth {
	b := &truth{key, token, time.Now(), until}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all = append(t.all, b)
	return b
}

func (t *truths) until(b *truth, until time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b.until = until
}

// overlap is two clients that relied on one lock at once; nil: none did.
func (t *truths) overlap() (a, b *truth) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, a := range t.all {
		for _, b := range t.all[i+1:] {
			if a.key == b.key && a.from.Before(b.until) && b.from.Before(a.until) {
				return a, b
			}
		}
	}
	return nil, nil
}

// client takes locks, extends and releases them, or leaves them to their TTL; and now and then it
// leaves a minority behind, as one that fails in the middle of an attempt.
func (s *stage) client(ctx context.Context, dice *rand.Rand) {
	c, err := redlock.New(s.servers.Nodes(), redlock.Options{})
	if err != nil {
		s.t.Error(err)
		return
	}
	defer c.Close()
	for ctx.Err() == nil {
		_ = sleep.For(ctx, time.Duration(200+dice.IntN(1200))*time.Millisecond)
		key := keyOf(dice.IntN(locks))
		ttl := 1500*time.Millisecond + time.Duration(dice.Int64N(int64(maxTTL-1500*time.Millisecond)))
		if dice.IntN(12) == 0 {
			s.leaveMinority(ctx, dice, key, ttl)
			continue
		}
		l, err := c.TryAcquire(ctx, key, ttl)
		if err != nil || !l.Valid(time.Now()) {
			continue
		}
		s.tokens.drew(l.Token())
		mine := s.truths.believe(key, l.Token(), l.Until())
		for range dice.IntN(4) {
			_ = sleep.For(ctx, time.Until(l.Until())/3)
			if l.Extend(ctx, ttl) != nil {
				break
			}
			s.truths.until(mine, l.Until())
		}
		if dice.IntN(5) < 2 { // it ends without a word
			_ = sleep.For(ctx, time.Until(l.Until()))
			continue
		}
		_ = sleep.For(ctx, time.Duration(dice.Float64()*float64(time.Until(l.Until()))))
		s.truths.until(mine, time.Now())
		_, _ = l.Release(ctx)
	}
}

func (s *stage) leaveMinority(ctx context.Context, dice *rand.Rand, key string, ttl time.Duration) {
	token := fmt.Sprintf("%016x-left", dice.Uint64()) // a guard announces how it begins
	s.tokens.drew(token)
	for _, i := range dice.Perm(len(s.servers))[:1+dice.IntN(2)] {
		if s.servers[i].Up() {
			_, _ = s.servers[i].Do(ctx, "set", key, token, "nx", "px", ttl.Milliseconds())
		}
	}
}

// tally counts what the agent did.
type tally struct{ kills, killed, cordons, uncordons, cuts int }

func (s *stage) note(format string, args ...any) {
	s.happened = append(s.happened, happening{time.Now(), fmt.Sprintf(format, args...)})
}

// act does n things to the cluster.
func (s *stage) act(ctx context.Context, dice *rand.Rand, n int) (done tally) {
	cordoned := map[string]bool{}
	var healing sync.WaitGroup
	defer healing.Wait()
	for range n {
		if sleep.For(ctx, time.Duration(700+dice.IntN(1800))*time.Millisecond) != nil {
			return done
		}
		switch dice.IntN(4) {
		case 0, 1:
			done.kills++
			done.killed += s.kill(dice)
		case 2:
			name := s.servers[dice.IntN(len(s.servers))].Node().Name()
			if cordoned[name] || len(cordoned) > 1 {
				for name = range cordoned { // any of them
				}
				done.uncordons++
				s.note("uncordons %s", name)
				_ = s.guard.Operator.Uncordon(ctx, name, "campaign")
				delete(cordoned, name)
				continue
			}
			done.cordons++
			s.note("cordons %s", name)
			_ = s.guard.Operator.Cordon(ctx, name, "campaign")
			cordoned[name] = true
		case 3:
			done.cuts++
			some := dice.Perm(len(s.proxies))[:1+dice.IntN(3)]
			for_ := time.Duration(1+dice.IntN(3000)) * time.Millisecond
			healing.Wait() // one cut at a time
			s.note("cuts the operator off from %v", some)
			healing.Go(func() { s.cutOff(ctx, some, time.Second+for_) })
		}
	}
	return done
}

// kill kills masters, mostly those with a vote, and starts them again at once.
func (s *stage) kill(dice *rand.Rand) int {
	order := dice.Perm(len(s.servers))
	key := keyOf(dice.IntN(locks))
	if l := s.guard.Monitor.Snapshot().Locks.Get(key); l != nil {
		voted := func(i int) int {
			if c := l.Copies.At(i); c.Type != "" {
				return 0
			}
			return 1
		}
		slices.SortStableFunc(order, func(a, b int) int { return voted(a) - voted(b) })
	}
	n := 1 + dice.IntN(3)
	s.note("kills %v (n1 is 0)", order[:n])
	var wg sync.WaitGroup
	for _, i := range order[:n] {
		wg.Go(func() {
			if err := s.servers[i].Kill(); err != nil {
				s.t.Error(err)
			}
			if err := s.servers[i].Start(); err != nil {
				s.t.Error(err)
			}
		})
	}
	wg.Wait()
	return n
}

// cutOff cuts the operator off from some masters for a while.
func (s *stage) cutOff(ctx context.Context, some []int, d time.Duration) {
	begun := time.Now()
	s.cutting.Lock()
	s.cuts = append(s.cuts, cut{from: begun})
	s.cutting.Unlock()
	for _, i := range some {
		s.proxies[i].Swallow(true)
	}
	_ = sleep.For(ctx, d)
	for _, i := range some {
		s.proxies[i].Heal()
		s.proxies[i].Drop()
	}
	s.cutting.Lock()
	s.cuts[len(s.cuts)-1].to = time.Now()
	s.cutting.Unlock()
}

// noticed is how long it takes every view to notice that the operator was cut off from a master, or
// sees it again: a probe's interval and its timeout, or a new connection and a full read.
const noticed = 1500 * time.Millisecond

// seenAt is what the operator saw of the masters at a moment.
func (s *stage) seenAt(at time.Time) (sees sight) {
	s.cutting.Lock()
	defer s.cutting.Unlock()
	for _, c := range s.cuts {
		switch {
		case at.Before(c.from) || !c.to.IsZero() && at.After(c.to.Add(noticed)):
		case at.Before(c.from.Add(noticed)) || !c.to.IsZero() && at.After(c.to):
			return moved
		default:
			sees = less
		}
	}
	return sees
}
