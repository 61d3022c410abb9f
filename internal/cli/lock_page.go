package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"redlockctl/internal/operator"
	"redlockctl/internal/safetext"
	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/redlock"
)

// lockPageJSON is the document of locks NAME.
type lockPageJSON struct {
	view.ClusterDoc
	Lock     *view.LockDoc     `json:"lock,omitempty"` // left out: no node that answers has a copy
	Findings []view.FindingDoc `json:"findings"`       // that are about it
}

// lockOf is the lock that a name means: by its first key, or by a further one.
func lockOf(s *monitor.Snapshot, name string) *monitor.Lock {
	if l := s.Locks.Get(name); l != nil {
		return l
	}
	for l := range s.Locks.All() {
		for _, k := range l.Keys {
			if k.Raw() == name {
				return l
			}
		}
	}
	return nil
}

// unseen is the error of a lock that is not there, or of which nobody can say.
func unseen(s *monitor.Snapshot, name string) error {
	answer := answering(s)
	if !s.Complete {
		return fmt.Errorf("\"%s\": %w: no copy on those that could", safetext.Escape(name), errIncomplete)
	}
	if answer < s.Cluster.Quorum {
		return fmt.Errorf("\"%s\": %w: none of the %d of %d nodes that answer has a copy",
			safetext.Escape(name), redlock.ErrNoQuorum, answer, s.Cluster.N)
	}
	return operator.NotLocked(name, answer, s.Cluster.N)
}

// answering is how many nodes tell what is on them.
func answering(s *monitor.Snapshot) (n int) {
	for i := range s.Nodes {
		switch s.Nodes[i].State {
		case monitor.NodeServing, monitor.NodeFenced, monitor.NodeHeld:
			n++
		}
	}
	return n
}

// showLock prints one lock, and is an error where there is none; in a row of
// pictures it is none.
func (a *commandLine) showLock(s *monitor.Snapshot, name string, again bool) error {
	l := lockOf(s, name)
	doc := lockPageJSON{ClusterDoc: view.DocOfCluster(s), Findings: []view.FindingDoc{}}
	if l != nil {
		one := view.DocOfLock(l, s)
		doc.Lock = &one
	}
	var about []*monitor.Finding
	for _, f := range pointers(s.Findings) {
		if l != nil && f.Key == l.Key {
			about = append(about, f)
			doc.Findings = append(doc.Findings, view.DocOfFinding(*f, s.At))
		}
	}
	printed := false
	if l != nil || again {
		var err error
		if printed, err = a.document(func() document { return doc }); err != nil {
			return err
		}
	}
	switch {
	case l == nil && !again:
		return unseen(s, name)
	case printed:
	case l == nil:
		fmt.Fprintf(a.out, "%s: no node that answers has a copy\n", safetext.Escape(name))
	default:
		a.printLock(a.out, s, l, about)
	}
	return nil
}

// axisWidth is how many cells the axis of remaining time has.
const axisWidth = 32

// printLock prints all that is known of a lock.
func (a *commandLine) printLock(w io.Writer, s *monitor.Snapshot, l *monitor.Lock, findings []*monitor.Finding) {
	ctx := a.context(s)
	state := ctx.LockState(l.State)
	fmt.Fprintf(w, "%s: %s, %s copies, %s\n", l.Key, a.paint(state.Text, state.Tone), view.Copies(l), view.LockEnd(ctx, l))
	a.facts(w, view.LockFacts(ctx, l))
	axis := view.Axis(ctx, l)
	t := view.NewTable("NODE", "COPY", view.AxisLabels(axis, axisWidth), "NOTE")
	for _, b := range view.LockBars(ctx, l, axis, axisWidth) {
		t.Add(view.Cell{Text: b.Node, Tone: b.State.Tone}, b.Left, b.Bar, b.Note)
	}
	fmt.Fprintln(w)
	printTable(w, t, a.color())
	a.printFindings(w, s, findings)
}

// printFindings are the findings about what is shown above.
func (a *commandLine) printFindings(w io.Writer, s *monitor.Snapshot, findings []*monitor.Finding) {
	ctx := a.context(s)
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
