package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"redlockctl/internal/lab"
	"redlockctl/internal/safetext"
	"redlockctl/monitor"
	"redlockctl/redlock"
	"redlockctl/restartguard"
	"redlockctl/tui"
)

// demoOptions are the flags of demo.
type demoOptions struct {
	nodes, clients   int
	crashEvery, stop time.Duration
	maxTTL           time.Duration
	plain, noGuard   bool
	redisServer      string
}

// Bounds of the demo's max TTL, and of its nodes: it is there to be watched.
const (
	demoMinTTL   = time.Second
	demoMaxTTL   = 10 * time.Second
	demoMaxNodes = 15
)

// downtime is how long a crashed master of the demo stays away.
const downtime = 400 * time.Millisecond

func (a *commandLine) demoCommand() *cobra.Command {
	var o demoOptions
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Try it out: masters in this process, simulated clients, crashes",
		Long: `Starts masters in this process, opens them, lets simulated clients take, extend,
fight for and release locks on them, and opens the console. A master that is
crashed, by key or by --crash-every, loses its copies, comes back empty and
closed, and is let back in by the guard when that is safe.

With --redis-server the masters are real redis-server processes on free loopback
ports, and are killed for real.

Without a terminal, or with --plain, events are printed as they happen and the
nodes and locks at the end: after --for, or at SIGINT or SIGTERM.`,
		Example: "redlockctl demo --crash-every 20s\nredlockctl demo --plain --for 8s --crash-every 3s\nredlockctl demo --redis-server redis-server",
		Args:    noArgs,
		RunE: a.run(func(ctx context.Context, _ []string) error {
			if err := a.tableOnly("the demo prints events and tables"); err != nil {
				return err
			}
			if err := o.check(); err != nil {
				return usageError{err}
			}
			return a.demo(ctx, o)
		}),
	}
	f := cmd.Flags()
	f.IntVar(&o.nodes, "nodes", 5, "how many masters")
	f.IntVar(&o.clients, "clients", 12, "how many simulated clients")
	f.DurationVar(&o.crashEvery, "crash-every", 0, "crash one master after the other, so often (0: never)")
	f.DurationVar(&o.maxTTL, "max-ttl", 0, "longest TTL in use (default: what --crash-every says, within 1s and 10s)")
	f.DurationVar(&o.stop, "for", 0, "end after this time (0: never)")
	f.BoolVar(&o.plain, "plain", false, "lines of text also on a terminal")
	f.BoolVar(&o.noGuard, "no-guard", false, "no guard: a crashed master stays closed")
	f.StringVar(&o.redisServer, "redis-server", "", "use this redis-server, a path or a name in $PATH")
	return cmd
}

// check validates the flags and fills in the max TTL and the server's path.
func (o *demoOptions) check() error {
	switch {
	case o.nodes < 1 || o.nodes > demoMaxNodes:
		return fmt.Errorf("--nodes %d is not in 1..%d", o.nodes, demoMaxNodes)
	case o.clients < 0:
		return fmt.Errorf("--clients %d is negative", o.clients)
	case o.crashEvery < 0:
		return fmt.Errorf("--crash-every %s is negative", o.crashEvery)
	case o.crashEvery > 0 && o.crashEvery < demoMinTTL:
		return fmt.Errorf("--crash-every %s is too often: %s or more", o.crashEvery, demoMinTTL)
	case o.stop < 0:
		return fmt.Errorf("--for %s is negative", o.stop)
	case o.maxTTL < 0 || o.maxTTL > 0 && o.maxTTL < demoMinTTL:
		return fmt.Errorf("--max-ttl %s is too short: %s or more", o.maxTTL, demoMinTTL)
	}
	if o.maxTTL == 0 {
		o.maxTTL = demoMaxTTL
		if o.crashEvery > 0 {
			o.maxTTL = min(o.crashEvery, demoMaxTTL)
		}
	}
	if o.redisServer != "" {
		path, err := exec.LookPath(o.redisServer)
		if err != nil {
			return fmt.Errorf("--redis-server: %w", err)
		}
		o.redisServer = path
	}
	return nil
}

