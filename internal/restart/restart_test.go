package restart

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"redlockctl/monitor"
	"redlockctl/monitor/monitortest"
	"redlockctl/server/announce"
)

// cluster is a healthy cluster under one guard that does what a restart asks for at once,
// unless a test says otherwise. It notes what was done.
type cluster struct {
	mu         sync.Mutex
	s          *monitor.Snapshot
	changed    chan struct{}
	did        []string
	ended      string        // how the last drain ended
	uncordoned bool          // while it drains
	fenced     time.Duration // for how long the guard keeps it fenced once it is uncordoned
	served     int           // at which look the node is found uncordoned; 0: at none
	boot       announce.Boot // how a restarted node starts
	fails      string        // what fails
	most       time.Duration
	tell       func(format string, args ...any)
	looks      func() // before the nodes are read beside a cordoned one
}

// short is how long a wait for what does not happen takes.
const short = 200 * time.Millisecond

func newCluster() *cluster {
	c := &cluster{s: monitortest.Safe(monitortest.Epoch), changed: make(chan struct{}), boot: announce.BootFenced, most: time.Minute}
	for i := range c.s.Nodes {
		c.s.Nodes[i].Guards = []announce.Guard{{ID: "g", Delay: 31 * time.Second}}
	}
	return c
}

func (c *cluster) Snapshot() *monitor.Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.s
}

// Changed returns a channel that is closed: the next snapshot is a second later.
func (c *cluster) Changed(uint64) <-chan struct{} {
	c.change(func(s *monitor.Snapshot) {
		for i := range s.Nodes {
			if n := &s.Nodes[i]; n.State == monitor.NodeFenced && c.fenced > 0 && !n.Guards[0].MayVote.After(s.At) {
				n.State = monitor.NodeServing
			}
		}
	})
	at := make(chan struct{})
	close(at)
	return at
}

func (c *cluster) change(f func(s *monitor.Snapshot)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := *c.s
	next.Nodes = slices.Clone(next.Nodes)
	next.At, next.Version = next.At.Add(time.Second), next.Version+1
	f(&next)
	c.s = &next
}

func (c *cluster) node(name string, state monitor.NodeState, g announce.Guard) {
	g.ID, g.Delay = "g", 31*time.Second
	c.change(func(s *monitor.Snapshot) {
		n := s.Node(name)
		if n.Guards = []announce.Guard{g}; n.State != state {
			n.State, n.Since, n.Older = state, s.At, false
		}
	})
}

func (c *cluster) note(what, node string) error {
	c.did = append(c.did, what+" "+node)
	if c.fails == what+" "+node {
		return errors.New("refused")
	}
	return nil
}

func (c *cluster) BeginDrain(_ context.Context, node, _ string, _ []string) (func(string, error) error, error) {
	if err := c.note("drain", node); err != nil {
		return nil, err
	}
	c.node(node, monitor.NodeCordoned, announce.Guard{Cordoned: true})
	return func(how string, err error) error {
		if c.ended = how; err != nil {
			c.ended = err.Error()
		}
		return err
	}, nil
}

func (c *cluster) Uncordon(_ context.Context, node, _ string) error {
	err := c.note("uncordon", node)
	switch {
	case err != nil:
	case c.fenced > 0:
		c.node(node, monitor.NodeFenced, announce.Guard{MayVote: c.Snapshot().At.Add(c.fenced)})
		c.change(func(s *monitor.Snapshot) { s.Node(node).Offset = monitor.Estimate{Valid: true} })
	default:
		c.node(node, monitor.NodeServing, announce.Guard{})
	}
	return err
}

func (c *cluster) RunRestart(ctx context.Context, node, _ string, run func(context.Context) (string, error)) error {
	_, err := run(ctx)
	return err
}

// restart restarts these nodes of c.
func (c *cluster) restart(ctx context.Context, nodes ...string) error {
	return Run(ctx, c, c, Plan{
		Nodes: nodes, Reason: "upgrade", Most: c.most,
		Tell: func(format string, args ...any) {
			if c.tell != nil {
				c.tell(format, args...)
			}
		},
		Look: func(context.Context) (*monitor.Snapshot, error) {
			if c.looks != nil {
				c.looks()
			}
			return c.Snapshot(), nil
		},
		Drain: func(_ context.Context, node string, _ func(string)) error {
			if c.uncordoned {
				return fmt.Errorf("%w: %s serves", ErrUncordoned, node)
			}
			c.node(node, monitor.NodeCordoned, announce.Guard{Cordoned: true, Drained: true})
			return c.note("empty", node)
		},
		Cordoned: func(_ context.Context, node string) error {
			if c.served--; c.served == 0 {
				c.node(node, monitor.NodeServing, announce.Guard{})
				return fmt.Errorf("%w: %s serves", ErrUncordoned, node)
			}
			return nil
		},
		Command: func(_ context.Context, n *monitor.Node) (string, error) {
			c.node(n.Name, monitor.NodeCordoned, announce.Guard{Cordoned: true, Boot: c.boot})
			c.change(func(s *monitor.Snapshot) { s.Node(n.Name).RunID = "after " + n.RunID })
			return "", c.note("command", n.Name)
		},
	})
}

