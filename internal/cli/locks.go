package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"redlockctl/internal/safetext"
	"redlockctl/monitor"
)

// locksJSON is the document of locks.
type locksJSON struct {
	Schema string `json:"schema"`
	clusterJSON
	Locks []lockJSON `json:"locks"`
}

func (a *app) locksCommand() *cobra.Command {
	var filter string
	cmd := &cobra.Command{
		Use:   "locks",
		Short: "The locks on every master: holder, copies, remaining TTLs",
		Long: `Looks at every master once and prints a row for each lock. The column of a node
is the remaining TTL of the copy there: - no copy, ? the node does not answer
(~ its copy as last seen), ! another token than the holder's; a copy that never
ends says so, and a value that is no string is named by its type. ENDS is when
the holder falls below a quorum, MARGIN how many copies may be lost before
another client can reach one: 0 is a lock one restart away from two holders.`,
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
			locks := filterLocks(s.Locks, filter)
			if a.output == "json" {
				doc := locksJSON{Schema: Schema, clusterJSON: clusterDoc(s.Cluster), Locks: make([]lockJSON, 0, len(locks))}
				for _, l := range locks {
					doc.Locks = append(doc.Locks, lockDoc(l, s))
				}
				if err := printJSON(a.out, doc); err != nil {
					return err
				}
			} else {
				a.printLocks(a.out, s, locks)
			}
			for _, n := range s.Nodes {
				switch n.State {
				case monitor.NodeServing, monitor.NodeFenced, monitor.NodeHeld:
				default:
					fmt.Fprintf(a.errOut, "redlockctl: %s is %s: its copies are unknown\n", printable(n.Name), n.State)
				}
			}
			return nil
		}),
	}
	cmd.Flags().StringVar(&filter, "filter", "", "only locks whose name holds this text")
	return cmd
}

func filterLocks(locks []monitor.Lock, filter string) []monitor.Lock {
	if filter == "" {
		return locks
	}
	var kept []monitor.Lock
	for _, l := range locks {
		if strings.Contains(l.Key.Raw(), filter) || strings.Contains(l.Key.String(), filter) {
			kept = append(kept, l)
		}
	}
	return kept
}

// printLocks prints the table of locks.
func (a *app) printLocks(w io.Writer, s *monitor.Snapshot, locks []monitor.Lock) {
	if len(locks) == 0 {
		fmt.Fprintln(w, "no locks")
		return
	}
	t := &table{head: []string{"NAME", "STATE", "COPIES"}}
	for _, n := range s.Nodes {
		t.head = append(t.head, safetext.Escape(n.Name))
	}
	t.head = append(t.head, "ENDS", "MARGIN", "HOLDER")
	for _, l := range locks {
		row := []cell{
			{text: a.clip(l.Key.String(), 60)},
			{text: l.State.String(), tone: lockTone(l.State)},
			{text: fmt.Sprintf("%d/%d", l.Held, s.Cluster.N)},
		}
		for i := range s.Nodes {
			c := cell{text: "?"}
			if i < len(l.Copies) {
				c = copyCell(l.Copies[i], l, s)
			}
			row = append(row, c)
		}
		ends, margin := "-", "-"
		if !l.MajorityEnd.IsZero() {
			ends = left(l.MajorityEnd.Sub(s.At))
		}
		if l.Held >= s.Cluster.Quorum {
			margin = strconv.Itoa(l.Margin)
		}
		row = append(row, cell{text: ends}, cell{text: margin}, cell{text: a.clip(l.Holder.String(), 48)})
		t.add(row...)
	}
	t.write(w, a.color())
}

func lockTone(st monitor.LockState) tone {
	switch st {
	case monitor.LockHeld:
		return toneGood
	case monitor.LockExpiring, monitor.LockPartial, monitor.LockNotALock:
		return toneNone
	case monitor.LockBare, monitor.LockOrphan:
		return toneWarn
	}
	return toneBad
}

func copyCell(c monitor.Copy, l monitor.Lock, s *monitor.Snapshot) cell {
	var text string
	switch {
	case c.State == monitor.CopyAbsent:
		return cell{text: "-", tone: toneDim}
	case c.State == monitor.CopyUnknown && c.Token.Empty():
		return cell{text: "?", tone: toneWarn}
	case c.Type != "" && c.Type != "string":
		text = safetext.Escape(c.Type)
	case c.Expires.IsZero():
		text = "no TTL"
	default:
		text = left(c.Expires.Sub(s.At))
	}
	if c.State == monitor.CopyUnknown {
		return cell{text: "?~" + text, tone: toneWarn}
	}
	if c.Token != l.Holder && (c.Type == "" || c.Type == "string") {
		return cell{text: text + "!", tone: toneBad}
	}
	return cell{text: text}
}
