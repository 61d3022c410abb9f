package small

import (
	"fmt"
	"time"

	"redlockctl/proof/sim/trace"
	"redlockctl/redlock"
	"redlockctl/restartguard"
	"redlockctl/server/minreplicas"
)

func (r *restartModel) crashGuard(s *state, memory bool) {
	for i := range s.node {
		n := &s.node[i]
		n.conn++
		n.readAt = 0
		if memory {
			n.state = n.state.Remembered(s.time(), time.Hour+s.now, r.delay)
			if r.is("clock-unread") {
				n.state.Basis.Clock = restartguard.Reading{}
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
	r.say(s.now, "g", 0, "%s", what)
}

// removed: the answer to a removal reaches the guard.
func (r *restartModel) removed(s *state, i int) {
	n := &s.node[i]
	n.removal = removalNone
	r.step(s, i, restartguard.Observation{About: restartguard.Removing, Before: params(true), Params: n.params()})
}

// look is one probe with everything that follows from it at once.
func (r *restartModel) look(s *state, i int) {
	n := &s.node[i]
	if !n.up {
		r.step(s, i, restartguard.Observation{About: restartguard.Unreached, Refused: true, Err: "refused"})
		return
	}
	wall := time.Hour + s.now
	o := restartguard.Observation{
		About: restartguard.Seen, Role: "master", Wipes: int64(n.wipes), Configured: n.incarnation == 1, Params: n.params(), SaidDrained: n.state.Basis.Empty,
		Clock: restartguard.Reading{Sent: wall, Got: wall, Wall: wall + n.ahead}, Sent: s.time(),
	}
	if n.incarnation == 1 { // it has run for long when the model begins
		o.Up = time.Hour
	}
	if r.is("wipes-ignored") {
		o.Wipes = 0
	}
	if r.EarlyRejoin && n.state.Basis.Phase == restartguard.PhaseFenced {
		_, o.Evidence = r.survey(s, i)
	}
	r.step(s, i, o)
}

// hasWatched makes the guard have watched the node for long when the model begins, and without a
// gap: there is no second guard of which it has to hear.
func (r *restartModel) hasWatched(b, old *restartguard.Basis) {
	b.Met = epoch.Add(-r.delay)
	if old.Unsure.IsZero() {
		b.Unsure = time.Time{}
	}
}

func (r *restartModel) step(s *state, i int, o restartguard.Observation) {
	n := &s.node[i]
	policy := restartguard.Policy{Delay: r.delay, Sweep: true}
	if r.EarlyRejoin {
		policy.EarlyAfter = r.after
	}
	for {
		o.Conn = n.conn
		if o.About != restartguard.Unreached {
			o.RunID = runIDs[i][n.incarnation%8]
		}
		old := n.state
		next, actions, _ := restartguard.Step(policy, n.state, o, s.time())
		n.state = next
		r.hasWatched(&n.state.Basis, &old.Basis)
		if r.is("uncordon-cancels") && old.Basis.Duty.Kind == restartguard.DutyCordon && next.Basis.Duty.Kind == restartguard.DutyWait {
			n.state.Basis.Deadline = s.time()
		}
		if d := next.Basis.Deadline; o.About == restartguard.Seen && !d.IsZero() && !d.Equal(old.Basis.Deadline) {
			switch {
			case r.is("from-last-seen") && !old.Basis.LastSeen.IsZero():
				n.state.Basis.Deadline = old.Basis.LastSeen.Add(r.delay)
			case r.is("amnesia") && old.Basis.RunID == "":
				n.state.Basis.Deadline = s.time()
			}
			r.say(s.now, "g", 0, "sees %s run %d, and may let it rejoin at %s", nodeNames[i], n.incarnation, trace.At(n.state.Basis.Deadline.Sub(epoch)))
		}
		if len(actions) == 0 {
			return
		}
		a := actions[0]
		o = restartguard.Observation{Before: n.params()}
		switch a.Kind {
		case restartguard.Raise:
			o.About, n.closed, n.cordoned = restartguard.Raising, true, a.Value == minreplicas.FenceCordon
			r.say(s.now, "n", uint8(i), "is fenced by g1")
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
			r.say(s.now, "g", 0, "orders %s to rejoin", nodeNames[i])
			return
		default:
			return
		}
		o.Params = n.params()
	}
}

// counts reports whether the guard counts the copies of a node that is cordoned.
func (n *node) counts() bool {
	return n.state.Basis.Duty.Kind == restartguard.DutyCordon && n.state.Basis.Proven && !n.state.Basis.Empty
}

// count is such a count, and the look that follows.
func (r *restartModel) count(s *state, i int) {
	n := &s.node[i]
	o := restartguard.Observation{About: restartguard.Scanned, Sent: s.time().Add(1)}
	if n.live(s.now) && !r.is("drain-uncounted") {
		o.Copies = 1
	}
	r.say(s.now, "g", 0, "counts %d copies on %s", o.Copies, nodeNames[i])
	r.step(s, i, o)
	r.look(s, i)
}

// others returns the guard's states of the other nodes.
func (r *restartModel) others(s *state, i int) []restartguard.Other {
	var others []restartguard.Other
	for k := range s.node {
		if k == i {
			continue
		}
		st := s.node[k].state
		if r.is("early-ignores-losses") && st.Basis.Phase != restartguard.PhaseUnreachable && st.Basis.RunID != "" {
			st.Basis.Phase, st.Basis.Trusted, st.Basis.Holds = restartguard.PhaseServing, epoch, true
		}
		others = append(others, restartguard.Other{Name: nodeNames[k], Basis: st.Basis})
	}
	return others
}

// survey is the survey for a fenced node, with everything read so far.
func (r *restartModel) survey(s *state, i int) (*restartguard.Survey, *restartguard.Evidence) {
	q := &restartguard.Survey{N: nodeCount, Quorum: redlock.Quorum(nodeCount), After: r.after, Apart: attemptBound / 2}
	others, st, now := r.others(s, i), s.node[i].state, s.time()
	if e := q.EvidenceFor(nodeNames[i], st.Basis, others, now); now.Before(st.Basis.Deadline.Add(r.after - st.Basis.Delay)) {
		return q, e
	}
	for k, o := 0, 0; k < nodeCount; k++ {
		if k == i {
			continue
		}
		n := &s.node[k]
		question, ok := q.Question(nodeNames[k], now)
		if ok && n.readAt > 0 {
			read := epoch.Add(n.readAt)
			t := restartguard.Answer{Round: question.Round, RunID: runIDs[k][n.readIncarnation%8], Began: read, Ended: read}
			if n.readToken != 0 {
				t.Copies = []restartguard.Copy{{Key: "k", Token: fmt.Sprintf("c%d", n.readToken), Sent: read, Got: read, Left: n.readLeft}}
				if r.is("early-counts-lost-node") {
					t.Copies = append(t.Copies, t.Copies[0])
				}
			}
			q.Answer(nodeNames[k], t)
			q.Confirm(nodeNames[k], others[o].Basis, read, now)
		}
		o++
	}
	return q, q.EvidenceFor(nodeNames[i], st.Basis, others, now)
}

// read: the guard reads the locks of a node for another one, and probes it right after.
func (r *restartModel) read(s *state, k int) bool {
	n := &s.node[k]
	if n.state.Basis.RunID != runIDs[k][n.incarnation%8] {
		return false
	}
	for i := range s.node {
		if i == k || s.node[i].state.Basis.Phase != restartguard.PhaseFenced {
			continue
		}
		if s.time().Before(s.node[i].state.Basis.Deadline.Add(r.after - s.node[i].state.Basis.Delay)) {
			continue
		}
		n.readAt, n.readToken, n.readLeft, n.readIncarnation = s.now, 0, 0, n.incarnation
		what := "none"
		if n.live(s.now) {
			n.readToken, n.readLeft = n.token, n.ends-s.now
			what = fmt.Sprintf("c%d for another %s", n.token, trace.Span(n.readLeft))
		}
		r.say(s.now, "g", 0, "asks %s for its locks: %s", nodeNames[k], what)
		r.look(s, k)
		return true
	}
	return false
}

var runIDs = [nodeCount][8]string{
	{"a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7"},
	{"b0", "b1", "b2", "b3", "b4", "b5", "b6", "b7"},
	{"c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7"},
}
