// Package packed is how a table keeps the copies of millions of locks.
package packed

import (
	"math"
	"slices"
	"strings"
	"time"
)

// Moment is a time as it is kept a million times: nanoseconds on the monotonic
// clock since the base of the table; 0: none. One that is more than a century away
// is kept in units of two milliseconds from far on, so that all of them can be
// compared.
type Moment int64

const (
	far     Moment = 1 << 62
	century        = 100 * 365 * 24 * time.Hour
	farUnit        = 2 // milliseconds
)

// Span is from when to when something is; none: zero.
type Span struct{ Begin, End Moment }

// Origin is what packed copies refer to.
type Origin struct {
	base  time.Time   // of all moments
	types [128]string // of keys; only added to, before a copy that refers to it is published
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

// After is the moment that is so many milliseconds, not negative, after m.
func (o *Origin) After(m Moment, ms int64) Moment {
	if ms <= century.Milliseconds() {
		return m + Moment(ms)*Moment(time.Millisecond)
	}
	since := int64(m) / int64(time.Millisecond)
	return far + Moment((min(ms, math.MaxInt64-o.base.UnixMilli()-since)+since)/farUnit)
}

const StringType = 0

// TypeNumber is the number of a type; more types than there is room for are one.
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

// TypeName is the type of this number.
func (o *Origin) TypeName(number uint8) string { return o.types[number] }

// Set is the copies of a key: a record writes it until it is published with a
// lock, and a clone from then on.
type Set struct {
	Origin *Origin
	Copies []Copy
	Tokens []Token // that copies refer to; clones share them
	few    [5]Copy // copies, where there are no more nodes
}

// State is what is known of a key on a node: one of [monitor.CopyState].
type State uint8

// Copy is a copy on one node; zero: none.
type Copy struct {
	Sent    Moment // when the last read that found it was sent: for the table alone, which writes it at any time; of a lost vote, when its loss was seen
	Expires Moment // zero: no TTL
	Epoch   uint32 // of the node, when it was read
	Type    uint8  // of a lost vote: its [monitor.LossCause]
	Token   uint8
	Kind    Kind
	State   State // when this was published
}

type Kind uint8

const (
	noCopy    Kind = iota
	LockCopy       // by its type and form
	OtherCopy      // no copy of a lock
	LostVote       // a copy of a lock that is gone before its TTL, and was not released
)

// Token tells values apart by what was read of them.
type Token struct {
	Prefix string
	Length int64
}

// Whole reports whether all of the value was read.
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

// Have reports whether a copy was there when the node was last read.
func (c *Copy) Have() bool { return c.Kind == LockCopy || c.Kind == OtherCopy }

// Lost reports whether a copy was lost there whose TTL still runs.
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

// jitter is that of an expiry, from read to read.
const jitter = 2 * time.Millisecond

// Alike reports whether two ends differ by less than a person would see.
func Alike(a, b Moment) bool {
	return (a == 0) == (b == 0) && time.Duration(a-b).Abs() < jitter
}
