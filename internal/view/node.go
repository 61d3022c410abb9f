package view

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"redlockctl/monitor"
	"redlockctl/monitor/words"
	"redlockctl/restartguard"
	"redlockctl/server/minreplicas"
)

// NodeColumns are the columns of nodes.
func NodeColumns() []Column[*monitor.Node] {
	return []Column[*monitor.Node]{{
		Name: "NODE", Help: "name in the configuration", Fields: []string{"name"}, Compare: byText(func(n *monitor.Node) string { return n.Name }),
		Cell: func(c *Context, n *monitor.Node) Cell { return Cell{Text: c.Name(n.Name), Tone: Strong} }, Rank: 1, Width: 4, Most: 12, Middle: true,
	}, {
		Name: "ADDR", Help: "address in the configuration", Compare: byText(func(n *monitor.Node) string { return n.Addr }), Fields: []string{"addr"},
		Cell: textOf(func(n *monitor.Node) string { return n.Addr }),
	}, {
		Name: "STATE", Help: "one of the [states](#states-of-nodes)", Fields: []string{"state", "state_for_ms"}, Compare: compareBy(func(n *monitor.Node) int { return -n.State.Urgency() }), First: "needs you first",
		Cell: func(c *Context, n *monitor.Node) Cell { return c.NodeState(n.State) }, Rank: 2, Width: 12,
	}, {
		Name: "UP", Help: "how long the server has run, by its own uptime; the guard never uses this value", Fields: []string{"uptime_ms"},
		Compare: compareBy(func(n *monitor.Node) time.Duration { return n.Uptime }), Right: true, Rank: 9, Width: 6,
		Cell: answerCell(ofServer(func(n *monitor.Node) string { return Age(n.Uptime) })),
	}, {
		Name: "LOCKS", Help: "copies of locks on it; `≥` until all its keys have been read", Fields: []string{"locks"},
		Compare: compareBy(func(n *monitor.Node) int { return n.Locks }), Right: true, Rank: 3, Width: 6,
		Cell: answerCell(nodeLocks),
	}, {
		Name: "RTT", Help: "the last round trip", Fields: []string{"rtt_us"}, Compare: compareBy(func(n *monitor.Node) time.Duration { return n.RTT }), Right: true, Rank: 5, Width: 6,
		Cell: func(c *Context, n *monitor.Node) Cell {
			cell := rttText(c, n)
			if n.State.Answers() && SlowRTT(n.RTTs) {
				cell.Tone = Warn
			}
			return cell
		},
	}, {
		Name: "RTTS", Help: "the latest round trips, on one scale for all nodes; amber: above what is normal for the node", SortAs: "rtt", Wide: true, Rank: 12, Width: 8,
		Cell: func(c *Context, n *monitor.Node) Cell {
			if !n.State.Answers() {
				return Cell{}
			}
			tone := Dim
			if SlowRTT(n.RTTs) {
				tone = Warn
			}
			return Cell{Text: c.RTTs(n.RTTs, 8), Tone: tone}
		},
	}, {
		Name: "CLOCK", Help: "how far the node's clock is ahead of this machine's, ± half a round trip; a constant offset does no harm",
		Fields: []string{"clock_offset_us", "clock_offset_bound_us"}, Compare: compareBy(func(n *monitor.Node) time.Duration { return n.Offset.Offset }), Right: true, Rank: 10, Width: 14, Most: 20,
		Cell: answerCell(func(c *Context, n *monitor.Node) string {
			if !n.Offset.Valid {
				return ""
			}
			return c.Offset(n.Offset)
		}),
	}, {
		Name: "DRIFT", Help: "how much faster its clock runs, in ppm; the drift allowance of 1 % is 10,000 ppm; `…`: not known yet",
		Fields: []string{"drift_ppm", "drift_bound_ppm"}, Compare: compareBy(func(n *monitor.Node) float64 { return n.Drift.PPM }), Right: true, Wide: true, Rank: 11, Width: 9,
		Cell: answerCell(func(c *Context, n *monitor.Node) string {
			switch {
			case n.RunID == "":
				return ""
			case !n.Drift.Valid:
				return c.Ellipsis
			}
			return c.Signed(n.Drift.PPM, 0) + " ppm"
		}),
	}, {
		Name: "FENCE", Help: "`none`, `fenced` (by its boot fence or a guard), `does not hold` (writes get through it), `cordoned` (by an operator), or how many replicas a write needs", Compare: compareBy(func(n *monitor.Node) int64 { return n.MinReplicasToWrite }),
		Fields: []string{"min_replicas_to_write", "fence_leak"}, Cell: func(_ *Context, n *monitor.Node) Cell { return fenceCell(n) },
	}, {
		Name: "RESTARTS", Help: "restarts that this process has seen, in a replay those that its recorder had seen; `-` if it has only just started, like a command without `--watch`",
		Compare: compareBy(func(n *monitor.Node) int { return n.Restarts }), Right: true,
		Cell: func(c *Context, n *monitor.Node) Cell {
			if n.Restarts == 0 && c.Began {
				return c.orNone("")
			}
			return Cell{Text: Count(n.Restarts)}
		},
	}, {
		Name: "VERSION", Help: "version of the server", Fields: []string{"version"}, Compare: byText(func(n *monitor.Node) string { return n.Version }),
		Cell: textOf(func(n *monitor.Node) string { return n.Version }),
	}, {
		Name: "ROLE", Help: "`master`; anything else cannot be a Redlock master", Compare: compareBy(func(n *monitor.Node) string { return n.Role }), Fields: []string{"role"}, Wide: true,
		Cell: textOf(func(n *monitor.Node) string { return n.Role }),
	}, {
		Name: "PERSISTENT", Help: "`yes`: every write is on disk before it is answered, and the next start is known to load it; `not verified`: the settings say so, and it is not known of the next start. `no` is right for lock masters under a guard", Compare: compareBy(persistence), Fields: []string{"persistent", "durability_doubt"}, Wide: true,
		Cell: textOf(func(n *monitor.Node) string {
			if n.RunID == "" {
				return ""
			}
			return persistence(n)
		}),
	}, {
		Name: "EVICTION", Help: "`maxmemory-policy`; any policy but `noeviction` can remove locks", Compare: compareBy(func(n *monitor.Node) string { return n.Eviction }), Fields: []string{"maxmemory_policy"}, Wide: true,
		Cell: textOf(func(n *monitor.Node) string { return n.Eviction }),
	}, {
		Name: "REPLICAS", Help: "attached replicas", Fields: []string{"replicas"}, Compare: compareBy(func(n *monitor.Node) int { return n.Replicas }), Right: true, Wide: true,
		Cell: answerCell(ofServer(func(n *monitor.Node) string { return Count(n.Replicas) })),
	}, {
		Name: "CLIENTS", Help: "open connections", Fields: []string{"clients"}, Compare: compareBy(func(n *monitor.Node) int { return n.Clients }), Right: true, Wide: true,
		Cell: answerCell(ofServer(func(n *monitor.Node) string { return Count(n.Clients) })),
	}, {
		Name: "MEMORY", Help: "used memory, by the server's own count", Fields: []string{"used_memory_bytes"}, Compare: compareBy(func(n *monitor.Node) int64 { return n.UsedMemory }), Right: true, Wide: true,
		Cell: answerCell(ofServer(func(n *monitor.Node) string { return words.Bytes(n.UsedMemory) })),
	}, {
		Name: "RUN ID", Help: "the incarnation: each start of the server has a new one", Compare: compareBy(func(n *monitor.Node) string { return n.RunID }), Fields: []string{"run_id"}, Wide: true,
		Cell: textOf(func(n *monitor.Node) string { return n.RunID }),
	}, {
		Name: "GUARD", Help: "why the node is fenced or serves ([texts](#what-the-column-guard-says))", SortAs: "state", Cell: GuardCell, Cut: 60, Rank: 4, Width: 26, Good: 26, Most: 400, Clauses: true,
	}, {
		Name: "NOTE", Help: "errors and other remarks", Compare: compareBy(func(n *monitor.Node) string { return strings.Join(n.Notes, "; ") }), Fields: []string{"error", "notes"}, Cut: 100,
		Cell: func(c *Context, n *monitor.Node) Cell {
			notes := c.Whole(strings.Join(n.Notes, "; "))
			if n.Early {
				return Cell{Text: strings.TrimSuffix("serves before it may vote; "+notes, "; "), Tone: Bad}
			}
			return Cell{Text: notes}
		},
	}}
}