// A node that its guard lets rejoin later is waited for, and until when is told once.
func TestFencedAfterARestart(t *testing.T) {
	c := newCluster()
	c.fenced = 29 * time.Second
	var told []string
	c.tell = func(format string, args ...any) {
		if text := fmt.Sprintf(format, args...); strings.Contains(text, "fenced, its guard") {
			told = append(told, text)
		}
	}
	if err := c.restart(t.Context(), "n1"); err != nil {
		t.Fatal(err)
	}
	if len(told) != 1 || !strings.HasPrefix(told[0], "n1: fenced, its guard lets it rejoin from ") || !strings.HasSuffix(told[0], " (27s)") {
		t.Errorf("%q", told)
	}
}

func TestOneAfterTheOther(t *testing.T) {
	c := newCluster()
	if err := c.restart(t.Context(), "n2", "n1"); err != nil {
		t.Fatal(err)
	}
	want := []string{"drain n2", "empty n2", "command n2", "uncordon n2", "drain n1", "empty n1", "command n1", "uncordon n1"}
	if !slices.Equal(c.did, want) {
		t.Error(c.did)
	}
}

// Where it stops, it says at which node, what is left, and whether that node is out.
func TestWhereARestartStops(t *testing.T) {
	for name, x := range map[string]struct {
		make func(c *cluster)
		last string // what was done last
		out  bool
		says string
	}{
		"the drain is refused":         {func(c *cluster) { c.fails = "drain n1" }, "drain n1", false, "refused"},
		"it does not drain":            {func(c *cluster) { c.fails = "empty n1" }, "empty n1", true, "refused"},
		"the command fails":            {func(c *cluster) { c.fails = "command n1" }, "command n1", true, "refused"},
		"it starts unfenced":           {func(c *cluster) { c.boot = announce.BootUnfenced }, "command n1", true, "it started unfenced: redlockctl node boot-fence n1"},
		"it does not come back":        {func(c *cluster) { c.boot, c.most = announce.BootUnknown, short }, "command n1", true, "no guard has said yet that it started fenced"},
		"the uncordon is refused":      {func(c *cluster) { c.fails = "uncordon n1" }, "uncordon n1", true, "refused"},
		"a lock does not become whole": {func(c *cluster) { c.lose("orders:42"); c.most = short }, "uncordon n1", false, "orders:42 has 4 of 5 copies: its holder extends it and does not put back what a node lost"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster()
			x.make(c)
			err := c.restart(t.Context(), "n1", "n3")
			var at *Error
			if !errors.As(err, &at) || at.Node != "n1" || at.Out != x.out || !strings.Contains(err.Error(), x.says) {
				t.Fatalf("%+v", err)
			}
			left := []string{"n1", "n3"}
			if !x.out && x.last != "drain n1" { // it is done
				left = left[1:]
			}
			if !slices.Equal(at.Left, left) || c.did[len(c.did)-1] != x.last {
				t.Errorf("left %v after %v", at.Left, c.did)
			}
		})
	}
}

// A node whose cordon somebody ended is not restarted, and is not said to be out.
func TestUncordonedMeanwhile(t *testing.T) {
	for name, x := range map[string]func(c *cluster){
		"while it drains":         func(c *cluster) { c.uncordoned = true },
		"just before the command": func(c *cluster) { c.served = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster()
			x(c)
			err := c.restart(t.Context(), "n1", "n3")
			var at *Error
			if !errors.As(err, &at) || at.Node != "n1" || at.Out || !slices.Equal(at.Left, []string{"n1", "n3"}) || !errors.Is(err, ErrUncordoned) {
				t.Errorf("%+v", err)
			}
			if slices.Contains(c.did, "command n1") || !strings.Contains(c.ended, "the cordon was ended meanwhile") {
				t.Errorf("%v, the drain ended with %q", c.did, c.ended)
			}
		})
	}
}

