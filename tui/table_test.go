package tui

import (
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"redlockctl/monitor/monitortest"
	"redlockctl/tui/page"
	"redlockctl/tui/prefs"
)

// Columns and order are remembered for each cluster, filters never. What another console
// saved for other clusters is kept; unknown columns are skipped and reported, and so is a
// choice that hides the states.
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
	one.sees("sort: n2, reversed") // that column is not shown
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
	other.sees("STATE↑", "MARGIN")
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

	store.p.Clusters["one"] = prefs.Tables{Table: prefs.Table{Columns: []string{"state", "no\x1bne"}, Sort: "colour"}}
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

// A replay lists the locks as the console did, and its choices are not remembered.
func TestAReplayKeepsNoTable(t *testing.T) {
	rec := newFakeRecording()
	store := &fakeStore{p: prefs.Preferences{Clusters: map[string]prefs.Tables{rec.Snapshot().Cluster.Name: {Table: prefs.Table{Sort: "ends"}}}}}
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 30, func(o *Options) { o.Store, o.Replay, o.Source = store, rec, nil })
	r.sameOrder(page.OrderEnds)
	_, cmd := r.m.Update(keyPress("S"))
	runAll(r.m, cmd)
	r.sameOrder(page.OrderEnds.Reversed())
	if got := store.p.Clusters[rec.Snapshot().Cluster.Name]; got.Sort != "ends" || store.saves > 1 {
		t.Errorf("kept as %+v, in %d saves", got, store.saves)
	}
}

// Each order of the locks is offered, and after a complete word its reverse too.
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
		if l := r.m.listed(); o != page.Unsorted && (l.SortAs(o) != nil || string(l.Order) != o) {
			t.Errorf("%q is offered, and is the order %q", o, l.Order)
		}
	}
	r.m.Shown.Nodes = nil
	if err := r.m.listed().SortAs("n2"); err == nil {
		t.Error("sorted by a node that is not there")
	}
}

// Each table can be sorted and its columns chosen. Both are remembered for the cluster,
// or for all if the resource belongs to none. The rows stay the same, and so does the row
// under the cursor.
func TestEachTableIsChosen(t *testing.T) {
	store := &fakeStore{}
	open := func(t *testing.T, place page.Kind) *rig {
		r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40, withAudit, func(o *Options) {
			o.Store, o.Clusters = store, &fakeClusters{}
		})
		r.m.Open(page.Place{Kind: place})
		if _, cmd := r.m.Update(nil); cmd != nil {
			runAll(r.m, cmd)
		}
		r.m.dirty = true
		return r
	}
	do := func(r *rig, line string) {
		r.press(":")
		r.m.Update(tea.PasteMsg{Content: line})
		_, cmd := r.m.Update(keyPress("enter"))
		runAll(r.m, cmd)
	}
	for _, c := range []struct {
		place                     page.Kind
		of, sort, columns         string
		first, sorted, has, hides string
	}{
		{page.Nodes, "nodes", "node:desc", "state memory", "n1", "n5", "MEMORY", "GUARD"},
		{page.Events, "events", "level", "-time +kind", "job:019 acquired", "n4 unreachable", "KIND", "TIME "},
		{page.Findings, "findings", "finding:desc", "severity +id", "", "", "ID", "FOR"},
		{page.Audit, "audit", "time", "time act phase", "revoke", "force-release", "PHASE", "ACTOR"},
		{page.Clusters, "clusters", "cluster", "+reason -locks", "prod-locks", "broken", "REASON", "LOCKS"},
	} {
		t.Run(c.of, func(t *testing.T) {
			under := func(r *rig, want string) {
				t.Helper()
				r.press("home")
				if line := lineWith(r.screen(), r.m.St.Pointer); !strings.Contains(line, want) {
					t.Errorf("first is %q, not %q", line, want)
				}
			}
			r := open(t, c.place)
			under(r, c.first)
			do(r, "sort "+c.sort)
			do(r, "columns "+c.columns)
			for _, r := range []*rig{r, open(t, c.place)} {
				r.sees(c.has)
				if head := lineWith(r.screen(), c.has); !strings.ContainsAny(head, "↑↓") && !strings.Contains(flat(r.screen()), "sort: ") {
					t.Errorf("the order is not said: %s", head)
				}
				under(r, c.sorted)
				if head := lineWith(r.screen(), c.has); strings.Contains(head, c.hides) {
					t.Errorf("%s is shown: %s", c.hides, head)
				}
				checkFrame(t, r.m.View().Content, 120, 40, false)
			}
			kept := store.p.Clusters["prod-locks"]
			if c.place == page.Clusters {
				kept = store.p.Tables
			}
			if got := kept.Of(c.of); got.Sort != c.sort || len(got.Columns) == 0 {
				t.Errorf("kept as %+v", got)
			}
			do(r, "sort default")
			do(r, "columns default")
			r.seesNot("sort: ")
			under(r, c.first)
			seen := map[string]bool{}
			for range 20 { // the key goes through all orders and comes back
				r.press("s")
				seen[string(r.m.listed().Order)] = true
			}
			turned := r.m.listed().Order.Reversed()
			if len(seen) < 2 || seen[string(turned)] {
				t.Errorf("s goes through %v", seen)
			}
			if r.press("S"); r.m.listed().Order != turned {
				t.Errorf("turned to %s, not %s", r.m.listed().Order, turned)
			}
			for _, line := range []string{"sort colour", "columns colour"} {
				do(r, line)
				r.sees(`no column "colour"`)
			}
		})
	}
}

