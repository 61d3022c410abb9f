package restartguard

import (
	"fmt"
	"maps"
	"redlockctl/server/fences"
	"slices"
	"strings"
	"time"
)

// Outlook is what the fences mean for the whole cluster.
type Outlook struct {
	N, Quorum int
	Voting    int // nodes that accept votes
	// Since is when the quorum was lost; zero while there is one.
	Since time.Time
	// First is the node that rejoins first, at FirstAt; empty if no node is known to rejoin by
	// itself.
	First   string
	FirstAt time.Time
	// Until is when there is a quorum again; zero if that is not known, because too many nodes
	// do not answer or are cordoned, or because it is not known when some of Waiting rejoin.
	Until time.Time
	// ByItself: there will be a quorum again without an operator.
	ByItself bool
	// Denied are the nodes that refuse the guard. Silent are all nodes, if none answers: then
	// this host's network is more likely down than every node. Both may vote.
	Denied, Silent []string
	// Down, Cordoned and Fenced are the nodes that need an operator. It is not known when the
	// Fenced ones may rejoin, and no guard is known to let them. Waiting are those that a guard
	// lets rejoin, and it is not known when.
	Down, Cordoned, Fenced, Waiting []string
	// Absent are those that are out in another way, by [NodeStatus.Absent].
	Absent map[string][]string
	// Lacking are the nodes that refuse writes for lack of replicas without a fence; Same are
	// those whose server is another node's.
	Lacking, Same []string
}

// Serves reports whether the node accepts votes, also one that should not.
func (s NodeStatus) Serves() bool {
	return (s.Phase == PhaseServing || s.Phase == PhaseExposed) && !s.Lacking && s.Same == ""
}

// OutlookOf returns the outlook of a cluster of n nodes. Nodes without a status count as voting,
// and so does an exposed node, which should not vote.
func OutlookOf(status []NodeStatus, n, quorum int) Outlook {
	o := Outlook{N: n, Quorum: quorum, Voting: n}
	var out []time.Time // when nodes lost their vote
	var back []NodeStatus
	silent := n > 1 && len(status) == n && !slices.ContainsFunc(status, func(s NodeStatus) bool {
		return s.Phase != PhaseUnreachable || s.Denied || s.Nobody
	})
	for _, s := range status {
		if s.Serves() {
			continue
		}
		o.Voting--
		switch {
		case s.Denied:
			o.Denied = append(o.Denied, s.Node)
			continue
		case silent:
			o.Silent = append(o.Silent, s.Node)
			continue
		}
		out = append(out, s.Out)
		switch {
		case s.Same != "" && s.Phase != PhaseUnreachable:
			o.Same = append(o.Same, s.Node)
		case s.Phase == PhaseFenced && !s.Until.IsZero():
			back = append(back, s)
		case s.Phase == PhaseFenced && s.Waits:
			o.Waiting = append(o.Waiting, s.Node)
		case s.Phase == PhaseFenced:
			o.Fenced = append(o.Fenced, s.Node)
		case s.Lacking && s.Phase != PhaseUnreachable && s.Phase != PhaseCordoned:
			o.Lacking = append(o.Lacking, s.Node)
		case s.Phase == PhaseCordoned:
			o.Cordoned = append(o.Cordoned, s.Node)
		case s.Absent != "":
			if o.Absent == nil {
				o.Absent = map[string][]string{}
			}
			o.Absent[s.Absent] = append(o.Absent[s.Absent], s.Node)
		default:
			o.Down = append(o.Down, s.Node)
		}
	}
	slices.SortStableFunc(back, func(a, b NodeStatus) int { return a.Until.Compare(b.Until) })
	if len(back) > 0 {
		o.First, o.FirstAt = back[0].Node, back[0].Until
	}
	if o.Voting >= o.Quorum {
		return o
	}
	slices.SortFunc(out, time.Time.Compare)
	// The quorum was lost when this node lost its vote.
	if lost := n - quorum; lost >= 0 && lost < len(out) {
		o.Since = out[lost]
	}
	missing := o.Quorum - o.Voting
	if missing <= len(back) {
		o.Until = back[missing-1].Until
	}
	o.ByItself = missing <= len(back)+len(o.Waiting)
	return o
}

// Possible reports whether a lock can be acquired, as far as is known; see [Outlook.Unknown].
func (o Outlook) Possible() bool { return o.Voting >= o.Quorum }

// Unknown reports whether the guard cannot know if a lock can be acquired: there would be a quorum
// if the nodes voted that refuse it, or that it cannot reach.
func (o Outlook) Unknown() bool {
	return !o.Possible() && o.Voting+len(o.Denied)+len(o.Silent) >= o.Quorum
}

// clock is how a sentence writes a time of day: what it says stays true while it is kept.
const clock = "15:04:05"

