package monitor

import (
	"slices"
	"strings"
	"time"
)

// moment is a time as it is kept a million times: nanoseconds on the monotonic
// clock since the base of the table; 0: none.
type moment int64

// span is from when to when something is; none: zero.
type span struct{ begin, end moment }

// origin is what packed copies refer to.
type origin struct {
	base  time.Time   // of all moments
	types [128]string // of keys; only added to, before a copy that refers to it is published
	known int
}

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

// typeName is the type of this number.
func (o *origin) typeName(number uint8) string { return o.types[number] }

// copySet is the copies of a key: a record writes it until it is published with a
// lock, and a clone from then on.
type copySet struct {
	origin *origin
	copies []copyOf
	tokens []token   // that copies refer to; clones share them
	few    [5]copyOf // copies, where there are no more nodes
}

// copyState is what is known of a key on a node: one of [monitor.CopyState].
type copyState uint8

// copyOf is a copy on one node; zero: none.
type copyOf struct {
	sent    moment // when the last read that found it was sent: for the table alone, which writes it at any time
	expires moment // zero: no TTL
	epoch   uint32 // of the node, when it was read
	typ     uint8
	token   uint8
	kind    copyKind
	state   copyState // when this was published
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
	return (a == 0) == (b == 0) && time.Duration(a-b).Abs() < jitter
}