// NodeNeeds orders nodes by how soon a person should look: by their states, then by what
// their guards say; 0: nothing is wrong.
func NodeNeeds(c *Context, n *monitor.Node) int {
	needs := 2 * n.State.Urgency()
	if tone := GuardCell(c, n).Tone; tone == Warn || tone == Bad {
		needs++
	}
	return needs
}

// answerCell returns a cell with the last answer of a node; the glyph for none if the text
// is empty or the node does not answer now.
func answerCell(text func(*Context, *monitor.Node) string) func(*Context, *monitor.Node) Cell {
	return func(c *Context, n *monitor.Node) Cell {
		if !n.State.Answers() {
			return c.orNone("")
		}
		return c.orNone(text(c, n))
	}
}

// ofServer returns a fact about the server, if it was ever read.
func ofServer(text func(*monitor.Node) string) func(*Context, *monitor.Node) string {
	return func(_ *Context, n *monitor.Node) string {
		if n.RunID == "" {
			return ""
		}
		return text(n)
	}
}

func nodeLocks(c *Context, n *monitor.Node) string {
	switch {
	case n.ReadWhole() && (c.Snap == nil || !c.Snap.Settled.IsZero()):
		return Count(n.Locks)
	case n.Locks > 0:
		return c.Our("≥") + Count(n.Locks)
	}
	return ""
}

