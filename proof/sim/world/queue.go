package world

import "time"

// eventKind says what happens.
type eventKind uint8

const (
	evFault      eventKind = iota // a fault of the plan
	evUp                          // a crashed master runs again
	evExpiry                      // a copy may have reached its expiry
	evCordonOver                  // an operator uncordons a master
	evPromoted                    // a master that was made a replica is one again
	evTake                        // an operator's part in removing a lock reaches a master
	evCreep                       // a clock that is set in many small steps is set again
	evGuardUp                     // a crashed guard runs again
	evBegin                       // a client begins its next attempt
	evRequest                     // a client's request reaches a master
	evAnswer                      // its answer reaches the client
	evTick                        // the deadline of a client's attempt
	evHoldEnd                     // a client has held its lock long enough
	evLook                        // a guard looks at a master
	evAsk                         // a guard's command reaches a master
	evTold                        // its answer reaches the guard
	evGuardAlone                  // a guard has waited long enough for it
	evReload                      // a guard learns that a master was replaced
	evNewCluster                  // an operator asks whether a cluster is new
	evAnnounce                    // a guard announces itself on a master that is back
	evViewLook                    // the monitor looks at a master
	evViewAsked                   // its look reaches the master
	evViewTold                    // the answer reaches the monitor, or it has waited long enough
)

// event is one thing that happens at one moment. It is a value: the queue holds
// no pointers, and a schedule allocates nothing for it.
type event struct {
	at                    time.Duration // true time since the beginning
	seq                   uint32        // order among those of one moment
	kind                  eventKind
	who, node, op         uint8
	tok, code             uint8
	run, gen, incarnation uint16
	x, y, z               time.Duration
}

// queue is a heap of events with four children to a node, which is shallower
// than one with two and touches fewer cache lines.
type queue struct {
	heap []event
	seq  uint32
}

func (q *queue) reset() { q.heap, q.seq = q.heap[:0], 0 }

func less(a, b *event) bool { return a.at < b.at || a.at == b.at && a.seq < b.seq }

func (q *queue) push(e event) {
	e.seq = q.seq
	q.seq++
	q.heap = append(q.heap, e)
	h := q.heap
	i := len(h) - 1
	for i > 0 {
		up := (i - 1) / 4
		if !less(&e, &h[up]) {
			break
		}
		h[i] = h[up]
		i = up
	}
	h[i] = e
}

func (q *queue) pop() (event, bool) {
	h := q.heap
	if len(h) == 0 {
		return event{}, false
	}
	top, n := h[0], len(h)-1
	last := h[n]
	q.heap = h[:n]
	h = q.heap
	i := 0
	for {
		first := 4*i + 1
		if first >= n {
			break
		}
		least := first
		for k := first + 1; k < min(first+4, n); k++ {
			if less(&h[k], &h[least]) {
				least = k
			}
		}
		if !less(&h[least], &last) {
			break
		}
		h[i] = h[least]
		i = least
	}
	if n > 0 {
		h[i] = last
	}
	return top, true
}
