package cli

import (
	"fmt"
	"io"
	"slices"

	"redlockctl/internal/app"
	"redlockctl/internal/config"
	"redlockctl/internal/view"
	"redlockctl/monitor"
)

// nodePageJSON is the document of nodes NAME.
type nodePageJSON struct {
	view.ClusterDoc
	Node  view.NodeDoc  `json:"node"`
	Guard view.GuardDoc `json:"guard"`
	guardsSeenJSON
	Findings []view.FindingDoc `json:"findings"` // that are about it
}

// showNode prints one node.
func (a *commandLine) showNode(cfg *config.Config, s *monitor.Snapshot, name string) error {
	var n monitor.Node
	for _, m := range s.Nodes {
		if m.Name == name {
			n = m
		}
	}
	guards := guardsOf(cfg, s, nil)
	var guard view.GuardDoc
	for _, g := range guards.Nodes {
		if g.Name.Raw() == name {
			guard = g
		}
	}
	about := slices.DeleteFunc(pointers(s.Findings), func(f *monitor.Finding) bool { return f.Node != name })
	doc := nodePageJSON{ClusterDoc: view.DocOfCluster(s), Node: view.DocOfNode(n, s.At), Guard: guard, guardsSeenJSON: guards.guardsSeenJSON, Findings: view.DocsOfFindings(about, s.At)}
	printed, err := a.document(document{"node", doc})
	if err == nil && !printed {
		a.printNode(a.out, s, &n, guards)
		a.printSeen(a.out, app.GuardsOf(cfg, s))
		a.printFindings(a.out, s, about)
	}
	return err
}

// printNode prints all that is known of a node.
func (a *commandLine) printNode(w io.Writer, s *monitor.Snapshot, n *monitor.Node, guard guardsJSON) {
	ctx := a.viewContext(s)
	ctx.Guard = guard.viewGuard(s)
	state := ctx.NodeState(n.State)
	fmt.Fprintf(w, "%s %s: %s%s\n", ctx.Name(n.Name), ctx.Whole(n.Addr), a.paint(state.Text, state.Tone), view.NodeSince(ctx, n))
	a.facts(w, view.NodeFacts(ctx, n))
	for _, g := range guard.Nodes {
		if g.Name.Raw() == n.Name && g.Incarnations > 0 {
			a.facts(w, []view.Fact{{Label: "Lives", Text: view.Count(g.Incarnations) + " seen by the guard"}})
		}
	}
}
