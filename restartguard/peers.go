package restartguard

import (
	"cmp"
	"slices"
	"time"

	"redlockctl/server/announce"
)

const (
	// HearEvery is how often the announcements of other guards are read on a node that does not
	// wait. On one that waits every observation reads them.
	HearEvery = time.Second
	// PeerKept is how long a guard counts as present after it was last seen. Its D counts for
	// longer, see [Peers].
	PeerKept = time.Minute
	// peerSettles is how long a guard's greater D must not have been seen before its smaller one
	// counts: a guard changes its announcements on one node after the other.
	peerSettles = 5 * time.Second

	mostPeers = 64
)

// Peers are the other guards that a guard has seen on its nodes, with the D that each last
// announced. A D counts until its guard is seen with a smaller one, or an operator has it forgotten
// ([Peers.Forget]): a guard that is not seen may be cut off, and locks granted under its TTL exist
// all the same. Peers is pure, and the simulator uses it too.
type Peers struct{ seen []peer }

type peer struct {
	announce.Guard
	at time.Time // when it was last seen; zero: by an earlier run
}

// RecalledPeers returns the guards whose D an earlier run has written to its memory.
func RecalledPeers(all []announce.Guard) (p Peers) {
	for _, g := range all {
		p.seen = append(p.seen, peer{Guard: g})
	}
	return p
}

// All returns the guards whose D counts.
func (p *Peers) All() []announce.Guard { return p.since(time.Time{}) }

// Present returns the guards that were seen within [PeerKept].
func (p *Peers) Present(now time.Time) []announce.Guard { return p.since(now.Add(-PeerKept)) }

func (p *Peers) since(at time.Time) (all []announce.Guard) {
	for _, o := range p.seen {
		if !o.at.Before(at) {
			all = append(all, o.Guard)
		}
	}
	return all
}

// Hear notes the announcements that were read on one node; own is the reader's id. It reports
// whether what has to be remembered has changed.
func (p *Peers) Hear(now time.Time, own string, all []announce.Guard) (changed bool) {
	for _, g := range all {
		if g.ID == own {
			continue
		}
		i := slices.IndexFunc(p.seen, func(o peer) bool { return o.Same(g) })
		switch {
		case i < 0:
			p.seen = append(p.seen, peer{g, now})
			changed = true
		case g.Delay >= p.seen[i].Delay || now.Sub(p.seen[i].at) > peerSettles:
			changed = changed || g.Delay != p.seen[i].Delay
			p.seen[i] = peer{g, now}
		}
	}
	if len(p.seen) > mostPeers {
		slices.SortStableFunc(p.seen, func(a, b peer) int {
			return cmp.Or(cmp.Compare(b.Delay, a.Delay), b.at.Compare(a.at))
		})
		p.seen = p.seen[:mostPeers] // the greatest D stay
	}
	return changed
}

// Might reports whether a guard other than own says on this node that it takes the node for
// drained, or might say so: it was seen within d and is not among those that the node has now.
func (p *Peers) Might(now time.Time, own string, d time.Duration, here []announce.Guard) bool {
	for _, o := range p.seen {
		i := slices.IndexFunc(here, o.Same)
		if i >= 0 && here[i].Drained || i < 0 && !o.at.IsZero() && now.Sub(o.at) < d {
			return true
		}
	}
	return false
}

// Forget drops a guard by its id, and reports whether it was known. If it still announces itself it
// will be noted again.
func (p *Peers) Forget(id string) bool {
	before := len(p.seen)
	p.seen = slices.DeleteFunc(p.seen, func(o peer) bool { return o.ID == id })
	return len(p.seen) < before
}

// Least returns the least announced D; 0: none was announced.
func (p *Peers) Least() (least time.Duration) {
	for _, o := range p.seen {
		if least == 0 || o.Delay < least {
			least = o.Delay
		}
	}
	return least
}

// Greatest returns the greatest announced D; 0: none was announced.
func (p *Peers) Greatest() time.Duration {
	most := time.Duration(0)
	for _, o := range p.seen {
		most = max(most, o.Delay)
	}
	return most
}
