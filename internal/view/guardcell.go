package view

import (
	"cmp"
	"strings"
	"time"

	"redlockctl/monitor"
	"redlockctl/restartguard"
	"redlockctl/server/safetext"
)

// GuardCell says why a guard keeps a node out of the quorum, or when it rejoins.
func GuardCell(c *Context, n *monitor.Node) Cell {
	g := &c.Guard
	switch n.State {
	case monitor.NodeDown, monitor.NodeSlow, monitor.NodeDenied, monitor.NodeWrongRole:
		why := n.State.String()
		if !n.Err.Empty() && c.Short {
			why = c.Sentence(strings.TrimSuffix(lastClause(n.Err.Raw()), " at "+n.Addr), 32)
		} else if !n.Err.Empty() {
			why = c.Whole(n.Err.Raw())
		}
		return Cell{Text: why + NodeSince(c, n), Tone: c.NodeState(n.State).Tone}
	case monitor.NodeLoading:
		return Cell{Text: "reading its data" + NodeSince(c, n), Tone: Warn}
	}
	if text := docOfExposed(n).text(); text != "" {
		return Cell{Text: text, Tone: Bad}
	}
	s, ok := g.Status[n.Name]
	switch {
	case ok && s.Phase == restartguard.PhaseFenced && !s.Until.IsZero() && (g.Here || n.State == monitor.NodeFenced): // what is read of a memory is a second old
		return Cell{Text: countdownText(c, s), Tone: Warn}
	case n.State == monitor.NodeCordoned, ok && s.Phase == restartguard.PhaseCordoned:
		may := MayServe(n, c.Now)
		if at, known := n.MayRejoin(c.Now); n.Locks > 0 && (!known || !at.After(c.Now)) {
			may = CopiesLeft(n.Locks, n.CopiesUntil, c.Now)
		}
		if may != "" {
			return Cell{Text: "cordoned: " + may, Tone: Warn}
		}
		if c.Short {
			return Cell{Text: "cordoned by an operator: U uncordons it", Tone: Warn}
		}
		return Cell{Text: "cordoned by an operator: node uncordon ends that", Tone: Warn}
	case n.Leak != "":
		return Cell{Text: "its fence does not hold: " + c.Whole(n.Leak), Tone: Bad}
	case g.Here && ok && s.Phase == restartguard.PhaseFenced && s.Err == "":
		return Cell{Text: "fenced by the guard", Tone: Warn}
	case ok && s.Phase == restartguard.PhaseExposed:
		return Cell{Text: "EXPOSED: must be fenced, and serves !", Tone: Bad}
	case n.State == monitor.NodeFenced && g.Here:
		return Cell{Text: "fenced, the guard is looking" + c.Ellipsis, Tone: Warn}
	case n.State == monitor.NodeFenced:
		who := "a guard"
		if len(n.Guards) > 0 {
			who = guardName(n.Guards[0])
		}
		text := "waits for " + who
		if at, ok := g.NotBefore(n, c.Now); ok {
			text = notBefore(at, c.Now) + ", " + who
		} else if g.Delay > 0 {
			text += ", D = " + Span(g.Delay)
			if len(n.Guards) > 0 && !n.Since.IsZero() { // the start of its wait is not announced
				over := ""
				if c.Now.Sub(n.Since) > g.Delay+fenceSlack {
					over = "over "
				}
				text = "seen fenced " + c.age(n.Since) + ", " + over + "D = " + Span(g.Delay) + ", " + who
			}
		}
		return Cell{Text: text, Tone: Warn}
	case ok && s.Phase == restartguard.PhaseUnreachable:
		return Cell{Text: "guard: " + c.Whole(s.Err), Tone: Warn}
	case !g.Here && n.GuardsKnown && len(n.Guards) == 0 && n.State != monitor.NodeUnknown: // what one saw of its last start is on the guard's page
		return Cell{Text: "no guard here", Tone: Dim}
	case ok && s.Phase == restartguard.PhaseServing, len(n.Guards) > 0 && !(ok && g.Here):
		switch g.BootFence(n) {
		case StartedFenced:
			return Cell{Sign: c.Verified, Text: StartedFenced, Tone: Dim}
		case StartedUnfenced:
			return Cell{Sign: "!", Text: StartedUnfenced, Tone: Warn}
		}
		return Cell{Sign: "!", Text: StartUnseen, Tone: Warn}
	case n.State == monitor.NodeUnknown, g.Here, !n.GuardsKnown && len(g.Others) > 0:
		return Cell{Text: c.Ellipsis, Tone: Dim}
	case !n.GuardsKnown: // it may not be read, or was not recorded
		return Cell{Text: "guards not known", Tone: Dim}
	}
	return Cell{Text: "no guard here", Tone: Dim}
}

// fenceSlack is how much longer than D a guard may take to let a node rejoin.
const fenceSlack = 5 * time.Second

