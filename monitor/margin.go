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

// CrashMargin returns how many of its own copies, on n nodes, a token may lose before
// another client can reach a quorum, whatever the others do meanwhile.
//
// Another client needs quorum nodes. It may get each node without a copy of the token: a
// free one at once, and one with a rival's copy when that is released or expires, or
// because the rival is the client that wins. So a rival's copies protect nobody. With own
// copies, n − own nodes are available, and n − own + x after x losses; the largest x that
// stays below the quorum is own − (n − quorum + 1). With five nodes, 5 copies may lose 2,
// and 3 copies none, whether the other two nodes are free or a rival's.
//
// For an odd n that is own − quorum: the holder still has a quorum after that many
// losses. For an even n it is one more: a holder without margin has no quorum any more,
// but nobody else can reach one.
func CrashMargin(n, quorum, own int) int { return own - (n - quorum + 1) }

// Margin returns how many of its copies Holder may lose before another client can reach a
// quorum, whatever happens to a rival's copies. It is meaningful while Held ≥ quorum.
func (l *Lock) Margin() int {
	n := l.Copies.Len()
	return CrashMargin(n, redlock.Quorum(n), l.Held)
}

// Access says who else can acquire a lock before its holder's end, and how long the
// holder can extend it. It follows from the copies, the nodes' states and how the nodes
// start: a node that refuses writes gives no vote, and one that starts fenced under a
// guard refuses them until the votes that it lost have expired, unless the lock lasts for
// longer than the guard waits.
type Access struct {
	// Now: another client can reach a quorum now. Perhaps: that cannot be excluded,
	// because some nodes cannot be seen or have copies of another client that may be
	// acquiring the lock, or because an earlier client may still rely on it.
	Now, Perhaps bool
	// Unsure are the indexes of the nodes that may or may not give another client a vote.
	Unsure []int
	// From is the earliest time at which another client can acquire it, because fenced
	// nodes rejoin before the holder's end; zero: not before that end.
	From time.Time
	// Restarts is how many more nodes must restart before another client can acquire it:
	// before From where that is set, else before the holder's end. −1: no number is
	// enough. Meaningful unless Now or Perhaps.
	Restarts int
	// Spare is how many more nodes with a copy may be lost before the holder cannot
	// extend the lock; negative: it cannot now.
	Spare int
}

// Access returns who else can acquire the lock before HeldUntil. Of a lock with several
// keys it is the least of its keys: a client that gets one of them shares it.
func (s *Snapshot) Access(l *Lock) Access {
	each := l.each()
	a := s.accessOf(each[0])
	for _, one := range each[1:] {
		a = a.least(s.accessOf(one))
	}
	return a
}

// least returns what protects the holder least of both.
func (a Access) least(b Access) Access {
	if b.Perhaps && !a.Perhaps {
		a.Unsure = b.Unsure
	}
	a.Now = a.Now || b.Now
	a.Perhaps = !a.Now && (a.Perhaps || b.Perhaps)
	if a.From.IsZero() || !b.From.IsZero() && b.From.Before(a.From) {
		a.From = b.From
	}
	if a.Restarts < 0 || b.Restarts >= 0 && b.Restarts < a.Restarts {
		a.Restarts = b.Restarts
	}
	a.Spare = min(a.Spare, b.Spare)
	return a
}

