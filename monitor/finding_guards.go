package monitor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"redlockctl/internal/announce"
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
func guardDelays(k known, f *Finding) bool {
	all, _ := k.Guards()
	if len(all) == 0 {
		return false
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
	text := strings.Join(said, ", ")
	switch {
	case most.Absurd:
		f.Title = "a guard announces a delay that no configuration allows"
		f.Consequence = "Nodes that restart stay fenced for " + announce.MostDelay.String() + "."
		f.Remedy = "Find who subscribes to its channel (CLIENT LIST, PUBSUB CHANNELS " + announce.Pattern + "), end it, and open nodes by hand where that is safe."
	case most.Delay != least.Delay:
	case most.Delay > 0 && most.Delay < k.Cluster.MaxTTL:
		f.Title = "the guard's delay is shorter than this configuration's max_ttl"
		f.Consequence = "A node votes again while locks with such a TTL are still believed in: two clients may hold one lock."
		text += "; max_ttl here is " + k.Cluster.MaxTTL.Round(time.Millisecond).String()
	default:
		return false
	}
	return f.seen("%s", text)
}

// notProtected is the finding of nodes on which no guard is seen.
func notProtected(k known, f *Finding) bool {
	var unguarded, hidden []string
	for i := range k.Nodes {
		n := &k.Nodes[i]
		if !readable(n.State) {
			continue
		}
		switch protectionOf(n, k.guard) {
		case unguardedNode:
			unguarded = append(unguarded, n.Name)
		case hiddenNode:
			hidden = append(hidden, n.Name)
		}
	}
	if len(unguarded) > 0 {
		return f.seen("no guard is seen on %s", strings.Join(unguarded, ", "))
	}
	f.Title = "not known to be protected against restarts"
	f.Remedy = "Give this user the rights that redlockctl config acl --role observer prints, so that a guard can be seen."
	return len(hidden) > 0 && f.seen("guards cannot be seen on %s: this user may not call PUBSUB CHANNELS", strings.Join(hidden, ", "))
}
