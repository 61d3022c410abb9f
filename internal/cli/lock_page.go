package cli

import (
	"fmt"
	"slices"
	"time"

	"redlockctl/internal/app"
	"redlockctl/internal/cli/exit"
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
	answer := view.Answering(s)
	if !s.Complete {
		return fmt.Errorf("\"%s\": %w: no copy on those that could", safetext.Escape(name), exit.ErrIncomplete)
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
	about := slices.DeleteFunc(view.Rows(s.Findings), func(f *monitor.Finding) bool { return l == nil || f.Key != l.Key })
	doc := lockPageJSON{ClusterDoc: view.DocOfCluster(s), Findings: view.DocsOfFindings(about, s.At)}
	if l != nil {
		doc.Lock = new(view.DocOfLock(l, s))
	}
	printed := false
	if l != nil || again {
		var err error
		if printed, err = a.Document("lock", doc); err != nil {
			return err
		}
	}
	switch {
	case l == nil && !again:
		return unseen(s, name)
	case printed:
	case l == nil:
		fmt.Fprintf(a.Out, "%s: no node that answers has a copy\n", safetext.Escape(name))
	default:
		a.printLock(s, l, about)
	}
	return nil
}

// axisWidth is how many cells the axis of remaining time has.
const axisWidth = 32

func (a *commandLine) printLock(s *monitor.Snapshot, l *monitor.Lock, findings []*monitor.Finding) {
	ctx := a.ViewContext(s)
	state := ctx.LockState(l.State)
	fmt.Fprintf(a.Out, "%s: %s, %s copies, %s\n", l.Key, a.Paint(state.Text, state.Tone), view.Copies(l), view.LockEnd(ctx, l))
	a.Facts(view.LockFacts(ctx, l))
	axis := view.Axis(ctx, l)
	t := view.NewTable("NODE", "COPY", "NOTE")
	if axis > 0 {
		t = view.NewTable("NODE", "COPY", view.AxisLabels(axis, axisWidth), "NOTE")
	}
	for _, b := range view.LockBars(ctx, l, axis, axisWidth) {
		cells := []view.Cell{{Text: b.Node, Tone: b.State.Tone}, b.Left, b.Note}
		if axis > 0 {
			cells = slices.Insert(cells, 2, b.Bar)
		}
		t.Add(cells...)
	}
	fmt.Fprintln(a.Out)
	a.Table(t)
	a.printHolders(ctx, l)
	a.printFindings(s, findings)
}

// mostHolders are as many holders as a lock's page has.
const mostHolders = 8

// printHolders prints who held a lock in the last hour, where that is recorded here, and of
// an orphaned one what became of who made it.
func (a *commandLine) printHolders(ctx *view.Context, l *monitor.Lock) {
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
	fmt.Fprintln(a.Out)
	a.Facts(view.MakerFacts(ctx, l, grants))
	a.Facts((&view.Band{From: now.Add(-time.Hour), To: now, Grants: grants}).Lines(ctx, mostHolders))
}
