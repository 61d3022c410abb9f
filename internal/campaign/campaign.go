package campaign

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"redlockctl/redlock"
	"redlockctl/restartguard"
)

// Guarding is who keeps a killed master out of the quorum.
type Guarding uint8

const (
	Inside     Guarding = iota // a guard in this process
	Killed                     // a guard in a process of its own, which is killed all the time
	Supervised                 // "redlockctl supervise", which is killed at times
	Nothing                    // nobody: the masters start unfenced
)

// Config of a campaign. The zero value of a field means its default.
type Config struct {
	RedisServer string // path of the program; required
	Redlockctl  string // path of the program; required for [Killed] and [Supervised]
	Dir         string // for the files of the servers, the caller's to remove; required
	// Cycles is after how many kills it ends: of masters, or of the guard for
	// [Killed]. It ends before that at the first violation. Default 40.
	Cycles   int
	Guarding Guarding
	ACL      bool // fences are those of an ACL user
	// Early lets masters rejoin before D by evidence; Pattern is where guards look for
	// the locks. Any but the default is wrong, which the campaign must find.
	Early   bool
	Pattern string
	Seed    uint64 // of all choices; the timing is that of the machine
	// MaxTTL is the longest TTL of the clients, which use 5/8 of it and more.
	// Default 400 ms, 200 ms for [Killed], and 4 s for Early: no evidence covers copies
	// that live for less than 2 s.
	MaxTTL time.Duration
	// DelayShare is the part of D that the guard waits: below 1 it waits too
	// short, which the campaign must find. Default 1.
	DelayShare float64
	// Guards is how many guard the masters, each with a memory of its own, and each
	// killed by itself. Default 1.
	Guards int

	Nodes, Clients, Resources int // default 5, 8 and 3, for Early 12

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
	GuardKills int // of guards, or supervisors
	Rejoins
	Violations []Violation // two believers of one lock
}

// Rejoins is what was seen of masters between their start and their rejoining.
type Rejoins struct {
	Rejoined          int
	Early             int           // of them before D
	Shortest, Longest time.Duration // from a start to rejoining
	Accepted          int           // SETs accepted before
	Faults            []string      // masters that served too early, or accepted a SET
}

// Clean reports whether nothing was found.
func (r *Report) Clean() bool { return len(r.Violations) == 0 && len(r.Faults) == 0 }

// Print writes the summary.
func (r *Report) Print(w io.Writer) {
	const most = 5
	for i, v := range r.Violations[:min(most, len(r.Violations))] {
		fmt.Fprintf(w, "VIOLATION  %d of %d: %s\n", i+1, len(r.Violations), v)
	}
	for i, f := range r.Faults[:min(most, len(r.Faults))] {
		fmt.Fprintf(w, "FAULT      %d of %d: %s\n", i+1, len(r.Faults), f)
	}
	who := [...]string{"with guard", "with a guard that is killed", "supervised", "WITHOUT GUARD"}[r.Guarding]
	if r.ACL {
		who += ", fence acl"
	}
	if r.Config.Early {
		who += ", early rejoin"
	}
	fmt.Fprintf(w, "%s, %d masters, %d clients, %d locks, max TTL %s, D %s, seed %d, took %s\n",
		who, r.Nodes, r.Clients, r.Resources, r.MaxTTL, r.Delay, r.Seed, r.Took.Round(10*time.Millisecond))
	fmt.Fprintf(w, "  masters killed                     %6d   (%d had just voted)\n", r.Kills, r.Voters)
	if r.GuardKills > 0 {
		fmt.Fprintf(w, "  guards or supervisors killed       %6d\n", r.GuardKills)
	}
	fmt.Fprintf(w, "  grants                             %6d\n", r.Grants)
	fmt.Fprintf(w, "  locks held by two                  %6d\n", len(r.Violations))
	if r.Guarding != Nothing {
		fmt.Fprintf(w, "  SETs accepted, start to rejoin     %6d\n", r.Accepted)
		fmt.Fprintf(w, "  rejoined                           %6d   (%s to %s after their start)\n", r.Rejoined, r.Shortest.Round(time.Millisecond), r.Longest.Round(time.Millisecond))
	}
	if r.Config.Early {
		fmt.Fprintf(w, "    before D                         %6d\n", r.Rejoins.Early)
	}
}

