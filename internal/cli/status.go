package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"redlockctl/internal/app"
	"redlockctl/internal/config"
	"redlockctl/internal/safetext"
	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/redlock"
)

// statusJSON is the document of status.
type statusJSON struct {
	view.ClusterDoc
	Nodes []view.NodeDoc `json:"nodes"`
	Locks map[string]int `json:"locks"` // by state, and "total"
	guardsSeenJSON
	// Where a guard on this machine keeps what it knows, and runs: the node that it
	// opens first, and when there is a quorum again.
	FirstNode    *safetext.Text `json:"first_rejoin_node,omitempty"`
	FirstMs      *int64         `json:"first_rejoin_ms,omitempty"`
	QuorumBackMs *int64         `json:"quorum_back_ms,omitempty"`
}

func (a *commandLine) statusCommand() *cobra.Command {
	var again live
	return again.add(&cobra.Command{
		Use:   "status",
		Short: "The state of the cluster in a few lines",
		Long: `Looks at every master once and prints the verdict, the nodes and a count of the
locks by state. A node that does not answer costs its timeout once. All keys are
read, however long that takes; what --timeout cuts off is said, with exit code 7.
The guards that run are named, with their host and delay D: they announce themselves
on the nodes, wherever they run. Where one on this machine keeps what it knows in
[guard] state_dir, it is said which closed node is back first, and when there is a
quorum again; if no guard runs, that nothing opens them.

The verdict is the worst that holds: unavailable (no quorum serves), danger (two
clients may hold one lock), degraded (not all masters serve), unprotected (a
restart may give a vote twice: no guard is seen, or a boot fence is not verified),
safe. What is missing is said behind it.

The exit code says whether locks can be taken, not whether they are safe: 0 when a
quorum of the masters serves, 4 when none does. With --watch it is 0. For one by
the verdict use "doctor".`,
		Example: "redlockctl status --watch\nredlockctl status -o jsonl --watch=10s | jq --unbuffered .verdict",
		Args:    noArgs,
		RunE: a.run(func(ctx context.Context, _ []string) error {
			cfg, err := a.load()
			if err != nil {
				return err
			}
			return a.pictures(ctx, cfg, &again, app.Aim{}, func(s *monitor.Snapshot) error {
				printed, err := a.document(func() document { return statusDoc(cfg, s) })
				if err != nil {
					return err
				}
				if !printed {
					if err := a.printStatus(a.out, s, guardsOf(cfg, s, nil).view(s)); err != nil {
						return err
					}
					a.printSeen(a.out, app.GuardsOf(cfg, s))
					a.printOutlook(a.out, cfg, s)
				}
				return unavailable(s)
			})
		}),
	})
}

func statusDoc(cfg *config.Config, s *monitor.Snapshot) statusJSON {
	doc := statusJSON{ClusterDoc: view.DocOfCluster(s), Nodes: nodeDocs(s, pointers(s.Nodes)), Locks: map[string]int{"total": s.Locks.Len()}}
	for st := range monitor.LockStates() {
		if n := s.Counts[st]; n > 0 {
			doc.Locks[st.String()] = n
		}
	}
	doc.guardsSeenJSON = seenDoc(app.GuardsOf(cfg, s))
	if o, known := app.OutlookOf(cfg, s); known {
		if o.First != "" {
			doc.FirstNode, doc.FirstMs = optional(o.First), msUntil(o.FirstAt, s.At)
		}
		doc.QuorumBackMs = msUntil(o.Until, s.At)
	}
	return doc
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

// printOutlook says what the guard on this machine is waiting for.
func (a *commandLine) printOutlook(w io.Writer, cfg *config.Config, s *monitor.Snapshot) {
	o, known := app.OutlookOf(cfg, s)
	if idle := forsaken(cfg, s); idle != "" {
		fmt.Fprintf(w, "\n%s\n", safetext.Escape(idle))
	}
	switch {
	case !known:
	case !o.Possible():
		fmt.Fprintf(w, "\n%s\n", safetext.Escape(o.Text(s.At)))
	case o.First != "":
		fmt.Fprintf(w, "\nguard: opens %s in %s\n", safetext.Escape(o.First), view.Left(o.FirstAt.Sub(s.At)))
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

// printStatus prints verdict, nodes in short, and the number of locks.
func (a *commandLine) printStatus(w io.Writer, s *monitor.Snapshot, guard view.Guard) error {
	c := s.Cluster
	name, reason := "cluster", ""
	if c.Name != "" {
		name += " " + safetext.Escape(c.Name)
	}
	if c.Reason != "" {
		reason = "; " + safetext.Escape(c.Reason)
	}
	more := "nothing can be locked"
	switch {
	case c.Hidden > 0 && c.Verdict == monitor.VerdictUnknown:
		more = "not known if locks can be taken"
	case c.Serving >= c.Quorum:
		more = fmt.Sprintf("%d more may fail", c.CanLose)
	}
	fmt.Fprintf(w, "%s: %s: %d of %d nodes serve, quorum %d, %s%s\n", name, a.verdict(c.Verdict), c.Serving, c.N, c.Quorum, more, reason)
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