// GuardMore returns what else a guard knows about a node that does not serve.
func GuardMore(c *Context, n *monitor.Node) string {
	s := c.Guard.Status[n.Name]
	var more []string
	if s.Phase == restartguard.PhaseFenced && s.Proven {
		more = append(more, "a write was refused")
	}
	if !s.Out.IsZero() {
		more = append(more, "out for "+c.age(s.Out))
	}
	if s.Phase == restartguard.PhaseServing && s.BootExposed > 0 {
		more = append(more, "unfenced for "+restartguard.AtMost(s.BootExposed).String()+" at its start")
	}
	return strings.Join(more, ", ")
}

// barCells is the width of the bar of a countdown.
const barCells = 12

func countdownText(c *Context, s restartguard.NodeStatus) string {
	left := max(0, s.Until.Sub(c.Now))
	text := "rejoins in " + Left(left)
	if c.Short {
		whole := c.Guard.Delay
		if whole <= 0 {
			whole = s.Until.Sub(s.Since)
		}
		text = c.Bar(float64(left)/float64(max(1, whole)), barCells) + " " + Remaining(left)
		if left == 0 {
			text = c.Bar(0, barCells) + " rejoining"
		}
	}
	if s.Reason != "" {
		text += ", " + c.Whole(s.Reason)
	}
	return text
}

func notBefore(at, now time.Time) string {
	return "not before " + Clock(at) + " (" + Remaining(at.Sub(now)) + ")"
}

// lastClause returns the last clause of an error, which says what went wrong.
func lastClause(s string) string {
	if i := strings.LastIndex(s, ": "); i >= 0 && i+2 < len(s) {
		return s[i+2:]
	}
	return s
}

// GuardDoc is what a guard knows about a node, without what it remembers of an earlier
// incarnation or another server.
type GuardDoc struct {
	Name         safetext.Text `json:"name"`
	Addr         safetext.Text `json:"addr"`
	State        string        `json:"state"` // as seen now
	Method       string        `json:"method"`
	Known        bool          `json:"known"`      // the guard has met this incarnation of it
	BootFence    string        `json:"boot_fence"` // verified, started unfenced, or start not seen yet
	Incarnations int           `json:"incarnations,omitempty"`
	Cordoned     bool          `json:"cordoned,omitempty"`
	RejoinMs     *int64        `json:"rejoin_ms,omitempty"`
	ExposedDoc
	Cause string `json:"-"` // why it waits
}

// ExposedDoc says that a node serves before it may vote.
type ExposedDoc struct {
	Exposed     bool       `json:"exposed,omitempty"`
	MayVoteFrom *time.Time `json:"may_vote_from,omitempty"` // nil: a record does not have it
}

func docOfExposed(n *monitor.Node) ExposedDoc { return ExposedDoc{n.Early, jsonTime(n.EarlyUntil)} }

// text says that the node serves before it may vote, and from when it may; empty: it does not.
func (d ExposedDoc) text() string {
	switch {
	case !d.Exposed:
		return ""
	case d.MayVoteFrom == nil:
		return "EXPOSED: may not vote yet"
	}
	return "EXPOSED: may vote from " + Clock(d.MayVoteFrom.Local())
}

// DocOfGuarded returns what is known of a node; own is what a guard knows of its start, besides what
// is announced.
func DocOfGuarded(n *monitor.Node, method string, own monitor.GuardedNode) GuardDoc {
	return GuardDoc{
		Name: safetext.New(n.Name), Addr: safetext.New(n.Addr), State: n.State.String(), Method: method,
		BootFence: startWord(n.Started(own)), ExposedDoc: docOfExposed(n),
	}
}

// GuardColumns are the columns of what a guard knows about nodes; stopped: no guard runs.
func GuardColumns(stopped bool) []Column[GuardDoc] {
	return []Column[GuardDoc]{{
		Name: "NODE", Help: "name in the configuration", Fields: []string{"name"}, Compare: compareBy(func(n GuardDoc) string { return n.Name.Raw() }),
		Cell: textOf(func(n GuardDoc) string { return n.Name.Raw() }),
	}, {
		Name: "STATE", Help: "one of the [states](#states-of-nodes)", Fields: []string{"state"}, Compare: compareBy(func(n GuardDoc) string { return n.State }),
		Cell: func(c *Context, n GuardDoc) Cell {
			switch {
			case n.Exposed:
				return Cell{Text: n.State, Tone: Bad}
			case n.State == monitor.NodeServing.String():
				return Cell{Text: n.State, Tone: Good}
			}
			return Cell{Text: n.State, Tone: Warn}
		},
	}, {
		Name: "REJOINS IN", Help: "time until the guard lets it rejoin; `EXPOSED`: it serves before it may vote", Compare: byRejoin, Fields: []string{"rejoin_ms", "exposed", "may_vote_from"},
		Cell: func(c *Context, n GuardDoc) Cell {
			if n.Exposed {
				return Cell{Text: n.Rejoins(stopped), Tone: Bad}
			}
			return c.orNone(n.Rejoins(stopped))
		},
	}, {
		Name: "BOOT FENCE", Help: "whether its last start was fenced, as far as a guard saw: `verified`, `started unfenced`, `start not seen yet`; `does not hold`: writes get through", Compare: compareBy(func(n GuardDoc) string { return n.BootFence }), Fields: []string{"boot_fence"},
		Cell: textOf(func(n GuardDoc) string { return n.BootFence }),
	}, {
		Name: "INCARNATIONS", Help: "how many incarnations the guard has seen", Fields: []string{"incarnations"}, Compare: compareBy(func(n GuardDoc) int { return n.Incarnations }), Right: true,
		Cell: countOf(func(n GuardDoc) int { return n.Incarnations }),
	}, {
		Name: "METHOD", Help: "how it is fenced: `fence` in the configuration", Compare: compareBy(func(n GuardDoc) string { return n.Method }), Fields: []string{"method"}, Cell: textOf(func(n GuardDoc) string { return n.Method }),
	}}
}

