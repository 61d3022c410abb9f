package app

import (
	"context"
	"encoding/hex"
	"fmt"
	"time"

	"redlockctl/internal/record"
	"redlockctl/monitor"
	"redlockctl/restartguard"
	"redlockctl/restartguard/watch"
	"redlockctl/server/announce"
	"redlockctl/server/safetext"
)

// reliance is what a session does about a guard, where it yields to others.
type reliance uint8

const (
	undecided  reliance = iota // not all announcements have been read
	runsOwn                    // nobody else watches
	reliesOn                   // a guard is seen
	cannotTell                 // guards cannot be seen: one may be there
)

// relianceOf decides once the announcements on every node that answers have been read. A guard that
// is seen on one node is enough: two guards with different configurations are worse than one that
// misses a node, which is a finding. If guards cannot be seen, one may run with a greater D, so the
// session runs none: the worst that follows is that a node waits longer.
func relianceOf(s *monitor.Snapshot) (reliance, []announce.Guard) {
	read, denied := s.GuardsRead()
	all, _ := s.Guards()
	switch {
	case !read:
		return undecided, nil
	case len(all) > 0:
		return reliesOn, all
	case denied:
		return cannotTell, nil
	}
	return runsOwn, nil
}

// runOrRely runs the guard until ctx ends, if no other guard watches. Otherwise it says which guard
// the session relies on, and when that is gone; it does not take over by itself.
func (s *Session) runOrRely(ctx context.Context, g *watch.Guard) {
	snap := s.Monitor.Snapshot()
	does, others := relianceOf(snap)
	for ; does == undecided; does, others = relianceOf(snap) {
		select {
		case <-ctx.Done():
			return
		case <-s.Monitor.Changed(snap.Version):
			snap = s.Monitor.Snapshot()
		}
	}
	switch does {
	case runsOwn:
		s.noteGuard(false, fmt.Sprintf("no other guard is seen: this console runs one, D = %s", g.Delay()))
		s.useGuard(ctx, g)
		s.show()
		_ = g.Run(ctx)
	case cannotTell:
		s.noteGuard(true, "this user may not call PUBSUB CHANNELS, so it is not known whether a guard watches: this console runs none. "+
			"Give it the rights that redlockctl config acl prints; where no other guard runs, start the console with --guard")
	default:
		s.rely(ctx, others)
	}
}

// goneAfter is how long no guard must have been seen before that is reported: longer than a guard
// takes to start again with a new configuration.
const goneAfter = 5 * time.Second

// rely reports when the guards that the session relies on are gone, and when there is one again.
func (s *Session) rely(ctx context.Context, others []announce.Guard) {
	s.noteGuard(false, fmt.Sprintf("%s watches this cluster, D = %s: this console runs none", monitor.GuardName(others[0]), others[0].Delay))
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	seen, gone := time.Now(), false
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		snap := s.Monitor.Snapshot()
		status := rememberedStatus(s.memory, snap)
		s.guard.remembered.Store(&status)
		does, all := relianceOf(snap)
		switch {
		case does == reliesOn && gone:
			s.noteGuard(false, monitor.GuardName(all[0])+" watches this cluster again")
			fallthrough
		case does == reliesOn:
			others, seen, gone = all, time.Now(), false
		case does != runsOwn:
			seen = time.Now() // not known
		case !gone && time.Since(seen) > goneAfter:
			gone = true
			s.noteGuard(true, monitor.GuardName(others[0])+" is gone; this console relied on it, and no other guard is seen: "+
				"nodes that are fenced do not rejoin. Start redlockctl guard, or start this console again")
		}
	}
}

func (s *Session) noteGuard(alarm bool, text string) {
	s.tell(restartguard.Event{At: time.Now(), Text: text, Alarm: alarm})
}

// mostLost is how many locks that lost their majority a first look takes from the record.
const mostLost = 200

// recordedGrants returns the grants that have not ended by the record at path: those of these locks,
// a minority of whose copies may be all that is left of one, and all that lost their majority,
// perhaps with all their copies.
func recordedGrants(path, cluster string, keys []string) (known []announce.Lock) {
	r, err := record.OpenReader(path, cluster)
	if err != nil {
		return nil
	}
	defer r.Close()
	now := time.Now()
	grants, err := r.LostNow(now, mostLost)
	for _, key := range keys {
		if err != nil {
			break
		}
		var some []record.Grant
		some, err = r.GrantsOf(key, record.Span{Since: now, Until: now.Add(time.Hour)}, 2)
		grants = append(grants, some...)
	}
	for _, g := range grants {
		sum, err := hex.DecodeString(g.Token)
		if err == nil && len(sum) == 8 && runs(&g, now) {
			known = append(known, announce.Lock{Key: safetext.New(g.Lock), Token: [8]byte(sum), Short: record.TokenName(g.Token[:6]), Until: g.Until})
		}
	}
	return known
}

// runs reports whether the holder of a grant may rely on it.
func runs(g *record.Grant, now time.Time) bool {
	ended := g.How != "" && g.How != monitor.LockLostMajority.String() || !g.Ended.IsZero() && !g.Ended.After(now)
	return !ended && (g.Until.IsZero() || g.Until.After(now))
}
