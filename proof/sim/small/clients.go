package small

import (
	"redlockctl/proof/sim/trace"
	"redlockctl/redlock"
	"redlockctl/redlock/attempt"
)

func (r *restartModel) beginAttempt(s *state, c int) {
	s.client[c] = client{phase: clientAsking, start: s.now}
	for i := range s.node {
		n := &s.node[i]
		n.set[c], n.to[c] = setSent, 0
		if n.up {
			n.to[c] = n.incarnation
		}
	}
	r.say(s.now, "c", uint8(c), "begins its attempt: SET with a TTL of %s on all", trace.Span(lockTTL))
}

// attempt returns the product's machine of an attempt, with all answers so far except
// that of one node.
func (r *restartModel) attempt(s *state, c, but int) *attempt.Attempt {
	a, _ := attempt.Begin(attempt.Terms{
		N: nodeCount, Start: epoch.Add(s.client[c].start), TTL: lockTTL, Drift: drift, Wait: attemptBound,
	})
	for i := range s.node {
		if st := s.node[i].answer(c); i != but && st != redlock.StatusUnanswered {
			a.Answer(i, st, epoch.Add(s.client[c].start))
		}
	}
	return a
}

func (n *node) answer(c int) redlock.Status {
	switch n.set[c] {
	case setYes:
		return redlock.StatusOK
	case setNo:
		return redlock.StatusHeld
	case setFailed:
		return redlock.StatusFenced
	}
	return redlock.StatusUnanswered
}

// arrive: a SET reaches a node, and its answer the client.
func (r *restartModel) arrive(s *state, c, i int) bool {
	n := &s.node[i]
	switch {
	case !n.up && n.to[c] == 0:
		return false // not yet
	case !n.up, n.to[c] != 0 && n.to[c] != n.incarnation, n.closed:
		n.set[c] = setFailed
	case n.live(s.now):
		n.set[c] = setNo
	default:
		n.set[c], n.token, n.ends = setYes, uint8(c+1), s.now+lockTTL
		r.say(s.now, "n", uint8(i), "votes for c%d", c+1)
	}
	r.decide(s, c, i)
	return true
}

// decide steps a client with an answer, or with the time.
func (r *restartModel) decide(s *state, c, i int) {
	cl := &s.client[c]
	if cl.phase != clientAsking {
		return
	}
	a := r.attempt(s, c, i)
	var v attempt.Verdict
	if i >= 0 {
		_, v = a.Answer(i, s.node[i].answer(c), s.time())
	} else {
		_, v = a.Tick(s.time())
	}
	switch v {
	case attempt.VerdictPending:
	case attempt.VerdictGranted:
		cl.phase, cl.until = clientHolding, a.Until().Sub(epoch)
		r.say(s.now, "c", uint8(c), "is granted the lock, valid until %s", trace.At(cl.until))
		if i >= 0 {
			r.forget(s, c, false)
		}
	default:
		cl.phase = clientDone
		r.say(s.now, "c", uint8(c), "gives up: %s", v)
		r.forget(s, c, true)
	}
}

// forget drops the attempt's requests under way and, if it has failed, its copies: a
// SET that arrives later is followed by its release at once.
func (r *restartModel) forget(s *state, c int, release bool) {
	for i := range s.node {
		n := &s.node[i]
		if release {
			n.set[c] = setNone
			if n.token == uint8(c+1) && !n.closed {
				n.token = 0
			}
		} else if n.set[c] != setSent {
			n.set[c] = setNone
		}
	}
}
