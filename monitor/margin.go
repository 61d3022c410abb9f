package monitor

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"redlockctl/monitor/words"
	"redlockctl/redlock"
	"redlockctl/server/safetext"
)

// CrashMargin is how many of its copies a token that has own of n may lose
// before another client can reach a quorum, whatever the others do meanwhile.
//
// Another client wins with quorum nodes. It may come to have each node on which
// the token has no copy: a free one at once, and one with a rival's copy as
// soon as that is released or expires, or because that rival is the one who
// wins. A rival's copies so protect nobody. With own copies n − own nodes are
// to be had, and after x losses n − own + x; the largest x that stays below the
// quorum is own − (n − quorum + 1). Five nodes: 5 copies may lose 2, 3 copies
// none, whether the other two nodes are free or a rival's.
//
// With an odd n that is own − quorum: so many may be lost and the holder still
// has a quorum. With an even n it is one more: the holder that has lost all of
// its margin has no quorum any more, and nobody else can reach one.
func CrashMargin(n, quorum, own int) int { return own - (n - quorum + 1) }

// Margin is how many of its copies Holder may lose before another client can reach
// a quorum, whatever becomes of a rival's copies; meaningful while Held ≥ quorum.
func (l *Lock) Margin() int {
	n := l.Copies.Len()
	return CrashMargin(n, redlock.Quorum(n), l.Held)
}

// Access is who else can get a lock before its holder's end, and how long the holder can extend
// it. It follows from the copies, from the nodes' states and from how they start: a node that
// refuses writes gives no vote, and one that starts fenced under a guard refuses them until the
// votes that it lost have expired.
type Access struct {
	// Now: another client can reach a quorum now. Perhaps: that cannot be excluded, as nodes
	// are not seen from here, or have copies of another client that may be getting in.
	Now, Perhaps bool
	// Unsure are the nodes, by their index, of which it is not known whether they would give
	// another client a vote.
	Unsure []int
	// From is when another client can at the earliest, because fenced nodes rejoin before the
	// holder's end; zero: not before that end.
	From time.Time
	// Restarts is how many more nodes must restart for another client to get in; −1: no number
	// of restarts lets one in. Meaningful unless Now or Perhaps.
	Restarts int
	// Spare is how many more nodes with a copy may be lost, and the holder can still extend the
	// lock; negative: it cannot.
	Spare int
}

// Access is who else can get the lock before HeldUntil.
func (s *Snapshot) Access(l *Lock) Access {
	end, seen := l.HeldUntil(), l.MajorityEnd()
	a := Access{Restarts: -1, Spare: l.spare(s.Nodes)}
	free, fragile := 0, 0
	var rejoins []time.Time // of nodes that rejoin before the end
	for i := range min(len(s.Nodes), l.Copies.Len()) {
		n, c := &s.Nodes[i], l.Copies.At(i)
		p := ProtectionOf(n, s.Guard)
		fences := p == protectionVerified || p == protectionDurable
		if own := c.State != CopyAbsent && c.State != CopyLost && c.Token == l.Holder && !c.Token.Empty(); own {
			supposed := c.State == CopyUnknown && l.Supposed // its expiry; the majority that is seen ends earlier
			switch {
			case n.State == NodeWrongRole: // its data were replaced, and it may be a master again
				a.Unsure = append(a.Unsure, i)
			case fences && !(supposed && seen.IsZero()):
			case !n.State.Answers(): // it may have restarted by now, and serve; or the copy has expired
				a.Unsure = append(a.Unsure, i)
			default:
				fragile++
			}
			expires, serves := c.Expires, n.State == NodeServing
			if supposed && fences && seen.Before(expires) {
				expires, serves = seen, !seen.IsZero()
			}
			if serves && !expires.IsZero() && !end.IsZero() && end.Sub(expires) > time.Second {
				rejoins = append(rejoins, expires) // it is free from then on
			}
			continue
		}
		if !fences && (n.State == NodeFenced || n.State == NodeCordoned) {
			fragile++ // it serves after a restart
		}
		switch n.State {
		case NodeServing, NodeFenced, NodeCordoned:
			if c.State != CopyAbsent && c.State != CopyLost {
				a.Unsure = append(a.Unsure, i) // it has given its vote to another client
				continue
			}
		}
		switch n.State {
		case NodeServing:
			free++
		case NodeFenced:
			switch at := n.RejoinsAfter; {
			case at.IsZero():
				if l.State == LockOverTTL {
					a.Unsure = append(a.Unsure, i) // its wait is shorter than the lock
				}
			case at.Before(s.At):
				a.Unsure = append(a.Unsure, i) // its guard waits longer than that, and nobody knows for how long
			case end.IsZero() || at.Before(end):
				rejoins = append(rejoins, at)
			}
		case NodeCordoned:
		case NodeDown:
			if !fences {
				a.Unsure = append(a.Unsure, i)
			}
		default:
			a.Unsure = append(a.Unsure, i)
		}
	}
	quorum, maybe := s.Cluster.Quorum, len(a.Unsure)
	a.Now, a.Perhaps = free >= quorum, free < quorum && free+maybe >= quorum
	if need := quorum - free - maybe; need > 0 {
		if need <= len(rejoins) {
			slices.SortFunc(rejoins, time.Time.Compare)
			a.From = rejoins[need-1]
		}
		if need <= fragile {
			a.Restarts = need
		}
	}
	return a
}

