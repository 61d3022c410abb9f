package redlock

import (
	"context"
	"strconv"
	"sync"
	"time"
)

// SettleTime is how long a copy that was put back has to be known to be there
// before a confirmed extension makes it count. Whoever takes a lock from its
// holder (see [Client.ForceRelease]) counts only answers that come within half of
// that.
const SettleTime = 2 * time.Second

// takeWindow bounds what counts of a release by another's hand.
const takeWindow = SettleTime / 2

// Copies is what the holder of a lock knows of its copies: on which nodes one is
// missing that may be put back, and which of those that were put back count. It is
// a pure step machine: no clock, no goroutine, no connection. The package
// documentation has the rules and the argument. One goroutine at a time.
type Copies struct{ nodes []copyAt }

// copyAt is the copy on one node.
type copyAt struct {
	// where is the last incarnation of the node in which a copy may have been; "":
	// none ever was.
	where string
	// vague: a copy may have been there in an incarnation that is not known.
	vague bool
	// missing: the last extension found none, in incarnation seen.
	missing bool
	seen    string
	// fresh: it was put back, and does not count yet; known is when it was first
	// known to be there, zero: not yet.
	fresh bool
	known time.Time
}

// Reset forgets everything. There are n nodes, none of which was ever asked.
func (c *Copies) Reset(n int) {
	if cap(c.nodes) < n {
		c.nodes = make([]copyAt, n)
	}
	c.nodes = c.nodes[:n]
	clear(c.nodes)
}

// May takes note that a copy may be on a node since it was asked for in an
// incarnation; "": it is not known in which.
func (c *Copies) May(node int, incarnation string) {
	at := &c.nodes[node]
	at.missing = false
	at.vague = incarnation == ""
	if incarnation != "" {
		at.where = incarnation
	}
}

// Counts reports whether the copy on a node counts for an extension.
func (c *Copies) Counts(node int) bool { return c == nil || !c.nodes[node].fresh }

// Extended takes in what a node answered to an extension: [StatusOK], that a copy
// is there, [StatusAbsent], that there is none, or anything else, which tells
// nothing.
func (c *Copies) Extended(node int, s Status, incarnation string, at time.Time) {
	m := &c.nodes[node]
	switch s {
	case StatusOK:
		c.May(node, incarnation)
		if m.fresh && m.known.IsZero() {
			m.known = at
		}
	case StatusAbsent:
		m.missing, m.seen, m.fresh, m.known = true, incarnation, false, time.Time{}
		if m.vague && incarnation != "" {
			// It may have been in this very incarnation, where it was deleted.
			m.where, m.vague = incarnation, false
		}
	case StatusHeld:
		m.missing = false
	}
}

// Confirmed takes note that an extension was granted of which nothing was sent
// before start: what had settled by then counts from now on. It comes before the
// copies that are missing are put back, and behind all answers that are known.
func (c *Copies) Confirmed(start time.Time) {
	for i := range c.nodes {
		if m := &c.nodes[i]; m.fresh && !m.known.IsZero() && !start.Before(m.known.Add(SettleTime)) {
			m.fresh, m.known = false, time.Time{}
		}
	}
}

// Missing reports whether the copy on a node may be put back, behind an extension
// that was granted: there is none, and there cannot have been one in this
// incarnation of the node, so that nobody has deleted it there.
func (c *Copies) Missing(node int) bool {
	m := &c.nodes[node]
	return m.missing && !m.vague && m.seen != "" && m.seen != m.where
}

// Absent reports whether the last extension found no copy on a node.
func (c *Copies) Absent(node int) bool { return c.nodes[node].missing }

// Repaired takes in what became of putting a copy back: the status that the node
// answered, and whether it may have reached it, in which incarnation.
func (c *Copies) Repaired(node int, s Status, sent bool, incarnation string, at time.Time) {
	m := &c.nodes[node]
	switch {
	case s == StatusOK:
		c.May(node, incarnation)
		m.fresh, m.known = true, at
	case sent && !answered(NodeResult{Status: s}):
		c.May(node, incarnation)
		m.fresh, m.known = true, time.Time{}
	}
}

// Settling reports whether a copy was put back that does not count yet, or is still
// to be put back.
func (c *Copies) Settling() bool {
	for i := range c.nodes {
		if c.nodes[i].fresh || c.Missing(i) {
			return true
		}
	}
	return false
}

// Known is what [Copies] knows of one node, as a value: for a model that visits states.
type Known struct{ at copyAt }

