package campaign

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"redlockctl/internal/lab"
	"redlockctl/redlock"
	"redlockctl/restartguard"
)

// Guarding is who keeps a killed master out of the quorum.
type Guarding uint8

const (
	Inside  Guarding = iota // a guard in this process
	Killed                  // a guard in a process of its own, which is killed all the time
	Nothing                 // nobody: the masters come up open
)

// Config of a campaign. The zero value of a field means its default.
type Config struct {
	RedisServer string // path of the program; required
	Dir         string // for the files of the servers, the caller's to remove; required
	// Cycles is after how many kills it ends: of masters, or of the guard for
	// [Killed]. It ends before that at the first violation. Default 40.
	Cycles   int
	Guarding Guarding
	Seed     uint64 // of all choices; the timing is that of the machine
	// MaxTTL is the longest TTL of the clients, which use 5/8 of it and more.
	// Default 400 ms, and 150 ms for [Killed].
	MaxTTL time.Duration
	// DelayShare is the part of D that the guard waits: below 1 it waits too
	// short, which the campaign must find. Default 1.
	DelayShare float64

	// Guards is how many guard the masters, each with a memory of its own, and each
	// killed by itself. Default 1.
	Guards int

	Nodes, Clients, Resources int // default 5, 8 and 3

	// Progress gets a line each so many cycles; nil: none.
	Progress func(line string)
}

// Report is what came of a campaign.
type Report struct {
	Config
	Delay      time.Duration // D
	Took       time.Duration
	Grants     int
	Kills      int // of masters
	Voters     int // of which they had just voted
	GuardKills int
	Rejoins    int
	Accepted   int // SETs accepted by masters between their start and their rejoining
	Shortest   time.Duration
	Longest    time.Duration // from a start to rejoining
	Violations []Violation   // two believers of one lock
	Faults     []string      // masters that were open too early, or accepted a SET
}

// Clean tells if nothing was found.
func (r *Report) Clean() bool { return len(r.Violations) == 0 && len(r.Faults) == 0 }

// Print writes the summary.
func (r *Report) Print(w io.Writer) {
	for i, v := range r.Violations {
		if i == 5 {
			fmt.Fprintf(w, "  … and %d more\n", len(r.Violations)-i)
			break
		}
		fmt.Fprintf(w, "VIOLATION  %s\n", v)
	}
	for i, f := range r.Faults {
		if i == 5 {
			fmt.Fprintf(w, "  … and %d more\n", len(r.Faults)-i)
			break
		}
		fmt.Fprintf(w, "FAULT      %s\n", f)
	}
	who := map[Guarding]string{Inside: "with guard", Killed: "with a guard that is killed", Nothing: "WITHOUT GUARD"}[r.Guarding]
	fmt.Fprintf(w, "%s, %d masters, %d clients, %d locks, max TTL %s, D %s, seed %d, took %s\n",
		who, r.Nodes, r.Clients, r.Resources, r.MaxTTL, r.Delay, r.Seed, r.Took.Round(10*time.Millisecond))
	fmt.Fprintf(w, "  masters killed                     %6d   (%d had just voted)\n", r.Kills, r.Voters)
	if r.Guarding == Killed {
		fmt.Fprintf(w, "  guards killed                      %6d\n", r.GuardKills)
	}
	fmt.Fprintf(w, "  grants                             %6d\n", r.Grants)
	fmt.Fprintf(w, "  locks held by two                  %6d\n", len(r.Violations))
	if r.Guarding != Nothing {
		fmt.Fprintf(w, "  SETs accepted, start to rejoin     %6d\n", r.Accepted)
		fmt.Fprintf(w, "  rejoined                           %6d   (%s to %s after their start)\n", r.Rejoins, r.Shortest.Round(time.Millisecond), r.Longest.Round(time.Millisecond))
	}
}

func (cfg *Config) defaults() error {
	set := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	set(&cfg.Cycles, 40)
	set(&cfg.Nodes, 5)
	set(&cfg.Clients, 8)
	set(&cfg.Guards, 1)
	set(&cfg.Resources, 3)
	if cfg.MaxTTL == 0 {
		cfg.MaxTTL = 400 * time.Millisecond
		if cfg.Guarding == Killed {
			cfg.MaxTTL = 150 * time.Millisecond
		}
	}
	if cfg.DelayShare == 0 {
		cfg.DelayShare = 1
	}
	switch {
	case cfg.RedisServer == "" || cfg.Dir == "":
		return errors.New("a campaign needs a redis-server and a directory")
	case min(cfg.Cycles, cfg.Nodes, cfg.Clients, cfg.Resources) < 1:
		return fmt.Errorf("%d cycles, %d nodes, %d clients, %d locks: at least 1 of each", cfg.Cycles, cfg.Nodes, cfg.Clients, cfg.Resources)
	case cfg.MaxTTL < 50*time.Millisecond:
		return fmt.Errorf("max TTL %s is below 50ms: nothing would be granted", cfg.MaxTTL)
	case !(cfg.DelayShare > 0):
		return fmt.Errorf("share %g of D is not positive", cfg.DelayShare)
	}
	return nil
}

