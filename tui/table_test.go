package tui

import (
	"slices"
	"testing"

	tea "charm.land/bubbletea/v2"

	"redlockctl/monitor"
	"redlockctl/monitor/monitortest"
	"redlockctl/tui/page"
	"redlockctl/tui/prefs"
)

// Columns and order are kept for each cluster; a filter never is. What another console left of
// other clusters stays, what is not known is left out and said, and what hides the states is too.
func TestTablesOfClusters(t *testing.T) {
	store := &fakeStore{}
	open := func(cluster string, with ...func(*Options)) *rig {
		s := monitortest.Degraded(monitortest.Epoch)
		s.Cluster.Name = cluster
		return newRig(t, s, 120, 40, append(with, func(o *Options) { o.Store = store })...)
	}
	do := func(r *rig, line string) {
		r.press(":")
		r.m.Update(tea.PasteMsg{Content: line})
		r.press("enter")
		for _, cmd := range r.pending {
			runAll(r.m, cmd)
		}
		r.pending = nil
	}
	one, other := open("one"), open("other")
	do(one, "sort n2:desc")
	one.sees("sort: n2, reversed")
	do(other, "columns -state -margin")
	other.sees("without STATE")
	do(other, "filter orders")
	one = open("one")
	one.sameOrder("n2:desc")
	one.sees("sorted by n2, reversed, as you left them: :sort default", "MARGIN")
	other = open("other")
	other.sameOrder(page.OrderNeeds)
	other.sees("without their STATE, as you left them", "without STATE", "Locks 39")
	other.seesNot("MARGIN", "/orders")
	checkFrame(t, other.m.View().Content, 120, 40, false)
	do(other, "columns default")
	other.sees("STATE", "MARGIN", "needs you first")
	do(one, "sort default")
	one.seesNot("sort: ")
	if got := store.p.History; !slices.Contains(got, "sort n2:desc") || !slices.Contains(got, "columns -state -margin") {
		t.Errorf("of the lines of both these are kept: %q", got)
	}
	for name, table := range store.p.Clusters {
		if len(table.Columns) > 0 || table.Sort != "" {
			t.Errorf("%s is kept as %+v", name, table)
		}
	}

	store.p.Clusters["one"] = prefs.Table{Columns: []string{"state", "no\x1bne"}, Sort: "colour"}
	one = open("one")
	one.sees(`this is not known here, and left out: column no\x1bne, sort colour`)
	one.sameOrder(page.OrderNeeds)
	do(one, "sort colour")
	one.sees(`sort by: no column "colour" (have: name, state, copies,`)
	do(one, "sort ends:up")
	one.sees("it is ends:asc or ends:desc")

	saved := store.saves
	do(open("demo", func(o *Options) { o.Passing = true }), "sort ends")
	if _, ok := store.p.Clusters["demo"]; ok {
		t.Errorf("the demo is kept, after %d saves more", store.saves-saved)
	}
}

// A replay lists the locks as the console was left, and keeps nothing of what is chosen in it.
func TestAReplayKeepsNoTable(t *testing.T) {
	rec := newFakeRecording()
	store := &fakeStore{p: prefs.Preferences{Clusters: map[string]prefs.Table{rec.Snapshot().Cluster.Name: {Sort: "ends"}}}}
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 30, func(o *Options) { o.Store, o.Replay, o.Source = store, rec, nil })
	r.sameOrder(page.OrderEnds)
	_, cmd := r.m.Update(keyPress("S"))
	runAll(r.m, cmd)
	r.sameOrder(page.OrderEnds.Reversed())
	if got := store.p.Clusters[rec.Snapshot().Cluster.Name]; got.Sort != "ends" || store.saves > 1 {
		t.Errorf("kept as %+v, in %d saves", got, store.saves)
	}
}

// Each order of the locks is offered, behind a whole word the other way round too.
func TestSortCompletion(t *testing.T) {
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 80, 24)
	r.press(":")
	r.typed("sort n")
	r.sees("name n1 n2 n3 n4 n5")
	r.typed("2")
	r.press("tab")
	if got := r.m.line.String(); got != "sort n2" {
		t.Errorf("the line is %q", got)
	}
	r.press("tab", "enter")
	r.sameOrder("n2:desc")
	for _, o := range r.m.sortWords(":") {
		if o == unsorted {
			continue
		}
		if order, ok := page.OrderOf(o, r.m.Shown.Nodes); !ok || string(order) != o {
			t.Errorf("%q is offered, and is the order %q", o, order)
		}
	}
	var many []monitor.Node
	if _, ok := page.OrderOf("n2", many); ok {
		t.Error("sorted by a node that is not there")
	}
}
