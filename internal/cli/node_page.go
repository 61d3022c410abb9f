package cli

import (
	"fmt"
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
	view.GuardsSeenDoc
	Findings []view.FindingDoc `json:"findings"` // that are about it
}

func (a *commandLine) showNode(cfg *config.Config, s *monitor.Snapshot, name string) error {
	var n monitor.Node
	for _, m := range s.Nodes {
		if m.Name == name {
			n = m
		}
	}
	guards := app.DocOfGuards(cfg, s, nil)
	var guard view.GuardDoc
	for _, g := range guards.Nodes {
		if g.Name.Raw() == name {
			guard = g
		}
	}
	about := slices.DeleteFunc(view.Rows(s.Findings), func(f *monitor.Finding) bool { return f.Node != name })
	doc := nodePageJSON{ClusterDoc: view.DocOfCluster(s), Node: view.DocOfNode(n, s.At), Guard: guard, GuardsSeenDoc: guards.GuardsSeenDoc, Findings: view.DocsOfFindings(about, s.At)}
	printed, err := a.Document("node", doc)
	if err == nil && !printed {
		a.printNode(s, &n, guards)
		a.printSeen(app.GuardsOf(cfg, s))
		a.printFindings(s, about)
	}
	return err
}

func (a *commandLine) printNode(s *monitor.Snapshot, n *monitor.Node, guard view.GuardsDoc) {
	ctx := a.ViewContext(s)
	ctx.Guard = guard.Guard(s)
	state := ctx.NodeState(n.State)
	fmt.Fprintf(a.Out, "%s %s: %s%s\n", ctx.Name(n.Name), ctx.Whole(n.Addr), a.Paint(state.Text, state.Tone), view.NodeSince(ctx, n))
	a.Facts(view.NodeFacts(ctx, n))
	for _, g := range guard.Nodes {
		if g.Name.Raw() == n.Name && g.Incarnations > 0 {
			a.Facts([]view.Fact{{Label: "Guard", Text: "has seen " + view.Plural(g.Incarnations, "incarnation")}})
		}
	}
}
