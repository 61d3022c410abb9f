package app

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"redlockctl/internal/lab/labtest"
	"redlockctl/monitor"
	"redlockctl/monitor/observe"
	"redlockctl/redlock"
	"redlockctl/restartguard"
	"redlockctl/restartguard/watch"
)

// A guard calls a node that does not answer as the monitor does: in its events, its outlook and what is
// recorded of a guard alone.
func TestAGuardCallsNodesAsTheMonitorDoes(t *testing.T) {
	servers := labtest.Servers(t, 3)
	nodes := labtest.Nodes(servers)
	mon, err := observe.New(nodes, observe.Options{NoLocks: true})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	said := map[string]string{}
	guard, err := watch.New(nodes, watch.Config{Delay: time.Minute, N: 3, Poll: 50 * time.Millisecond, FirstContact: restartguard.AdoptYoung, OnEvent: func(e restartguard.Event) {
		mu.Lock()
		defer mu.Unlock()
		if e.Kind == "unreachable" || e.Kind == "no quorum" {
			said[e.Node] += eventOf(e).Text.Raw() + "\n"
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var run sync.WaitGroup
	defer run.Wait()
	defer stop()
	run.Go(func() { mon.Run(ctx) })
	run.Go(func() { _ = guard.Run(ctx) })
	recorded := &guardSource{guard: guard, about: monitor.Cluster{N: 3, Quorum: redlock.Quorum(3)}}
	is := func(want ...monitor.NodeState) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			seen, kept, ok := mon.Snapshot().Nodes, recorded.Snapshot().Nodes, true
			for i := range want {
				ok = ok && seen[i].State == want[i] && kept[i].State == want[i]
			}
			if ok {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("the monitor sees %s %s %s, recorded is %s %s %s", seen[0].State, seen[1].State, seen[2].State, kept[0].State, kept[1].State, kept[2].State)
			}
		}
	}
	is(monitor.NodeServing, monitor.NodeServing, monitor.NodeServing)
	if err := servers[1].Pause(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = servers[1].Resume() }()
	if err := servers[2].Kill(); err != nil {
		t.Fatal(err)
	}
	is(monitor.NodeServing, monitor.NodeSlow, monitor.NodeDown)
	second, third := nodes[1].Name(), nodes[2].Name()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		mu.Lock()
		ok := strings.Contains(said[second], second+" is slow: no answer in time") && strings.Contains(said[third], third+" is down: ") && strings.Contains(said[""], ": down "+third+": slow "+second)
		text := said
		mu.Unlock()
		if ok {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("said: %q", text)
		}
	}
}
