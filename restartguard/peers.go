package restartguard

import (
	"cmp"
	"slices"
	"time"

	"redlockctl/server/announce"
)

const (
	// hearEvery is how often the announcements of other guards are read on a node
	// that need not wait; on one that waits they are read with each look.
	HearEvery = time.Second
	// PeerKept is for how long another guard counts as there after it was last heard. Its D
	// counts for longer: see [Peers].
	PeerKept = time.Minute
	// peerSettles is for how long a greater D must not have been seen any more before a smaller
	// one of the same guard counts: it changes its announcements on one node after the other.
	peerSettles = 5 * time.Second

	mostPeers = 64
)

// Peers are the other guards that a guard has seen on its nodes, with the D that each announced
// last. A D counts until its guard is seen with a smaller one, or a person has it forgotten
// ([Peers.Forget]): a guard that is not seen may be cut off, and what was granted under its TTL
// is there all the same. It is pure: the simulator uses it as well.
type Peers struct{ seen []peer }

type peer struct {
	announce.Guard
	at time.Time // when it was last seen; zero: by an earlier run
}

// RecalledPeers are guards whose D was written down by an earlier run.
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

// Hear takes in the announcements that were read on one node; own is the id of who
// reads. It reports whether what has to be remembered is something else now.
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
		p.seen = p.seen[:mostPeers] // never the greatest
	}
	return changed
}

// Might reports whether a guard other than own, heard within d, is not among those that a node has
// now, or says there that it takes the node for drained.
func (p *Peers) Might(now time.Time, own string, d time.Duration, here []announce.Guard) bool {
	for _, o := range p.seen {
		i := slices.IndexFunc(here, o.Same)
		if i >= 0 && here[i].Drained || i < 0 && !o.at.IsZero() && now.Sub(o.at) < d {
			return true
		}
	}
	return false
}

// Forget drops a guard that was heard before, by its id, and reports whether it was known. One
// that still announces itself is heard again.
func (p *Peers) Forget(id string) bool {
	before := len(p.seen)
	p.seen = slices.DeleteFunc(p.seen, func(o peer) bool { return o.ID == id })
	return len(p.seen) < before
}

// Greatest is the greatest D among those that were announced; 0: there is none.
func (p *Peers) Greatest() time.Duration {
	most := time.Duration(0)
	for _, o := range p.seen {
		most = max(most, o.Delay)
	}
	return most
}
