package watch_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"redlockctl/internal/lab"
	"redlockctl/internal/lab/labtest"
	"redlockctl/redlock"
	"redlockctl/restartguard"
	"redlockctl/restartguard/memory"
	"redlockctl/restartguard/oneshot"
	"redlockctl/restartguard/watch"
	"redlockctl/server/fences"
)

// A server that sends more than was asked for, or an invalid reply, costs the guard a connection and
// no memory, and the other nodes nothing: from the first byte of the greeting, and to every command
// of a guard or an operator.
func TestServersThatMisbehave(t *testing.T) {
	servers := labtest.Servers(t, 3)
	by := map[string][]*redlock.Node{}
	for _, m := range labtest.Mischiefs() {
		switch m.To {
		case "", "hello", "client", "info", "time", "config", "set", "subscribe":
			by[m.To] = append(by[m.To], labtest.Misbehaving(t, m.Name, servers[2].Addr(), m))
		}
	}
	peak := labtest.HeapPeak(t)
	for to, bad := range by {
		m, err := memory.Open(t.TempDir()) // with one, it asks for the list of clients
		if err != nil {
			t.Fatal(err)
		}
		nodes := append(labtest.Nodes(servers[:2]), bad...)
		g := guard(t, watch.Config{Timeout: 200 * time.Millisecond, Memory: m, FirstContact: restartguard.Fence}, nodes...)
		g.reaches(restartguard.PhaseServing)
		if !wait(g.Met) {
			t.Errorf("to %q: %+v", to, g.Status())
		}
		do(t, servers[0], "FLUSHALL")
		g.reaches(restartguard.PhaseFenced)
		g.reaches(restartguard.PhaseServing)
		for i, n := range bad {
			if st := g.Status()[2+i]; st.Phase == restartguard.PhaseServing && to != "config" && to != "set" && to != "client" && to != "subscribe" {
				t.Errorf("%s: %+v", n.Name(), st)
			}
		}
		g.stop()
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, n := range by["config"] {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		if err := oneshot.Cordon(ctx, n, fences.Method{}); err == nil {
			t.Errorf("%s is held", n.Name())
		}
		cancel()
	}
	if n := peak(); n > 64<<20 {
		t.Errorf("%d MiB of memory in between", n>>20)
	}
}

// A server with so many clients that their list is more than a guard reads is
// guarded all the same, and what could not be seen is reported.
func TestListOfClientsThatIsTooLong(t *testing.T) {
	s := labtest.Servers(t, 1, lab.BootFence...)[0]
	do(t, s, "CONFIG", "SET", "min-replicas-to-write", "0")
	node := labtest.Misbehaving(t, "n1", s.Addr(), labtest.Mischief{To: "list", Answer: "$100000000\r\n", Ever: strings.Repeat("x", 1<<16)})
	m, err := memory.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	g := guard(t, watch.Config{Memory: m}, node)
	g.reaches(restartguard.PhaseServing)
	if !wait(func() bool {
		return strings.HasSuffix(g.told("in-flight command"), ": CLIENT LIST is longer than 16 MiB")
	}) {
		t.Errorf("told %q", g.told("in-flight command"))
	}
	do(t, s, "FLUSHALL")
	g.reaches(restartguard.PhaseFenced)
	g.reaches(restartguard.PhaseServing)
	g.stop()
}