// Offset formats the offset of a clock with its bound.
func (g *Glyphs) Offset(e monitor.Estimate) string {
	if e.Offset.Abs() >= 10*time.Second {
		return g.Signed(e.Offset.Seconds(), 1) + " s"
	}
	return g.Signed(inMS(e.Offset), 1) + " " + g.PM + strconv.FormatFloat(inMS(e.Bound), 'f', 1, 64) + " ms"
}

func fenceCell(n *monitor.Node) Cell {
	switch {
	case n.Leak != "":
		return Cell{Text: "does not hold", Tone: Bad}
	case n.State == monitor.NodeCordoned:
		return Cell{Text: "cordoned", Tone: Warn}
	case n.State == monitor.NodeFenced && n.MinReplicasToWrite == minreplicas.FenceNone:
		return Cell{Text: "fenced", Tone: Warn} // by its lock clients' user
	case n.RunID == "" || n.MinReplicasToWrite < 0:
		return Cell{Text: "?", Tone: Warn}
	case n.MinReplicasToWrite == minreplicas.FenceNone:
		return Cell{Text: "none"}
	case n.MinReplicasToWrite == minreplicas.FenceUp:
		return Cell{Text: "fenced", Tone: Warn}
	case n.MinReplicasToWrite == minreplicas.FenceCordon:
		return Cell{Text: "cordoned", Tone: Warn}
	}
	return Cell{Text: "needs " + Plural(int(n.MinReplicasToWrite), "replica"), Tone: Warn}
}

// NodeSince says how long a node has been in its state; empty if that began before this
// program started to watch.
func NodeSince(c *Context, n *monitor.Node) string {
	if c.Began || n.Older {
		return ""
	}
	return c.since(n.Since)
}

