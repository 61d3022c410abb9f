package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"redlockctl/internal/app"
	"redlockctl/internal/audit"
	"redlockctl/internal/safetext"
	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/redlock"
)

// answering is how many nodes tell what is on them.
func answering(s *monitor.Snapshot) (n int) {
	for i := range s.Nodes {
		switch s.Nodes[i].State {
		case monitor.NodeServing, monitor.NodeFenced, monitor.NodeCordoned:
			n++
		}
	}
	return n
}

// noLocks says why a table of locks is empty.
func noLocks(s *monitor.Snapshot) string {
	switch n := answering(s); {
	case n == 0:
		return "no node answers: what is locked is not known"
	case !s.Complete:
		return "no locks among the keys that have been read"
	case n == len(s.Nodes):
		return "no locks"
	default:
		return fmt.Sprintf("no locks on the %d of %d nodes that answer", n, len(s.Nodes))
	}
}

// printLocks prints the table of locks.
func (a *commandLine) printLocks(s *monitor.Snapshot, locks []*monitor.Lock) {
	if len(locks) == 0 {
		fmt.Fprintln(a.out, noLocks(s))
		return
	}
	_ = printList(a, &listing{}, a.viewContext(s), view.LockColumns(s.Nodes), locks, nil)
}

// matching are the locks that a filter chooses, sorted by key.
func matching(s *monitor.Snapshot, f monitor.Filter) []*monitor.Lock {
	var kept []*monitor.Lock
	for l := range s.Locks.All() {
		if f.Match(l, s.Nodes) {
			kept = append(kept, l)
		}
	}
	return kept
}

// printStatus prints verdict, nodes in short, and the number of locks.
func (a *commandLine) printStatus(w io.Writer, s *monitor.Snapshot, guard view.Guard) error {
	c := s.Cluster
	name := "cluster"
	if c.Name != "" {
		name += " " + safetext.Escape(c.Name)
	}
	ctx := a.viewContext(s)
	ctx.Guard = guard
	for _, h := range view.Headlines(ctx) {
		fmt.Fprintf(w, "%s: %s: %s\n", name, a.paint(h.Verdict.Text, h.Verdict.Tone), h.Text())
	}
	fmt.Fprintf(w, "nodes: %d of %d serve, quorum %d\n", c.Serving, c.N, c.Quorum)
	fmt.Fprintf(w, "locks: %s\n", lockCount(s))
	if n := s.Dangers(); n > 0 {
		fmt.Fprintf(w, "findings: %s: redlockctl doctor says what to do\n", view.Plural(n, "danger"))
	}
	fmt.Fprintln(w)

	return a.listNodes(&listing{columns: []string{"node", "state", "up", "locks", "rtt", "guard", "note"}}, s, pointers(s.Nodes), guard)
}

// lockCount is the number of locks, and how many are in which state, the most
// urgent first.
func lockCount(s *monitor.Snapshot) string {
	by := s.Counts
	var parts []string
	for st := range monitor.LockStates() {
		if by[st] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", by[st], st))
		}
	}
	slices.Reverse(parts)
	count := fmt.Sprintf("%d (%s)", by.Total(), strings.Join(parts, ", "))
	switch {
	case answering(s) == 0:
		return "unknown: no node answers"
	case len(parts) == 0 && s.Complete:
		return "none"
	case len(parts) == 0:
		return "none among the keys that have been read"
	case !s.Complete:
		return count + " among the keys that have been read"
	}
	return count
}

// verdict is the word for a verdict, in its colour.
func (a *commandLine) verdict(v monitor.Verdict) string {
	c := view.Unicode.Verdict(v)
	return a.paint(c.Text, c.Tone)
}

// listNodes prints nodes as a table or as csv.
func (a *commandLine) listNodes(as *listing, s *monitor.Snapshot, nodes []*monitor.Node, guard view.Guard) error {
	ctx := a.viewContext(s)
	ctx.Guard = guard
	return printList(a, as, ctx, view.NodeColumns(), nodes, func(n *monitor.Node) any { return view.DocOfNode(*n, s.At) })
}

func nodeDocs(s *monitor.Snapshot, nodes []*monitor.Node) []view.NodeDoc {
	docs := make([]view.NodeDoc, 0, len(nodes))
	for _, n := range nodes {
		docs = append(docs, view.DocOfNode(*n, s.At))
	}
	return docs
}

// printSeen names the guards that run.
func (a *commandLine) printSeen(w io.Writer, g app.Guards) {
	for i, line := range g.Lines() {
		if i == 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintln(w, line)
	}
}

// printFindings are the findings about what is shown above.
func (a *commandLine) printFindings(w io.Writer, s *monitor.Snapshot, findings []*monitor.Finding) {
	ctx := a.viewContext(s)
	for _, f := range findings {
		c := ctx.Severity(f.Severity)
		fmt.Fprintf(w, "\n%s  %s  %s\n", a.paint(strings.ToUpper(c.Text), c.Tone), view.FindingTitle(ctx, f), a.paint("["+f.ID+"]", view.Dim))
		for _, fact := range view.FindingFacts(ctx, f) {
			label := fact.Label
			for line := range strings.SplitSeq(ansi.Wordwrap(a.clip(fact.Text, 400), 78, ""), "\n") {
				fmt.Fprintf(w, "  %-11s %s\n", label, line)
				label = ""
			}
		}
	}
}

// unavailable is the error of a cluster without a quorum; what it would say is
// on the screen already.
func unavailable(s *monitor.Snapshot) error {
	if s.Cluster.Verdict == monitor.VerdictUnknown &&
		slices.ContainsFunc(s.Nodes, func(n monitor.Node) bool { return n.State == monitor.NodeDenied }) {
		return silent{deniedError{errors.New("what the nodes hide from this program is not known")}}
	}
	if s.Cluster.Serving < s.Cluster.Quorum {
		return silent{redlock.ErrNoQuorum}
	}
	return nil
}

func auditDocs(entries []audit.Entry) []view.AuditDoc {
	docs := make([]view.AuditDoc, 0, len(entries))
	for _, e := range entries {
		docs = append(docs, view.DocOfAudit(e))
	}
	return docs
}

// listAudit prints lines of the log as a table or as csv.
func (a *commandLine) listAudit(as *listing, columns []view.Column[audit.Entry], entries []audit.Entry) error {
	ctx := &view.Context{Glyphs: view.Plain(a.ascii), Now: time.Now()}
	return printList(a, as, ctx, columns, entries, func(e audit.Entry) any { return view.DocOfAudit(e) })
}

// latest are the lines of a log that match, the oldest first; with last only so many,
// the latest. A log that is not there is an empty one.
func latest(path string, last int, match func(audit.Entry) bool) (kept []audit.Entry, err error) {
	err = audit.Read(path, func(e audit.Entry) error {
		if match(e) {
			if kept = append(kept, e); last > 0 && len(kept) > 2*last { // a log may be long
				kept = slices.Delete(kept, 0, len(kept)-last)
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if last > 0 {
		kept = kept[max(0, len(kept)-last):]
	}
	return kept, nil
}