// margin is that of D, the default of the configuration.
const margin = 50 * time.Millisecond

// rejoinTime bounds how long the last masters may take to rejoin.
const rejoinTime = 30 * time.Second

// Run is a campaign. It ends after cfg.Cycles kills, at the first violation, or
// with ctx, whose cause is then its error; other errors are of the machinery:
// servers that cannot be started, masters that never rejoin. The report is of
// what was seen until then.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	if err := cfg.defaults(); err != nil {
		return nil, err
	}
	r := &run{
		Config: cfg, delay: restartguard.Delay(cfg.MaxTTL, redlock.DefaultDriftFactor, margin),
		rand: rand.New(rand.NewPCG(cfg.Seed, 1)), granted: make(chan grant, 1),
		record: record{open: map[string]bool{}}, began: time.Now(),
	}
	defer r.end()
	err := r.start(ctx)
	if err == nil {
		err = r.work(ctx)
	}
	return r.report(), err
}

// run is a campaign under way.
type run struct {
	Config
	delay   time.Duration
	rand    *rand.Rand
	began   time.Time
	witness Witness
	record  record
	granted chan grant

	servers []*lab.Server
	nodes   []*redlock.Node
	lock    []*redlock.Client

	kills, voters int
	guardKills    atomic.Int64
	watchers      sync.WaitGroup
}

// start brings up the masters, open: the first life of a new cluster.
func (r *run) start(ctx context.Context) error {
	var args []string
	if r.Guarding != Nothing {
		args = lab.BootFence
	}
	for i := range r.Nodes {
		s, err := lab.StartServer(r.RedisServer, "n"+strconv.Itoa(i+1), r.Dir, args...)
		if err != nil {
			return err
		}
		r.servers, r.nodes = append(r.servers, s), append(r.nodes, s.Node())
		if _, err := s.Do(ctx, "CONFIG", "SET", "min-replicas-to-write", "0"); err != nil {
			return err
		}
		r.record.open[r.nodes[i].Name()] = true
	}
	for range r.Clients {
		c, err := redlock.New(r.nodes, redlock.Options{})
		if err != nil {
			return err
		}
		r.lock = append(r.lock, c)
	}
	return nil
}

func (r *run) end() {
	for _, c := range r.lock {
		_ = c.Close()
	}
	for _, s := range r.servers {
		_ = s.Kill()
	}
}

// errFound ends a campaign that has found what it looks for.
var errFound = errors.New("found")

// work lets clients, guard and killer loose on the masters.
func (r *run) work(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer r.watchers.Wait()
	defer stop(nil)
	spare := make(chan struct{})
	if err := r.guard(ctx, &wg, stop, spare); err != nil {
		return err
	}
	for i, l := range r.lock {
		c := &client{
			number: i + 1, rand: rand.New(rand.NewPCG(r.Seed, uint64(i)+100)), lock: l, witness: &r.witness,
			resources: r.Resources, maxTTL: r.MaxTTL, granted: r.granted, violated: func() { stop(errFound) },
		}
		wg.Go(func() { c.run(ctx) })
	}
	err := r.kill(ctx)
	close(spare)
	if err == nil {
		err = r.rejoin(ctx)
	}
	if err == nil || errors.Is(context.Cause(ctx), errFound) {
		return nil
	}
	return err
}