// accessOf returns who else can acquire a lock with one key.
func (s *Snapshot) accessOf(l *Lock) Access {
	end, seen, lasting := l.HeldUntil(), l.MajorityEnd(), l.Lasting()
	a := Access{Restarts: -1, Spare: l.spare(s.Nodes)}
	free, fragile := 0, 0
	var rejoins []time.Time // of nodes that rejoin before the end
	for i := range min(len(s.Nodes), l.Copies.Len()) {
		n, c := &s.Nodes[i], l.Copies.At(i)
		p := ProtectionOf(n, s.Guard)
		fences := p == protectionDurable || p == protectionVerified && !lasting
		if own := c.State != CopyAbsent && c.State != CopyLost && c.Token == l.Holder && !c.Token.Empty(); own {
			supposed := c.State == CopyUnknown && l.Supposed // its own expiry: the majority that is seen ends earlier
			switch {
			case n.State == NodeWrongRole: // its data was replaced, and it may become a master again
				a.Unsure = append(a.Unsure, i)
			case fences && !(supposed && seen.IsZero()):
			case !n.State.Answers(): // it may have restarted and serve now, or the copy has expired
				a.Unsure = append(a.Unsure, i)
			default:
				fragile++
			}
			// A node that does not answer may serve, and its copy may not have been extended.
			expires, serves := c.Expires, n.State == NodeServing || fences && !n.State.Answers()
			if supposed && fences && seen.Before(expires) {
				expires, serves = seen, !seen.IsZero()
			}
			if n.State == NodeFenced && !n.RejoinsAfter.IsZero() && !expires.IsZero() {
				serves = true
				if n.RejoinsAfter.After(expires) {
					expires = n.RejoinsAfter
				}
			}
			if serves && !expires.IsZero() && !end.IsZero() && end.Sub(expires) > time.Second {
				rejoins = append(rejoins, expires) // the node is free from then on
			}
			continue
		}
		if p != protectionDurable && p != protectionVerified && (n.State == NodeFenced || n.State == NodeCordoned) {
			fragile++ // it serves after a restart
		}
		switch n.State {
		case NodeServing, NodeFenced, NodeCordoned:
			if c.State != CopyAbsent && c.State != CopyLost && !(n.State != NodeServing && s.LeftOver(l, i)) {
				a.Unsure = append(a.Unsure, i) // it gave its vote to another client
				continue
			}
		}
		switch n.State {
		case NodeServing:
			free++
		case NodeFenced:
			switch at := n.RejoinsAfter; {
			case at.IsZero():
				if lasting {
					a.Unsure = append(a.Unsure, i) // its wait is shorter than the lock
				}
			case at.Before(s.At):
				a.Unsure = append(a.Unsure, i) // its guard waits longer than that; how long is unknown
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
	quorum, unsure := s.Cluster.Quorum, len(a.Unsure)
	a.Now = free >= quorum
	if a.Perhaps = !a.Now && (free+unsure >= quorum || l.Earlier != nil); a.Perhaps {
		if free+unsure < quorum { // the earlier client alone is the reason
			a.Unsure = nil
		}
		return a
	}
	if need := quorum - free - unsure; need > 0 {
		if need <= len(rejoins) {
			slices.SortFunc(rejoins, time.Time.Compare)
			a.From = rejoins[need-1]
		} else {
			need -= len(rejoins) // they vote as well, before the end
		}
		if need <= fragile {
			a.Restarts = need
		}
	}
	return a
}

// FreeFrom returns from when a client can acquire a lock on which nobody relies: a quorum of nodes serves, and
// none of them has a copy. known is false if that depends on nodes that do not answer, are cordoned, are fenced for
// longer than announced, or have a copy without TTL.
func (s *Snapshot) FreeFrom(l *Lock) (at time.Time, known bool) {
	for _, one := range l.each() {
		var from []time.Time
		for i := range min(len(s.Nodes), one.Copies.Len()) {
			n, c := &s.Nodes[i], one.Copies.At(i)
			free := s.At
			switch {
			case n.State == NodeFenced && n.RejoinsAfter.After(s.At):
				free = n.RejoinsAfter
			case n.State != NodeServing:
				continue
			}
			switch {
			case c.State == CopyAbsent, c.State == CopyLost:
			case c.State != CopyPresent, c.Expires.IsZero():
				continue
			case c.Expires.After(free):
				free = c.Expires
			}
			from = append(from, free)
		}
		if len(from) < s.Cluster.Quorum {
			return time.Time{}, false
		}
		slices.SortFunc(from, time.Time.Compare)
		if last := from[s.Cluster.Quorum-1]; last.After(at) {
			at = last
		}
	}
	return at, true
}

// Lasting reports whether the lock lasts for longer than a fence after a restart: it has no end, or one beyond the
// cluster's maximum.
func (l *Lock) Lasting() bool {
	return l.Unending || l.Over || l.State == LockOverTTL || l.State == LockNoTTL && l.HeldUntil().IsZero()
}

// spare returns how many more of these nodes may be lost before Holder cannot extend the
// lock; negative: it cannot now.
func (l *Lock) spare(nodes []Node) int {
	n := -redlock.Quorum(l.Copies.Len())
	for i := range min(len(nodes), l.Copies.Len()) {
		c := l.Copies.At(i)
		if own := c.Token == l.Holder && !c.Token.Empty(); own && (c.State == CopyPresent || c.State == CopySeen) && nodes[i].State == NodeServing {
			n++
		}
	}
	return n
}

// Needing returns the locks that need node i (see [Snapshot.Needs]), sorted by key.
func (s *Snapshot) Needing(i int) (needing []*Lock) {
	for l := range s.Locks.All() {
		if (l.Held < len(s.Nodes) || s.Cluster.Serving < len(s.Nodes)) && s.Needs(l, i) {
			needing = append(needing, l)
		}
	}
	return needing
}

// Needs reports whether the holder of the lock, or of one of its keys, relies on it and
// could not extend it without its copy on node i, which serves.
func (s *Snapshot) Needs(l *Lock, i int) bool {
	if i < 0 || i >= len(s.Nodes) || s.Nodes[i].State != NodeServing {
		return false
	}
	for _, one := range l.each() {
		if i >= one.Copies.Len() || !one.ReliedOn() {
			continue
		}
		if c := one.Copies.At(i); c.State == CopyPresent && c.Token == one.Holder && one.spare(s.Nodes) == 0 {
			return true
		}
	}
	return false
}

// Share is one token's copies of a lock.
type Share struct {
	Token safetext.Text
	Nodes []int // indexes of nodes known to have the copy
}

// Shares returns the tokens with copies of the lock, the one with most copies first.
// Copies that are not of a lock (another type, no value) do not count.
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

// NobodyText says that nobody holds the lock, or that it is not known which token does,
// and how many copies each has: "nobody: 2 + 2 of 5".
func (l *Lock) NobodyText() string {
	text := "nobody"
	if l.Contested {
		text = "not known"
	}
	var parts []string
	for _, s := range l.Shares() {
		parts = append(parts, strconv.Itoa(len(s.Nodes)))
	}
	if parts == nil {
		return text
	}
	return text + ": " + strings.Join(parts, " + ") + " of " + strconv.Itoa(l.Copies.Len())
}

// Endless returns how many copies of the lock have no TTL, and whether they keep
// everybody else from a quorum until they are deleted. A minority does not, unless a client may rely on
// the lock without end, and nodes that may have, or have had, another copy do not serve. serves reports
// whether a node does.
func (l *Lock) Endless(serves func(node int) bool) (copies int, block bool) {
	free := 0
	for i, c := range l.Copies.All() {
		switch {
		case c.ofLock() && c.State == CopyPresent && c.Expires.IsZero():
			copies++
		case serves(i):
			free++
		}
	}
	n := l.Copies.Len()
	return copies, n-copies < redlock.Quorum(n) || l.Unending && free < redlock.Quorum(n)
}

// EndlessText explains copies without a TTL: "no TTL on 1 of 5 nodes: …".
func (l *Lock) EndlessText(serves func(node int) bool) string {
	copies, block := l.Endless(serves)
	on := fmt.Sprintf("no TTL on %d of %s: ", copies, words.Count(l.Copies.Len(), "node", "nodes"))
	free, quorum := 0, redlock.Quorum(l.Copies.Len())
	for i, c := range l.Copies.All() {
		if serves(i) && (c.State == CopyAbsent || c.State == CopyLost) {
			free++
		}
	}
	switch {
	case !block && l.Held < quorum && free < quorum:
		return on + "it never expires there; too few of the others serve without a copy to grant the lock now"
	case !block:
		return on + "it never expires there; the others can still grant the lock, but fewer of them may fail"
	case l.Copies.Len()-copies >= quorum:
		held := "held without end"
		if l.MayBeHeld() {
			held = "may be held without end"
		}
		return on + held + "; nobody else gets the lock unless a node that does not serve now serves without its copy, or the holder or an operator removes the lock"
	}
	return on + "nobody else gets the lock until its holder or an operator removes it, or nodes lose their copies"
}

// Serves reports whether node i serves.
func (s *Snapshot) Serves(i int) bool { return i < len(s.Nodes) && s.Nodes[i].State == NodeServing }
