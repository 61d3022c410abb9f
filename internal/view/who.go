package view

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"redlockctl/internal/who"
	"redlockctl/redlock"
	"redlockctl/server/safetext"
)

// WhoHeadline returns in one line who holds a lock and how that is known. The odds of an
// inference come before the name, which may be long and cut.
func WhoHeadline(w *who.Answer) string {
	times := Plural(w.Events, "change of the lock", "changes of the lock")
	held := "held by "
	if w.N > 0 && w.Held > 0 && w.Held < redlock.Quorum(w.N) {
		held = "its copies were made by "
	}
	switch {
	case w.Method == who.Told:
		return held + w.Owner.String() + "  (told by its token)"
	case w.Method == who.Inferred:
		text := fmt.Sprintf("inferred %s, from %s: %s%s?", whoOdds(w), times, held, w.Group)
		if w.Shared {
			text += "  (whoever connects from there without a name)"
		}
		return text
	case w.Method == who.Seen:
		return fmt.Sprintf("held by %s  (seen in the traffic of %s)", w.Group, safetext.Escape(w.MonitorOn))
	case w.MonitorOn != "":
		return "holder not known; it sent nothing with this token to " + safetext.Escape(w.MonitorOn)
	case len(w.Likely) == 0:
		return "holder not known (" + times + " seen); the token tells nobody"
	}
	var names []string
	for _, c := range w.Likely {
		names = append(names, fmt.Sprintf("p %.2f %s", c.P, c.Group))
	}
	return "holder not known (" + times + " seen); candidates: " + strings.Join(names, ", ")
}

// WhoHint says what names a holder that could not be inferred; empty if one is named.
func WhoHint(w *who.Answer) string {
	if w.Method != who.Unknown || w.Held == 0 || w.MonitorOn != "" {
		return ""
	}
	text, node := "in seconds, and for certain", "NODE"
	if len(w.Uncounted) > 0 {
		text, node = WhoUncounted(w.Uncounted...)+". "+text, safetext.Escape(w.Uncounted[0])
	}
	return fmt.Sprintf("%s: redlockctl who %s --monitor --node %s --reason TEXT", text, safetext.Escape(w.Key), node)
}

// WhoUncounted says what nodes lack that do not count the commands of connections.
func WhoUncounted(nodes ...string) string {
	does := "do"
	if len(nodes) == 1 {
		does = "does"
	}
	return safetext.Escape(strings.Join(nodes, " ")) + " " + does + " not count the commands of each connection (Valkey does since 8.1), so often nobody can be named"
}

// WhoRefused says why too few nodes can be watched to find the holder; empty if enough
// can.
func WhoRefused(w *who.Answer) string {
	can := w.N - len(w.Unusable)
	if can >= redlock.Quorum(w.N) {
		return ""
	}
	first := slices.Min(slices.Collect(maps.Keys(w.Unusable)))
	return fmt.Sprintf("%d of %d nodes can be watched: %s: %s", can, w.N, safetext.Escape(first), w.Unusable[first])
}

// whoFresh is how long an answer counts as current.
const whoFresh = 2 * time.Second

// WhoLiveness says whether the holder is alive, and how that is known; empty if unknown.
// later is the age of the answer: an old "alive" says nothing about now.
func WhoLiveness(w *who.Answer, later time.Duration) string {
	if w.Liveness == who.Alive && later >= whoFresh {
		return "when asked, " + Age(later) + " ago: " + WhoLiveness(w, 0)
	}
	var parts []string
	if w.Liveness != "" {
		parts = append(parts, string(w.Liveness))
	}
	switch {
	case w.Extends == 0 && w.Usually > 0:
		parts = append(parts, "not extended for "+Age(w.Extended+later)+" at least, usually every "+Span(w.Usually.Round(100*time.Millisecond)))
	case w.Extends > 0:
		last := "last extended " + Age(w.Extended+later) + " ago"
		if w.Usually > 0 {
			last += ", usually every " + Span(w.Usually.Round(100*time.Millisecond))
		}
		parts = append(parts, last)
	}
	open, closed := w.Nodes()
	latest := time.Duration(-1)
	var gone []string
	for node, since := range closed {
		gone = append(gone, safetext.Escape(node)+" "+Age(since+later)+" ago")
		if latest < 0 || since < latest {
			latest = since
		}
	}
	slices.Sort(gone)
	switch {
	case noneNamed(w):
		parts = append(parts, noneNamedText(w))
	case len(w.Conns) == 0:
	case len(open) == 0:
		parts = append(parts, fmt.Sprintf("its last connection was seen closed %s ago on %d of %d nodes", Age(latest+later), len(closed), w.N))
	case len(gone) > 0:
		parts = append(parts, "connections open on "+safetext.Escape(strings.Join(open, " "))+", closed on "+strings.Join(gone, ", "))
	default:
		parts = append(parts, fmt.Sprintf("connections open on %d of %d nodes", len(open), w.N))
	}
	return strings.Join(parts, "; ")
}

