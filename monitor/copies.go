package monitor

import (
	"iter"
	"time"

	"redlockctl/monitor/internal/packed"
	"redlockctl/server/safetext"
)

// CopyState says what is known of a key on a node.
type CopyState = packed.State

const (
	CopyAbsent  CopyState = iota // the node answered, the key does not exist
	CopyPresent                  // it exists
	CopyUnknown                  // the node does not answer: Token and Expires are as last read
	CopyUnread                   // the node answers, but has not been fully read yet: Token and Expires may be as last read
	CopySeen                     // it existed, and its expiry is unknown: in a snapshot from a record
	CopyLost                     // lost before its TTL expired, without a release: its holder may still rely on it
)

// LossCause is why a copy was lost.
type LossCause uint8

const (
	LostByRestart  LossCause = iota // the node restarted
	LostByWipe                      // FLUSHALL, FLUSHDB, SWAPDB, or a replica was promoted
	LostByDeletion                  // deleted or evicted without a release of the lock
	LostByClock                     // it expired early: the node's clock was stepped forward
	LostUnseen                      // a guard announced it; neither why nor when is known here
	NumLossCauses                   // how many there are
)

// String returns the cause as the screen and JSON show it; empty: it is not known.
func (c LossCause) String() string {
	return [...]string{"restart", "data wiped", "deleted", "clock step", ""}[min(c, NumLossCauses-1)]
}

// Copy is a key on one node.
type Copy struct {
	State CopyState
	Type  string        // of the key: "string", "hash", …; empty: never seen there
	Token safetext.Text // value of a string, or its first bytes; of a hash, its holder
	Len   int64         // length of the value in bytes, or number of elements
	// Expires is computed from PTTL on the local monotonic clock; zero: the copy
	// has no TTL.
	Expires time.Time
	// LostAt is when the loss of a [CopyLost] was seen, zero: it was not; Cause is why it was
	// lost.
	LostAt time.Time
	Cause  LossCause
}

// ofLock reports whether a copy exists and counts as one of a lock.
func (c *Copy) ofLock() bool {
	return (c.State == CopyPresent || c.State == CopySeen) && (c.Type == "string" || !c.Token.Empty())
}

// Copies are the copies of a lock, one per node, in the nodes' order. They are immutable,
// and packed, since a monitor may keep millions.
type Copies struct{ set *packed.Set }

// byHand is the origin of the times of locks that are not in a table.
var byHand = packed.NewOrigin(time.Unix(0, 0))

// PackCopies packs these copies.
func PackCopies(copies ...Copy) Copies {
	o := packed.NewOrigin(time.Unix(0, 0))
	set := packed.NewSet(o, len(copies))
	for i, c := range copies {
		set.Copies[i].State = c.State
		if c.State == CopyLost {
			set.Tokens = append(set.Tokens, packed.Token{Prefix: c.Token.Raw(), Length: c.Len})
			set.Copies[i] = packed.Copy{State: CopyLost, Kind: packed.LostVote, Type: uint8(c.Cause), Token: uint8(len(set.Tokens) - 1), Expires: o.Moment(c.Expires), Sent: o.Moment(c.LostAt)}
			continue
		}
		if c.Type == "" && c.Token.Empty() && c.Len == 0 && c.Expires.IsZero() {
			continue
		}
		kind := packed.OtherCopy
		if c.Type == "string" || !c.Token.Empty() {
			kind = packed.LockCopy
		}
		set.Tokens = append(set.Tokens, packed.Token{Prefix: c.Token.Raw(), Length: c.Len})
		set.Copies[i] = packed.Copy{State: c.State, Kind: kind, Type: o.TypeNumber(c.Type), Token: uint8(len(set.Tokens) - 1), Expires: o.Moment(c.Expires)}
	}
	return Copies{set}
}

// CopiesOf returns the copies of a table, which must not change them any more.
func CopiesOf(set *packed.Set) Copies { return Copies{set} }

// Packed returns the packed copies; nil: none.
func (c Copies) Packed() *packed.Set { return c.set }

// Len returns the number of nodes.
func (c Copies) Len() int {
	if c.set == nil {
		return 0
	}
	return len(c.set.Copies)
}

// time converts a moment of these copies.
func (c Copies) time(m packed.Moment) time.Time {
	if c.set == nil {
		return byHand.Time(m)
	}
	return c.set.Origin.Time(m)
}

// At returns the copy on node i.
func (c Copies) At(i int) Copy {
	p := &c.set.Copies[i]
	if p.Lost() && p.State == CopyLost {
		o := c.set.Origin
		lost := Copy{State: CopyLost, Type: "string", Token: safetext.New(c.set.Tokens[p.Token].Prefix), Len: c.set.Tokens[p.Token].Length,
			Expires: o.Time(p.Expires), Cause: LossCause(p.Type)}
		if lost.Cause != LostUnseen {
			lost.LostAt = o.Time(p.Sent)
		}
		return lost
	}
	if !p.Have() {
		return Copy{State: p.State}
	}
	tok := &c.set.Tokens[p.Token]
	out := Copy{State: p.State, Type: c.set.Origin.TypeName(p.Type), Len: tok.Length, Expires: c.set.Origin.Time(p.Expires)}
	if p.Kind == packed.LockCopy {
		out.Token = safetext.New(tok.Prefix)
	}
	return out
}

// All iterates over the copies by node.
func (c Copies) All() iter.Seq2[int, Copy] {
	return func(yield func(int, Copy) bool) {
		for i := range c.Len() {
			if !yield(i, c.At(i)) {
				return
			}
		}
	}
}