// A restart whose node was cordoned at the same moment as another node stands back before it drains, waits until all
// others serve, and tries again.
func TestStandsBack(t *testing.T) {
	c := newCluster()
	var told []string
	looks := 0
	c.looks = func() {
		if looks++; looks == 1 {
			c.node("n2", monitor.NodeCordoned, announce.Guard{Cordoned: true})
			c.change(func(s *monitor.Snapshot) {
				s.Node("n2").Cordon = &monitor.Cordon{Action: monitor.Action{Actor: "ops@host", Reason: "disk"}}
			})
		}
	}
	c.tell = func(format string, args ...any) {
		told = append(told, fmt.Sprintf(format, args...))
		if strings.Contains(format, "waiting until all other nodes serve") {
			c.node("n2", monitor.NodeServing, announce.Guard{})
		}
	}
	if err := c.restart(t.Context(), "n1"); err != nil {
		t.Fatal(err)
	}
	if want := []string{"drain n1", "uncordon n1", "drain n1", "empty n1", "command n1", "uncordon n1"}; !slices.Equal(c.did, want) {
		t.Error(c.did)
	}
	if len(told) == 0 || told[0] != "n1: n2 is cordoned meanwhile, by ops@host (disk): waiting until all other nodes serve" {
		t.Errorf("%q", told)
	}
}

// A node that goes out while a restart waits for locks that need its own one is waited for, and nothing is cordoned
// meanwhile. If it stays out, the restart ends as one that must not begin.
func TestAnotherStaysOut(t *testing.T) {
	for name, x := range map[string]struct {
		when func(c *cluster, out func())
		did  []string
	}{
		"seen once it is cordoned": {func(c *cluster, out func()) { c.looks = out }, []string{"drain n1", "uncordon n1"}},
		"seen before": {func(c *cluster, out func()) {
			bare := monitortest.LockOf(monitortest.Epoch, "orders:42", monitor.LockBareMajority, monitortest.TokenB, "900 900 900 - -")
			c.change(func(s *monitor.Snapshot) { s.Complete = true; monitortest.Put(s, bare) })
			c.tell = func(string, ...any) { out(); c.change(func(s *monitor.Snapshot) { s.Locks = monitor.NewLocks() }) }
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster()
			c.most = short
			x.when(c, func() { c.node("n2", monitor.NodeCordoned, announce.Guard{Cordoned: true}) })
			err := c.restart(t.Context(), "n1", "n3")
			var at *Error
			if !errors.Is(err, ErrNotReady) || errors.As(err, &at) || err.Error() != "not restarted: n1: n2 is cordoned" {
				t.Errorf("%v", err)
			}
			if !slices.Equal(c.did, x.did) {
				t.Error(c.did)
			}
		})
	}
}

// Of three masters, one that was out while a restart waited for locks, or was found just started, has copies that do
// not count yet: it is waited for.
func TestCopiesThatDoNotCountYet(t *testing.T) {
	bare := monitortest.LockOf(monitortest.Epoch, "orders:42", monitor.LockBareMajority, monitortest.TokenB, "900 900 -")
	for name, x := range map[string]struct {
		nodes int
		when  func(c *cluster, s *monitor.Snapshot)
		waits bool
	}{
		"it was restarted while locks needed the node": {3, func(c *cluster, s *monitor.Snapshot) {
			s.Complete = true
			monitortest.Put(s, bare)
			c.tell = func(string, ...any) {
				c.node("n2", monitor.NodeCordoned, announce.Guard{Cordoned: true})
				c.node("n2", monitor.NodeServing, announce.Guard{})
				c.change(func(s *monitor.Snapshot) { s.Locks = monitor.NewLocks() })
				c.tell = nil
			}
		}, true},
		"it was uncordoned just before": {3, func(c *cluster, s *monitor.Snapshot) { s.Nodes[1].Since = s.At }, true},
		"it was found just started": {3, func(c *cluster, s *monitor.Snapshot) {
			s.Nodes[1].Since, s.Nodes[1].Older, s.Nodes[1].Uptime = s.At, true, 5*time.Second
		}, true},
		"it was found, and started before": {3, func(c *cluster, s *monitor.Snapshot) {
			s.Nodes[1].Since, s.Nodes[1].Older, s.Nodes[1].Uptime = s.At, true, time.Hour
		}, false},
		"the others have a quorum": {5, func(c *cluster, s *monitor.Snapshot) { s.Nodes[1].Since = s.At }, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster()
			c.change(func(s *monitor.Snapshot) {
				s.Nodes, s.Cluster.N, s.Cluster.Quorum = s.Nodes[:x.nodes], x.nodes, x.nodes/2+1
				for i := range s.Nodes {
					s.Nodes[i].Since = s.At.Add(-time.Hour)
				}
				s.Locks = monitor.NewLocks()
				x.when(c, s)
			})
			var drained time.Time
			c.looks = func() { drained = c.Snapshot().At }
			if err := c.restart(t.Context(), "n1"); err != nil {
				t.Fatal(err)
			}
			if served := drained.Sub(c.Snapshot().Node("n2").Since); served >= 30*time.Second+counting != x.waits {
				t.Errorf("n1 was cordoned when n2 had served for %s", served)
			}
		})
	}
}

