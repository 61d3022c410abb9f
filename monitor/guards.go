package monitor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"redlockctl/monitor/words"
	"redlockctl/server/announce"
)

// Guards returns the restart guards that announce themselves on the nodes, each once, the
// one with the greatest D first. known: they could be read on every readable node, so
// there are no others.
func (s *Snapshot) Guards() (all []announce.Guard, known bool) {
	hidden := false
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.State.Readable() {
			known = known || n.GuardsKnown
			hidden = hidden || !n.GuardsKnown
		}
		for _, g := range n.Guards {
			if j := slices.IndexFunc(all, g.Same); j < 0 {
				all = append(all, g)
			} else if g.Delay > all[j].Delay {
				all[j] = g
			}
		}
	}
	slices.SortStableFunc(all, func(a, b announce.Guard) int {
		if a.Delay != b.Delay {
			return int(min(max(b.Delay-a.Delay, -1), 1))
		}
		return strings.Compare(a.ID, b.ID)
	})
	return all, known && !hidden
}

// GuardsRead reports whether the announcements of guards were read on every node that
// answers, or refused to this user (denied: by at least one), and each node was asked. It
// is false if no node answers.
func (s *Snapshot) GuardsRead() (read, denied bool) {
	for i := range s.Nodes {
		switch n := &s.Nodes[i]; {
		case n.State == NodeUnknown:
			return false, false
		case !n.State.Readable():
		case n.GuardsKnown || n.GuardsDenied:
			read, denied = true, denied || n.GuardsDenied
		default:
			return false, false
		}
	}
	return read, denied
}

// GuardName returns the name of a guard for people.
func GuardName(g announce.Guard) string {
	name := g.ID[:min(6, len(g.ID))]
	if !g.Host.Empty() {
		name = g.Host.String() + " (" + name + ")"
	}
	return name
}

// GuardView is what findings know of the restart guard in this process.
type GuardView struct {
	// Nodes are those that the guard fences after a loss, by name.
	Nodes map[string]GuardedNode
	// Outlook says when a quorum is back, while there is none; empty: unknown.
	Outlook string
	Delay   time.Duration // D
}

// GuardedNode is a node as its guard sees it.
type GuardedNode struct {
	RunID    string    // of the incarnation that it knows, of which all this is; empty: not said
	Known    bool      // a start of it was seen, so Verified is meaningful
	Verified bool      // its last start was fenced
	Exposed  bool      // it accepts writes although it should be fenced
	AtStart  bool      // because it started unfenced, not because of a wipe or a clock step
	Since    time.Time // of Exposed
	// OpenFor is the exposure of its last incarnation: how long it served before it was
	// fenced.
	OpenFor time.Duration
	Err     string // why it could not be fenced, let rejoin, or reached
	Invalid string // answer to the guard that no Redis server gives; empty: none
}

// Witness is what a guard on another host reports about the nodes while this monitor cannot reach them.
type Witness struct {
	Guard   string    // for people, safe to print
	At      time.Time // when it answered; zero: it has not
	Err     string    // why it did not; empty too: it has yet to
	Serving int       // nodes that it sees serve
	Others  string    // what it sees the others do: "n2 fenced, n4 slow"
}

// Asked reports whether it has answered, or will not.
func (w *Witness) Asked() bool { return !w.At.IsZero() || w.Err != "" }

// witnessText says what the guards that were asked see, the latest answer first; empty:
// none was asked.
func (s *Snapshot) witnessText() string {
	var best *Witness
	for i := range s.Witnesses {
		if w := &s.Witnesses[i]; best == nil || w.At.After(best.At) {
			best = w
		}
	}
	switch {
	case best == nil:
		return ""
	case best.At.IsZero() && best.Err == "":
		return "asking " + best.Guard
	case best.At.IsZero():
		return best.Guard + " cannot be asked: " + best.Err
	}
	text := fmt.Sprintf("%s saw %d of %d serve at %s, %s ago", best.Guard, best.Serving, s.Cluster.N, words.Moment(best.At, s.At), s.At.Sub(best.At).Round(time.Second))
	if best.Others != "" {
		text += " (" + best.Others + ")"
	}
	return text
}
