package who

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"
)

// Requirements for an inference.
const (
	Sure        = 0.995 // minimum probability
	LeastProofs = 2     // minimum number of changes that only the holder can have sent
	surest      = 0.999 // no inference claims more: more than that was never measured
)

// Odds of what cannot be excluded, measured by `bench who-corpus`. Each candidate that
// may have sent all changes has the weight 1.
const (
	// unseen is the weight of a holder that is none of the candidates: it opens a connection
	// for each command, or its connections have different names.
	unseen = 0.1
	// doubt is what is left of that weight after each proof.
	doubt = 0.05
)

const (
	moved     = 20 * time.Millisecond  // an expiry that differs by more for certain was set again
	sameEvent = 600 * time.Millisecond // changes on different nodes within this time are one
	hopeless  = 10 * time.Second       // who was active in each second until then is never excluded
)

// Snapshot is what one node showed at one moment, in one transaction: its copy of the lock
// and all its connections.
type Snapshot struct {
	Node int
	At   time.Time // our clock
	// Before and After are the node's clock on both sides of the transaction.
	Before, After time.Time
	There         bool // it has a copy
	Token         string
	TTL           time.Duration // 0: none
	Accepted      int64         // connections that it has accepted since its start; −1: unknown
	Conns         []Conn
}

type connKey struct {
	node int
	id   int64
}

// evidence is what is known of the holder of one token.
type evidence struct {
	changes int
	// nodes, since and extension are of the latest change.
	nodes     map[int]bool
	since     time.Time
	extension bool
	// checked counts the changes of single nodes at which each connection was accounted for,
	// could those of them that a group may have sent.
	checked int
	could   map[Group]int
	// proofs counts the changes that only this group can have sent; proved is the latest.
	proofs map[Group]int
	proved map[Group]int
	// sent counts the changes that only this connection can have sent.
	sent     map[connKey]int
	extended []time.Time // the moments of the extensions
}

// Tally compares each snapshot of a node with the one before. If the lock changed between
// them, a connection that sent nothing meanwhile did not change it: its group is excluded,
// unless another of its connections may have. If only the connections of one group may
// have, that group is proved. Being active at the same times proves nothing, however
// often. The zero Tally is ready for use; it knows neither clock nor network.
type Tally struct {
	last   map[int]*Snapshot
	tokens map[string]*evidence
	// began is the time of the first snapshot, always the groups that may have sent something
	// between any two.
	began  time.Time
	always map[Group]bool
}

// Take adds a snapshot.
func (t *Tally) Take(s *Snapshot) {
	if t.last == nil {
		t.last, t.tokens, t.began = map[int]*Snapshot{}, map[string]*evidence{}, s.At
	}
	last := t.last[s.Node]
	t.last[s.Node] = s
	if last == nil {
		return
	}
	senders, complete := sendersBetween(last, s)
	if complete {
		t.narrow(senders)
	}
	acquired := s.There && (!last.There || last.Token != s.Token)
	extended := s.There && !acquired && s.movedFrom(last)
	if !acquired && !extended {
		return // an expiry or a release is no change by the holder of this token
	}
	e := t.tokens[s.Token]
	if e == nil {
		e = &evidence{could: map[Group]int{}, proofs: map[Group]int{}, proved: map[Group]int{}, sent: map[connKey]int{}}
		t.tokens[s.Token] = e
	}
	e.change(s, extended)
	if complete {
		e.weigh(s.Node, senders)
	}
}

// narrow removes the groups that sent nothing from those that are always active.
func (t *Tally) narrow(senders map[Group][]int64) {
	if t.always == nil {
		t.always = map[Group]bool{}
		for g := range senders {
			t.always[g] = true
		}
	}
	for g := range t.always {
		if senders[g] == nil {
			delete(t.always, g)
		}
	}
}

// change counts a change that a node shows, unless another node has shown the same one.
func (e *evidence) change(s *Snapshot, extension bool) {
	if e.changes > 0 && !e.nodes[s.Node] && e.extension == extension && s.At.Sub(e.since) < sameEvent {
		e.nodes[s.Node] = true
		return
	}
	e.changes++
	e.nodes, e.since, e.extension = map[int]bool{s.Node: true}, s.At, extension
	if extension {
		e.extended = append(e.extended, s.At)
	}
}