// The column that is always shown may be named among others, as in the CLI's --columns;
// it cannot be removed, nor be the only one.
func TestTheColumnThatIsAlwaysThere(t *testing.T) {
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40)
	r.m.Open(page.Place{Kind: page.Nodes})
	for _, c := range []struct{ columns, says, chosen string }{
		{"node state rtt", "", "state rtt"},
		{"+Node +addr", "", "addr state rtt"},
		{"-node", "node is always there", "addr state rtt"},
		{"node", "choose one column beside node at least", "addr state rtt"},
	} {
		r.press(":")
		r.m.Update(tea.PasteMsg{Content: "columns " + c.columns})
		r.press("enter")
		if got := strings.Join(r.m.listed().Chosen, " "); got != c.chosen {
			t.Errorf("%s: %s", c.columns, got)
		}
		r.sees(c.says)
	}
}

// A chosen column without room is named.
func TestAColumnWithoutRoomIsNamed(t *testing.T) {
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 80, 24)
	r.press("3", ":")
	r.typed("columns +memory +run-id +clients +eviction")
	r.press("enter")
	r.sees("no room: clients +2")
	r.press("6", "W")
	r.sees("this page has its own columns: 3 has")
	r.press(":")
	r.typed("columns +memory")
	r.press("enter")
	r.sees("this page has its own columns")
	r.press("1", "tab", "tab", "s")
	r.sees("the latest events stand as they came: 4 has all")
}

// The cursor follows the newest event only if that is first, and its row stays when the
// order changes.
func TestSortedEventsDoNotFollow(t *testing.T) {
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 80, 24)
	r.press("4", "down", "down")
	at := r.m.Events.Selected().Seq
	r.press(":")
	r.typed("sort kind")
	r.press("enter")
	if got := r.m.Events.Selected().Seq; got != at {
		t.Errorf("the cursor slid from event %d to %d", at, got)
	}
	r.press("f")
	r.sees("f follow the newest: the newest is not the first: :sort default")
}

// lineWith returns the first line of a screen with a text.
func lineWith(screen, text string) string {
	for line := range strings.Lines(screen) {
		if strings.Contains(line, text) {
			return line
		}
	}
	return ""
}
