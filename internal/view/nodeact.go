package view

import (
	"fmt"
	"slices"
	"time"

	"redlockctl/monitor"
	"redlockctl/monitor/words"
	"redlockctl/restartguard"
	"redlockctl/server/safetext"
)

// MayServe says when a node that does not serve may do so, as announced by the guards
// that watch it; empty: no guard is seen there.
func MayServe(n *monitor.Node, now time.Time) string {
	at, known := n.MayRejoin(now)
	switch {
	case n.State == monitor.NodeCordoned && known && at.After(now):
		return "once uncordoned it may serve from " + Clock(at) + " (" + Remaining(at.Sub(now)) + ")"
	case n.State == monitor.NodeCordoned && n.Drained():
		return "drained: a restart forgets nothing"
	case n.State == monitor.NodeCordoned && len(n.Guards) > 0:
		return "it may serve once uncordoned"
	case n.State == monitor.NodeFenced && known && at.After(now):
		return "its guard lets it rejoin from " + Clock(at) + " (" + Remaining(at.Sub(now)) + ")"
	case n.State == monitor.NodeFenced && len(n.Guards) > 0:
		return "its guard lets it rejoin when it may vote"
	}
	return ""
}

// CopiesLeft says how many copies are left on a node that takes no new ones, and when the last one
// ends; a zero end is not known, or never.
func CopiesLeft(count int, last, now time.Time) string {
	text := Plural(count, "copy left", "copies left")
	switch {
	case count == 0:
		return ""
	case last.After(now):
		text += ", the last ends at " + Clock(last) + " (" + Remaining(last.Sub(now)) + ")"
	}
	return text
}

// DrainLeft says what a node that is being drained still waits for; empty: nothing.
func DrainLeft(n *monitor.Node, now time.Time) string {
	switch {
	case n == nil || n.Drained():
		return ""
	case n.Locks > 0:
		return CopiesLeft(n.Locks, n.CopiesUntil, now)
	case len(n.Guards) > 0:
		return GuardMustSee
	}
	return ""
}

// DrainCutShort says that a node is not cordoned any more and was not seen empty.
func DrainCutShort(n *monitor.Node) string {
	return "not drained: the cordon was ended meanwhile: the node is " + n.State.String() + " and may have new copies"
}

// GuardMustSee is what an empty node still waits for.
const GuardMustSee = "no copy is left; a guard has to see that too"

// CordonFacts says what cordoning a node means.
func CordonFacts(s *monitor.Snapshot, name string) []Fact {
	n, c := s.Node(name), &s.Cluster
	serving := c.Serving
	if n != nil && n.State == monitor.NodeServing {
		serving--
	}
	then := Fact{Text: fmt.Sprintf("then %d of %d nodes serve, the quorum is %d", serving, c.N, c.Quorum)}
	if serving < c.Quorum {
		then.Label, then.Text, then.Tone = "Risk", then.Text+": NOTHING can be locked any more, and no lock can be extended", Bad
	}
	facts := []Fact{{Label: "Effect", Text: "it refuses writes until a person uncordons it; no guard lets it rejoin. Its copies expire, and are not extended"}, then}
	if serving >= c.Quorum {
		facts = append(facts, needed(s, name)...)
	}
	return facts
}

// needed says which locks could not be extended without a node.
func needed(s *monitor.Snapshot, node string) []Fact {
	locks := s.Needing(slices.IndexFunc(s.Nodes, func(n monitor.Node) bool { return n.Name == node }))
	risk := Fact{Label: "Risk", Tone: Warn}
	switch {
	case len(locks) > 0:
		names := make([]string, len(locks))
		for i, l := range locks {
			names[i] = l.Key.Word()
		}
		risk.Text = Plural(len(locks), "lock needs", "locks need") + " it: " + words.Names(names) +
			". Once it refuses writes, no such lock can be extended: it is lost at its end unless its holder puts a copy elsewhere"
		if !s.Complete {
			risk.Text += ". Not all locks are read: others may need it too"
		}
	case !s.Complete:
		risk.Text = "not all locks are read: some may need it to be extended"
	default:
		return nil
	}
	return []Fact{risk}
}

// cordonedFacts says when a node was cordoned, by whom and why, and how to go on with the restart that it was
// cordoned for, as far as that is known here.
func cordonedFacts(n *monitor.Node, now time.Time) []Fact {
	if n.Cordon == nil {
		return nil
	}
	facts := []Fact{{Label: "Cordoned", Text: safetext.Escape(n.Cordon.Told(now)) + ", by the audit log here"}}
	if how := n.Cordon.GoOn(); how != "" {
		facts = append(facts, Fact{Text: safetext.Escape(how)})
	}
	return facts
}

// UncordonFacts says what the end of a cordon means, and who began it, if that is known here.
func UncordonFacts(n *monitor.Node, now time.Time) (facts []Fact) {
	if n != nil {
		facts = cordonedFacts(n, now)
	}
	facts = append(facts, Fact{Label: "Effect", Text: "it ends the cordon, and nothing else: the guards let it rejoin when it may vote"})
	switch {
	case n == nil:
		return facts
	case len(n.Guards) == 0:
		return append(facts, Fact{Text: "no guard is seen there: it stays fenced until one is started", Tone: Warn})
	}
	return append(facts, Fact{Text: MayServe(n, now)})
}

// RejoinFacts says what happens if a node serves before its guard lets it rejoin.
func RejoinFacts(g *Guard, node string, now time.Time) []Fact {
	effect := Fact{Label: "Effect", Text: "it accepts writes and votes at once"}
	s, ok := g.Status[node]
	if ok && s.Phase == restartguard.PhaseFenced && s.Until.After(now) {
		return []Fact{effect, {"Risk", "it is safe only in " + Remaining(s.Until.Sub(now)) + ": before that a lock that it lost can be granted a second time: TWO HOLDERS", Bad}}
	}
	risk := "if it restarted or lost locks less than D ago, such a lock can be granted a second time: TWO HOLDERS"
	if g.Delay > 0 {
		risk += " (D = " + Span(g.Delay) + ")"
	}
	return []Fact{effect, {"Risk", risk, Warn}}
}
