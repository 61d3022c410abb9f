package sim

import (
	"fmt"
	"slices"
	"time"

	"redlockctl/internal/sim/trace"
	"redlockctl/redlock"
	"redlockctl/restartguard"
)

// The guard.

func (x *smallModel) crashGuard(s *small, memory bool) {
	for i := range s.node {
		n := &s.node[i]
		n.conn++
		n.readAt = 0
		if memory {
			n.state = n.state.Remembered(s.time(), time.Hour+s.now, x.delay)
			if x.is("clock-unread") {
				n.state.Clock = restartguard.Reading{}
			}
		} else {
			n.state, n.removal = restartguard.State{}, removalNone
		}
		if n.removal == removalDone {
			n.removal = removalNone
		}
	}
	what := "crashes, and starts again without its memory"
	if memory {
		what = "crashes, and starts again with its memory"
	}
	x.say(s.now, "g", 0, "%s", what)
}

// lifted: the answer to a lift reaches the guard.
func (x *smallModel) removed(s *small, i int) {
	n := &s.node[i]
	n.removal = removalNone
	x.step(s, i, restartguard.Observation{About: restartguard.Removing, Before: params(true), Params: params(n.closed)})
}

// look is a look with all that follows from it at once.
func (x *smallModel) look(s *small, i int) {
	n := &s.node[i]
	if !n.up {
		x.step(s, i, restartguard.Observation{About: restartguard.Unreached, Refused: true, Err: "refused"})
		return
	}
	wall := time.Hour + s.now
	o := restartguard.Observation{
		About: restartguard.Seen, Role: "master", Wipes: int64(n.wipes), Configured: n.incarnation == 1, Params: params(n.closed),
		Clock: restartguard.Reading{Sent: wall, Got: wall, Wall: wall + n.ahead}, Asked: s.time(),
	}
	if x.is("wipes-ignored") {
		o.Wipes = 0
	}
	if x.EarlyRejoin && n.state.Phase == restartguard.PhaseFenced {
		_, o.Evidence = x.inquest(s, i)
	}
	x.step(s, i, o)
}

func (x *smallModel) step(s *small, i int, o restartguard.Observation) {
	n := &s.node[i]
	policy := restartguard.Policy{Delay: x.delay, Sweep: true}
	if x.EarlyRejoin {
		policy.EarlyAfter = x.after
	}
	for {
		o.Conn = n.conn
		if o.About != restartguard.Unreached {
			o.RunID = smallRuns[i][n.incarnation%8]
		}
		old := n.state
		next, actions, _ := restartguard.Step(policy, n.state, o, s.time())
		n.state = next
		if d := next.Deadline; o.About == restartguard.Seen && !d.IsZero() && !d.Equal(old.Deadline) {
			switch {
			case x.is("from-last-seen") && !old.LastSeen.IsZero():
				n.state.Deadline = old.LastSeen.Add(x.delay)
			case x.is("amnesia") && old.RunID == "":
				n.state.Deadline = s.time()
			}
			x.say(s.now, "g", 0, "sees %s run %d, and may open it at %s", nodeNames[i], n.incarnation, trace.At(n.state.Deadline.Sub(epoch)))
		}
		if len(actions) == 0 {
			return
		}
		a := actions[0]
		o = restartguard.Observation{Before: params(n.closed)}
		switch a.Kind {
		case restartguard.Raise:
			o.About, n.closed = restartguard.Raising, true
			x.say(s.now, "n", uint8(i), "is closed by g1")
		case restartguard.Prove:
			o.About, o.Canary = restartguard.Proving, restartguard.CanaryAccepted
			if n.closed {
				o.Canary = restartguard.CanaryFenced
			}
		case restartguard.Kill:
			o.About, o.Gone, o.Swept, o.Others = restartguard.Killing, true, true, a.Others
			if n.removal != removalNone && n.removalConn != n.conn {
				n.removal = removalNone
			}
		case restartguard.Remove:
			n.removal, n.removalConn = removalSent, n.conn
			x.say(s.now, "g", 0, "orders %s to be opened", nodeNames[i])
			return
		default:
			return
		}
		o.Params = params(n.closed)
	}
}

// others are the states of the other nodes, as the guard has them.
func (x *smallModel) others(s *small, i int) []restartguard.Other {
	var others []restartguard.Other
	for k := range s.node {
		if k == i {
			continue
		}
		st := s.node[k].state
		if x.is("early-ignores-losses") && st.Phase != restartguard.PhaseUnreachable && st.RunID != "" {
			st.Phase, st.Trusted, st.Holds = restartguard.PhaseServing, epoch, true
		}
		others = append(others, restartguard.Other{Name: nodeNames[k], State: st})
	}
	return others
}

