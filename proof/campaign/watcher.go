package campaign

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"redlockctl/base/sleep"
)

// Rejoins is what was seen of masters between their start and their rejoining.
type Rejoins struct {
	Rejoined          int
	Early             int           // of them before D
	Shortest, Longest time.Duration // from a start to rejoining
	Accepted          int           // SETs accepted before
	Faults            []string      // masters that served too early, or accepted a SET
}

// record is what the watchers have seen.
type record struct {
	mu      sync.Mutex
	rejoins Rejoins
	serving map[string]bool // nodes that were seen to serve in their present incarnation
}

func (r *record) started(node string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.serving[node] = false
}

// serves reports whether a node was seen to serve since its last start.
func (r *record) serves(node string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.serving[node]
}

// out is a node that does not serve; "" if there is none.
func (r *record) out() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for node, serves := range r.serving {
		if !serves {
			return node
		}
	}
	return ""
}

// faulty reports whether there is nothing more to prove.
func (r *record) faulty() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.rejoins.Faults) > 0
}

func (r *record) seen() Rejoins {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.rejoins
	all.Faults = slices.Clone(all.Faults)
	return all
}

// watch asks one incarnation of a server until it serves or ends, or ctx ends. Unless
// it may rejoin early, it must not serve until D has passed since a moment no later
// than its start.
func (r *record) watch(ctx context.Context, m master, start time.Time, delay time.Duration, early bool) {
	ask, end := m.watch()
	defer end()
	for ; ctx.Err() == nil; _ = sleep.For(ctx, watchEvery) {
		serves, sets, ok := ask(ctx)
		if took := time.Since(start); !ok || r.saw(m.Node().Name(), serves, sets, took, delay, early) {
			return
		}
	}
}

// saw takes note of an answer, and reports whether it is the last that is needed.
func (r *record) saw(node string, serves bool, sets int, took, delay time.Duration, early bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &r.rejoins
	if !serves {
		// After D, or if it may rejoin early, the node may have served between two looks: a guard that was
		// cut off fences an uncordoned node again.
		if sets == 0 || early || took >= delay {
			return false
		}
		s.Accepted += sets
		s.Faults = append(s.Faults, fmt.Sprintf("%s has accepted %d SETs %s after its start, and is fenced", node, sets, took))
		return true
	}
	r.serving[node] = true
	s.Rejoined++
	s.Longest = max(s.Longest, took)
	if s.Shortest == 0 || took < s.Shortest {
		s.Shortest = took
	}
	switch {
	case took >= delay:
	case early:
		s.Early++
	default:
		s.Faults = append(s.Faults, fmt.Sprintf("%s serves %s after its start, before D = %s", node, took, delay))
	}
	return true
}
