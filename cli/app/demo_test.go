package app

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/internal/lab"
	"redlockctl/monitor"
	"redlockctl/redlock"
)

// fakeCluster counts what the crasher does.
type fakeCluster struct {
	lab.Cluster
	nodes []*redlock.Node

	mu       sync.Mutex
	up       map[int]bool
	crashes  []int
	restarts []int
}

func newFakeCluster(t *testing.T, names ...string) *fakeCluster {
	c := &fakeCluster{up: map[int]bool{}}
	for i, name := range names {
		n, err := redlock.NewNode(name, &redis.Options{Addr: "127.0.0.1:1"})
		if err != nil {
			t.Fatal(err)
		}
		c.nodes, c.up[i] = append(c.nodes, n), true
	}
	return c
}

func (c *fakeCluster) Nodes() []*redlock.Node { return c.nodes }

func (c *fakeCluster) Up(i int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.up[i]
}

func (c *fakeCluster) Crash(i int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.up[i] = false
	c.crashes = append(c.crashes, i)
	return nil
}

func (c *fakeCluster) Restart(i int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.up[i] = true
	c.restarts = append(c.restarts, i)
	return nil
}

func TestCrasherBringsANodeBackOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster(t, "n1", "n2")
		k := &crasher{cluster: c, note: func(monitor.Event) {}}
		if err := k.crash(1); err != nil {
			t.Fatal(err)
		}
		if err := k.crash(1); err == nil {
			t.Error("crashed a node that is down")
		}
		if err := (demoLab{crasher: k}).Do("crash", "n3"); err == nil {
			t.Error("crashed a node that does not exist")
		}
		time.Sleep(downtime - 1)
		if c.Up(1) {
			t.Error("back before its time")
		}
		k.wait() // returns when it is back
		if !c.Up(1) || len(c.crashes) != 1 || len(c.restarts) != 1 {
			t.Errorf("crashes %v, restarts %v", c.crashes, c.restarts)
		}
		if err := k.crash(0); err == nil {
			t.Error("crashed a node after the end")
		}
	})
}

func TestCrasherTakesTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster(t, "n1", "n2", "n3")
		k := &crasher{cluster: c, note: func(monitor.Event) {}}
		ctx := t.Context()
		go k.run(ctx, time.Second)
		time.Sleep(4500 * time.Millisecond)
		c.mu.Lock()
		got := append([]int(nil), c.crashes...)
		c.mu.Unlock()
		if want := []int{1, 2, 0, 1}; !slices.Equal(got, want) {
			t.Errorf("crashed %v, want %v", got, want)
		}
		k.wait()
	})
}

// The demo shows nothing that is wrong with itself: no finding, tokens that tell their
// owner.
func TestDemoIsClean(t *testing.T) {
	d, err := OpenDemo(t.Context(), DemoOptions{Nodes: 5, Clients: 12, MaxTTL: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	d.Start()
	for owners := map[string]bool{}; len(owners) < len(demoOwners); {
		last := d.Session.Monitor.Snapshot()
		for l := range last.Locks.All() {
			owners[l.Form.Owner.Raw()] = true
		}
		delete(owners, "")
		for _, f := range last.Findings {
			t.Fatalf("a finding: %s: %s", f.ID, f.Evidence)
		}
		select {
		case <-d.Session.Monitor.Changed(last.Version):
		case <-time.After(20 * time.Second):
			t.Fatalf("only locks of %v", owners)
		}
	}
}