// noneNamed reports whether the holder names its connections and none of them is open.
func noneNamed(w *who.Answer) bool { return len(w.Conns) == 0 && w.Named }

// WhoThere says in a few words whether the holder is alive; empty if unknown.
func WhoThere(w *who.Answer) string {
	if w.Liveness == "" && noneNamed(w) {
		return noneNamedText(w)
	}
	return string(w.Liveness)
}

func noneNamedText(w *who.Answer) string {
	return fmt.Sprintf("no open connection with its name (%d of %d nodes checked)", w.N-len(w.Unusable), w.N)
}

// WhoConns returns the connections of the holder as a table.
func WhoConns(w *who.Answer) *Table {
	t := NewTable("NODE", "CLIENT", "NAME", "USER", "LIBRARY", "OPEN FOR", "FIND ITS PROCESS THERE")
	for _, c := range w.Conns {
		age, find := Age(time.Duration(c.Age)*time.Second), c.Find
		if c.Gone > 0 {
			age, find = "closed "+Age(c.Gone)+" ago", ""
		}
		var row []Cell
		for _, text := range []string{safetext.Escape(c.Node), c.Addr.String(), c.Name.String(), c.User.String(), c.Library.String(), age, find} {
			row = append(row, Cell{Text: text})
		}
		t.Add(row...)
	}
	return t
}

// WhoFacts returns an earlier answer, for the page of its lock. If a node has several
// connections of the holder, it shows the one used last.
func WhoFacts(c *Context, w *who.Answer) []Fact {
	later := max(0, c.Now.Sub(w.At))
	held := WhoHeadline(w)
	for _, words := range []string{"held by ", "its copies were made by "} {
		held = strings.Replace(held, words, "", 1)
	}
	facts := []Fact{{Label: "Held by", Text: held + ", asked " + Age(later) + " ago"}}
	if hint := WhoHint(w); hint != "" {
		facts = append(facts, Fact{Text: hint})
	}
	if life := WhoLiveness(w, later); life != "" {
		tone := None
		if w.Liveness != who.Alive {
			tone = Warn
		}
		facts = append(facts, Fact{"Alive", life, tone})
	}
	facts = append(facts, WhoFind(c, w)...)
	best := map[string]who.NodeConn{}
	for _, conn := range w.Conns {
		if was, ok := best[conn.Node]; !ok || cmp.Or(cmp.Compare(conn.Gone, was.Gone), cmp.Compare(conn.Idle, was.Idle)) < 0 {
			best[conn.Node] = conn
		}
	}
	label := "From"
	for _, conn := range w.Conns {
		if best[conn.Node].ID != conn.ID || conn.Gone > 0 {
			continue
		}
		text := c.Name(conn.Node) + ": " + c.Whole(conn.Addr.Raw())
		for _, more := range []string{conn.User.Raw(), conn.Library.Raw()} {
			if more != "" {
				text += ", " + c.Whole(more)
			}
		}
		text += ", open for " + Age(time.Duration(conn.Age)*time.Second+later)
		facts = append(facts, Fact{Label: label, Text: text})
		label = ""
	}
	return facts
}

// WhoFind returns the commands that find the holder's process, one line per host, so that
// each can be copied.
func WhoFind(c *Context, w *who.Answer) (facts []Fact) {
	label, hosts := "Find it", map[string]bool{}
	for _, conn := range w.Conns {
		addr := conn.Addr.Raw()
		host := addr[:max(0, strings.LastIndexByte(addr, ':'))]
		if conn.Gone > 0 || conn.Find == "" || hosts[host] {
			continue
		}
		hosts[host] = true
		facts = append(facts, Fact{Label: label, Text: conn.Find + "  # on " + c.Whole(host)})
		label = ""
	}
	return facts
}