func (a *commandLine) demo(ctx context.Context, o demoOptions) (err error) {
	var cluster lab.Cluster
	if o.redisServer != "" {
		cluster, err = lab.Processes(o.redisServer, o.nodes)
	} else {
		cluster, err = lab.Embedded(o.nodes)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Close()) }()
	if err := lab.Open(ctx, cluster); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "redlockctl-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	nodes := cluster.Nodes()
	s := spec{
		nodes:    nodes,
		monitor:  monitor.Options{ClusterName: "demo", MaxTTL: o.maxTTL},
		guard:    restartguard.Config{Delay: restartguard.Delay(o.maxTTL, redlock.DefaultDriftFactor, demoMargin)},
		readOnly: a.readOnly,
		audit:    filepath.Join(dir, "audit.jsonl"),
	}
	if !o.noGuard && !a.readOnly {
		s.guarded = nodes
	}
	ses, err := openSession(ctx, s)
	if err != nil {
		return err
	}
	defer ses.close()
	clients, err := redlock.New(nodes, redlock.Options{})
	if err != nil {
		return err
	}
	defer clients.Close()

	if _, err := settled(ctx, ses.mon, settleTime); err != nil {
		return nil // a signal: nothing has begun
	}
	if o.stop > 0 {
		var end context.CancelFunc
		ctx, end = context.WithTimeout(ctx, o.stop)
		defer end()
	}
	// The clients work on until all has been shown: the last picture is one of a
	// cluster in use.
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	tally := &lab.Tally{}
	if o.clients > 0 {
		wg.Go(func() { lab.Clients{Count: o.clients, MaxTTL: o.maxTTL, Tally: tally}.Run(work, clients) })
	}
	crash := &crasher{cluster: cluster, note: ses.mon.Note}
	defer crash.wait()
	if o.crashEvery > 0 {
		wg.Go(func() { crash.run(work, o.crashEvery) })
	}
	wrong := lab.NewWrong(nodes, o.maxTTL)
	defer wrong.Close()
	if o.plain || !a.inTTY || !a.outTTY {
		return a.plainDemo(ctx, ses, o, tally)
	}
	shown := ses.shown()
	return a.screen(ctx, tui.Options{
		Source: shown.Source, Guard: shown.Guard, Actions: shown.Actions, Delay: shown.Delay, Lab: labOf(crash, wrong),
		NoColor: a.noColor || a.getenv("NO_COLOR") != "",
	})
}

// demoMargin is the margin of D in the demo; the default of the configuration.
const demoMargin = 50 * time.Millisecond

// plainDemo prints events until ctx ends, and then the tables.
func (a *commandLine) plainDemo(ctx context.Context, ses *session, o demoOptions, tally *lab.Tally) error {
	fmt.Fprintf(a.out, "%s, quorum %d, %s, max TTL %s; a master that restarts stays closed for %s\n",
		plural(o.nodes, "master", "masters"), redlock.Quorum(o.nodes), plural(o.clients, "client", "clients"), o.maxTTL, ses.delay)
	events := &eventPrinter{out: a.out}
	last := ses.mon.Snapshot()
	follow := func(ctx context.Context, enough func() bool) {
		for ctx.Err() == nil && !enough() {
			select {
			case <-ctx.Done():
			case <-ses.mon.Changed(last.Version):
				last = ses.mon.Snapshot()
				events.print(last.Events)
			}
		}
	}
	follow(ctx, func() bool { return false })
	// Between two locks the table would be empty: wait a moment for one.
	if o.clients > 0 && last.Cluster.Serving >= last.Cluster.Quorum {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
		defer cancel()
		follow(bounded, func() bool {
			for l := range last.Locks.All() {
				if l.Held >= last.Cluster.Quorum {
					return true
				}
			}
			return false
		})
	}
	guard := ses.guard.Status()
	fmt.Fprintln(a.out)
	a.printNodes(a.out, last, guard)
	fmt.Fprintln(a.out)
	a.printLocks(a.out, last, matching(last, monitor.Filter{}))
	n := tally.Counts()
	fmt.Fprintf(a.out, "\nlocks taken %d, contended %d, extended %d, released %d, left to expire %d, lost %d; attempts that failed otherwise %d\n",
		n.Acquired, n.Contended, n.Extended, n.Released, n.Abandoned, n.Lost, n.Failed)
	return nil
}

