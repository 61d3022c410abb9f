package watch_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"redlockctl/internal/lab"
	"redlockctl/internal/lab/labtest"
	"redlockctl/redlock"
	"redlockctl/restartguard"
	"redlockctl/restartguard/memory"
	"redlockctl/restartguard/watch"
)

// renamed is the server under another name.
func renamed(t *testing.T, s *lab.Server, name string) *redlock.Node {
	t.Helper()
	opt := *redlock.Connect(s.Node(), 1, time.Second).Options()
	n, err := redlock.NewNode(name, &opt)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// reloaded is the guard that goes on after g with other nodes.
func (g *guarded) reloaded(cfg watch.Config, nodes ...*redlock.Node) *guarded {
	g.t.Helper()
	g.stop()
	return guardBy(g.t, cfg, func(cfg watch.Config) (*watch.Guard, error) { return g.Successor(nodes, cfg) })
}

func (g *guarded) node(name string) restartguard.NodeStatus {
	g.t.Helper()
	for _, s := range g.Status() {
		if s.Node == name {
			return s
		}
	}
	g.t.Fatalf("no node %q", name)
	return restartguard.NodeStatus{}
}

// old are servers that have been up for longer than a second.
func old(t *testing.T, n int) []*lab.Server {
	t.Helper()
	ss := labtest.Servers(t, n)
	time.Sleep(1100 * time.Millisecond)
	return ss
}

// «Replace a master»: the one that a reload adds has none of the votes that the one
// before it gave. It waits for D, however long it has been up.
func TestANodeThatAReloadAddsWaitsForD(t *testing.T) {
	ss := old(t, 3)
	const d = 900 * time.Millisecond
	g := guard(t, watch.Config{Delay: d}, ss[0].Node(), ss[1].Node())
	if !wait(g.Met) {
		t.Fatal("not met")
	}
	began := time.Now()
	next := g.reloaded(watch.Config{Delay: d}, ss[0].Node(), ss[2].Node())
	if !wait(func() bool { return next.node("n3").Phase == restartguard.PhaseFenced }) {
		t.Fatalf("the added node is adopted: %+v", next.node("n3"))
	}
	if st := next.node("n3"); st.Exposed != 0 || strings.Contains(next.tells("fenced"), "at most") {
		t.Errorf("claims to know for how long it served: %+v, %q", st, next.told("fenced"))
	}
	if st := next.node("n1"); st.Phase != restartguard.PhaseServing {
		t.Errorf("a node that was there is fenced: %+v", st)
	}
	notBefore(t, d, began, firstWrite(t, ss[2]))
}

// The same over a restart of the guard, with its memory.
func TestANodeThatANewConfigurationAddsWaitsForD(t *testing.T) {
	ss := old(t, 3)
	dir := filepath.Join(t.TempDir(), "guard")
	with := func(f func(watch.Config)) {
		m, err := memory.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		f(watch.Config{Delay: 900 * time.Millisecond, Memory: m})
	}
	with(func(cfg watch.Config) {
		g := guard(t, cfg, ss[0].Node(), ss[1].Node())
		if !wait(g.Met) {
			t.Fatal("not met")
		}
		g.stop()
	})
	with(func(cfg watch.Config) {
		g := guard(t, cfg, ss[0].Node(), ss[2].Node())
		if !wait(func() bool { return g.node("n3").Phase == restartguard.PhaseFenced }) {
			t.Fatalf("the added node is adopted: %+v", g.node("n3"))
		}
		if !wait(func() bool { return g.node("n3").Phase == restartguard.PhaseServing }) {
			t.Fatal("it does not rejoin")
		}
		g.stop()
	})
	// What was removed and comes back has none of the votes that were given in its place.
	with(func(cfg watch.Config) {
		g := guard(t, cfg, ss[0].Node(), ss[1].Node())
		if !wait(func() bool { return g.node("n2").Phase == restartguard.PhaseFenced }) {
			t.Fatalf("the node that comes back is adopted: %+v", g.node("n2"))
		}
		g.stop()
	})
}

// A node that was up for less than D may have lost votes with its start.
func TestAYoungNodeWaitsForDAtFirstContact(t *testing.T) {
	s := labtest.Servers(t, 1)[0]
	g := guardBy(t, watch.Config{Delay: time.Minute}, func(cfg watch.Config) (*watch.Guard, error) {
		return watch.New([]*redlock.Node{s.Node()}, cfg)
	})
	g.reaches(restartguard.PhaseFenced)
	if text := g.tells("first contact"); !strings.Contains(text, "up for less than D") {
		t.Errorf("%q", text)
	}
	if text := g.tells("fenced"); !strings.Contains(text, "not known") {
		t.Errorf("for how long it served: %q", text)
	}
	if writes(t, s) {
		t.Error("it accepts writes")
	}
}

// A node is known by its run_id: under another name, at another address, it has
// forgotten nothing, and waits no longer and no shorter than before.
func TestANodeIsKnownByItsRunID(t *testing.T) {
	ss := old(t, 2)
	g := guard(t, watch.Config{Delay: time.Minute}, ss[0].Node(), ss[1].Node())
	if !wait(g.Met) {
		t.Fatal("not met")
	}
	restart(t, ss[1])
	if !wait(func() bool { return g.node("n2").Phase == restartguard.PhaseFenced }) {
		t.Fatalf("%+v", g.node("n2"))
	}
	until := g.node("n2").Until
	// n1 and n2 swap their names; and then the one has an address of another kind.
	next := g.reloaded(watch.Config{Delay: time.Minute}, renamed(t, ss[1], "n1"), renamed(t, ss[0], "n2"))
	if !wait(func() bool {
		return next.node("n1").Phase == restartguard.PhaseFenced && next.node("n2").Phase == restartguard.PhaseServing
	}) {
		t.Fatalf("%+v", next.Status())
	}
	if at := next.node("n1").Until; !at.Equal(until) {
		t.Errorf("rejoins at %s, not at %s", at, until)
	}
	moved := forward(t, "127.0.0.1:0", ss[0].Addr())
	opt := *redlock.Connect(ss[0].Node(), 1, time.Second).Options()
	opt.Addr, opt.Network, opt.Dialer = moved.Addr().String(), "", nil
	n, err := redlock.NewNode("m2", &opt)
	if err != nil {
		t.Fatal(err)
	}
	last := next.reloaded(watch.Config{Delay: time.Minute}, renamed(t, ss[1], "n1"), n)
	if !wait(last.Met) {
		t.Fatalf("%+v", last.Status())
	}
	if st := last.node("m2"); st.Phase != restartguard.PhaseServing {
		t.Errorf("a node that only has another address waits: %+v", st)
	}
}