// weigh uses a change of one node at which each connection is accounted for.
func (e *evidence) weigh(node int, senders map[Group][]int64) {
	e.checked++
	for g := range senders {
		e.could[g]++
	}
	if len(senders) != 1 {
		return
	}
	for g, ids := range senders {
		if e.proved[g] != e.changes {
			e.proved[g] = e.changes
			e.proofs[g]++
		}
		if len(ids) == 1 {
			e.sent[connKey{node, ids[0]}]++
		}
	}
}

// movedFrom reports whether the expiry was certainly set between two snapshots.
func (s *Snapshot) movedFrom(last *Snapshot) bool {
	if s.TTL == 0 || last.TTL == 0 {
		return s.TTL != last.TTL
	}
	return s.Before.Add(s.TTL).Sub(last.After.Add(last.TTL)) > moved || last.Before.Add(last.TTL).Sub(s.After.Add(s.TTL)) > moved
}

// sendersBetween returns the connections that may have changed the lock between two
// snapshots of a node, by group. complete: no connection was opened and closed in between,
// which neither snapshot would show.
func sendersBetween(last, s *Snapshot) (senders map[Group][]int64, complete bool) {
	before := make(map[int64]*Conn, len(last.Conns))
	for i := range last.Conns {
		before[last.Conns[i].ID] = &last.Conns[i]
	}
	senders = map[Group][]int64{}
	opened := int64(0)
	for i := range s.Conns {
		c := &s.Conns[i]
		was := before[c.ID]
		delete(before, c.ID)
		if was == nil {
			opened++
		}
		if !c.watches() && c.maySend(was, last.Before, s.After) {
			senders[c.group()] = append(senders[c.group()], c.ID)
		}
	}
	for id, c := range before { // closed since
		if !c.watches() {
			senders[c.group()] = append(senders[c.group()], id)
		}
	}
	return senders, last.Accepted >= 0 && s.Accepted-last.Accepted == opened
}

// maySend reports whether the connection may have acquired or extended a lock since was,
// its state at an earlier time (nil: it was not open).
func (c *Conn) maySend(was *Conn, then, now time.Time) bool {
	if c.Cmds < 0 {
		return int64(c.Idle) <= now.Unix()-then.Unix()
	}
	sent := c.Cmds
	if was != nil {
		sent -= was.Cmds
	}
	return sent > 1 || sent == 1 && c.fits() || sent < 0
}

// Candidate is a possible holder of a lock.
type Candidate struct {
	Group Group
	P     float64
}

// Holder returns the candidates for the holder of the token, the most likely first, and
// the number of changes. Their p sum up to 1 together with that of a holder that is none
// of them. Nobody is certain below [Sure] and [LeastProofs].
func (t *Tally) Holder(token string) (candidates []Candidate, changes int) {
	e := t.tokens[token]
	if e == nil {
		return nil, 0
	}
	for g, n := range e.could {
		if n == e.checked {
			candidates = append(candidates, Candidate{Group: g})
		}
	}
	for i, c := range candidates {
		all := float64(len(candidates)) + unseen*math.Pow(doubt, float64(e.proofs[c.Group]))
		candidates[i].P = min(1/all, surest)
	}
	slices.SortFunc(candidates, func(a, b Candidate) int {
		return cmp.Or(cmp.Compare(b.P, a.P), strings.Compare(a.Group.String(), b.Group.String()))
	})
	return candidates, e.changes
}

// Proved reports whether the first candidate holds the lock of the token, so far as can be
// inferred.
func (t *Tally) Proved(token string) bool {
	c, _ := t.Holder(token)
	return len(c) > 0 && c[0].P >= Sure && t.tokens[token].proofs[c[0].Group] >= LeastProofs
}

// Hopeless reports whether more time cannot name the holder of the token: several
// candidates were active at all times, and would not be excluded.
func (t *Tally) Hopeless(token string, now time.Time) bool {
	if t.last == nil || now.Sub(t.began) < hopeless {
		return false
	}
	candidates, changes := t.Holder(token)
	busy := 0
	for _, c := range candidates {
		if t.always[c.Group] {
			busy++
		}
	}
	return changes > LeastProofs && busy > 1
}

// Extensions returns when the token's TTL was extended.
func (t *Tally) Extensions(token string) []time.Time {
	e := t.tokens[token]
	if e == nil {
		return nil
	}
	return e.extended
}

// Sent reports whether only this connection of a node can have sent one of the changes by
// the token.
func (t *Tally) Sent(token string, node int, conn int64) bool {
	e := t.tokens[token]
	return e != nil && e.sent[connKey{node, conn}] > 0
}
