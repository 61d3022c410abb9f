package view

import (
	"os"
	"strings"
	"testing"

	"redlockctl/monitor"
	"redlockctl/restartguard"
)

func readPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/columns.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// docs/columns.md has each state with its signs, its word and its sentence.
func TestStatesAreDocumented(t *testing.T) {
	page := readPage(t)
	row := func(full, plain Cell, means string) {
		if want := "| " + full.Sign + " `" + plain.Sign + "` | " + full.Text + " | " + means; !strings.Contains(page, want) {
			t.Errorf("docs/columns.md has no row: %s", want)
		}
	}
	for s := range monitor.LockStates() {
		row(Unicode.LockState(s), ASCII.LockState(s), States[s])
		if States[s] == "" {
			t.Errorf("%s is not explained", s)
		}
	}
	for s := monitor.NodeUnknown; s <= monitor.NodeDown; s++ {
		row(Unicode.NodeState(s), ASCII.NodeState(s), "")
	}
	for _, v := range []monitor.Verdict{monitor.VerdictUnknown, monitor.VerdictSafe, monitor.VerdictUnprotected, monitor.VerdictDegraded, monitor.VerdictDanger, monitor.VerdictUnavailable} {
		c := Unicode.Verdict(v)
		c.Text = strings.ToUpper(c.Text)
		row(c, ASCII.Verdict(v), "")
	}
	for _, s := range []monitor.Severity{monitor.SeverityInfo, monitor.SeverityWarning, monitor.SeverityDanger} {
		if c := Unicode.Severity(s); !strings.Contains(page, "`"+c.Sign+" "+c.Text+"`") {
			t.Errorf("docs/columns.md does not show %s %s", c.Sign, c.Text)
		}
	}
}

// It also has the texts about fences.
func TestGuardColumnIsDocumented(t *testing.T) {
	page := readPage(t)
	active := func(known, verified bool) restartguard.NodeStatus {
		return restartguard.NodeStatus{Phase: restartguard.PhaseServing, Known: known, Verified: verified}
	}
	for name, c := range map[string]struct {
		state   monitor.NodeState
		status  *restartguard.NodeStatus
		guarded bool
	}{
		"verified":     {monitor.NodeServing, new(active(true, true)), true},
		"not verified": {monitor.NodeServing, new(active(true, false)), true},
		"unverified":   {monitor.NodeServing, new(active(false, false)), true},
		"held":         {monitor.NodeCordoned, nil, true},
		"closed":       {monitor.NodeFenced, &restartguard.NodeStatus{Phase: restartguard.PhaseFenced}, true},
		"exposed":      {monitor.NodeServing, &restartguard.NodeStatus{Phase: restartguard.PhaseExposed}, true},
		"looking":      {monitor.NodeFenced, nil, true},
		"waits":        {monitor.NodeFenced, nil, false},
		"no guard":     {monitor.NodeServing, nil, false},
		"not known":    {monitor.NodeServing, nil, false},
	} {
		ctx := Context{Glyphs: &Unicode, Now: epoch, Guard: Guard{Here: c.guarded, Status: map[string]restartguard.NodeStatus{}}, Short: true}
		if c.status != nil {
			ctx.Guard.Status["n1"] = *c.status
		}
		text := GuardCell(&ctx, &monitor.Node{Name: "n1", State: c.state, GuardsKnown: name != "not known"}).Text
		head, _, _ := strings.Cut(strings.TrimSuffix(text, ctx.Ellipsis), ":")
		if !strings.Contains(page, "`"+head) {
			t.Errorf("%s: docs/columns.md does not explain %q", name, text)
		}
	}
}
