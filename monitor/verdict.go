package monitor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"redlockctl/monitor/words"
	"redlockctl/server/announce"
)

// Dangers counts the findings with [SeverityDanger].
func (s *Snapshot) Dangers() int {
	n := 0
	for i := range s.Findings {
		if s.Findings[i].Severity == SeverityDanger {
			n++
		}
	}
	return n
}

// Gravest returns the severity of the cluster: of its most severe finding, or of its verdict: of a
// node that is fenced or cordoned no finding warns.
func (s *Snapshot) Gravest() Severity {
	gravest := s.Cluster.Verdict.severity()
	for i := range s.Findings {
		gravest = max(gravest, s.Findings[i].Severity)
	}
	return gravest
}

// severity returns the severity of what the verdict says.
func (v Verdict) severity() Severity {
	switch v {
	case VerdictSafe:
		return SeverityInfo
	case VerdictDanger, VerdictUnavailable:
		return SeverityDanger
	}
	return SeverityWarning
}

// countNodes counts which nodes serve and which do not.
func (s *Snapshot) countNodes() {
	c := &s.Cluster
	c.Serving, c.Hidden = 0, 0
	for i := range s.Nodes {
		switch n := &s.Nodes[i]; {
		case n.State == NodeServing, n.State == NodeDenied && n.LocksHidden:
			c.Serving++
		case n.State == NodeDenied:
			c.Hidden++
		}
	}
	c.CanLose = c.Serving - c.Quorum
	var absent []string
	for _, n := range s.NodesAbsent() {
		absent = append(absent, n.Name+" "+n.State.String())
	}
	c.Absent = words.Names(absent)
	s.countSilent()
}

// NodesAbsent returns the nodes that do not serve; if a sentence does not name them all,
// the worst first.
func (s *Snapshot) NodesAbsent() (absent []*Node) {
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.State != NodeServing {
			absent = append(absent, n)
		}
	}
	if len(absent) > words.MostNamed {
		slices.SortStableFunc(absent, func(a, b *Node) int { return b.State.Urgency() - a.State.Urgency() })
	}
	return absent
}

// countSilent finds out whether the silence of nodes says something of them. It does if
// the line from here works: another node was heard after they fell silent, and before, or
// for so long that they would have been heard too. Of nodes that were never heard, only
// the latter tells.
func (s *Snapshot) countSilent() {
	c := &s.Cluster
	silent, met := 0, true
	var first, last time.Time
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.SilentSince.IsZero() {
			continue
		}
		met = met && !n.Heard.IsZero()
		if silent++; n.SilentSince.After(last) {
			last = n.SilentSince
		}
		if first.IsZero() || n.SilentSince.Before(first) {
			first = n.SilentSince
		}
	}
	c.NotSeen, c.NotSeenSince = false, time.Time{}
	if possible := c.CanLose + c.Hidden; possible >= 0 || possible+silent < 0 {
		return
	}
	works := func(n Node) bool {
		return n.SilentSince.IsZero() && n.Heard.After(last) && (met && n.HeardSince.Before(first) || s.At.Sub(n.HeardSince) >= lineProven)
	}
	if slices.ContainsFunc(s.Nodes, works) {
		return
	}
	c.NotSeen, c.NotSeenSince = true, s.seenUntil()
}

// TooFewSeen reports whether no-quorum or not-seen is reported, and no single node that does not
// serve any more: what was found of one before goes on until it answers.
func (c *Cluster) TooFewSeen() bool { return c.Verdict == VerdictUnavailable || c.NotSeen }

// NodeDownID is the ID of the finding about a node that does not serve.
const NodeDownID = "node-down"

// lineProven is for how long a node must be heard again to show that the line works: those
// that are silent then are so by themselves.
const lineProven = 2 * time.Second

// Unproven reports whether the silence of nodes will soon say more than now: another is
// heard, not yet for long.
func (s *Snapshot) Unproven() bool {
	return s.Cluster.NotSeen && slices.ContainsFunc(s.Nodes, func(n Node) bool {
		return n.SilentSince.IsZero() && !n.HeardSince.IsZero() && s.At.Sub(n.HeardSince) < lineProven
	})
}

// seenUntil returns when the last of the silent nodes was heard.
func (s *Snapshot) seenUntil() (last time.Time) {
	for i := range s.Nodes {
		if n := &s.Nodes[i]; !n.SilentSince.IsZero() && n.Heard.After(last) {
			last = n.Heard
		}
	}
	return last
}

// NotSeenText says what this program sees, where that is too little to say more.
func (s *Snapshot) NotSeenText() string {
	seen := 0
	for i := range s.Nodes {
		if s.Nodes[i].State.Answers() {
			seen++
		}
	}
	text := fmt.Sprintf("this console sees %d of %d nodes", seen, s.Cluster.N)
	if at := s.Cluster.NotSeenSince; !at.IsZero() {
		text += " (since " + words.Moment(at, s.At) + ")"
	}
	return text + ": what clients can lock is not seen from here"
}

