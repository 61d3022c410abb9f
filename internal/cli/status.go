package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"redlockctl/internal/safetext"
	"redlockctl/monitor"
	"redlockctl/redlock"
)

// statusJSON is the document of status.
type statusJSON struct {
	Schema string `json:"schema"`
	clusterJSON
	Nodes []nodeJSON     `json:"nodes"`
	Locks map[string]int `json:"locks"` // by state, and "total"
}

func (a *app) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "The state of the cluster in a few lines",
		Long: `Looks at every master once and prints the verdict, the nodes and a count of the
locks by state. A node that does not answer within two seconds is shown as such.

Exit code 0 when a quorum of the masters serves, also when the cluster is
degraded; 4 when none does, and so nothing can be locked.`,
		Args: noArgs,
		RunE: a.run(func(ctx context.Context, _ []string) error {
			cfg, err := a.load()
			if err != nil {
				return err
			}
			s, err := look(ctx, cfg)
			if err != nil {
				return err
			}
			if a.output == "json" {
				doc := statusJSON{Schema: Schema, clusterJSON: clusterDoc(s.Cluster), Nodes: nodeDocs(s), Locks: map[string]int{"total": len(s.Locks)}}
				for _, l := range s.Locks {
					doc.Locks[l.State.String()]++
				}
				if err := printJSON(a.out, doc); err != nil {
					return err
				}
			} else {
				a.printStatus(a.out, s)
			}
			return unavailable(s)
		}),
	}
}

// unavailable is the error of a cluster without a quorum; what it would say is
// on the screen already.
func unavailable(s *monitor.Snapshot) error {
	if s.Cluster.Serving < s.Cluster.Quorum {
		return silent{redlock.ErrNoQuorum}
	}
	return nil
}

// printStatus prints verdict, nodes in short, and the number of locks.
func (a *app) printStatus(w io.Writer, s *monitor.Snapshot) {
	c := s.Cluster
	word, tone := c.Verdict.String(), toneGood
	switch c.Verdict {
	case monitor.VerdictUnavailable:
		tone = toneBad
	case monitor.VerdictDegraded, monitor.VerdictUnknown:
		tone = toneWarn
	}
	if a.color() {
		word = tones[tone].Styled(word)
	}
	name, reason := "cluster", ""
	if c.Name != "" {
		name += " " + safetext.Escape(c.Name)
	}
	if c.Reason != "" {
		reason = " (" + safetext.Escape(c.Reason) + ")"
	}
	more := "nothing can be locked"
	if c.Serving >= c.Quorum {
		more = fmt.Sprintf("%d more may fail", c.CanLose)
	}
	fmt.Fprintf(w, "%s: %s%s: %d of %d nodes serve, quorum %d, %s\n", name, word, reason, c.Serving, c.N, c.Quorum, more)
	fmt.Fprintf(w, "locks: %s\n\n", lockCount(s.Locks))

	t := &table{head: []string{"NODE", "STATE", "UPTIME", "LOCKS", "RTT", "NOTE"}}
	for _, n := range s.Nodes {
		row := nodeCells(n)
		t.add(plain(n.Name), row.state, row.uptime, row.locks, row.rtt, cell{text: a.clip(row.note, 80)})
	}
	t.write(w, a.color())
}

// lockCount is the number of locks, and how many are in which state, the most
// urgent first.
func lockCount(locks []monitor.Lock) string {
	if len(locks) == 0 {
		return "none"
	}
	var by [monitor.LockImmortal + 1]int
	for _, l := range locks {
		by[l.State]++
	}
	var parts []string
	for st := monitor.LockImmortal; ; st-- {
		if by[st] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", by[st], st))
		}
		if st == 0 {
			break
		}
	}
	return fmt.Sprintf("%d (%s)", len(locks), strings.Join(parts, ", "))
}
