package app

import (
	"strings"
	"testing"
	"time"

	"redlockctl/monitor"
	"redlockctl/server/announce"
)

// Of a node that was uncordoned it is always said what lets it in.
func TestWhenAnUncordonedNodeServes(t *testing.T) {
	fenced := monitor.Node{Name: "n1", State: monitor.NodeFenced, GuardsKnown: true}
	for _, c := range []struct {
		change     func(n *monitor.Node)
		missing    string
		remembered bool
		want       string
	}{
		{change: func(n *monitor.Node) { n.State = monitor.NodeServing }, want: "it serves"},
		{change: func(n *monitor.Node) { n.Guards = []announce.Guard{{ID: "g1"}} }, want: "its guard lets it rejoin when it may vote"},
		{change: func(n *monitor.Node) { n.State = monitor.NodeDown }, want: "it is not known when it serves: it is down"},
		{remembered: true, want: "the guard on this machine lets it rejoin when it may vote"},
		{missing: "no guard runs", want: "no guard is seen, so n1 stays fenced: start a guard, or redlockctl node rejoin --now n1 (which is safe only after D (30s) since its last start)"},
		{want: "no guard is seen, so n1 stays fenced: "}, // guards only of other nodes
		{change: func(n *monitor.Node) { n.GuardsKnown = false }, missing: "it is not known if a guard runs", want: "it is not known if a guard runs; by hand: redlockctl node rejoin --now n1 ("},
		{change: func(n *monitor.Node) { n.GuardsKnown = false }, want: "no guard is seen on n1; if none watches it, it stays fenced: "},
	} {
		n := fenced
		if c.change != nil {
			c.change(&n)
		}
		if got := whenServes(&n, c.missing, c.remembered, 30*time.Second, time.Now()); !strings.HasPrefix(got, c.want) {
			t.Errorf("%q, not %q", got, c.want)
		}
	}
}
