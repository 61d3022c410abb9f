package cli

import (
	"fmt"
	"io"
	"strings"

	"redlockctl/internal/app"
	"redlockctl/internal/config"
	"redlockctl/internal/safetext"
	"redlockctl/monitor"
)

// nodePageJSON is the document of nodes NAME.
type nodePageJSON struct {
	clusterJSON
	Node  nodeJSON      `json:"node"`
	Guard guardNodeJSON `json:"guard"`
	guardsSeenJSON
	Findings []findingJSON `json:"findings"` // that are about it
}

// showNode prints one node.
func (a *commandLine) showNode(cfg *config.Config, s *monitor.Snapshot, name string) error {
	var n monitor.Node
	for _, m := range s.Nodes {
		if m.Name == name {
			n = m
		}
	}
	guards := guardsOf(cfg, s, nil)
	var guard guardNodeJSON
	for _, g := range guards.Nodes {
		if g.Name.Raw() == name {
			guard = g
		}
	}
	doc := nodePageJSON{clusterJSON: clusterDoc(s), Node: nodeDoc(n, s.At), Guard: guard, guardsSeenJSON: guards.guardsSeenJSON, Findings: []findingJSON{}}
	var about []monitor.Finding
	for _, f := range s.Findings {
		if f.Node == name {
			about = append(about, f)
			doc.Findings = append(doc.Findings, findingDoc(f, s.At))
		}
	}
	printed, err := a.document(func() document { return doc })
	if err == nil && !printed {
		a.printNode(a.out, s, n, guard)
		a.printSeen(a.out, app.GuardsOf(cfg, s))
		a.printFindings(a.out, about)
	}
	return err
}

// printNode prints all that is known of a node.
func (a *commandLine) printNode(w io.Writer, s *monitor.Snapshot, n monitor.Node, guard guardNodeJSON) {
	now := s.At
	row := nodeCells(n)
	state := row.state.text
	if a.color() {
		state = tones[row.state.tone].Styled(state)
	}
	if seen := now.Sub(n.Since); !n.Since.IsZero() && !justCame(s) { // else it was before we looked
		state += " for " + span(seen)
	}
	fmt.Fprintf(w, "%s %s: %s\n", safetext.Escape(n.Name), safetext.Escape(n.Addr), state)
	fact := func(name, value string) {
		if value != "" && value != "-" {
			fmt.Fprintf(w, "  %-12s %s\n", name, value)
		}
	}
	fact("note", row.note)
	if n.RunID != "" {
		fact("server", strings.TrimSpace(safetext.Escape(n.Version)+", "+safetext.Escape(n.Role)+", up "+row.uptime.text))
		fact("run id", safetext.Escape(n.RunID))
	}
	fact("fence", fenceCell(n).text+guard.sentence())
	fact("boot fence", guard.BootFence)
	if guard.Lives > 0 {
		fact("lives", fmt.Sprintf("%d seen by the guard", guard.Lives))
	}
	fact("locks", row.locks.text)
	if n.RTT > 0 {
		least, most := n.RTT, n.RTT
		for _, r := range n.RTTs {
			least, most = min(least, r), max(most, r)
		}
		fact("round trip", fmt.Sprintf("%s; the last %d from %s to %s", span(n.RTT), len(n.RTTs), span(least), span(most)))
	}
	if n.Offset.Valid {
		clock := "ahead by " + span(n.Offset.Offset) + " " + a.plusMinus() + " " + span(n.Offset.Bound)
		if n.Drift.Valid {
			clock += fmt.Sprintf(", drifts by %+.1f %s %.1f ppm", n.Drift.PPM, a.plusMinus(), n.Drift.Bound)
		}
		fact("clock", clock)
	}
	if n.RunID != "" {
		f := n.Facts
		persistence := "not durable"
		if n.Persistent {
			persistence = "durable"
		}
		if f.AppendOnly != "" {
			persistence += ": appendonly " + safetext.Escape(f.AppendOnly)
			if f.AppendFsync != "" {
				persistence += ", appendfsync " + safetext.Escape(f.AppendFsync)
			}
		}
		fact("persistence", persistence)
		memory := fmt.Sprintf("%.1f MiB", float64(n.UsedMemory)/(1<<20))
		if f.MaxMemory > 0 {
			memory += fmt.Sprintf(" of %.1f MiB", float64(f.MaxMemory)/(1<<20))
		}
		if n.Eviction != "" {
			memory += ", " + safetext.Escape(n.Eviction)
		}
		if f.Evicted > 0 {
			memory += ", " + plural(int(f.Evicted), "key evicted", "keys evicted")
		}
		fact("memory", memory)
		fact("clients", fmt.Sprintf("%d, and %s", n.Clients, plural(n.Replicas, "replica", "replicas")))
	}
}
