package campaign

import (
	"fmt"
	"sync"
	"time"
)

// keepFor is how long a belief is kept after its end: longer than the report of another
// one takes.
const keepFor = 10 * time.Second

// Belief is the time in which one client relies on a lock.
type Belief struct {
	Resource string
	Client   int
	Token    string
	From     time.Time // when the client learnt of its grant
	Until    time.Time // when it stops relying on the lock: the end of validity, or earlier if it says so
}

// Violation is two beliefs of one lock at one time.
type Violation struct {
	First, Second Belief
}

func (v Violation) String() string {
	start := v.First.From
	one := func(b Belief) string {
		return fmt.Sprintf("client %d (%.6s…) from %s to %s", b.Client, b.Token, b.From.Sub(start).Round(10*time.Microsecond), b.Until.Sub(start).Round(10*time.Microsecond))
	}
	// For how long, as far as was known when it was found.
	overlap := earlier(v.First.Until, v.Second.Until).Sub(later(v.First.From, v.Second.From))
	return fmt.Sprintf("%s is held twice for %s: %s; %s", v.First.Resource, overlap.Round(10*time.Microsecond), one(v.First), one(v.Second))
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Witness records beliefs. It only watches. The zero Witness is ready for use.
type Witness struct {
	mu         sync.Mutex
	beliefs    map[string][]*Belief
	grants     int
	violations []Violation
}

// Believe takes note of a belief, and reports whether it contradicts another. The
// returned function is called when the client stops relying on the lock before Until,
// before it tells anybody else.
func (w *Witness) Believe(b Belief) (end func(), contradicts bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.beliefs == nil {
		w.beliefs = map[string][]*Belief{}
	}
	w.grants++
	kept := w.beliefs[b.Resource][:0]
	for _, o := range w.beliefs[b.Resource] {
		if b.From.Sub(o.Until) > keepFor {
			continue
		}
		kept = append(kept, o)
		if later(o.From, b.From).Before(earlier(o.Until, b.Until)) {
			contradicts = true
			w.violations = append(w.violations, Violation{First: *o, Second: b})
		}
	}
	w.beliefs[b.Resource] = append(kept, &b)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		b.Until = earlier(b.Until, time.Now())
	}, contradicts
}

// Violations are what was found, and how many grants there were.
func (w *Witness) Violations() (found []Violation, grants int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]Violation(nil), w.violations...), w.grants
}
