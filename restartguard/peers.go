package restartguard

import (
	"cmp"
	"slices"
	"time"

	"redlockctl/internal/announce"
)

const (
	// hearEvery is how often the announcements of other guards are read on a node
	// that need not wait; on one that waits they are read with each look.
	hearEvery = time.Second
	// PeerKept is for how long an announcement counts after it was last seen: longer
	// than nodes, and the guards on them, take to come back together.
	PeerKept = time.Minute

	mostPeers = 64
)

// Peers are the other guards that a guard has seen on its nodes. It is pure: the
// simulator uses it as well.
type Peers struct{ seen []peer }

type peer struct {
	announce.Guard
	at time.Time // when it was last seen
}

// Hear takes in the announcements that were read on one node; own is the id of who
// reads.
func (p *Peers) Hear(now time.Time, own string, all []announce.Guard) {
	for _, g := range all {
		if g.ID == own {
			continue
		}
		i := slices.IndexFunc(p.seen, func(o peer) bool { return o.Same(g) && o.Delay == g.Delay })
		if i < 0 {
			i = len(p.seen)
			p.seen = append(p.seen, peer{})
		}
		p.seen[i] = peer{g, now}
	}
	if len(p.seen) > mostPeers {
		p.forget(now)
		slices.SortStableFunc(p.seen, func(a, b peer) int { return cmp.Compare(b.Delay, a.Delay) })
		p.seen = p.seen[:min(len(p.seen), mostPeers)] // never the greatest
	}
}

func (p *Peers) forget(now time.Time) {
	p.seen = slices.DeleteFunc(p.seen, func(o peer) bool { return now.Sub(o.at) > PeerKept })
}

// Greatest is the greatest D among those that count; 0: there is none.
func (p *Peers) Greatest(now time.Time) time.Duration {
	most := time.Duration(0)
	for _, o := range p.seen {
		if now.Sub(o.at) <= PeerKept {
			most = max(most, o.Delay)
		}
	}
	return most
}

// peerName is a guard for people.
func peerName(o announce.Guard) string {
	name := o.ID[:min(6, len(o.ID))]
	if !o.Host.Empty() {
		name += " on " + o.Host.String()
	}
	return name
}
