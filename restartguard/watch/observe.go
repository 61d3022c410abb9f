package watch

import (
	"context"
	"errors"
	"time"

	"redlockctl/restartguard"
	"redlockctl/restartguard/wire"
	"redlockctl/server/fences"
	"redlockctl/server/resp"
)

// observe reads the node, and on the way what other guards announce there.
func (w *watcher) observe(ctx context.Context, conn *wire.Conn, first bool) (restartguard.Observation, error) {
	asked := time.Now()
	conn.ReadGuards = w.readsGuards(asked, first)
	w.guardsHere = nil
	o, err := conn.Look(ctx)
	switch {
	case !conn.ReadGuards:
	case errors.Is(err, resp.ErrLong):
		w.noGuardsUntil = asked.Add(restartguard.PeerKept)
		w.report(&w.guardsErr, err, guardsUnread)
	case err == nil:
		w.guardsReadAt, w.guardsHere = asked, conn.Guards
		if conn.GuardsErr == nil {
			w.guard.noteGuards(conn.Guards)
		}
		w.report(&w.guardsErr, conn.GuardsErr, guardsUnread)
	}
	return o, err
}

// readsGuards reports whether an observation has to read the announcements of other guards:
// always while the node waits or is cordoned, because their D and what they know decides there.
func (w *watcher) readsGuards(now time.Time, first bool) bool {
	if now.Before(w.noGuardsUntil) {
		return false
	}
	b := &w.state.Basis
	return first || now.Sub(w.guardsReadAt) >= restartguard.HearEvery || !b.Deadline.IsZero() || b.Cordoned()
}

// decide has [restartguard.Step] decide on an observation and returns what has to be done. The new
// state is written to the memory first, so that a guard that is killed has not forgotten a loss.
func (w *watcher) decide(o restartguard.Observation) []restartguard.Action {
	same, others := w.same, w.others
	if o.About == restartguard.Seen {
		o.Evidence = w.guard.evidence(w.member)
		others = w.guard.addAnnounced(&o, w.guardsHere)
		same = w.guard.sameAs(w.member, o.RunID)
	}
	w.mu.Lock()
	state := w.state
	if o.About == restartguard.Seen {
		state = w.recognized(state, o.RunID)
		o.New = w.guard.mayBeNew(&state)
	}
	next, actions, events := restartguard.Step(w.policy(), state, o, time.Now())
	if same != w.same && same != "" {
		events = append(events, restartguard.Event{At: time.Now(), Kind: "same server", Text: restartguard.SameServer(same), Alarm: true})
	}
	announce := !announcedAlike(&next, &w.state)
	w.state, w.same, w.others = next, same, others
	w.mu.Unlock()

	w.remember(false)
	if w.guard.useSeen(&next) {
		for _, m := range w.guard.members {
			m.renewAnnouncements()
		}
	}
	if announce { // only what is on disk
		w.renewAnnouncements()
	}
	w.guard.updateSurvey(w.member, next, o)
	w.guard.emit(w.node.Name(), events)
	w.guard.reportQuorum()
	return actions
}

// policy is what the node's decisions follow.
func (w *watcher) policy() restartguard.Policy {
	cfg := w.guard.cfg
	p := restartguard.Policy{
		Delay: cfg.Delay, FirstContact: cfg.FirstContact, ClockStep: cfg.ClockStep, CountEvery: cfg.CountEvery,
		Advice: w.method.Kind == fences.None, Sweep: cfg.Memory != nil,
	}
	if w.guard.survey != nil {
		p.EarlyAfter = restartguard.EarlyAfter(cfg.Early.AttemptBound)
	}
	return p
}

// announcedAlike reports whether the announcement of two states is the same. It has a time on the
// node's clock, which may have been stepped.
func announcedAlike(a, b *restartguard.State) bool {
	return (a.Basis.Offset-b.Basis.Offset).Abs() < time.Second && a.Basis.Fence() == b.Basis.Fence() && a.Basis.Cordoned() == b.Basis.Cordoned() && a.Basis.Empty == b.Basis.Empty &&
		a.Report.From == b.Report.From && a.Basis.Trusted == b.Basis.Trusted && a.Basis.RunID == b.Basis.RunID && a.Report.Known == b.Report.Known && a.Report.Verified == b.Report.Verified &&
		a.Report.BootExposed == b.Report.BootExposed
}
