package wire

import (
	"sync"
	"time"
)

const (
	// PatienceFirst is how long to wait for the first answer of a node of which no round
	// trip is known. A console says within a second which nodes are silent.
	PatienceFirst = 900 * time.Millisecond
	// patienceMost limits how long to wait for an answer, however far a node is.
	patienceMost = 5 * time.Second
	// setupLeast is what connecting may take, and each step of the greeting: a lost first
	// packet is sent again after a second.
	setupLeast = 3 * time.Second
	// tries is how often a lost packet may have been sent again before an answer is overdue.
	tries = 3
)

// Patience is how long to wait for the answers of one node. It follows the round trips
// that were measured, as the retransmission timeout of TCP does (RFC 6298), from a floor
// up to a bound. It is safe for use by many goroutines.
type Patience struct {
	floor time.Duration

	mu        sync.Mutex
	mean, dev time.Duration // smoothed round trip and its deviation; mean zero: not measured
}

// NewPatience returns one that never waits for less than floor.
func NewPatience(floor time.Duration) *Patience { return &Patience{floor: floor} }

// Took records a round trip.
func (p *Patience) Took(rtt time.Duration) {
	rtt = max(rtt, 1)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mean == 0 {
		p.mean, p.dev = rtt, rtt/2
		return
	}
	p.dev += ((p.mean - rtt).Abs() - p.dev) / 4
	p.mean = max(1, p.mean+(rtt-p.mean)/8)
}

// Measured reports whether a round trip is known.
func (p *Patience) Measured() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mean > 0
}

// Timeout is the time after which an answer is probably lost, or sent again: RFC 6298's
// RTO, without its floor.
func (p *Patience) Timeout() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mean == 0 {
		return PatienceFirst
	}
	return p.mean + 4*p.dev
}

// Answer is how long to wait for an answer before the node counts as not answering: a
// packet may be lost and be sent again meanwhile.
func (p *Patience) Answer() time.Duration {
	p.mu.Lock()
	mean, dev := p.mean, p.dev
	p.mu.Unlock()
	if mean == 0 {
		return max(p.floor, PatienceFirst)
	}
	return max(p.floor, min(mean+tries*(mean+4*dev), patienceMost))
}

// Setup is how long connecting may take, and each step of the greeting. It is a budget of
// its own: nobody's answer waits for it.
func (p *Patience) Setup() time.Duration { return max(p.Answer(), setupLeast) }