// spare is how many more of these nodes may be lost, and Holder can still extend the lock;
// negative: it cannot.
func (l *Lock) spare(nodes []Node) int {
	n := -redlock.Quorum(l.Copies.Len())
	for i := range min(len(nodes), l.Copies.Len()) {
		c := l.Copies.At(i)
		if own := c.Token == l.Holder && !c.Token.Empty(); own && (c.State == CopyPresent && nodes[i].State == NodeServing || c.State == CopySeen) {
			n++
		}
	}
	return n
}

// Share is the copies that one token has of a lock.
type Share struct {
	Token safetext.Text
	Nodes []int // by their index; those where the copy is known to be there
}

// Shares are the tokens that have copies of the lock, the one with most copies
// first. Copies that are no lock's (of another type, without a value) count for
// none.
func (l *Lock) Shares() []Share {
	var shares []Share
	for i, c := range l.Copies.All() {
		if !c.ofLock() {
			continue
		}
		k := slices.IndexFunc(shares, func(s Share) bool { return s.Token == c.Token })
		if k < 0 {
			k = len(shares)
			shares = append(shares, Share{Token: c.Token})
		}
		shares[k].Nodes = append(shares[k].Nodes, i)
	}
	slices.SortStableFunc(shares, func(a, b Share) int { return cmp.Compare(len(b.Nodes), len(a.Nodes)) })
	return shares
}

// NobodyText says that nobody holds the lock, and how many copies each token
// has: "nobody: 2 + 2 of 5".
func (l *Lock) NobodyText() string {
	var parts []string
	for _, s := range l.Shares() {
		parts = append(parts, strconv.Itoa(len(s.Nodes)))
	}
	if parts == nil {
		return "nobody"
	}
	return "nobody: " + strings.Join(parts, " + ") + " of " + strconv.Itoa(l.Copies.Len())
}

// Endless is how many copies of the lock have no TTL, and whether they keep
// everybody else from a quorum until they are deleted. Those on a minority of
// the nodes do not.
func (l *Lock) Endless() (copies int, block bool) {
	for _, c := range l.Copies.All() {
		if c.ofLock() && c.State == CopyPresent && c.Expires.IsZero() {
			copies++
		}
	}
	n := l.Copies.Len()
	return copies, n-copies < redlock.Quorum(n)
}

// EndlessText says what copies without a TTL mean: "no TTL on 1 of 5 nodes: …".
func (l *Lock) EndlessText() string {
	copies, block := l.Endless()
	on := fmt.Sprintf("no TTL on %d of %s: ", copies, words.Count(l.Copies.Len(), "node", "nodes"))
	if block {
		return on + "nobody else gets the lock until its holder or an operator removes it"
	}
	return on + "it never expires there; the lock can be taken on the others, which can lose so many nodes fewer"
}