// inquest is the one about a node that is closed, with all that was read so far.
func (x *smallModel) inquest(s *small, i int) (*restartguard.Inquest, *restartguard.Evidence) {
	q := &restartguard.Inquest{N: smallNodes, Quorum: redlock.Quorum(smallNodes), After: x.after, Apart: smallBound / 2}
	others, st, now := x.others(s, i), s.node[i].state, s.time()
	if e := q.Evidence(nodeNames[i], st, others, now); now.Before(st.Deadline.Add(x.after - st.Delay)) {
		return q, e
	}
	for k, o := 0, 0; k < smallNodes; k++ {
		if k == i {
			continue
		}
		n := &s.node[k]
		question, ok := q.Question(nodeNames[k], now)
		if ok && n.readAt > 0 {
			read := epoch.Add(n.readAt)
			t := restartguard.Testimony{Round: question.Round, RunID: smallRuns[k][n.readIncarnation%8], Began: read, Ended: read}
			if n.readToken != 0 {
				t.Copies = []restartguard.Copy{{Key: "k", Token: tokenName(n.readToken), Sent: read, Got: read, Left: n.readLeft}}
				if x.is("early-counts-lost-node") {
					t.Copies = append(t.Copies, t.Copies[0])
				}
			}
			q.Testify(nodeNames[k], t)
			q.Confirm(nodeNames[k], others[o].State, read, now)
		}
		o++
	}
	return q, q.Evidence(nodeNames[i], st, others, now)
}

// read: the guard reads the locks of a node for another one, and looks at it right
// after.
func (x *smallModel) read(s *small, k int) bool {
	n := &s.node[k]
	if n.state.RunID != smallRuns[k][n.incarnation%8] {
		return false
	}
	for i := range s.node {
		if i == k || s.node[i].state.Phase != restartguard.PhaseFenced {
			continue
		}
		if s.time().Before(s.node[i].state.Deadline.Add(x.after - s.node[i].state.Delay)) {
			continue
		}
		n.readAt, n.readToken, n.readLeft, n.readIncarnation = s.now, 0, 0, n.incarnation
		what := "none"
		if n.live(s.now) {
			n.readToken, n.readLeft = n.token, n.ends-s.now
			what = fmt.Sprintf("c%d for another %s", n.token, trace.Span(n.readLeft))
		}
		x.say(s.now, "g", 0, "asks %s for its locks: %s", nodeNames[k], what)
		x.look(s, k)
		return true
	}
	return false
}

var smallRuns = [smallNodes][8]string{
	{"a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7"},
	{"b0", "b1", "b2", "b3", "b4", "b5", "b6", "b7"},
	{"c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7"},
}

// The nodes are alike, so that states that differ by their order only are one.

// key takes the state whole, but for what makes no difference: see [smallModel.alike]
// and [restartguard.State.Deciding].
func (x *smallModel) key(s *small) uint64 {
	k := *s
	for c := range k.client {
		cl := &k.client[c]
		if cl.phase != clientAsking {
			cl.start = 0
		}
		if cl.phase != clientHolding || cl.until <= s.now {
			cl.until = 0
		}
	}
	// What was read before it is of use is of none.
	from := trace.Never
	for i := range k.node {
		if g := &k.node[i].state; x.EarlyRejoin && g.Phase == restartguard.PhaseFenced {
			from = min(from, g.Deadline.Add(x.after-g.Delay).Sub(epoch))
		}
	}
	var nodes [smallNodes]uint64
	for i := range k.node {
		nodes[i] = keyOf(x.alike(k.node[i], s.now, from))
	}
	slices.Sort(nodes[:])
	k.node = [smallNodes]smallNode{}
	return keyOf(struct {
		small
		nodes [smallNodes]uint64
	}{k, nodes})
}

// alike is a node without what says which one it is, or how it came to be so.
func (x *smallModel) alike(n smallNode, now, from time.Duration) smallNode {
	if !n.live(now) {
		n.token, n.ends = 0, 0
	}
	for c := range n.set {
		if n.set[c] != setSent {
			n.to[c] = 0
		}
	}
	if n.readAt < from {
		n.readAt, n.readToken, n.readLeft, n.readIncarnation = 0, 0, 0, 0
	}
	last := n.state.LastSeen
	g := n.state.Deciding()
	if x.is("from-last-seen") {
		g.LastSeen = last
	}
	if g.RunID != "" {
		g.RunID = g.RunID[1:]
	}
	if g.Early != "" {
		g.Early = "yes"
	}
	if !x.EarlyRejoin || !g.Trusted.IsZero() && !g.Trusted.After(epoch.Add(now)) {
		g.Trusted = epoch
	}
	// All clocks are right but for their steps: when they were read says nothing.
	g.Clock, g.ClockAt, g.ClockDrift = restartguard.Reading{Wall: g.Clock.Wall - g.Clock.Sent}, 0, 0
	// Of connections it matters if they are the present one.
	if g.Pending.Sent {
		g.Pending.Conn -= n.conn
	}
	if n.removal != removalNone {
		n.removalConn -= n.conn
	} else {
		n.removalConn = 0
	}
	n.conn, n.state = 0, g
	return n
}
