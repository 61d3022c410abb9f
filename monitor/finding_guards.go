package monitor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"redlockctl/internal/announce"
	"redlockctl/internal/safetext"
)

// Guards are the restart guards that announce themselves on the nodes, each once, the
// one with the greatest D first; known: they could be read on every node that can be
// read at all, so that nobody else is there.
func (s *Snapshot) Guards() (all []announce.Guard, known bool) {
	hidden := false
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if readable(n.State) {
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

// GuardsRead reports whether the announcements of guards were read, or refused to this
// user, on every node that answers, and each node was asked; denied: on one of them
// they were refused. No node that answers is none that was read.
func (s *Snapshot) GuardsRead() (read, denied bool) {
	for i := range s.Nodes {
		switch n := &s.Nodes[i]; {
		case n.State == NodeUnknown:
			return false, false
		case !readable(n.State):
		case n.GuardsKnown || n.GuardsDenied:
			read, denied = true, denied || n.GuardsDenied
		default:
			return false, false
		}
	}
	return read, denied
}

// GuardName is a guard for people.
func GuardName(g announce.Guard) string {
	name := g.ID[:min(6, len(g.ID))]
	if !g.Host.Empty() {
		name = g.Host.String() + " (" + name + ")"
	}
	return name
}

// guardDelays: guards whose D is not the same, or too short.
func guardDelays(k known, tell func(Finding)) {
	all, _ := k.Guards()
	if len(all) == 0 {
		return
	}
	f := Finding{
		Severity: SeverityDanger, Title: "guards do not agree on the delay",
		Consequence: "Each waits for the greatest D that it sees. One that sees no other for a moment opens nodes by its own, and then two clients may hold one lock.",
		Remedy:      "Give all guards, consoles too, the same max_ttl and delay, and end those with an old configuration.",
	}
	most, least := all[0], all[len(all)-1]
	var said []string
	for _, g := range all[:min(len(all), 4)] {
		word := g.Delay.String()
		if g.Absurd {
			word = "more than " + word
		}
		said = append(said, GuardName(g)+": D "+word)
	}
	if len(all) > 4 {
		said = append(said, fmt.Sprintf("and %d more, the least %s", len(all)-4, least.Delay))
	}
	f.Evidence = safetext.New(strings.Join(said, ", "))
	switch {
	case most.Absurd:
		f.Title = "a guard announces a delay that no configuration allows"
		f.Consequence = "Nodes that restart stay closed for " + announce.MostDelay.String() + "."
		f.Remedy = "Find who subscribes to its channel (CLIENT LIST, PUBSUB CHANNELS " + announce.Pattern + "), end it, and open nodes by hand where that is safe."
	case most.Delay != least.Delay:
	case most.Delay > 0 && most.Delay < k.Cluster.MaxTTL:
		f.Title = "the guard's delay is shorter than this configuration's max_ttl"
		f.Evidence = safetext.New(f.Evidence.Raw() + "; max_ttl here is " + k.Cluster.MaxTTL.Round(time.Millisecond).String())
		f.Consequence = "A node votes again while locks with such a TTL are still believed in: two clients may hold one lock."
	default:
		return
	}
	tell(f)
}