// Of is what is known of a node.
func (c *Copies) Of(node int) Known { return Known{c.nodes[node]} }

// Set makes k what is known of a node.
func (c *Copies) Set(node int, k Known) { c.nodes[node] = k.at }

// repairs puts back the copies of a lock that is kept. It is of one goroutine, that
// of the keeper.
type repairs struct {
	lock   *Lock
	tell   func(nodes []string)
	copies *Copies
}

// known is what is known of the copies, by which an extension counts. What became of
// the acquisition is looked at late, when all that was sent has been answered.
func (p *repairs) known() *Copies {
	if p.copies != nil {
		return p.copies
	}
	p.copies = new(Copies)
	p.copies.Reset(len(p.lock.client.nodes))
	p.lock.mu.Lock()
	defer p.lock.mu.Unlock()
	for i := range p.lock.copies {
		if m := p.lock.known(i); m.where != "" || m.vague {
			p.copies.May(i, m.where)
		}
	}
	return p.copies
}

// round takes in the answers to an extension and, if it was granted, puts back the
// copies that are missing, before the end of validity. It tells if there is more to
// do soon. It waits no longer than two node timeouts, and not beyond halted.
func (p *repairs) round(halted context.Context, r *run, granted bool, until time.Time) (more bool) {
	c := p.lock.client
	timer := time.NewTimer(time.Until(r.machine.Deadline()))
	defer timer.Stop()
	select {
	case <-r.all:
	case <-timer.C:
	case <-halted.Done():
		return false
	}
	copies, _ := r.remnants()
	for i, m := range copies {
		if m.heard {
			p.copies.Extended(i, m.said.status, m.said.incarnation, m.said.at)
		}
	}
	if !granted {
		return false
	}
	p.copies.Confirmed(r.machine.terms.Start)
	asked := &putBack{left: 1, answers: make([]answer, len(c.nodes)), done: make(chan struct{})}
	var to []int
	for i := range c.nodes {
		if p.copies.Missing(i) {
			to = append(to, i)
		}
	}
	if len(to) > 0 && p.send(asked, to, r, until) {
		timer.Reset(c.opt.NodeTimeout + c.opt.NodeTimeout/2)
		select {
		case <-asked.done:
		case <-timer.C:
		case <-halted.Done():
		}
		p.learn(asked, to, r)
	}
	return p.copies.Settling()
}

// send asks nodes to take the copy, where nothing stands in its place. It is queued
// before a release that comes later, on the same stream.
func (p *repairs) send(asked *putBack, to []int, r *run, until time.Time) bool {
	l, c := p.lock, p.lock.client
	by := time.Now().Add(c.opt.NodeTimeout)
	if until.Before(by) {
		by = until
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.released || l.lost || !time.Now().Before(l.end()) {
		return false
	}
	asked.left = len(to)
	for _, i := range to {
		l.copies[i].sent = true // a release has to go there
		set := &call{op: opSet, node: i, key: l.resource, token: l.token, ttl: r.machine.terms.TTL, notAfter: by, to: asked}
		c.streams[i].enqueue(set)
		if l.fencing > 0 {
			// The counter went with the copy. The script writes where the copy is.
			c.streams[i].enqueue(&call{
				op: opFence, node: i, key: l.resource, token: l.token, value: strconv.FormatUint(l.fencing, 10), ttl: fencingTTL, notAfter: by,
			})
		}
	}
	return true
}

// learn takes in what became of it.
func (p *repairs) learn(asked *putBack, to []int, r *run) {
	asked.mu.Lock()
	answers := append([]answer(nil), asked.answers...)
	asked.mu.Unlock()
	var done []string
	p.lock.mu.Lock()
	for _, i := range to {
		a := answers[i]
		if a.at.IsZero() { // not heard of
			a.Status, a.sent, a.at = StatusSlow, true, time.Now()
		}
		p.copies.Repaired(i, a.Status, a.sent, a.incarnation, a.at)
		p.lock.copies[i].learn(a, r.machine.terms)
		if a.Status == StatusOK {
			done = append(done, p.lock.client.nodes[i].Name())
		}
	}
	p.lock.mu.Unlock()
	if p.tell != nil && len(done) > 0 {
		p.tell(done)
	}
}

// putBack collects what nodes answer that were asked to take a copy.
type putBack struct {
	done chan struct{} // closed when all have answered

	mu      sync.Mutex
	answers []answer
	left    int
}

func (p *putBack) answered(a answer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answers[a.node] = a
	if p.left--; p.left == 0 {
		close(p.done)
	}
}
