package redlock

import (
	"errors"
	"time"

	"redlockctl/redlock/attempt"
	"redlockctl/server/resp"
)

// leftCopy is what is known of the copy that a request may have left on a node.
type leftCopy struct {
	heard   bool // the request was answered, or has failed
	counted bool // before the verdict
	sent    bool // it may have reached the node
	unknown bool // a copy with no known end may be there, or still arrive
	inTime  bool // the node confirmed a copy before its attempt ended
	// where is the last incarnation that may have had a copy; vague: an unknown
	// incarnation may have had one. See [attempt.Copies].
	vague bool
	where string
	until time.Time // the latest end that a known copy can have; zero: none known
	said  said      // of the last answer
}

// said is the part of an answer that is kept: there are many of these.
type said struct {
	status      Status
	there       bool // see answer
	incarnation string
	at          time.Time
}

// learn records the outcome of a SET or an extension.
func (c *leftCopy) learn(a answer, t attempt.Terms) {
	c.heard = true
	c.sent = c.sent || a.sent
	c.said = said{a.Status, a.there, a.incarnation, a.at}
	if a.Status == StatusOK || a.copied || a.sent && !a.Status.Answered() {
		c.where, c.vague = a.incarnation, a.incarnation == ""
	}
	switch {
	case a.copied:
		c.until = a.at.Add(t.TTL + t.Drift)
	case a.Status == StatusOK:
		// The node started the TTL between our sending and its answer, on a clock that
		// may be slower than ours by the drift allowance.
		c.until = a.at.Add(t.TTL + t.Drift)
		c.inTime = c.inTime || !a.at.After(t.Start.Add(t.Wait))
	case a.sent && (!a.Status.Answered() || errors.Is(a.Err, resp.ErrBad)):
		c.unknown = true
	}
}

// merge adds what is known of another request to the same node.
func (c *leftCopy) merge(o leftCopy) {
	if o.until.After(c.until) {
		c.until = o.until
	}
	c.unknown = c.unknown || o.unknown || !o.heard
	c.inTime = c.inTime || o.inTime
	switch { // o is the later one
	case !o.heard:
		c.vague = true
	case o.where != "" || o.vague:
		c.where, c.vague = o.where, o.vague
	}
	c.heard = true
	c.sent = c.sent || o.sent || !o.heard
}

// leftState is what is known of the copy on a node when its release is sent.
type leftState uint8

const (
	leftUnknown leftState = iota
	leftNothing           // there is nothing to release
	leftCopied            // there was a copy
)

func (c *leftCopy) state() leftState {
	switch {
	case !c.until.IsZero():
		return leftCopied
	case c.heard && !c.unknown:
		return leftNothing
	}
	return leftUnknown
}

// releaseOf returns the release of these copies.
func releaseOf(resource, token string, copies []leftCopy) request {
	c := request{op: opRelease, key: resource, token: token, left: make([]leftState, len(copies))}
	known := true
	for i, m := range copies {
		known = known && m.heard && !m.unknown
		c.left[i] = m.state()
		if m.until.After(c.until) {
			c.until = m.until
		}
	}
	if !known {
		c.until = time.Time{}
	}
	return c
}
