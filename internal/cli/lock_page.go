package cli

import (
	"fmt"
	"io"
	"slices"
	"time"

	"redlockctl/internal/app"
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
		for _, k := range l.Keys() {
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

// showLock prints one lock, and is an error where there is none; in a row of
// snapshots it is none.
func (a *commandLine) showLock(s *monitor.Snapshot, name string, again bool) error {
	l := lockOf(s, name)
	about := slices.DeleteFunc(pointers(s.Findings), func(f *monitor.Finding) bool { return l == nil || f.Key != l.Key })
	doc := lockPageJSON{ClusterDoc: view.DocOfCluster(s), Findings: view.DocsOfFindings(about, s.At)}
	if l != nil {
		doc.Lock = new(view.DocOfLock(l, s))
	}
	printed := false
	if l != nil || again {
		var err error
		if printed, err = a.document(document{"lock", doc}); err != nil {
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
	ctx := a.viewContext(s)
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
	a.printHolders(w, ctx, l)
	a.printFindings(w, s, findings)
}

// mostHolders are as many holders as a lock's page has.
const mostHolders = 8

// printHolders prints who held a lock in the last hour, where that is recorded here, and of
// an orphaned one what became of who made it.
func (a *commandLine) printHolders(w io.Writer, ctx *view.Context, l *monitor.Lock) {
	r, err := a.openRecord("")
	if err != nil {
		return // history says why
	}
	defer r.Close()
	now := time.Now()
	grants, err := app.HoldersOf(r, l.Key.Raw(), now.Add(-time.Hour), now)
	if err != nil || len(grants) == 0 {
		return
	}
	fmt.Fprintln(w)
	a.facts(w, view.MakerFacts(ctx, l, grants))
	a.facts(w, (&view.Band{From: now.Add(-time.Hour), To: now, Grants: grants}).Lines(ctx, mostHolders))
}
