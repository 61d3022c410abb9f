package finding

import (
	"fmt"
	"strings"
	"time"

	"redlockctl/monitor"
	"redlockctl/server/announce"
)

// guardDelays: the guards' D differ, or are too short.
func guardDelays(k known, f *found) bool {
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
		said = append(said, monitor.GuardName(g)+": D "+word)
	}
	if len(all) > 4 {
		said = append(said, fmt.Sprintf("and %d more, the least %s", len(all)-4, least.Delay))
	}
	text := strings.Join(said, ", ")
	switch {
	case most.Absurd:
		f.Title = "a guard announces an invalid delay"
		f.Consequence = "Nodes that restart stay fenced for " + announce.MostDelay.String() + "."
		f.Remedy = "Find who subscribes to its channel (CLIENT LIST, PUBSUB CHANNELS " + announce.Pattern + "), end it, and let nodes rejoin by hand if that is safe."
	case most.Delay != least.Delay:
	case most.Delay > 0 && most.Delay < k.Cluster.MaxTTL:
		f.Title = "the guard's delay is shorter than this configuration's max_ttl"
		f.Consequence = "A node votes again while clients still rely on locks with such a TTL: two clients may hold one lock."
		text += "; max_ttl here is " + k.Cluster.MaxTTL.Round(time.Millisecond).String()
	default:
		return false
	}
	return f.seen("%s", text)
}

func notProtected(k known, f *found) bool {
	var unguarded, hidden []string
	for i := range k.Nodes {
		n := &k.Nodes[i]
		if !n.State.Readable() {
			continue
		}
		switch monitor.ProtectionOf(n, k.guard) {
		case monitor.ProtectionNone:
			unguarded = append(unguarded, n.Name)
		case monitor.ProtectionHidden:
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

// invalidAnswers: the server sends the guard answers that no Redis server gives.
func invalidAnswers(k known, n *monitor.Node, f *found) bool {
	g, ok := k.guardOf(n.Name)
	return ok && g.Invalid != "" && n.State.Readable() && f.seen("%s", g.Invalid)
}

// recordFails: nothing is recorded on this machine, and it should be.
func recordFails(k known, f *found) bool {
	return k.recording != nil && f.seen("%s", k.recording)
}
