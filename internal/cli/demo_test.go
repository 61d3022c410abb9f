package cli

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/internal/safetext"
	"redlockctl/monitor"
	"redlockctl/redlock"
)

func TestEventPrinterPrintsEachEventOnceAndLittleOfTheEveryday(t *testing.T) {
	at := time.Date(2026, 1, 2, 12, 3, 10, 0, time.Local)
	event := func(seq int, after time.Duration, level monitor.Level, kind, text string) monitor.Event {
		return monitor.Event{Seq: uint64(seq), At: at.Add(after), Level: level, Kind: kind, Text: safetext.New(text)}
	}
	events := []monitor.Event{
		event(1, 0, monitor.LevelInfo, "acquired", "a was acquired"),
		event(2, 0, monitor.LevelInfo, "released", "a was released"),
		event(3, 0, monitor.LevelNotice, "restart", "n2 restarted\x1b[2J"),
		event(4, 500*time.Millisecond, monitor.LevelInfo, "acquired", "b was acquired"),
		event(5, time.Second, monitor.LevelInfo, "acquired", "c was acquired"),
	}
	var w strings.Builder
	p := &eventPrinter{out: &w}
	p.print(events[:3])
	p.print(events[1:]) // the oldest has been dropped
	p.print(events)
	want := "12:03:10  a was acquired\n12:03:10  n2 restarted\\x1b[2J\n12:03:11  c was acquired\n"
	if w.String() != want {
		t.Errorf("%q, want %q", w.String(), want)
	}
}

func TestDemoMaxTTLFollowsCrashEvery(t *testing.T) {
	for every, want := range map[time.Duration]time.Duration{
		0: 10 * time.Second, time.Second: time.Second, 3 * time.Second: 3 * time.Second, time.Minute: 10 * time.Second,
	} {
		o := demoOptions{nodes: 5, crashEvery: every}
		if err := o.check(); err != nil || o.maxTTL != want {
			t.Errorf("--crash-every %s: max TTL %s, error %v; want %s", every, o.maxTTL, err, want)
		}
	}
}

// fakeCluster counts what the crasher does.
type fakeCluster struct {
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
func (c *fakeCluster) Close() error           { return nil }

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
		if err := k.CrashNode("n2"); err != nil {
			t.Fatal(err)
		}
		if err := k.CrashNode("n2"); err == nil {
			t.Error("crashed a node that is down")
		}
		if err := k.CrashNode("n3"); err == nil {
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
		if err := k.CrashNode("n1"); err == nil {
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
