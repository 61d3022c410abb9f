package app

import (
	"context"

	"redlockctl/internal/config"
	"redlockctl/internal/who"
	"redlockctl/monitor"
	"redlockctl/monitor/observe"
	"redlockctl/redlock"
	"redlockctl/server/lockform"
)

// ReliedOn is the lock of an answer that found no majority of it, where a client relies on the lock
// all the same, or may, and the snapshot that tells; no lock: nobody does, as far as can be seen; no
// snapshot: a majority was found, or nobody could look. reading is that of [Aim].
func ReliedOn(ctx context.Context, cfg *config.Config, w *who.Answer, reading func(*observe.Monitor) func()) (*monitor.Lock, *monitor.Snapshot) {
	if w.Held >= redlock.Quorum(w.N) {
		return nil, nil
	}
	s, err := Look(ctx, cfg, Aim{Keys: lockform.PossibleSiblings(w.Key), Reading: reading})
	if err != nil {
		return nil, nil
	}
	if l := s.LockNamed(w.Key); l != nil && l.ReliedOn() {
		return l, s
	}
	return nil, s
}
