package monitor

import (
	"iter"
	"slices"
	"strings"
	"time"

	"redlockctl/internal/safetext"
)

// CopyState tells apart what is known of a key on a node.
type CopyState uint8

const (
	CopyAbsent  CopyState = iota // the node answered, the key is not there
	CopyPresent                  // it is there
	CopyUnknown                  // the node does not answer: the last sight is kept in Token and Expires
	CopyUnread                   // the node answers, but was not read to the end yet: a last sight is kept too
	CopySeen                     // it was there, and when it expires is not known: of a snapshot out of a record
)

// Copy is a key on one node.
type Copy struct {
	State CopyState
	Type  string        // of the key: "string", "hash", …; empty: it was never seen there
	Token safetext.Text // value of a string, or its first bytes
	Len   int64         // length of the value in bytes, or number of elements
	// Expires is computed from PTTL on the local monotonic clock; zero: the copy
	// has no TTL.
	Expires time.Time
}

// ofLock reports whether a copy is there and counts as one of a lock.
func (c *Copy) ofLock() bool {
	return (c.State == CopyPresent || c.State == CopySeen) && (c.Type == "string" || !c.Token.Empty())
}

// Copies are the copies of a lock, one for each node, in the nodes' order. They
// are immutable. A monitor may keep millions, so they are packed.
type Copies struct{ set *copySet }

// PackCopies are these copies.
func PackCopies(copies ...Copy) Copies {
	o := newOrigin(byHand.base)
	set := newCopySet(o, len(copies))
	for i, c := range copies {
		set.copies[i].state = c.State
		if c.Type == "" && c.Token.Empty() && c.Len == 0 && c.Expires.IsZero() {
			continue
		}
		kind := otherCopy
		if c.Type == "string" || !c.Token.Empty() {
			kind = lockCopy
		}
		set.tokens = append(set.tokens, token{c.Token.Raw(), c.Len})
		set.copies[i] = copyOf{state: c.State, kind: kind, typ: o.typ(c.Type), token: uint8(len(set.tokens) - 1), expires: o.moment(c.Expires)}
	}
	return Copies{set}
}

// Len is how many nodes there are.
func (c Copies) Len() int {
	if c.set == nil {
		return 0
	}
	return len(c.set.copies)
}

// time is when m is, for a lock with these copies.
func (c Copies) time(m moment) time.Time {
	if c.set == nil {
		return byHand.time(m)
	}
	return c.set.origin.time(m)
}

// At is the copy on node i.
func (c Copies) At(i int) Copy {
	p := &c.set.copies[i]
	if !p.have() {
		return Copy{State: p.state}
	}
	tok := &c.set.tokens[p.token]
	out := Copy{State: p.state, Type: c.set.origin.types[p.typ], Len: tok.length, Expires: c.set.origin.time(p.expires)}
	if p.kind == lockCopy {
		out.Token = safetext.New(tok.prefix)
	}
	return out
}

// All are the copies, by node.
func (c Copies) All() iter.Seq2[int, Copy] {
	return func(yield func(int, Copy) bool) {
		for i := range c.Len() {
			if !yield(i, c.At(i)) {
				return
			}
		}
	}
}

// moment is a time as it is kept a million times: nanoseconds on the monotonic
// clock since the base of the table; 0: none.
type moment int64

// origin is what packed copies refer to.
type origin struct {
	base  time.Time   // of all moments
	types [128]string // of keys; only added to, before a copy that refers to it is published
	known int
}

// byHand is when the times of locks that no table keeps are counted from.
var byHand = origin{base: time.Unix(0, 0)}

func newOrigin(base time.Time) *origin {
	return &origin{base: base, types: [128]string{typeString: "string"}, known: 1}
}

func (o *origin) moment(at time.Time) moment {
	if at.IsZero() {
		return 0
	}
	return moment(at.Sub(o.base))
}

func (o *origin) time(m moment) time.Time {
	if m == 0 {
		return time.Time{}
	}
	return o.base.Add(time.Duration(m))
}

const typeString = 0

// typ is the number of a type; more types than there is room for are one.
func (o *origin) typ(name string) uint8 {
	known := o.types[:o.known]
	if k := slices.Index(known, name); k >= 0 {
		return uint8(k)
	}
	if o.known < len(o.types) {
		o.types[o.known] = strings.Clone(name)
		o.known++
	}
	return uint8(o.known - 1)
}

// copySet is the copies of a key: a record writes it until it is published with a
// lock, and a clone from then on.
type copySet struct {
	origin *origin
	copies []copyOf
	tokens []token   // that copies refer to; clones share them
	few    [5]copyOf // copies, where there are no more nodes
}

// copyOf is a copy on one node; zero: none.
type copyOf struct {
	sent    moment // when the last read that found it was sent: for the table alone, which writes it at any time
	expires moment // zero: no TTL
	epoch   uint32 // of the node, when it was read
	typ     uint8
	token   uint8
	kind    copyKind
	state   CopyState // when this was published
}

type copyKind uint8

const (
	noCopy    copyKind = iota
	lockCopy           // by its type and form
	otherCopy          // no copy of a lock
)

// token tells values apart by what was read of them.
type token struct {
	prefix string
	length int64
}

// whole reports whether all of the value was read.
func (t token) whole() bool { return int64(len(t.prefix)) >= t.length }

func newCopySet(o *origin, nodes int) *copySet {
	s := &copySet{origin: o}
	if nodes <= len(s.few) {
		s.copies = s.few[:nodes]
	} else {
		s.copies = make([]copyOf, nodes)
	}
	return s
}

func (s *copySet) clone() *copySet {
	c := newCopySet(s.origin, len(s.copies))
	copy(c.copies, s.copies)
	c.tokens = slices.Clip(s.tokens)
	return c
}

// have reports whether a copy was there at the last sight.
func (c *copyOf) have() bool { return c.kind != noCopy }

// held reports whether the copy is one of a lock, and there.
func (c *copyOf) held() bool { return c.kind == lockCopy && c.state == CopyPresent }

// alike reports whether two sets look the same.
func (s *copySet) alike(other *copySet) bool {
	if s == other {
		return true
	}
	if s == nil || other == nil || len(s.copies) != len(other.copies) {
		return false
	}
	for i := range s.copies {
		a, b := &s.copies[i], &other.copies[i]
		if a.state != b.state || a.kind != b.kind || a.typ != b.typ || !alike(a.expires, b.expires) {
			return false
		}
		if !a.have() {
			continue
		}
		x, y := &s.tokens[a.token], &other.tokens[b.token]
		if x.length != y.length || a.kind == lockCopy && x.prefix != y.prefix {
			return false
		}
	}
	return true
}

// jitter is that of an expiry, from read to read.
const jitter = 2 * time.Millisecond

// alike reports whether two ends differ by less than a person would see.
func alike(a, b moment) bool {
	return (a == 0) == (b == 0) && abs(time.Duration(a-b)) < jitter
}