// eventPrinter prints each event once, as a line with the time of day.
type eventPrinter struct {
	out    io.Writer
	seq    uint64    // of the last event seen
	sample time.Time // of the last everyday one that was printed
}

// print prints what is new among events. Of the everyday ones a lock taken each
// second is enough to see that the clients live.
func (p *eventPrinter) print(events []monitor.Event) {
	for _, e := range events {
		if e.Seq <= p.seq {
			continue
		}
		p.seq = e.Seq
		if e.Level == monitor.LevelInfo {
			if e.Kind != "acquired" || e.At.Sub(p.sample) < time.Second {
				continue
			}
			p.sample = e.At
		}
		about := ""
		if !e.Key.Empty() && !strings.Contains(e.Text.Raw(), e.Key.Raw()) {
			about = e.Key.String() + " "
		}
		fmt.Fprintf(p.out, "%s  %s%s\n", e.At.Format("15:04:05"), about, e.Text)
	}
}

// crasher crashes the demo's masters, and brings each back a moment later.
type crasher struct {
	cluster lab.Cluster
	note    func(monitor.Event)

	mu      sync.Mutex
	away    map[int]bool // crashed, not back yet
	next    int
	ended   bool
	pending sync.WaitGroup
}

// A demo on the screen crashes by key.
var _ tui.Lab = (*crasher)(nil)

// CrashNode crashes a node by name; it returns as soon as the node is gone.
func (c *crasher) CrashNode(name string) error {
	i, err := c.find(name)
	if err != nil {
		return err
	}
	return c.crash(i)
}

func (c *crasher) crash(i int) error {
	name := c.cluster.Nodes()[i].Name()
	c.mu.Lock()
	if c.ended || c.away[i] {
		c.mu.Unlock()
		return fmt.Errorf("%s is down already", name)
	}
	if c.away == nil {
		c.away = map[int]bool{}
	}
	c.away[i] = true
	c.pending.Add(1)
	c.mu.Unlock()

	c.note(monitor.Event{At: time.Now(), Level: monitor.LevelNotice, Kind: "crash", Node: name, Text: safetext.New(name + " crashed by the demo, its data is gone")})
	err := c.cluster.Crash(i)
	go func() {
		defer c.pending.Done()
		time.Sleep(downtime)
		if err := c.cluster.Restart(i); err != nil {
			c.note(monitor.Event{At: time.Now(), Level: monitor.LevelNotice, Kind: "crash", Node: name, Text: safetext.New(fmt.Sprintf("%s cannot be started again: %v", name, err))})
		}
		c.mu.Lock()
		delete(c.away, i)
		c.mu.Unlock()
	}()
	return err
}

// run crashes one node after the other.
func (c *crasher) run(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		c.mu.Lock()
		// The second first: the first node is where people look for what is normal.
		c.next++
		i := c.next % len(c.cluster.Nodes())
		c.mu.Unlock()
		_ = c.crash(i) // down already: its turn comes again
	}
}

// wait ends the crashes and waits until the last crashed node is back, so that
// nothing starts while the cluster is closed.
func (c *crasher) wait() {
	c.mu.Lock()
	c.ended = true
	c.mu.Unlock()
	c.pending.Wait()
}
