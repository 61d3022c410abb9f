// Package packed stores the copies of millions of locks in little memory.
package packed

import (
	"math"
	"slices"
	"strings"
	"time"
)

// Moment is a time in little memory: nanoseconds on the monotonic clock since the base of
// the table; 0: none. Times more than a century away are in units of two milliseconds,
// starting at far, so that all can be compared.
type Moment int64

const (
	far     Moment = 1 << 62
	century        = 100 * 365 * 24 * time.Hour
	farUnit        = 2 // milliseconds
)

// Span is a period of time; zero: none.
type Span struct{ Begin, End Moment }

// Origin has what packed copies refer to.
type Origin struct {
	base  time.Time   // of all moments
	types [128]string // of keys; entries are only added, before a copy that refers to them is published
	known int
}

func NewOrigin(base time.Time) *Origin {
	return &Origin{base: base, types: [128]string{StringType: "string"}, known: 1}
}

func (o *Origin) Moment(at time.Time) Moment {
	if at.IsZero() {
		return 0
	}
	d := at.Sub(o.base)
	if d > century {
		return o.After(0, at.UnixMilli()-o.base.UnixMilli())
	}
	return Moment(d)
}

func (o *Origin) Time(m Moment) time.Time {
	if m == 0 {
		return time.Time{}
	}
	if m >= far {
		return time.UnixMilli(o.base.UnixMilli() + farUnit*int64(m-far))
	}
	return o.base.Add(time.Duration(m))
}

// After returns the moment ms milliseconds after m; ms is not negative.
func (o *Origin) After(m Moment, ms int64) Moment {
	if ms <= century.Milliseconds() {
		return m + Moment(ms)*Moment(time.Millisecond)
	}
	since := int64(m) / int64(time.Millisecond)
	return far + Moment((min(ms, math.MaxInt64-o.base.UnixMilli()-since)+since)/farUnit)
}

const StringType = 0

// TypeNumber returns the number of a type; types beyond the limit share one.
func (o *Origin) TypeNumber(name string) uint8 {
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

// TypeName returns the type with this number.
func (o *Origin) TypeName(number uint8) string { return o.types[number] }

// Set is the copies of a key. A record changes it until it is published with a lock;
// after that, it changes a clone.
type Set struct {
	Origin *Origin
	Copies []Copy
	Tokens []Token // that copies refer to; clones share them
	few    [5]Copy // copies, if there are at most five nodes
}

// State is what is known of a key on a node: one of [monitor.CopyState].
type State uint8

// Copy is a copy on one node; zero: none.
type Copy struct {
	Sent    Moment // when the last read that found it was sent, or when the loss of a lost vote was seen; only for the table, which may write it at any time
	Expires Moment // zero: no TTL
	Epoch   uint32 // of the node, when the copy was read, or its loss announced
	Type    uint8  // of a lost vote: its [monitor.LossCause]
	Token   uint8
	Kind    Kind
	State   State // when published
}

type Kind uint8

const (
	noCopy    Kind = iota
	LockCopy       // by type and form, a copy of a lock
	OtherCopy      // not a copy of a lock
	LostVote       // a copy of a lock that was lost before its TTL without a release
)

// Token identifies a value by the part of it that was read.
type Token struct {
	Prefix string
	Length int64
}

// Whole reports whether the whole value was read.
func (t Token) Whole() bool { return int64(len(t.Prefix)) >= t.Length }

func NewSet(o *Origin, nodes int) *Set {
	s := &Set{Origin: o}
	if nodes <= len(s.few) {
		s.Copies = s.few[:nodes]
	} else {
		s.Copies = make([]Copy, nodes)
	}
	return s
}

func (s *Set) Clone() *Set {
	c := NewSet(s.Origin, len(s.Copies))
	copy(c.Copies, s.Copies)
	c.Tokens = slices.Clip(s.Tokens)
	return c
}

// Have reports whether a copy existed when the node was last read.
func (c *Copy) Have() bool { return c.Kind == LockCopy || c.Kind == OtherCopy }

// Lost reports whether a copy was lost there whose TTL has not expired.
func (c *Copy) Lost() bool { return c.Kind == LostVote }

// Alike reports whether two sets look the same.
func (s *Set) Alike(other *Set) bool {
	if s == other {
		return true
	}
	if s == nil || other == nil || len(s.Copies) != len(other.Copies) {
		return false
	}
	for i := range s.Copies {
		a, b := &s.Copies[i], &other.Copies[i]
		if a.State != b.State || a.Kind != b.Kind || a.Type != b.Type || !Alike(a.Expires, b.Expires) {
			return false
		}
		if !a.Have() {
			continue
		}
		x, y := &s.Tokens[a.Token], &other.Tokens[b.Token]
		if x.Length != y.Length || a.Kind == LockCopy && x.Prefix != y.Prefix {
			return false
		}
	}
	return true
}

// jitter is how much an expiry may vary between reads.
const jitter = 2 * time.Millisecond

// Alike reports whether two expiries differ too little for a person to see.
func Alike(a, b Moment) bool {
	return (a == 0) == (b == 0) && time.Duration(a-b).Abs() < jitter
}