// lose takes a copy of a lock from its fifth node, for good.
func (c *cluster) lose(key string) {
	l := monitortest.LockOf(monitortest.Epoch, key, monitor.LockHeld, monitortest.TokenB, "900 900 900 900 -")
	c.change(func(s *monitor.Snapshot) { s.Complete = true; monitortest.Put(s, l) })
}

// A node is not cordoned while the holder of a lock could not extend it without the node.
func TestALockThatNeedsTheNode(t *testing.T) {
	bare := monitortest.LockOf(monitortest.Epoch, "orders:42", monitor.LockBareMajority, monitortest.TokenB, "900 900 900 - -")
	c := newCluster()
	c.most = short
	c.change(func(s *monitor.Snapshot) { s.Complete = true; monitortest.Put(s, bare) })
	err := c.restart(t.Context(), "n1")
	var at *Error
	if !errors.As(err, &at) || at.Out || len(c.did) > 0 || !strings.Contains(err.Error(), "1 lock needs it, such as orders:42") {
		t.Errorf("%v after %v", err, c.did)
	}
	var told []string
	c = newCluster()
	c.change(func(s *monitor.Snapshot) { s.Complete = true; monitortest.Put(s, bare) })
	c.tell = func(format string, args ...any) {
		if told = append(told, fmt.Sprintf(format, args...)); len(told) == 1 { // it ends
			c.change(func(s *monitor.Snapshot) { s.Locks = monitor.NewLocks() })
		}
	}
	if err := c.restart(t.Context(), "n1"); err != nil || len(told) == 0 || !strings.HasPrefix(told[0], "n1: 1 lock needs it, such as orders:42, and could not be extended while it is cordoned") {
		t.Errorf("%v, %q", err, told)
	}
	c = newCluster() // it does not matter for a node without a copy
	c.change(func(s *monitor.Snapshot) { s.Complete = true; monitortest.Put(s, bare) })
	c.most = short
	if _ = c.restart(t.Context(), "n5"); len(c.did) == 0 {
		t.Error("n5 was not restarted")
	}
}

// Nothing is done to a cluster that would not bear it.
func TestNotReady(t *testing.T) {
	for name, x := range map[string]struct {
		make  func(s *monitor.Snapshot)
		again bool
		says  string
	}{
		"another is down":               {func(s *monitor.Snapshot) { s.Node("n3").State = monitor.NodeDown }, false, "n3 is down"},
		"it is fenced":                  {func(s *monitor.Snapshot) { s.Node("n1").State = monitor.NodeFenced }, false, "n1 is fenced"},
		"it is fenced, and goes on":     {func(s *monitor.Snapshot) { s.Node("n1").State = monitor.NodeFenced }, true, ""},
		"a quorum would not serve":      {func(s *monitor.Snapshot) { s.Cluster.Quorum = 5 }, false, "without n1 only 4 of 5 nodes would serve, and a quorum is 5"},
		"a node has no guard":           {func(s *monitor.Snapshot) { s.Node("n4").Guards = nil }, false, "no guard is seen on n4"},
		"a danger is open":              {func(s *monitor.Snapshot) { s.Findings = []monitor.Finding{{Severity: monitor.SeverityDanger}} }, false, "1 danger is open"},
		"everything is as it should be": {func(*monitor.Snapshot) {}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster()
			c.change(x.make)
			err := Ready(c.Snapshot(), "n1", x.again)
			if x.says == "" && err != nil || x.says != "" && (!errors.Is(err, ErrNotReady) || !strings.Contains(err.Error(), x.says)) {
				t.Error(err)
			}
		})
	}
}

func TestAnInterruptEndsAWait(t *testing.T) {
	c := newCluster()
	c.boot = announce.BootUnknown
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := c.restart(ctx, "n1"); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(fmt.Sprint(err), "interrupted while waiting") {
		t.Error(err)
	}
}

func TestWordsAndOutputOfACommand(t *testing.T) {
	n := &monitor.Node{Name: "n2", Addr: "[::1]:7002"}
	if got := Words([]string{"ssh", "{host}", "restart {name} at {addr}"}, n.Name, n.Addr); !slices.Equal(got, []string{"ssh", "::1", "restart n2 at [::1]:7002"}) {
		t.Error(got)
	}
	var out bytes.Buffer
	kept, err := Command([]string{"sh", "-c", "head -c 70000 /dev/zero | tr '\\0' x; echo {name}; exit 3"}, nil, &out)(t.Context(), n)
	if err == nil || out.Len() != 70003 || len(kept) != mostKept || !strings.HasSuffix(kept, "xn2\n") {
		t.Error(err, out.Len(), len(kept))
	}
}