// NodeFacts returns what is known about a node, except clocks.
func NodeFacts(c *Context, n *monitor.Node) []Fact {
	guard := GuardCell(c, n)
	facts := []Fact{{"Error", c.Whole(n.Err.Raw()), Bad}, {"Guard", guard.Text, guard.Tone}}
	facts = append(facts, cordonedFacts(n, c.Now)...)
	if s, ok := c.Guard.Status[n.Name]; ok {
		if s.Reason != "" && s.Until.IsZero() && s.Phase != restartguard.PhaseServing {
			facts = append(facts, Fact{Text: c.Whole(s.Reason)})
		}
		if !s.Out.IsZero() {
			facts = append(facts, Fact{Text: "without a vote" + c.since(s.Out)})
		}
		if s.BootExposed > 0 {
			facts = append(facts, Fact{Text: fmt.Sprintf("its last start was unfenced for %s at most", restartguard.AtMost(s.BootExposed))})
		}
		if s.Exposed > 0 && s.Exposed != s.BootExposed {
			facts = append(facts, Fact{Text: fmt.Sprintf("after its last loss it served for %s at most", restartguard.AtMost(s.Exposed))})
		}
	}
	if boot := c.Guard.BootFence(n); !strings.HasPrefix(guard.Text, "boot fence") {
		facts = append(facts, Fact{Label: "Boot fence", Text: boot})
	}
	if n.RunID != "" {
		facts = append(facts, serverFacts(c, n)...)
	}
	if n.Offset.Valid {
		clock := c.Offset(n.Offset)
		if n.Drift.Valid {
			clock += ", drift " + c.Signed(n.Drift.PPM, 1) + " " + c.PM + strconv.FormatFloat(n.Drift.Bound, 'f', 1, 64) + " ppm"
		}
		facts = append(facts, Fact{Label: "Clock", Text: clock})
	}
	if len(n.RTTs) > 0 {
		facts = append(facts, Fact{Label: "RTT", Text: Milliseconds(n.RTT) + "; the last " + Count(len(n.RTTs)) + " " +
			Milliseconds(slices.Min(n.RTTs)) + " to " + Milliseconds(slices.Max(n.RTTs))})
	}
	for _, note := range n.Notes {
		facts = append(facts, Fact{"Note", c.Whole(note), Warn})
	}
	return facts
}

// persistence says whether every write of a node survives a crash.
func persistence(n *monitor.Node) string {
	switch _, doubt := n.Facts.Durable(); {
	case n.Persistent:
		return "yes"
	case doubt != "":
		return "not verified"
	}
	return "no"
}

func serverFacts(c *Context, n *monitor.Node) []Fact {
	server := "version " + c.Whole(n.Version) + ", role " + c.Whole(n.Role)
	if n.State.Answers() {
		server += ", up " + Age(n.Uptime)
	}
	if n.Restarts > 0 {
		server += ", " + Plural(n.Restarts, "restart") + " seen"
	}
	data := "kept in memory alone: a restart forgets every lock"
	if _, doubt := n.Facts.Durable(); n.Persistent {
		data = "persistent: every write is synced"
	} else if doubt != "" {
		data = "durability not verified: " + c.Whole(doubt)
	}
	if f := n.Facts; f.AppendOnly != "" {
		data += " (appendonly " + c.Whole(f.AppendOnly)
		if f.AppendFsync != "" {
			data += ", appendfsync " + c.Whole(f.AppendFsync)
		}
		data += ")"
	}
	memory := words.Bytes(n.UsedMemory)
	if n.Facts.MaxMemory > 0 {
		memory += " of " + words.Bytes(n.Facts.MaxMemory)
	}
	memory += ", eviction " + cmp.Or(c.Whole(n.Eviction), "not known")
	if n.Facts.Evicted > 0 {
		memory += ", " + Plural(int(n.Facts.Evicted), "key evicted", "keys evicted")
	}
	fenced := fenceCell(n)
	if n.MinReplicasToWrite >= 0 {
		fenced.Text += fmt.Sprintf(" (min-replicas-to-write %d)", n.MinReplicasToWrite)
	}
	facts := []Fact{{Label: "Server", Text: server}, {Label: "Run id", Text: c.Whole(n.RunID)}, {Label: "Data", Text: data}}
	if n.State.Answers() {
		if locks := nodeLocks(c, n); locks != "" {
			copies := "copies"
			if n.Locks == 1 {
				copies = "copy"
			}
			facts = append(facts, Fact{Label: "Locks", Text: locks + " " + copies})
		}
	}
	return append(facts, Fact{Label: "Memory", Text: memory},
		Fact{Label: "Clients", Text: Count(n.Clients) + ", and " + Plural(n.Replicas, "replica")},
		Fact{"Fence", fenced.Text, fenced.Tone})
}

var rttText = answerCell(func(_ *Context, n *monitor.Node) string {
	if n.RTT == 0 {
		return ""
	}
	return Milliseconds(n.RTT)
})