func (cfg *Config) defaults() error {
	locks, ttl := 3, 400*time.Millisecond
	switch {
	case cfg.Early:
		locks, ttl = 12, 4*time.Second
	case cfg.Guarding == Killed:
		ttl = 200 * time.Millisecond
	}
	cfg.Cycles = cmp.Or(cfg.Cycles, 40)
	cfg.Nodes = cmp.Or(cfg.Nodes, 5)
	cfg.Clients = cmp.Or(cfg.Clients, 8)
	cfg.Guards = cmp.Or(cfg.Guards, 1)
	cfg.Resources = cmp.Or(cfg.Resources, locks)
	cfg.MaxTTL = cmp.Or(cfg.MaxTTL, ttl)
	cfg.DelayShare = cmp.Or(cfg.DelayShare, 1)
	cfg.Pattern = cmp.Or(cfg.Pattern, prefix+"*")
	switch {
	case cfg.RedisServer == "" || cfg.Dir == "":
		return errors.New("a campaign needs a redis-server and a directory")
	case (cfg.Guarding == Supervised || cfg.Guarding == Killed) && cfg.Redlockctl == "":
		return errors.New("guards that are killed and supervisors are redlockctl's")
	case cfg.Guarding == Supervised && (cfg.ACL || cfg.Early || cfg.Guards > 1):
		return errors.New("supervised servers have neither fence nor guard")
	case cfg.Guarding == Nothing && (cfg.Early || cfg.Guards > 1):
		return errors.New("early rejoin and several guards need a guard")
	case min(cfg.Cycles, cfg.Nodes, cfg.Clients, cfg.Resources, cfg.Guards) < 1:
		return fmt.Errorf("%d cycles, %d nodes, %d clients, %d locks, %d guards: at least 1 of each", cfg.Cycles, cfg.Nodes, cfg.Clients, cfg.Resources, cfg.Guards)
	case cfg.MaxTTL < 50*time.Millisecond:
		return fmt.Errorf("max TTL %s is below 50ms: nothing would be granted", cfg.MaxTTL)
	case !(cfg.DelayShare > 0):
		return fmt.Errorf("share %g of D is not positive", cfg.DelayShare)
	}
	return nil
}

const (
	// rejoinTime bounds how long the last masters may take to rejoin.
	rejoinTime = 30 * time.Second
	// prefix begins the names of the locks.
	prefix = "campaign:"
)

// Run is a campaign. It ends after cfg.Cycles kills, at the first violation, or
// with ctx, whose cause is then its error; other errors are of the machinery:
// servers that cannot be started, masters that never rejoin. The report is of
// what was seen until then.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	if err := cfg.defaults(); err != nil {
		return nil, err
	}
	r := &run{
		Config: cfg, delay: restartguard.DefaultDelay(cfg.MaxTTL),
		rand: rand.New(rand.NewPCG(cfg.Seed, 1)), granted: make(chan grant, 1),
		record: record{serving: map[string]bool{}}, began: time.Now(),
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

	masters []master
	nodes   []*redlock.Node
	lock    []*redlock.Client

	programs      []*program // guards or supervisors
	kills, voters int
	watchers      sync.WaitGroup
}

// waits is for how long a master is kept out: D, or a part of it.
func (r *run) waits() time.Duration { return time.Duration(float64(r.delay) * r.DelayShare) }

func (r *run) guardKills() (n int) {
	for _, p := range r.programs {
		n += p.killed()
	}
	return n
}

// start brings up masters that serve, as those of a new cluster, and connects the
// clients.
func (r *run) start(ctx context.Context) error {
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

func (r *run) end() {
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
func (r *run) work(ctx context.Context) error {
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
	err := r.kill(ctx)
	close(spare)
	if err == nil {
		err = r.rejoin(ctx)
	}
	if errors.Is(context.Cause(ctx), errFound) {
		return nil
	}
	return err
}

func (r *run) cycles() int {
	if r.Guarding == Killed {
		return r.guardKills()
	}
	return r.kills
}

// kill kills masters until there were enough cycles.
func (r *run) kill(ctx context.Context) error {
	last := 0
	for r.cycles() < r.Cycles {
		var g grant
		// Without a quorum there is no grant for the whole of D. Then any master will
		// do, also a fenced one: a crash inside the fence.
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
		if r.record.faulty() {
			return nil
		}
		if n := r.cycles(); r.Progress != nil && n/100 > last/100 {
			last = n
			_, grants := r.witness.Violations()
			r.Progress(fmt.Sprintf("%d of %d cycles, %d grants, %s", n, r.Cycles, grants, time.Since(r.began).Round(time.Second)))
		}
		if r.Early && r.rand.IntN(8) > 0 { // nobody rejoins early while another master is out
			if err := r.rejoin(ctx); err != nil {
				return err
			}
			continue
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
		wg.Go(func() { errs[i] = r.crash(ctx, r.masters[v]) })
	}
	wg.Wait()
	r.kills += len(victims)
	return errors.Join(errs...)
}

// crash kills a master, starts it, and has the incarnation that follows watched.
func (r *run) crash(ctx context.Context, m master) error {
	lost, err := m.crash(ctx)
	if err != nil || r.Guarding == Nothing || lost.IsZero() {
		return err
	}
	r.record.started(m.Node().Name())
	r.watchers.Go(func() { r.record.watch(ctx, m, lost, r.delay, r.Early) })
	return nil
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
	if r.Early && r.rand.IntN(8) > 0 {
		n = 1
	}
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

// rejoin waits until every master serves again: a guard that never lets one rejoin
// would pass every other check.
func (r *run) rejoin(ctx context.Context) error {
	if r.Guarding == Nothing {
		return nil
	}
	for end := time.Now().Add(rejoinTime); ; sleep(ctx, watchEvery) {
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

func (r *run) report() *Report {
	p := &Report{
		Config: r.Config, Delay: r.delay, Took: time.Since(r.began),
		Kills: r.kills, Voters: r.voters, GuardKills: r.guardKills(), Rejoins: r.record.seen(),
	}
	p.Violations, p.Grants = r.witness.Violations()
	return p
}
