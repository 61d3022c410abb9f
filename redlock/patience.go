package redlock

import (
	"sync/atomic"
	"time"
)

// mostPatience bounds what the node timeout follows the round trip to.
const mostPatience = 5 * time.Second

// patience is how long a node may take to answer: what was set, or else what follows from
// the round trips that were measured, as TCP's retransmission timeout does (RFC 6298),
// and never below [DefaultNodeTimeout]. One goroutine at a time tells of round trips, and
// any may ask.
type patience struct {
	set       time.Duration // zero: it follows the round trip
	mean, dev time.Duration // smoothed round trip and its deviation
	now       atomic.Int64
	trip      atomic.Int64 // mean
}

func newPatience(set time.Duration) *patience {
	p := &patience{set: set}
	p.now.Store(int64(DefaultNodeTimeout))
	if set > 0 {
		p.now.Store(int64(set))
	}
	return p
}

// lasts is how long a node may take to answer now.
func (p *patience) lasts() time.Duration { return time.Duration(p.now.Load()) }

// roundTrip is the smoothed round trip; zero: none was measured.
func (p *patience) roundTrip() time.Duration { return time.Duration(p.trip.Load()) }

// took is told of a round trip.
func (p *patience) took(trip time.Duration) {
	trip = max(trip, 1)
	if p.mean == 0 {
		p.mean, p.dev = trip, trip/2
	} else {
		p.dev += ((p.mean - trip).Abs() - p.dev) / 4
		p.mean = max(1, p.mean+(trip-p.mean)/8)
	}
	p.trip.Store(int64(p.mean))
	if p.set == 0 {
		// A deviation that was never seen may come all the same.
		wait := p.mean + max(4*p.dev, p.mean/2)
		p.now.Store(int64(min(max(wait, DefaultNodeTimeout), mostPatience)))
	}
}