// Rejoins says when a node rejoins; empty if it serves.
func (n GuardDoc) Rejoins(stopped bool) string {
	switch {
	case n.Exposed:
		return n.text()
	case n.RejoinMs != nil:
		return Left(time.Duration(*n.RejoinMs) * time.Millisecond)
	case n.Cordoned || n.State == monitor.NodeCordoned.String():
		return "cordoned"
	case n.State != monitor.NodeFenced.String():
		return ""
	case stopped:
		return "no guard runs"
	}
	return "not known here"
}

// byRejoin compares nodes by when they rejoin, unknown times last.
func byRejoin(a, b GuardDoc) int {
	switch {
	case a.RejoinMs == nil && b.RejoinMs == nil:
		return 0
	case a.RejoinMs == nil:
		return 1
	case b.RejoinMs == nil:
		return -1
	}
	return cmp.Compare(*a.RejoinMs, *b.RejoinMs)
}

// GuardsDoc is the memory of a guard on this machine, and the present state of the nodes.
type GuardsDoc struct {
	DelayMs  int64         `json:"delay_ms"`
	StateDir safetext.Text `json:"state_dir"`
	Memory   string        `json:"memory"` // there, none or unreadable
	GuardsSeenDoc
	Remembered []KnownDelayDoc `json:"guards_remembered,omitempty"` // whose D counts, and who are not seen now
	Error      *safetext.Text  `json:"error,omitempty"`
	Nodes      []GuardDoc      `json:"nodes"`
	OutlookDoc
	Outlook *safetext.Text `json:"outlook,omitempty"`
}

// Guard returns the same as a [Guard].
func (g GuardsDoc) Guard(s *monitor.Snapshot) Guard {
	var list []restartguard.NodeStatus
	for i, one := range g.Nodes {
		status := restartguard.NodeStatus{Node: s.Nodes[i].Name, Known: one.BootFence != StartUnseen, Verified: one.BootFence == StartedFenced, Phase: restartguard.PhaseServing}
		if one.RejoinMs != nil {
			status.Phase, status.Until = restartguard.PhaseFenced, s.At.Add(time.Duration(*one.RejoinMs)*time.Millisecond)
			status.Reason = one.Cause
		}
		if status.Known || one.RejoinMs != nil {
			list = append(list, status)
		}
	}
	guard := NewGuard("", list)
	guard.Configured = time.Duration(g.DelayMs) * time.Millisecond
	guard.See(s)
	return guard
}

// Elsewhere reports whether only a guard elsewhere knows when a node rejoins.
func (g GuardsDoc) Elsewhere(n GuardDoc) bool {
	return n.RejoinMs == nil && !n.Cordoned && n.State == monitor.NodeFenced.String() && (g.Running == nil || *g.Running)
}

// OutlookDoc is what a guard waits for: which node rejoins first, and when there is a
// quorum again.
type OutlookDoc struct {
	FirstNode    *safetext.Text `json:"first_rejoin_node,omitempty"`
	FirstMs      *int64         `json:"first_rejoin_ms,omitempty"`
	QuorumBackMs *int64         `json:"quorum_back_ms,omitempty"`
}

// DocOfOutlook returns an outlook at a moment.
func DocOfOutlook(o restartguard.Outlook, now time.Time) (doc OutlookDoc) {
	if o.First != "" {
		doc.FirstNode, doc.FirstMs = safetext.Optional(o.First), MSUntil(o.FirstAt, now)
	}
	doc.QuorumBackMs = MSUntil(o.Until, now)
	return doc
}

// GuardsSeenDoc lists the guards that are known to run.
type GuardsSeenDoc struct {
	Running     *bool          `json:"guard_running,omitempty"` // left out: not known
	GuardsKnown bool           `json:"guards_known"`
	Guards      []SeenGuardDoc `json:"guards"`
}

// KnownDelayDoc is the D of another guard, as the guard on this machine remembers it.
type KnownDelayDoc struct {
	ID      string        `json:"id"`
	Host    safetext.Text `json:"host"`
	DelayMs int64         `json:"delay_ms"`
	Since   time.Time     `json:"since"`
}

// SeenGuardDoc is a guard that announces itself on nodes.
type SeenGuardDoc struct {
	ID      string          `json:"id"`
	Host    safetext.Text   `json:"host"`
	PID     int             `json:"pid,omitempty"`
	DelayMs int64           `json:"delay_ms"`
	On      []safetext.Text `json:"on"`
}
