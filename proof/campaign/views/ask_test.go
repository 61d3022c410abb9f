package views

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"redlockctl/base/sleep"
	"redlockctl/cli/app"
	"redlockctl/internal/record"
	"redlockctl/internal/who"
	"redlockctl/monitor"
	"redlockctl/monitor/observe"
	"redlockctl/redlock"
)

// askEvery is how often each view is asked, at most.
const askEvery = 100 * time.Millisecond

// answers are what a view said each time that it was asked.
type answers struct {
	mu   sync.Mutex
	name string
	all  []answer
	// looks is for how long the view looks before the moment of which it speaks.
	looks time.Duration
}

type answer struct {
	key string
	stamped
	lasted time.Duration // as far as is known; zero: it is not
	looked time.Duration // for how long before that moment the view looked
}

func (a *answers) add(key string, at time.Time, b belief) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = append(a.all, answer{key: key, stamped: stamped{at, b}, looked: a.looks})
}

// counts is the lock that stands for the counts of status.
const counts = "#status"

// countsOf is the counts of states as a belief.
func countsOf(s *monitor.Snapshot) belief {
	if answering(s) < s.Cluster.Quorum {
		return belief{class: unknown}
	}
	var of [3]int
	for st, n := range s.Counts {
		switch monitor.LockState(st) {
		case monitor.LockHeld, monitor.LockExpiring, monitor.LockBareMajority:
			of[0] += n
		case monitor.LockLostMajority:
			of[1] += n
		case monitor.LockMayBeHeld:
			of[2] += n
		}
	}
	return belief{class: held, token: fmt.Sprint(of), state: fmt.Sprintf("%d held, %d lost majority, %d may be held", of[0], of[1], of[2])}
}

// follow takes note of each snapshot of a monitor.
func (s *stage) follow(ctx context.Context, mon *observe.Monitor, line *timeline) {
	for version := uint64(0); ; {
		select {
		case <-ctx.Done():
			return
		case <-mon.Changed(version):
		}
		snap := mon.Snapshot()
		version = snap.Version
		for i := range locks {
			b := ofLock(snap.Locks.Get(keyOf(i)), snap)
			s.tokens.seen(b.token)
			line.add(keyOf(i), snap.At, b)
		}
		line.add(counts, snap.At, countsOf(snap))
	}
}

// every asks until ctx ends.
func every(ctx context.Context, ask func()) {
	for ctx.Err() == nil {
		begun := time.Now()
		ask()
		_ = sleep.For(ctx, askEvery-time.Since(begun))
	}
}

// askLocks asks the command locks.
func (s *stage) askLocks(ctx context.Context, to *answers) {
	snap, err := app.Look(ctx, s.operated, app.Aim{Locks: true, Most: 5 * time.Second})
	if err != nil {
		return
	}
	for i := range locks {
		to.add(keyOf(i), snap.At, ofLock(snap.Locks.Get(keyOf(i)), snap))
	}
}

// askStatus asks the command status.
func (s *stage) askStatus(ctx context.Context, to *answers) {
	snap, err := app.Look(ctx, s.operated, app.Aim{Most: 5 * time.Second})
	if err == nil {
		to.add(counts, snap.At, countsOf(snap))
	}
}

// askWho asks the command who of a lock.
func (s *stage) askWho(ctx context.Context, key string, to *answers) {
	spec, err := app.SpecOf(s.operated)
	if err != nil {
		s.t.Error(err)
		return
	}
	w, err := who.Observe(ctx, spec.Nodes, who.Options{Key: key, For: 300 * time.Millisecond, Timeout: s.operated.Monitor.Timeout})
	if err != nil {
		return
	}
	relied, at := app.ReliedOn(ctx, s.operated, w, nil)
	quorum := redlock.Quorum(w.N)
	switch {
	case relied != nil:
		to.add(key, at.At, ofLock(relied, at))
	case w.Held >= quorum:
		to.add(key, w.At, belief{class: held, token: w.Token.Raw()})
	case w.N-len(w.Unusable) < quorum:
		to.add(key, w.At, belief{class: unknown})
	case at != nil && at.LockNamed(key) != nil && at.LockNamed(key).State == monitor.LockPartial:
		to.add(key, at.At, belief{class: underWay})
	case at != nil:
		b := belief{class: nobody, state: fmt.Sprintf("%d copies on %d nodes", w.Held, w.N-len(w.Unusable))}
		if answering(at) < quorum {
			b.class = unknown
		}
		to.add(key, at.At, b)
	}
}

// askPast asks history and replay what was at a moment up to three seconds ago.
func (s *stage) askPast(dice *rand.Rand, history, replay *answers) {
	r, err := record.OpenReader(s.guarded.Record.Path, "c")
	if err != nil {
		return // nothing is recorded yet
	}
	at := r.Cluster.Last.Add(-time.Duration(dice.IntN(3000)) * time.Millisecond)
	p, err := app.NewPlayer(r, at)
	if err != nil {
		s.t.Error(err)
		return
	}
	defer p.Close()
	snap := p.Snapshot()
	if snap.Settled.IsZero() || !snap.Complete {
		return
	}
	for i := range locks {
		replay.add(keyOf(i), at, ofLock(snap.Locks.Get(keyOf(i)), snap))
		grants, err := app.HoldersOf(r, keyOf(i), at.Add(-time.Minute), at)
		if err != nil {
			s.t.Error(err)
			return
		}
		b := belief{class: nobody}
		if n := len(grants); n > 0 {
			if g := grants[n-1]; g.Ended.IsZero() {
				b = belief{class: held, token: g.TokenSHA}
			} else {
				b.state = g.How + " by " + g.TokenSHA
			}
		}
		history.add(keyOf(i), at, b)
	}
}