// Assess sets the verdict, its reason, and what is missing for a safe one. No other
// function decides that. heard: each node has been probed; settled: all locks have been
// read once, so findings exist; guard: the one in this process, or nil.
//
// The cluster is safe only if all nodes serve, no danger is found, and each node either
// stays out of the quorum after a restart (a guard watches it, and its last start was
// fenced, or its files say that the next one is) or loses nothing in one (see
// [Facts.Durable]).
func (s *Snapshot) Assess(heard, settled bool, guard *GuardView) {
	c := &s.Cluster
	s.countNodes()
	c.Missing, c.StartsUnseen = missing(s.Nodes, guard)
	c.Protected = heard && c.Missing == ""
	dangers := 0
	for i := range s.Findings {
		if f := &s.Findings[i]; f.Severity == SeverityDanger && f.ID != "no-quorum" { // that is VerdictUnavailable, while it is so
			dangers++
		}
	}
	switch {
	case heard && c.NotSeen:
		c.Verdict = VerdictUnknown
		if c.Reason = s.NotSeenText(); len(s.Witnesses) > 0 {
			c.Reason += "; " + s.witnessText()
		}
		return
	case heard && c.CanLose+c.Hidden < 0:
		c.Verdict = VerdictUnavailable
	case heard && c.CanLose < 0:
		c.Verdict = VerdictUnknown // a denied program cannot know
	case dangers > 0:
		c.Verdict = VerdictDanger
	case !heard:
		c.Verdict = VerdictUnknown
	case c.CanLose < c.N-c.Quorum:
		c.Verdict = VerdictDegraded
	case !settled, c.Absent != "":
		c.Verdict = VerdictUnknown // locks of serving nodes are hidden
	case s.Ripening > 0 && s.Young:
		c.Verdict = VerdictUnknown
	case !c.Protected:
		c.Verdict = VerdictUnprotected
	default:
		c.Verdict = VerdictSafe
	}
	// The worst first.
	var why []string
	say := func(text string) {
		if text != "" {
			why = append(why, text)
		}
	}
	danger := ""
	for i := range s.Findings {
		if f := &s.Findings[i]; f.Severity == SeverityDanger && f.ID != "no-quorum" {
			if danger = f.Title; f.Node != "" {
				danger = f.Node + ": " + danger
			}
			if dangers > 1 {
				danger = fmt.Sprintf("%d dangers, the first: %s", dangers, danger)
			}
			break
		}
	}
	if c.Verdict == VerdictUnavailable {
		say(c.Absent)
		say(danger)
	} else {
		say(danger)
		say(c.Absent)
	}
	if c.Verdict == VerdictUnknown {
		switch {
		case !heard: // Absent says it
		case c.CanLose < 0:
			say("not known if locks can be taken: " + words.Count(c.Hidden, "node refuses", "nodes refuse") + " this program")
		case settled && c.Absent != "":
			say("their locks cannot be read")
		case !settled:
			say("the locks are being read for the first time")
		default:
			say("looking longer at " + words.Count(s.Ripening, "lock", "locks"))
		}
	} else if c.Verdict != VerdictUnavailable {
		say(c.Missing)
	}
	c.Reason = strings.Join(why, "; ")
}

// missing says what is missing for protection against restarts; empty: nothing. unseen:
// only starts of some nodes have not been seen yet. A node that does not answer is
// ignored: it has no vote now.
func missing(nodes []Node, guard *GuardView) (text string, unseen bool) {
	by := map[Protection][]string{}
	var doubtful []string
	seen := 0
	for i := range nodes {
		n := &nodes[i]
		if !n.State.Readable() {
			continue
		}
		seen++
		p := ProtectionOf(n, guard)
		by[p] = append(by[p], n.Name)
		if _, doubt := n.Facts.Durable(); doubt != "" && p == ProtectionNone {
			doubtful = append(doubtful, n.Name)
		}
	}
	on := func(what string, names []string, of string) string {
		switch {
		case len(names) == 0:
			return ""
		case len(names) == seen && seen > 1:
			return what
		}
		return what + of + words.Names(names)
	}
	var parts []string
	say := func(text string) {
		if text != "" {
			parts = append(parts, text)
		}
	}
	say(on("no guard", by[ProtectionNone], " on "))
	say(on("durability", doubtful, " of "))
	if len(doubtful) > 0 {
		parts[len(parts)-1] += " not verified"
	}
	if names := by[ProtectionUnfenced]; len(names) > 0 {
		say(words.Names(names) + " started unfenced")
	}
	say(on("scripts write through the fence", by[protectionLeaks], " on "))
	hidden := on("guards cannot be seen", by[ProtectionHidden], " on ")
	starts := on("start", by[ProtectionUnseen], " of ")
	if starts != "" {
		starts += " not seen yet"
	}
	if len(parts) > 0 {
		say(starts)
		say(hidden)
		return "not protected against restarts: " + strings.Join(parts, ", "), false
	}
	say(hidden)
	say(starts)
	if len(parts) == 0 {
		return "", false
	}
	return "protection against restarts is not known: " + strings.Join(parts, ", "), hidden == ""
}

// Protection is what keeps a node from voting twice after a restart.
type Protection uint8

const (
	protectionDurable  Protection = iota // it forgets nothing
	protectionVerified                   // a guard watches it, and its last start was fenced, or its files say that the next one is
	ProtectionUnseen                     // a guard watches it, and its start has not been seen yet
	ProtectionUnfenced                   // a guard watches it, and its last start was unfenced
	protectionLeaks                      // a guard watches it, and scripts write through its fence
	ProtectionNone                       // no guard is seen
	ProtectionHidden                     // guards cannot be seen there
)

// ProtectionOf returns the protection of a node that answers.
func ProtectionOf(n *Node, guard *GuardView) Protection {
	if n.Persistent {
		return protectionDurable
	}
	var own GuardedNode
	watched := len(n.Guards) > 0
	if guard != nil {
		g, here := guard.Nodes[n.Name]
		own, watched = g, watched || here
	}
	switch started := n.Started(own); {
	case watched && n.ScriptsPass:
		return protectionLeaks
	case watched && started == announce.BootUnfenced:
		return ProtectionUnfenced
	case watched && (started == announce.BootFenced || n.StartsFenced):
		return protectionVerified
	case watched:
		return ProtectionUnseen
	case !n.GuardsKnown:
		return ProtectionHidden
	}
	return ProtectionNone
}
