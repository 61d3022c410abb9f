package app

import (
	"fmt"
	"testing"

	"redlockctl/internal/lab/labtest"
	"redlockctl/monitor"
	"redlockctl/monitor/finding"
)

// A node that does not answer when it is asked how it starts is one of which nothing new is known: what was
// seen of it stays, and it is asked again as soon as it answers. A console whose machine was stopped
// together with a master said for half a minute that it did not know how that starts.
func TestHowASilentNodeStarts(t *testing.T) {
	servers := labtest.Servers(t, 2)
	for _, s := range servers {
		if err := s.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := s.Start("--set-proc-title", "no", "--min-replicas-to-write", "2147483647", "--min-replicas-max-lag", "10"); err != nil {
			t.Fatal(err)
		}
	}
	text := "[cluster]\nname = \"shop\"\nmax_ttl = \"30s\"\n"
	for _, s := range servers {
		text += fmt.Sprintf("[[nodes]]\nname = %q\naddr = %q\n", s.Node().Name(), s.Addr())
	}
	cfg, err := switchOf(t, text).Set.Choose("shop")
	if err != nil {
		t.Fatal(err)
	}
	spec, err := SpecOf(cfg)
	if err != nil {
		t.Fatal(err)
	}
	first, second := spec.Nodes[0].Name(), spec.Nodes[1].Name()
	forms := func(b boots) [2]finding.BootForm {
		return [2]finding.BootForm{b.sights[first].Form, b.sights[second].Form}
	}

	all := bootSights(t.Context(), spec, boots{})
	if got := forms(all); got != [2]finding.BootForm{finding.BootFirm, finding.BootFirm} || all.missed != nil {
		t.Fatalf("%v, missed %v", got, all.missed)
	}
	if err := servers[1].Pause(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = servers[1].Resume() }()
	paused := bootSights(t.Context(), spec, all)
	if got := forms(paused); got != [2]finding.BootForm{finding.BootFirm, finding.BootFirm} || len(paused.missed) != 1 || paused.missed[0] != second {
		t.Errorf("while n2 is stopped: %v, missed %v", got, paused.missed)
	}
	if got := forms(bootSights(t.Context(), spec, boots{})); got != [2]finding.BootForm{finding.BootFirm, finding.BootUnseen} {
		t.Errorf("while n2 is stopped, for the first time: %v", got)
	}
	for state, want := range map[monitor.NodeState]bool{monitor.NodeSlow: false, monitor.NodeServing: true} {
		if got := paused.back(&monitor.Snapshot{Nodes: []monitor.Node{{Name: first, State: monitor.NodeServing}, {Name: second, State: state}}}); got != want {
			t.Errorf("n2 %s: asked again %t", state, got)
		}
	}
}
