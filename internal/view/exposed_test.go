package view

import (
	"strings"
	"testing"
	"time"

	"redlockctl/monitor"
	"redlockctl/server/announce"
)

// No view shows a node as healthy that rejoined before its time, nor do those of
// a record, which has the finding but not the time.
func TestANodeThatServesEarlyIsExposed(t *testing.T) {
	from := epoch.Add(20 * time.Second)
	early := monitor.Node{Name: "n1", State: monitor.NodeServing, GuardsKnown: true, Early: true, EarlyUntil: from,
		Guards: []announce.Guard{{ID: "g", Delay: 30 * time.Second, Boot: announce.BootFenced, MayVote: from}}}
	past := monitor.Snapshot{At: epoch, Nodes: []monitor.Node{early}, Findings: []monitor.Finding{{ID: monitor.ServesEarlyID, Node: "n1"}}}
	past.Nodes[0].Early, past.Nodes[0].EarlyUntil = false, time.Time{}
	past.Recall("")
	for name, c := range map[string]struct {
		node monitor.Node
		want string
	}{
		"live":   {early, "EXPOSED: may vote from " + Clock(from)},
		"record": {past.Nodes[0], "EXPOSED: may not vote yet"},
	} {
		for _, short := range []bool{false, true} {
			ctx := &Context{Glyphs: &Unicode, Now: epoch, Short: short}
			for _, column := range NodeColumns() {
				cell, want := column.Cell(ctx, &c.node), map[string]string{"GUARD": c.want, "NOTE": "serves before it may vote"}[column.Name]
				if want != "" && (cell.Text != want || cell.Tone != Bad) {
					t.Errorf("%s: %s: %+v", name, column.Name, cell)
				}
			}
			guarded := DocOfGuarded(&c.node, "min-replicas", monitor.GuardedNode{})
			for _, column := range GuardColumns(false) {
				if cell := column.Cell(ctx, guarded); column.Name == "REJOINS IN" && (cell.Text != c.want || cell.Tone != Bad) {
					t.Errorf("%s: %+v", name, cell)
				}
			}
			if doc := DocOfNode(c.node, epoch); !doc.Exposed || !guarded.Exposed || name == "live" && !doc.MayVoteFrom.Equal(from) {
				t.Errorf("%s: %+v, %+v", name, doc.ExposedDoc, guarded.ExposedDoc)
			}
		}
	}
	ctx := &Context{Glyphs: &Unicode, Now: from}
	early.Early = false
	if cell := GuardCell(ctx, &early); strings.Contains(cell.Text, "EXPOSED") || cell.Text != StartedFenced {
		t.Errorf("once it may vote: %+v", cell)
	}
}
