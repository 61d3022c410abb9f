package campaign

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"redlockctl/base/sleep"
	"redlockctl/redlock"
)

// Run is a campaign. It ends after cfg.Cycles kills, at the first violation, or
// with ctx, whose cause is then its error; other errors are of the machinery:
// servers that cannot be started, masters that never rejoin. The report is of
// what was seen until then.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	if err := cfg.defaults(); err != nil {
		return nil, err
	}
	r := &campaign{
		Config: cfg,
		rand:   rand.New(rand.NewPCG(cfg.Seed, 1)), granted: make(chan grant, 1),
		record: record{serving: map[string]bool{}}, began: time.Now(),
	}
	defer r.close()
	err := r.start(ctx)
	if err == nil {
		err = r.work(ctx)
	}
	return r.report(), err
}

// start brings up masters that serve, as those of a new cluster, and connects the
// clients.
func (r *campaign) start(ctx context.Context) error {
	nodes := make([]*redlock.Node, r.Nodes) // as the clients log in
	for i := range nodes {
		m, err := r.startMaster(ctx, i)
		if err != nil {
			return err
		}
		r.masters, r.nodes = append(r.masters, m), append(r.nodes, m.Node())
		if nodes[i], err = r.clientNode(m); err != nil {
			return err
		}
		r.record.serving[m.Node().Name()] = true
	}
	for range r.Clients {
		c, err := redlock.New(nodes, redlock.Options{})
		if err != nil {
			return err
		}
		r.lock = append(r.lock, c)
	}
	return nil
}

func (r *campaign) close() {
	for _, c := range r.lock {
		_ = c.Close()
	}
	for _, m := range r.masters {
		m.end()
	}
}

// errFound ends a campaign that has found what it looks for.
var errFound = errors.New("found")

// work lets clients, guards and killer loose on the masters.
func (r *campaign) work(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer r.watchers.Wait()
	defer stop(nil)
	spare := make(chan struct{})
	for i := range r.Guards {
		if err := r.guard(ctx, i, &wg, stop, spare); err != nil {
			return err
		}
	}
	for i, l := range r.lock {
		c := &client{
			number: i + 1, rand: rand.New(rand.NewPCG(r.Seed, uint64(i)+100)), lock: l, witness: &r.witness,
			resources: r.Resources, maxTTL: r.MaxTTL, granted: r.granted, violated: func() { stop(errFound) },
		}
		wg.Go(func() { c.run(ctx) })
	}
	if r.Drains {
		wg.Go(func() { r.uncordon(ctx) })
	}
	err := r.killMasters(ctx)
	close(spare)
	if err == nil {
		err = r.awaitRejoins(ctx)
	}
	if errors.Is(context.Cause(ctx), errFound) {
		return nil
	}
	return err
}

func (r *campaign) cycles() int {
	if r.Guarding == Killed {
		return r.guardKills()
	}
	return r.kills
}

// killMasters kills masters until there were enough cycles.
func (r *campaign) killMasters(ctx context.Context) error {
	last := 0
	for r.cycles() < r.Cycles {
		var g grant
		// Without a quorum there is no grant for the whole of D. Then any master will
		// do, also a fenced one: a crash inside the fence.
		select {
		case g = <-r.granted:
		case <-time.After(2 * r.delay()):
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		strike := r.strike
		if r.Drains && r.rand.IntN(2) == 0 {
			strike = func(ctx context.Context, _ grant) error { return r.drain(ctx) }
		}
		if err := strike(ctx, g); err != nil {
			return err
		}
		if r.record.faulty() {
			return nil
		}
		if n := r.cycles(); r.Progress != nil && n/100 > last/100 {
			last = n
			_, grants := r.witness.Violations()
			r.Progress(fmt.Sprintf("%d of %d cycles, %d grants, %s", n, r.Cycles, grants, time.Since(r.began).Round(time.Second)))
		}
		if r.Early && r.rand.IntN(8) > 0 { // nobody rejoins early while another master is out
			if err := r.awaitRejoins(ctx); err != nil {
				return err
			}
			continue
		}
		// Some follow at once, some when the first of them are about to rejoin.
		_ = sleep.For(ctx, time.Duration(r.rand.ExpFloat64()*float64(r.delay())/6))
	}
	return nil
}

// strike kills one to three masters, those that have just voted first, and
// starts them again at once.
func (r *campaign) strike(ctx context.Context, g grant) error {
	victims := r.victims(g)
	errs := make([]error, len(victims))
	var wg sync.WaitGroup
	for i, v := range victims {
		wg.Go(func() { errs[i] = r.crashMaster(ctx, r.masters[v], false) })
	}
	wg.Wait()
	r.kills += len(victims)
	return errors.Join(errs...)
}

// crashMaster kills a master, starts it, and has the incarnation that follows watched. One that was empty may
// serve before D.
func (r *campaign) crashMaster(ctx context.Context, m master, empty bool) error {
	lost, err := m.crash(ctx)
	if err != nil || r.Guarding == Nothing || lost.IsZero() {
		return err
	}
	r.record.started(m.Node().Name())
	r.watchers.Go(func() { r.record.watch(ctx, m, lost, r.delay(), r.Early || empty) })
	return nil
}

// victims draws the masters to kill: mostly voters of the grant.
func (r *campaign) victims(g grant) []int {
	order := r.rand.Perm(len(r.nodes))
	if time.Now().Before(g.until) && r.rand.IntN(10) > 0 {
		slices.SortStableFunc(order, func(a, b int) int {
			return r.voted(g, b) - r.voted(g, a)
		})
	}
	n := min(1+r.rand.IntN(3), len(order))
	if r.Early && r.rand.IntN(8) > 0 {
		n = 1
	}
	for _, v := range order[:n] {
		r.voters += r.voted(g, v)
	}
	return order[:n]
}

// voted is 1 for a master that gave the lock, 0 for the others.
func (r *campaign) voted(g grant, node int) int {
	if slices.Contains(g.nodes, r.nodes[node].Name()) {
		return 1
	}
	return 0
}

// awaitRejoins waits until every master serves again: a guard that never lets one rejoin
// would pass every other check.
func (r *campaign) awaitRejoins(ctx context.Context) error {
	if r.Guarding == Nothing {
		return nil
	}
	for end := time.Now().Add(rejoinTime); ; _ = sleep.For(ctx, watchEvery) {
		out := r.record.out()
		switch {
		case out == "" || r.record.faulty():
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case time.Now().After(end):
			return fmt.Errorf("%s has not rejoined within %s", out, rejoinTime)
		}
	}
}

func (r *campaign) report() *Report {
	p := &Report{
		Config: r.Config, Delay: r.delay(), Took: time.Since(r.began),
		Kills: r.kills, Voters: r.voters, Drained: r.drained, Cuts: int(r.cuts.Load()), GuardKills: r.guardKills(), WaitKills: r.waitKills(), Rejoins: r.record.seen(),
	}
	p.Violations, p.Grants = r.witness.Violations()
	return p
}
