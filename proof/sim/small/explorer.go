package small

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"time"

	"redlockctl/proof/sim/trace"
)

// move is one thing that happens.
type move struct {
	kind    moveKind
	who, at uint8 // client, node
}

type moveKind uint8

// The moves of both models.
const (
	moveBegin moveKind = iota
	moveSet
	moveCrash
	moveBoot
	moveFlush
	moveStep
	moveLook
	moveRead
	moveRemove
	moveRemoved
	moveGiveUp
	moveGuardCrash
	moveGuardForgets
	moveTime
	moveCordon
	moveCount
	moveUncordon

	// Of a kept lock.
	moveExtend
	moveExtended
	movePut
	movePutUnheard
	moveRestart
	moveRejoin
	moveTake
	moveDelete
)

// model is a small world. A state is a value without pointers, so that a step can work
// on a copy.
type model[S any] interface {
	begin() S
	// moves lists the possible moves; make may still refuse one.
	moves(s *S, room []move) []move
	// make makes a move, if it is possible.
	make(s *S, m move) bool
	// broken says which property is violated; "": none.
	broken(s *S) string
	// over reports whether no later move can violate anything.
	over(s *S) bool
	// key is the whole state without what makes no difference.
	key(s *S) uint64
	moment(s *S) time.Duration
}

// keySeed is the hash seed for the keys of states.
var keySeed = maphash.MakeSeed()

// keyOf hashes a whole value: a new field counts without being listed anywhere.
func keyOf[T comparable](v T) uint64 { return maphash.Comparable(keySeed, v) }

// teller records what happens, if there is a reader.
type teller struct{ trace *trace.Log }

func (t *teller) say(now time.Duration, kind string, i uint8, format string, args ...any) {
	if t.trace != nil && kind != "" {
		t.trace.Add(now, fmt.Sprintf("%s%d", kind, i+1), fmt.Sprintf(format, args...))
	}
}

type explorer[S any] struct {
	model[S]
	ctx     context.Context
	most    int // states; 0: no bound
	visited map[uint64]struct{}
	steps   int
	path    []move
	levels  []*level[S] // for each move of the path
	found   bool
	err     error
}

// level is the room for a state, so that a step allocates nothing.
type level[S any] struct {
	moves []move
	next  S
}

func exploreModel[S any](ctx context.Context, m model[S], most int, say *teller) (Exploration, error) {
	began := time.Now()
	x := &explorer[S]{model: m, ctx: ctx, most: most, visited: map[uint64]struct{}{}}
	s := x.begin()
	x.visit(&s)
	report := Exploration{States: len(x.visited), Steps: x.steps}
	if x.found {
		report.path = x.shorten(slices.Clone(x.path))
		report.Trace = x.tell(report.path, say)
	}
	report.Elapsed = time.Since(began)
	return report, x.err
}

// visit explores everything that can follow from a state, and reports whether to
// continue.
func (x *explorer[S]) visit(s *S) bool {
	h := x.key(s)
	if _, ok := x.visited[h]; ok {
		return true
	}
	x.visited[h] = struct{}{}
	if len(x.visited)%4096 == 0 && x.ctx.Err() != nil {
		x.err = x.ctx.Err()
		return false
	}
	if x.most > 0 && len(x.visited) > x.most {
		x.err = ErrTooManyStates
		return false
	}
	if x.over(s) {
		return true
	}
	if len(x.levels) == len(x.path) {
		x.levels = append(x.levels, new(level[S]))
	}
	at := x.levels[len(x.path)]
	at.moves = x.moves(s, at.moves[:0])
	for _, m := range at.moves {
		at.next = *s
		x.steps++
		if !x.make(&at.next, m) {
			continue
		}
		x.path = append(x.path, m)
		if x.broken(&at.next) != "" {
			x.found = true
			return false
		}
		if !x.visit(&at.next) {
			return false
		}
		x.path = x.path[:len(x.path)-1]
	}
	return true
}

// play makes all moves of a path that are possible, and reports whether it breaks.
func (x *explorer[S]) play(path []move) bool {
	s := x.begin()
	for _, m := range path {
		next := s
		room := [48]move{}
		if !slices.Contains(x.moves(&s, room[:0]), m) || !x.make(&next, m) {
			continue
		}
		if s = next; x.broken(&s) != "" {
			return true
		}
	}
	return false
}

// shorten leaves out moves that are not needed.
func (x *explorer[S]) shorten(path []move) []move {
	for again := true; again; {
		again = false
		for i := len(path) - 1; i >= 0; i-- {
			less := slices.Delete(slices.Clone(path), i, i+1)
			if x.play(less) {
				path, again = less, true
			}
		}
	}
	return path
}

// tell records what happens on a path.
func (x *explorer[S]) tell(path []move, say *teller) []trace.Line {
	say.trace = new(trace.Log)
	defer func() { say.trace = nil }()
	s := x.begin()
	say.trace.Lines = nil
	for _, m := range path {
		next := s
		if !x.make(&next, m) {
			continue
		}
		if s = next; x.broken(&s) != "" {
			break
		}
	}
	say.trace.Add(x.moment(&s), "!!", x.broken(&s))
	return say.trace.Lines
}

// ErrTooManyStates is returned by [Explore] when there are more states than it was
// allowed to visit.
var ErrTooManyStates = errors.New("not all states were visited")

// Exploration is the result of [Explore].
type Exploration struct {
	States, Steps int
	Elapsed       time.Duration
	// Trace is a shortened path to a violation; nil: there is none.
	Trace []trace.Line
	path  []move
}
