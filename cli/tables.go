package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"redlockctl/cli/app"
	"redlockctl/cli/exit"
	"redlockctl/cli/printer"
	"redlockctl/internal/audit"
	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/redlock"
	"redlockctl/server/safetext"
	"redlockctl/tui/styles"
)

func (a *commandLine) printLocks(s *monitor.Snapshot, locks []*monitor.Lock) {
	if len(locks) == 0 {
		fmt.Fprintln(a.Out, view.NoLocks(s))
		return
	}
	_ = printer.List(a.Printer, nil, a.ViewContext(s), view.LockColumns(s.Nodes), locks, nil)
}

// matching returns the locks that match a filter, sorted by key.
func matching(s *monitor.Snapshot, f monitor.Filter) []*monitor.Lock {
	var kept []*monitor.Lock
	for l := range s.Locks.All() {
		if f.Match(l, s.Nodes) {
			kept = append(kept, l)
		}
	}
	return kept
}

func (a *commandLine) printStatus(s *monitor.Snapshot, guard view.Guard) error {
	c := s.Cluster
	name := "cluster"
	if c.Name != "" {
		name += " " + safetext.Escape(c.Name)
	}
	ctx := a.ViewContext(s)
	ctx.Guard = guard
	for _, h := range view.Headlines(ctx) {
		fmt.Fprintf(a.Out, "%s: %s: %s\n", name, a.Paint(h.Verdict.Text, h.Verdict.Tone), h.Text())
	}
	if !c.NotSeen && !s.InGap() { // the line above says it
		fmt.Fprintf(a.Out, "nodes: %d of %d serve, quorum %d\n", c.Serving, c.N, c.Quorum)
	}
	if !s.InGap() {
		fmt.Fprintf(a.Out, "locks: %s\n", view.LocksText(s))
	}
	if text := view.FindingsText(s, monitor.SeverityWarning); text != "" {
		fmt.Fprintf(a.Out, "findings: %s: redlockctl doctor says what to do\n", text)
	}
	fmt.Fprintln(a.Out)

	columns, err := view.Choose(view.NodeColumns(), []string{"node", "state", "up", "locks", "rtt", "guard", "note"})
	if err != nil {
		return err
	}
	return a.listNodes(nil, columns, s, view.Rows(s.Nodes), guard)
}

func (a *commandLine) listNodes(chosen []string, columns []view.Column[*monitor.Node], s *monitor.Snapshot, nodes []*monitor.Node, guard view.Guard) error {
	ctx := a.ViewContext(s)
	ctx.Guard = guard
	return printer.List(a.Printer, chosen, ctx, columns, nodes, func(n *monitor.Node) any { return view.DocOfNode(*n, s.At) })
}

func (a *commandLine) printSeen(g app.Guards) {
	for i, line := range g.Lines() {
		if i == 0 {
			fmt.Fprintln(a.Out)
		}
		fmt.Fprintln(a.Out, line)
	}
}

// printLeft prints what is left to do until all masters are protected, if anything is.
func (a *commandLine) printLeft(l view.LeftToDo) {
	if text := l.Text(); text != "" {
		fmt.Fprintf(a.Out, "\n%s\n", text)
	}
}

func (a *commandLine) printFindings(s *monitor.Snapshot, findings []*monitor.Finding) {
	ctx := a.ViewContext(s)
	for _, f := range findings {
		c := ctx.Severity(f.Severity)
		fmt.Fprintf(a.Out, "\n%s  %s  %s\n", a.Paint(strings.ToUpper(c.Text), c.Tone), view.FindingTitle(ctx, f), a.Paint("["+f.ID+"]", view.Dim))
		for _, fact := range view.FindingFacts(ctx, f) {
			label := fact.Label
			for _, line := range styles.Wrap(a.Clip(fact.Text, 400), 78, 0) {
				fmt.Fprintf(a.Out, "  %-11s %s\n", label, line)
				label = ""
			}
		}
	}
}

// wrapped breaks a text into lines, but never a command at a hyphen, so that it can be
// copied.
func wrapped(s string) string { return strings.Join(styles.Wrap(s, 88, 0), "\n") }

// unavailable returns a silent error for a cluster without a quorum, or whose nodes hide
// from this program what it asks for; the output says it already.
func unavailable(s *monitor.Snapshot) error {
	if v := s.Cluster.Verdict; (v == monitor.VerdictUnknown || v == monitor.VerdictDanger) &&
		slices.ContainsFunc(s.Nodes, func(n monitor.Node) bool { return n.State == monitor.NodeDenied }) {
		return exit.Silently(exit.Denied{Err: errors.New("what the nodes hide from this program is not known")})
	}
	if s.Cluster.Serving < s.Cluster.Quorum {
		return exit.Silently(redlock.ErrNoQuorum)
	}
	return nil
}

func (a *commandLine) listAudit(columns []string, entries []audit.Entry) error {
	ctx := &view.Context{Glyphs: a.Glyphs(), Now: time.Now()}
	return printer.List(a.Printer, columns, ctx, view.AuditColumns(), entries, func(e audit.Entry) any { return view.DocOfAudit(e) })
}
