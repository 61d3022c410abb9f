package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"redlockctl/internal/app"
	"redlockctl/internal/safetext"
	"redlockctl/monitor"
	"redlockctl/restartguard"
)

// nodesJSON is the document of nodes.
type nodesJSON struct {
	clusterJSON
	guardsSeenJSON
	Nodes []nodeJSON `json:"nodes"`
}

func (a *commandLine) nodesCommand() *cobra.Command {
	var again live
	return again.add(&cobra.Command{
		Use:   "nodes [NAME]",
		Short: "The masters: state, clock, fence, what is wrong",
		Long: `Looks at every master once and prints a row for each. OFFSET is how far the
node's clock is ahead of this machine's, with the bound that the round trip
leaves. FENCE is open, closed (by a boot fence or a guard), held (by an
operator), or the number of replicas that a write needs there. With -o wide also
the drift of the clock, what is persisted and evicted, clients, memory, run id. Below are
the guards that announce themselves on the nodes.

With a NAME it prints all that is known of that node, what the guard on this
machine remembers of it, and the findings about it.`,
		Example:           "redlockctl nodes -o wide\nredlockctl nodes n2 --watch",
		Args:              optionalName("node"),
		ValidArgsFunction: a.completeNodes,
		RunE: a.run(func(ctx context.Context, args []string) error {
			cfg, err := a.load()
			if err != nil {
				return err
			}
			if len(args) > 0 {
				if err := app.CheckNode(cfg, args[0]); err != nil {
					return err
				}
			}
			return a.pictures(ctx, cfg, &again, app.Aim{}, func(s *monitor.Snapshot) error {
				if len(args) > 0 {
					return a.showNode(cfg, s, args[0])
				}
				printed, err := a.document(func() document {
					return nodesJSON{clusterJSON: clusterDoc(s), guardsSeenJSON: seenDoc(app.GuardsOf(cfg, s)), Nodes: nodeDocs(s)}
				})
				if err == nil && !printed {
					a.printNodes(a.out, s, nil)
					a.printSeen(a.out, app.GuardsOf(cfg, s))
				}
				return err
			})
		}),
	})
}

func nodeDocs(s *monitor.Snapshot) []nodeJSON {
	docs := make([]nodeJSON, 0, len(s.Nodes))
	for _, n := range s.Nodes {
		docs = append(docs, nodeDoc(n, s.At))
	}
	return docs
}

// printNodes prints the table of nodes. Where a guard runs in this process,
// guard is what it knows: how long a closed node still waits.
func (a *commandLine) printNodes(w io.Writer, s *monitor.Snapshot, guard []restartguard.NodeStatus) {
	waits := map[string]restartguard.NodeStatus{}
	for _, g := range guard {
		waits[g.Node] = g
	}
	t := &table{head: []string{"NODE", "ADDR", "STATE", "UPTIME", "LOCKS", "RTT", "OFFSET", "FENCE", "RESTARTS", "VERSION"}}
	wide := a.output == "wide"
	if wide {
		t.head = append(t.head, "DRIFT", "ROLE", "PERSISTENT", "EVICTION", "REPLICAS", "CLIENTS", "MEMORY", "RUN ID")
	}
	t.head = append(t.head, "NOTE")
	for _, n := range s.Nodes {
		row := nodeCells(n)
		fence := fenceCell(n)
		if g, ok := waits[n.Name]; ok && g.Phase == restartguard.PhaseClosed && !g.Until.IsZero() {
			fence.text += ", rejoins in " + left(time.Until(g.Until))
		}
		offset := "-"
		if n.Offset.Valid {
			offset = span(n.Offset.Offset) + a.plusMinus() + span(n.Offset.Bound)
		}
		restarts := "-" // before it was looked at: who knows
		if n.Restarts > 0 || !justCame(s) {
			restarts = strconv.Itoa(n.Restarts)
		}
		version := "-"
		if n.Version != "" {
			version = n.Version
		}
		cells := []cell{plain(n.Name), plain(n.Addr), row.state, row.uptime, row.locks, row.rtt, {text: offset}, fence,
			{text: restarts}, plain(version)}
		if wide {
			cells = append(cells, a.wideCells(n)...)
		}
		t.add(append(cells, cell{text: a.cut(row.note, 100)})...)
	}
	t.write(w, a.color())
}

// wideCells are what there is no room for in most terminals.
func (a *commandLine) wideCells(n monitor.Node) []cell {
	or := func(s string) cell {
		if s == "" {
			s = "-"
		}
		return plain(s)
	}
	drift, persistent := "-", "no"
	if n.Drift.Valid {
		drift = fmt.Sprintf("%+.1f%s%.1fppm", n.Drift.PPM, a.plusMinus(), n.Drift.Bound)
	}
	if n.Persistent {
		persistent = "yes"
	}
	if n.RunID == "" {
		persistent = "-"
	}
	return []cell{
		{text: drift}, or(n.Role), {text: persistent}, or(n.Eviction), {text: strconv.Itoa(n.Replicas)}, {text: strconv.Itoa(n.Clients)},
		{text: fmt.Sprintf("%.1fMiB", float64(n.UsedMemory)/(1<<20))}, or(n.RunID),
	}
}

// nodeRow is what both tables of nodes show.
type nodeRow struct {
	state, uptime, locks, rtt cell
	note                      string
}

func nodeCells(n monitor.Node) nodeRow {
	r := nodeRow{
		state:  cell{text: n.State.String(), tone: toneBad},
		uptime: cell{text: "-"}, locks: cell{text: "-"}, rtt: cell{text: "-"},
	}
	answers := false
	switch n.State {
	case monitor.NodeServing:
		r.state.tone, answers = toneGood, true
	case monitor.NodeFenced, monitor.NodeHeld, monitor.NodeLoading:
		r.state.tone, answers = toneWarn, true
	case monitor.NodeWrongRole:
		answers = true
	}
	if answers {
		r.uptime.text = uptime(n.Uptime)
		if n.Read >= 1 {
			r.locks.text = strconv.Itoa(n.Locks)
		} else if n.Locks > 0 {
			r.locks.text = "≥" + strconv.Itoa(n.Locks)
		}
		if n.RTT > 0 {
			r.rtt.text = span(n.RTT)
		}
	}
	var notes []string
	if !n.Err.Empty() {
		notes = append(notes, n.Err.String())
	}
	if n.State == monitor.NodeFenced {
		notes = append(notes, "refuses writes until a guard or an operator opens it")
	}
	for _, note := range n.Notes {
		notes = append(notes, safetext.Escape(note))
	}
	r.note = strings.Join(notes, "; ")
	return r
}

// uptime is known in whole seconds only.
func uptime(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%ds", int(d.Seconds()))
	}
	return span(d)
}

func fenceCell(n monitor.Node) cell {
	switch {
	case n.RunID == "" || n.MinReplicasToWrite < 0:
		return cell{text: "?", tone: toneWarn}
	case n.MinReplicasToWrite == restartguard.FenceOpen:
		return cell{text: "open"}
	case n.MinReplicasToWrite == restartguard.FenceClosed:
		return cell{text: "closed", tone: toneWarn}
	case n.MinReplicasToWrite == restartguard.FenceHold:
		return cell{text: "held", tone: toneWarn}
	}
	return cell{text: "needs " + plural(int(n.MinReplicasToWrite), "replica", "replicas"), tone: toneWarn}
}