// guard starts those that there are to be.
func (r *run) guard(ctx context.Context, wg *sync.WaitGroup, stop context.CancelCauseFunc, spare <-chan struct{}) error {
	for i := range r.Guards {
		if err := r.guardBy(ctx, i, wg, stop, spare); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) guardBy(ctx context.Context, i int, wg *sync.WaitGroup, stop context.CancelCauseFunc, spare <-chan struct{}) error {
	delay := time.Duration(float64(r.delay) * r.DelayShare)
	switch r.Guarding {
	case Inside:
		g, err := restartguard.New(r.nodes, restartguard.Config{Delay: delay, Poll: guardPoll})
		if err != nil {
			return err
		}
		wg.Go(func() { _ = g.Run(ctx) })
	case Killed:
		p := &guardProcess{
			order: guardOrder{Delay: delay, Dir: filepath.Join(r.Dir, fmt.Sprintf("memory%d", i+1))},
			rand:  rand.New(rand.NewPCG(r.Seed, uint64(i)+2)), most: 2 * r.delay,
			kills: func() { r.guardKills.Add(1) }, spare: spare,
		}
		for _, n := range r.nodes {
			p.order.Addrs = append(p.order.Addrs, n.Addr())
		}
		wg.Go(func() {
			if err := p.run(ctx); err != nil {
				stop(err)
			}
		})
	}
	return nil
}

func (r *run) cycles() int {
	if r.Guarding == Killed {
		return int(r.guardKills.Load())
	}
	return r.kills
}

// kill kills masters until there were enough cycles.
func (r *run) kill(ctx context.Context) error {
	last := 0
	for r.cycles() < r.Cycles {
		var g grant
		// Without a quorum there is no grant for the whole of D. Then any master will
		// do, also a closed one: a crash inside the fence.
		timer := time.NewTimer(2 * r.delay)
		select {
		case g = <-r.granted:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := r.strike(ctx, g); err != nil {
			return err
		}
		if r.found() {
			return nil
		}
		if n := r.cycles(); r.Progress != nil && n/100 > last/100 {
			last = n
			_, grants := r.witness.Violations()
			r.Progress(fmt.Sprintf("%d of %d cycles, %d grants, %s", n, r.Cycles, grants, time.Since(r.began).Round(time.Second)))
		}
		// Some follow at once, some when the first of them are about to rejoin.
		sleep(ctx, time.Duration(r.rand.ExpFloat64()*float64(r.delay)/6))
	}
	return nil
}

// strike kills one to three masters, those that have just voted first, and
// starts them again at once.
func (r *run) strike(ctx context.Context, g grant) error {
	victims := r.victims(g)
	errs := make([]error, len(victims))
	var wg sync.WaitGroup
	for i, v := range victims {
		s, name := r.servers[v], r.nodes[v].Name()
		wg.Go(func() {
			if errs[i] = s.Kill(); errs[i] != nil {
				return
			}
			r.record.started(name)
			started := time.Now()
			if errs[i] = s.Start(); errs[i] == nil && r.Guarding != Nothing {
				r.watchers.Go(func() { r.record.watch(ctx, s, name, started, r.delay) })
			}
		})
	}
	wg.Wait()
	r.kills += len(victims)
	return errors.Join(errs...)
}

// victims draws the masters to kill: mostly voters of the grant.
func (r *run) victims(g grant) []int {
	order := r.rand.Perm(len(r.nodes))
	if time.Now().Before(g.until) && r.rand.IntN(10) > 0 {
		slices.SortStableFunc(order, func(a, b int) int {
			return r.voted(g, b) - r.voted(g, a)
		})
	}
	n := min(1+r.rand.IntN(3), len(order))
	for _, v := range order[:n] {
		r.voters += r.voted(g, v)
	}
	return order[:n]
}

// voted is 1 for a master that gave the lock, 0 for the others.
func (r *run) voted(g grant, node int) int {
	if slices.Contains(g.nodes, r.nodes[node].Name()) {
		return 1
	}
	return 0
}

// found tells if there is nothing more to prove.
func (r *run) found() bool {
	r.record.mu.Lock()
	defer r.record.mu.Unlock()
	return len(r.record.faults) > 0
}

// rejoin waits until every master votes again: a guard that never opens one
// would pass every other check.
func (r *run) rejoin(ctx context.Context) error {
	if r.Guarding == Nothing || r.found() {
		return nil
	}
	for end := time.Now().Add(rejoinTime); ; sleep(ctx, watchEvery) {
		i := slices.IndexFunc(r.nodes, func(n *redlock.Node) bool { return !r.record.isOpen(n.Name()) })
		switch {
		case i < 0 || r.found():
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case time.Now().After(end):
			return fmt.Errorf("%s has not rejoined within %s", r.nodes[i].Name(), rejoinTime)
		}
	}
}

func (r *run) report() *Report {
	p := &Report{
		Config: r.Config, Delay: r.delay, Took: time.Since(r.began),
		Kills: r.kills, Voters: r.voters, GuardKills: int(r.guardKills.Load()),
	}
	p.Violations, p.Grants = r.witness.Violations()
	r.record.mu.Lock()
	defer r.record.mu.Unlock()
	p.Rejoins, p.Accepted, p.Shortest, p.Longest = r.record.rejoins, r.record.accepted, r.record.shortest, r.record.longest
	p.Faults = slices.Clone(r.record.faults)
	return p
}
