package view

import (
	"fmt"
	"time"

	"redlockctl/monitor"
	"redlockctl/restartguard"
)

// MayServe says when a node that does not serve may do so, as announced by the guards
// that watch it; empty: no guard is seen there.
func MayServe(n *monitor.Node, now time.Time) string {
	at, known := n.MayVote()
	switch {
	case n.State == monitor.NodeCordoned && known && at.After(now):
		return "once uncordoned it may serve from " + Clock(at) + " (" + Remaining(at.Sub(now)) + ")"
	case n.State == monitor.NodeCordoned && n.Drained():
		return "drained: a restart forgets nothing"
	case n.State == monitor.NodeCordoned && len(n.Guards) > 0:
		return "it may serve once uncordoned"
	case n.State == monitor.NodeFenced && known && at.After(now):
		return "it may serve from " + Clock(at) + " (" + Remaining(at.Sub(now)) + ")"
	case n.State == monitor.NodeFenced && len(n.Guards) > 0:
		return "its guard lets it rejoin when it may vote"
	}
	return ""
}

// CordonFacts says what cordoning a node means.
func CordonFacts(n *monitor.Node, c *monitor.Cluster) []Fact {
	serving := c.Serving
	if n != nil && n.State == monitor.NodeServing {
		serving--
	}
	then := Fact{Text: fmt.Sprintf("then %d of %d nodes serve, the quorum is %d", serving, c.N, c.Quorum)}
	if serving < c.Quorum {
		then.Text, then.Tone = then.Text+": NOTHING can be locked any more, and no lock can be extended", Bad
	}
	return []Fact{{Label: "Effect", Text: "it refuses writes until a person uncordons it; no guard lets it rejoin. Its copies expire, and are not extended"}, then}
}

// UncordonFacts says what the end of a cordon means.
func UncordonFacts(n *monitor.Node, now time.Time) []Fact {
	effect := Fact{Label: "Effect", Text: "it ends the cordon, and nothing else: the guards let it rejoin when it may vote"}
	switch {
	case n == nil:
		return []Fact{effect}
	case len(n.Guards) == 0:
		return []Fact{effect, {Text: "no guard is seen there: it stays fenced until one is started", Tone: Warn}}
	}
	return []Fact{effect, {Text: MayServe(n, now)}}
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