// Text returns the outlook as a sentence for people.
func (o Outlook) Text() string {
	if o.Possible() {
		return fmt.Sprintf("%d of %d nodes serve, a quorum is %d", o.Voting, o.N, o.Quorum)
	}
	var b strings.Builder
	if o.Unknown() {
		fmt.Fprintf(&b, "not known if locks can be taken: %d of %d nodes are seen to vote, a quorum is %d", o.Voting, o.N, o.Quorum)
		if len(o.Denied) > 0 {
			fmt.Fprintf(&b, "; %s refused the guard: its password or its rights are wrong", strings.Join(o.Denied, ", "))
		}
		if len(o.Silent) > 0 {
			b.WriteString("; no node answers: all are down, or this host's network is")
		}
		return b.String()
	}
	fmt.Fprintf(&b, "NOTHING CAN BE LOCKED: %d of %d nodes serve, a quorum is %d", o.Voting, o.N, o.Quorum)
	if !o.Since.IsZero() {
		fmt.Fprintf(&b, "; since %s", o.Since.Format(clock))
	}
	if o.First != "" {
		fmt.Fprintf(&b, "; %s comes back first, at %s", o.First, o.FirstAt.Format(clock))
	}
	if !o.Until.IsZero() {
		fmt.Fprintf(&b, "; a quorum is back at %s", o.Until.Format(clock))
		return b.String()
	}
	if o.ByItself {
		b.WriteString("; it is not known when a quorum is back")
	} else {
		b.WriteString("; a quorum does not come back by itself")
	}
	if len(o.Waiting) > 0 {
		fmt.Fprintf(&b, ": fenced until a guard lets them rejoin %s", strings.Join(o.Waiting, ", "))
	}
	if len(o.Down) > 0 {
		fmt.Fprintf(&b, ": down %s", strings.Join(o.Down, ", "))
	}
	for _, how := range slices.Sorted(maps.Keys(o.Absent)) {
		fmt.Fprintf(&b, ": %s %s", how, strings.Join(o.Absent[how], ", "))
	}
	if len(o.Denied) > 0 {
		fmt.Fprintf(&b, ": refusing the guard %s", strings.Join(o.Denied, ", "))
	}
	if len(o.Fenced) > 0 {
		fmt.Fprintf(&b, ": fenced, and no guard is known to let them rejoin, %s", strings.Join(o.Fenced, ", "))
	}
	if len(o.Lacking) > 0 {
		fmt.Fprintf(&b, ": without enough replicas for their min-replicas-to-write %s", strings.Join(o.Lacking, ", "))
	}
	if len(o.Same) > 0 {
		fmt.Fprintf(&b, ": the server of another node %s", strings.Join(o.Same, ", "))
	}
	if len(o.Cordoned) > 0 {
		fmt.Fprintf(&b, ": cordoned by an operator %s", strings.Join(o.Cordoned, ", "))
	}
	return b.String()
}

// NodeStatus is what a guard reports about one node.
type NodeStatus struct {
	Node     string
	Phase    Phase
	Verified bool // its last start was fenced ("boot fence verified")
	Known    bool // a start was seen, so Verified means something
	Proven   bool // a canary write was refused with NOREPLICAS since it was fenced
	RunID    string
	Since    time.Time     // when Phase began
	Until    time.Time     // when it may rejoin, if it is not cordoned then; zero: it does not wait, or that is not known
	Waits    bool          // with PhaseFenced: a guard is known to let it rejoin
	Exposed  time.Duration // how long it served after its last loss before it was fenced, at most
	Reason   string        // why it is in this phase, in a few words
	Err      string        // the last failure to reach it, to fence it or to let it rejoin
	Out      time.Time     // when it lost its vote; zero while it has one
	Method   fences.Method // how it is fenced
	// Lacking: it refuses writes for lack of replicas, although no fence is up.
	Lacking bool
	// Delay is the D that counts for it: the guard's own, or the greatest that another guard
	// announces.
	Delay time.Duration
	// BootExposed is how long it served after its last start before it was fenced, at most; 0: it
	// did not, or that is not known. Unlike Exposed, it does not change with a later loss.
	BootExposed time.Duration
	// AtStart: its last loss was a start, not a wipe or a step of its clock.
	AtStart bool
	// Drained: it is cordoned, and a restart of it forgets nothing.
	Drained bool
	// Denied and Nobody qualify PhaseUnreachable: the server answers and refuses the guard;
	// nothing listens at the address. Neither: silence.
	Denied, Nobody bool
	// Absent, with PhaseUnreachable: how the monitor calls its state, if not down; see [AbsentSlow].
	Absent string
	// Same is an earlier node with the same server at another address: this node has no vote of
	// its own. "": there is no such node.
	Same string
	// Invalid is an answer that no Redis server gives, though the node can be guarded; "": none.
	Invalid string
}
