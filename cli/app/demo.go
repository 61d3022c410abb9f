package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"redlockctl/base/crash"
	"redlockctl/internal/lab"
	"redlockctl/internal/record"
	"redlockctl/monitor"
	"redlockctl/monitor/observe"
	"redlockctl/redlock"
	"redlockctl/restartguard"
	"redlockctl/restartguard/watch"
	"redlockctl/server/safetext"
	"redlockctl/tui/action"
)

// DemoOptions are what a demo is made of.
type DemoOptions struct {
	Nodes, Clients    int
	CrashEvery        time.Duration // 0: never
	MaxTTL            time.Duration
	RedisServer       string // path; "": masters in this process
	NoGuard, ReadOnly bool
}

// Demo is a lab with a session on it, simulated clients and crashes.
type Demo struct {
	Session *Session
	Tally   lab.Tally // of the clients

	opt     DemoOptions
	cluster lab.Cluster
	dir     string            // of the audit log
	clients []*redlock.Client // one for each of the processes that the demo plays
	crash   *crasher
	end     context.CancelFunc // of the work
	working sync.WaitGroup
}

// OpenDemo starts the masters and the session. The demo is to be closed.
func OpenDemo(ctx context.Context, o DemoOptions) (d *Demo, err error) {
	d = &Demo{opt: o}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Close())
		}
	}()
	if o.RedisServer != "" {
		d.cluster, err = lab.StartServers(o.RedisServer, o.Nodes, lab.BootFence...)
	} else {
		d.cluster, err = lab.Embedded(o.Nodes)
	}
	if err != nil {
		return d, err
	}
	if err := lab.Unfence(ctx, d.cluster); err != nil {
		return d, err
	}
	if d.dir, err = os.MkdirTemp("", "redlockctl-demo-"); err != nil {
		return d, err
	}
	nodes := d.cluster.Nodes()
	look := observe.Options{ClusterName: "demo", MaxTTL: o.MaxTTL, Meant: []string{"same-host"}}
	guard := watch.Config{Delay: restartguard.DefaultDelay(o.MaxTTL), StartedFenced: true}
	if o.RedisServer == "" {
		// Embedded masters do not report changes, and every read costs this process time: so
		// they are read only as often as a person sees a difference.
		look.Meant = append(look.Meant, "limited-sight")
		look.ScanEvery, look.ProbeEvery = time.Second, time.Second
		guard.Poll = time.Second
	}
	mode := GuardAlways
	if o.NoGuard || o.ReadOnly {
		mode = GuardNever
	}
	d.Session, err = OpenSession(ctx, Spec{
		Nodes:    nodes,
		Monitor:  look,
		Guard:    guard,
		Guarded:  nodes,
		ReadOnly: o.ReadOnly,
		Audit:    filepath.Join(d.dir, "audit.jsonl"),
		Record:   record.Options{Path: filepath.Join(d.dir, "record.db")},
	}, mode, nil)
	if err != nil {
		return d, err
	}
	for _, owner := range demoOwners {
		// Nobody wakes who waits for a lock of an embedded master: each attempt costs all of them.
		c, err := redlock.New(nodes, redlock.Options{Owner: owner, RetryDelay: 500 * time.Millisecond})
		if err != nil {
			return d, err
		}
		d.clients = append(d.clients, c)
	}
	return d, nil
}

// demoOwners are whose locks the demo shows, in the order of the jobs of [lab.Clients]:
// locks that are kept for long, short jobs, long jobs, and jobs that die at times.
var demoOwners = []string{"scheduler-1", "web-2", "worker-3", "batch-4"}

// Start lets the clients work and the crashes begin. They go on until the demo is
// closed, so that the last snapshot is one of a cluster in use.
func (d *Demo) Start() {
	work, end := context.WithCancel(context.Background())
	d.end = end
	if d.opt.Clients > 0 {
		d.working.Go(crash.Safe(func() {
			lab.Clients{Count: d.opt.Clients, MaxTTL: d.opt.MaxTTL, Tally: &d.Tally}.Run(work, d.clients...)
		}))
	}
	d.crash = &crasher{cluster: d.cluster, note: d.Session.Monitor.Note}
	if d.opt.CrashEvery > 0 {
		d.working.Go(crash.Safe(func() { d.crash.run(work, d.opt.CrashEvery) }))
	}
}

// Lab is what a person can do to the masters. The demo has been started.
func (d *Demo) Lab() action.Lab { return demoLab{d.crash} }

// Close ends everything, as far as it was begun.
func (d *Demo) Close() error {
	if d.end != nil {
		d.crash.wait()
		d.end()
		d.working.Wait()
	}
	for _, c := range d.clients {
		_ = c.Close()
	}
	if d.Session != nil {
		d.Session.Close()
	}
	if d.dir != "" {
		_ = os.RemoveAll(d.dir)
	}
	if d.cluster != nil {
		return d.cluster.Close()
	}
	return nil
}

// downtime is how long a crashed master of the demo stays away.
const downtime = 400 * time.Millisecond

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
var _ action.Lab = demoLab{}

// crash crashes a node; it returns as soon as the node is gone.
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

	c.tell("crash", name, "crashed by the demo, its data is gone")
	err := c.cluster.Crash(i)
	crash.Go(func() {
		defer c.pending.Done()
		time.Sleep(downtime)
		if err := c.cluster.Restart(i); err != nil {
			c.tell("crash", name, "cannot be started again: %v", err)
		}
		c.mu.Lock()
		delete(c.away, i)
		c.mu.Unlock()
	})
	return err
}

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

// demoLab is what the screen of the demo can do to its masters besides crashing
// them.
type demoLab struct{ *crasher }

func (l demoLab) Cannot(action string) string {
	if _, ok := l.cluster.(lab.Shifter); !ok && action == "skew" {
		return "its masters have no clock of their own"
	}
	return ""
}

func (c *crasher) find(name string) (int, error) {
	i := slices.IndexFunc(c.cluster.Nodes(), func(n *redlock.Node) bool { return n.Name() == name })
	if i < 0 {
		return 0, fmt.Errorf("there is no node %q", name)
	}
	return i, nil
}

func (c *crasher) tell(kind, name, format string, args ...any) {
	c.note(monitor.Event{At: time.Now(), Level: monitor.LevelNotice, Kind: kind, Node: name, Text: safetext.New(name + " " + fmt.Sprintf(format, args...))})
}

func (l demoLab) Do(action, name string) error {
	i, err := l.find(name)
	if err != nil {
		return err
	}
	said := ""
	switch action {
	case "crash":
		return l.crash(i)
	case "stop":
		said, err = "was stopped by the demo: it answers nothing", l.cluster.Pause(i)
	case "continue":
		said, err = "goes on", l.cluster.Resume(i)
	case "flush":
		said = "was flushed by the demo: its locks are gone"
		err = lab.Flush(l.cluster.Nodes()[i])
	}
	if err == nil {
		l.tell("lab", name, "%s", said)
	}
	return err
}

func (l demoLab) SkewNode(name string, by time.Duration) error {
	i, err := l.find(name)
	if err != nil {
		return err
	}
	clocks, ok := l.cluster.(lab.Shifter)
	if !ok {
		return fmt.Errorf("%s has no clock of its own", name)
	}
	if err := clocks.Shift(i, by); err != nil {
		return err
	}
	l.tell("lab", name, "had its clock moved by %s by the demo", by)
	return nil
}
