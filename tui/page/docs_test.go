package page

import (
	"os"
	"strings"
	"testing"
	"time"

	"redlockctl/monitor"
	"redlockctl/restartguard"
	"redlockctl/tui/styles"
)

// columnsPage is docs/columns.md.
func columnsPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/columns.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The page on states has each state with the signs, the word and the sentence of
// the screen.
func TestStatesAreDocumented(t *testing.T) {
	doc := columnsPage(t)
	full, plain := styles.New(false, styles.ThemeDark), styles.New(true, styles.ThemeDark)
	row := func(what, glyph, ascii, word, means string) {
		if want := "| " + glyph + " `" + ascii + "` | " + word + " | " + means; !strings.Contains(doc, want) {
			t.Errorf("docs/columns.md has no row for %s: %s", what, want)
		}
	}
	explained := map[monitor.LockState]bool{}
	for _, l := range Legend {
		explained[l.State] = true
		g, _ := full.Lock(l.State)
		a, _ := plain.Lock(l.State)
		row("a lock", g, a, l.State.String(), l.Means)
	}
	for s := range monitor.LockStates() {
		if !explained[s] {
			t.Errorf("the help does not explain %s", s)
		}
	}
	for s := monitor.NodeUnknown; s <= monitor.NodeDown; s++ {
		g, _ := full.Node(s)
		a, _ := plain.Node(s)
		row("a node", g, a, s.String(), "")
	}
	for _, v := range []monitor.Verdict{monitor.VerdictUnknown, monitor.VerdictSafe, monitor.VerdictUnprotected, monitor.VerdictDegraded, monitor.VerdictDanger, monitor.VerdictUnavailable} {
		s := &monitor.Snapshot{Cluster: monitor.Cluster{Verdict: v}}
		g, word, _ := full.Verdict(s)
		a, _, _ := plain.Verdict(s)
		row("a verdict", g, a, word, "")
	}
	for _, s := range []monitor.Severity{monitor.SeverityInfo, monitor.SeverityWarning, monitor.SeverityDanger} {
		g, word, _ := full.Severity(s)
		if !strings.Contains(doc, "`"+g+" "+word+"`") {
			t.Errorf("docs/columns.md does not show %s %s", g, word)
		}
	}
}

// So it has the columns and what is said of fences.
func TestColumnsAreDocumented(t *testing.T) {
	doc := columnsPage(t)
	st := styles.New(false, styles.ThemeDark)
	nodes := []monitor.Node{{Name: "n1"}, {Name: "n2"}}
	nv, lv := nodeView{&st}, newLockView(&st)
	lv.Choose(nil, true)
	lv.arrange(240, nodes)
	heads := styles.Bare(nv.header(nv.arrange(240, nodes), false)) + "  " + styles.Bare(lv.header(nodes, false))
	for _, head := range strings.FieldsFunc(strings.ReplaceAll(heads, "  ", "\x00"), func(r rune) bool { return r == 0 }) {
		head = strings.TrimSpace(head)
		if head == "" || strings.HasPrefix(head, "n1") || strings.HasPrefix(head, "n2") {
			continue
		}
		ok := false
		for line := range strings.Lines(doc) {
			first, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " |")
			for name := range strings.SplitSeq(first, ", ") {
				ok = ok || strings.HasPrefix(line, "| ") && name == head
			}
		}
		if !ok {
			t.Errorf("docs/columns.md does not explain column %q", head)
		}
	}
	now := time.Now()
	active := func(known, verified bool) restartguard.NodeStatus {
		return restartguard.NodeStatus{Phase: restartguard.PhaseActive, Known: known, Verified: verified}
	}
	for name, c := range map[string]struct {
		state   monitor.NodeState
		status  *restartguard.NodeStatus
		guarded bool
	}{
		"verified":     {monitor.NodeServing, new(active(true, true)), true},
		"not verified": {monitor.NodeServing, new(active(true, false)), true},
		"unverified":   {monitor.NodeServing, new(active(false, false)), true},
		"held":         {monitor.NodeHeld, nil, true},
		"closed":       {monitor.NodeFenced, &restartguard.NodeStatus{Phase: restartguard.PhaseClosed}, true},
		"exposed":      {monitor.NodeServing, &restartguard.NodeStatus{Phase: restartguard.PhaseExposed}, true},
		"looking":      {monitor.NodeFenced, nil, true},
		"waits":        {monitor.NodeFenced, nil, false},
		"no guard":     {monitor.NodeServing, nil, false},
	} {
		f := fenceView{Guarded: c.guarded, Status: map[string]restartguard.NodeStatus{}}
		if c.status != nil {
			f.Status["n1"] = *c.status
		}
		text, _ := nv.guard(&monitor.Node{Name: "n1", State: c.state}, now, &f, 200)
		head, _, _ := strings.Cut(strings.TrimSuffix(text, st.Ellipsis), ":")
		if !strings.Contains(doc, "`"+head) {
			t.Errorf("%s: docs/columns.md does not explain %q", name, text)
		}
	}
}
