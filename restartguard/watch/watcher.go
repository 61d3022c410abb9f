package watch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"redlockctl/base/boottime"
	"redlockctl/base/crash"
	"redlockctl/base/sleep"
	"redlockctl/restartguard"
	"redlockctl/restartguard/wire"
	"redlockctl/server/announce"
	"redlockctl/server/resp"
	"redlockctl/server/safetext"
)

// watcher is the guard of one node. What it alone needs to know is its own goroutine's.
type watcher struct {
	guard *Guard
	*member

	// When it last read what other guards announce, and why it could not; what was
	// written last, and when.
	heardAt   time.Time
	loudUntil time.Time // more was announced than a guard reads
	deaf      string
	written   restartguard.State
	writtenAt time.Time
	unwritten string // why not
	crowded   bool   // its list of clients is more than a guard reads
	// What guards announced at the last look on this node, and how far the copies of a cordoned one are counted.
	voices  []announce.Guard
	copies  wire.Scan
	countAt time.Time // no sooner
}

// run goes from one connection to the next. There is at most one at a time.
func (w *watcher) run(ctx context.Context) {
	for ctx.Err() == nil {
		pause := w.live(ctx)
		_ = sleep.For(ctx, pause)
	}
}

// live watches the node by one connection until that breaks, and tells how
// long to wait before the next is tried.
func (w *watcher) live(ctx context.Context) (pause time.Duration) {
	l := wire.Dial(w.node, w.method, w.guard.cfg.Timeout)
	l.Counter = w.guard.cfg.CountEvery > 0 && w.method.Kind != restartguard.MethodNone
	l.Crowded = w.crowded
	if m := w.guard.cfg.Memory; m != nil {
		l.Name += ":" + m.ID()
	}
	defer l.Close()
	var reading wire.Scan
	for first := true; ; first = false {
		w.mu.Lock()
		w.beat = time.Now()
		w.mu.Unlock()
		asked := time.Now()
		l.Hear = first || asked.Sub(w.heardAt) >= restartguard.HearEvery || !w.state.Basis.Deadline.IsZero() || w.state.Basis.Cordoned()
		l.Hear = l.Hear && !asked.Before(w.loudUntil)
		o, err := l.Look(ctx)
		if l.Hear && errors.Is(err, resp.ErrLong) {
			w.loudUntil = asked.Add(restartguard.PeerKept)
			w.say(&w.deaf, err, unheard)
		}
		if err == nil && l.Hear {
			w.heardAt = asked
			w.listen(&l)
		}
		if w.voices = nil; err == nil && l.Hear {
			w.voices = l.Heard
		}
		switch {
		case ctx.Err() != nil:
			return 0
		case errors.Is(err, wire.ErrBroken):
			// A connection that was good and has ended says little: the next one
			// tells at once if the node is there. Silence, or no connection to begin
			// with, says that it is not.
			if first || isTimeout(err) {
				w.step(restartguard.Observation{About: restartguard.Unreached, Asked: asked, Refused: wire.IsRefused(err), Denied: wire.IsDenied(err), Err: safetext.Error(err)})
			}
			switch {
			case !first:
				return 0
			case wire.Answered(err), errors.Is(err, resp.ErrFull), errors.Is(err, resp.ErrBad):
				return w.guard.cfg.Poll // it is there and does not let us in: no reason to hurry
			default:
				return min(reconnect, w.guard.cfg.Poll)
			}
		case err != nil:
			// It answers, but not what we need.
			w.step(restartguard.Observation{About: restartguard.Unreached, Asked: asked, Denied: wire.IsDenied(err), Err: safetext.Error(err)})
		default:
			if !w.follow(ctx, &l, o) {
				return min(reconnect, w.guard.cfg.Poll)
			}
		}
		if w.elsewhere(l.At()) {
			w.led(l.At())
			return 0
		}
		if err != nil {
			_ = sleep.For(ctx, w.pause())
		} else if !w.inquire(ctx, &l, &reading) {
			return min(reconnect, w.guard.cfg.Poll)
		}
	}
}

// follow steps with a look and carries out what follows from it, on the same
// connection. It reports whether that is still good.
func (w *watcher) follow(ctx context.Context, l *wire.Conn, o restartguard.Observation) bool {
	todo := w.step(o)
	for n := 0; len(todo) > 0 && n < restartguard.MaxActions; n++ {
		a := todo[0]
		todo = todo[1:]
		if ctx.Err() != nil {
			return false
		}
		// What was begun is brought to its end, within the timeout: a closing that
		// is cut off is neither done nor undone.
		actx, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.guard.cfg.Timeout)
		outcome, err := l.Perform(actx, a)
		cancel()
		if err != nil {
			w.crowded = w.crowded || a.Kind == restartguard.Kill && errors.Is(err, resp.ErrLong)
			return false
		}
		todo = append(todo, w.step(outcome)...)
	}
	return true
}

// step decides. What follows from it is written down before it is done, so
// that a guard that is killed in between has not forgotten a loss.
func (w *watcher) step(o restartguard.Observation) []restartguard.Action {
	cfg := w.guard.cfg
	p := restartguard.Policy{
		Delay: cfg.Delay, FirstContact: cfg.FirstContact, ClockStep: cfg.ClockStep, CountEvery: cfg.CountEvery,
		Advice: w.method.Kind == restartguard.MethodNone, Sweep: cfg.Memory != nil,
	}
	if w.guard.survey != nil {
		p.EarlyAfter = restartguard.EarlyAfter(cfg.Early.AttemptBound)
		if o.About == restartguard.Seen {
			o.Evidence = w.guard.evidence(w.member)
		}
	}
	if o.About == restartguard.Seen {
		w.guard.hears(&o, w.voices)
	}
	same := w.same
	if o.About == restartguard.Seen {
		same = w.guard.sameAs(w.member, o.RunID)
	}
	w.mu.Lock()
	state := w.state
	if o.About == restartguard.Seen {
		state = w.recognized(state, o.RunID)
		o.New = w.guard.mayBeNew(&state)
	}
	next, actions, events := restartguard.Step(p, state, o, time.Now())
	if same != w.same && same != "" {
		events = append(events, restartguard.Event{At: time.Now(), Kind: "same server", Text: restartguard.SameServer(same), Alarm: true})
	}
	w.same = same
	renew := next.Basis.Fence() != w.state.Basis.Fence() || next.Report.From != w.state.Report.From || next.Basis.Empty != w.state.Basis.Empty || next.Basis.Cordoned() != w.state.Basis.Cordoned() ||
		next.Report.Known != w.state.Report.Known || next.Report.Verified != w.state.Report.Verified || next.Report.BootExposed != w.state.Report.BootExposed
	w.state = next
	w.mu.Unlock()
	w.remember(false)
	if w.guard.useSeen(&next) {
		for _, m := range w.guard.members {
			m.renew()
		}
	}
	if renew { // what is announced is on disk
		w.renew()
	}
	w.guard.looked(w.member, next, o)
	w.guard.tell(w.node.Name(), events)
	w.guard.lookOut()
	return actions
}

// remember writes the state down if it changed, or if it is time, or in any
// case.
func (w *watcher) remember(always bool) {
	m := w.guard.cfg.Memory
	if m == nil || w.state.Basis.RunID == "" {
		return
	}
	// The boot clock last: what comes in between makes a deadline later, never
	// sooner.
	now := time.Now()
	boot := boottime.Now()
	durable := w.state.Durable()
	if !always && durable == w.written && now.Sub(w.writtenAt) < restartguard.RecordEvery(w.guard.cfg.Delay) && !m.Removed() {
		return
	}
	why := ""
	remade, err := m.Put(w.remembered(), now, boot)
	if err != nil {
		why = safetext.Error(err)
	}
	if remade {
		w.guard.tell(w.node.Name(), []restartguard.Event{{At: now, Kind: "memory", Text: safetext.Error(fmt.Errorf(
			"the state directory %s was removed or replaced while the guard ran: it was made again, and the memory written anew", m.Dir()))}})
	}
	w.written, w.writtenAt = durable, now
	if why != w.unwritten && why != "" {
		w.guard.tell(w.node.Name(), []restartguard.Event{{At: now, Kind: "memory", Text: why}})
	}
	w.unwritten = why
}

// pause is the time until the next look: the poll, or less when the node may
// rejoin before that.
func (w *watcher) pause() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	poll := w.guard.cfg.Poll
	if w.state.Basis.Phase != restartguard.PhaseFenced || w.state.Basis.Deadline.IsZero() {
		return poll
	}
	if d := time.Until(w.state.Basis.Deadline); d > 0 {
		return min(d, poll)
	}
	return poll
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout() || errors.Is(err, context.DeadlineExceeded)
}

// inquire spends the time until the next look, or a part of it, on what is asked
// of the node. It reports whether the connection is still good. What has been answered
// counts only after a look, which is therefore the next thing to do.
func (w *watcher) inquire(ctx context.Context, l *wire.Conn, s *wire.Scan) bool {
	until := time.Now().Add(w.pause())
	if !w.countCopies(ctx, l) {
		return false
	}
	for ctx.Err() == nil {
		q, ok := w.guard.question(w.node.Name())
		if !ok {
			_ = sleep.For(ctx, time.Until(until))
			return true
		}
		if !s.Begun || s.Round != q.Round {
			s.Begin(q, w.state.Basis.RunID)
		}
		began := time.Now()
		if err := s.Step(ctx, l, w.guard.cfg.Early.Patterns); err != nil {
			if errors.Is(err, resp.ErrLong) { // and would be again
				s.Doubt, s.Ended = "has names too long to be read", time.Now()
				w.guard.answer(w.node.Name(), s.Answer)
			}
			return false
		}
		if s.Done {
			w.guard.answer(w.node.Name(), s.Answer)
			s.Begun = false
			return true
		}
		_ = sleep.For(ctx, (wire.ScanShares-1)*time.Since(began))
		if !time.Now().Before(until) {
			return true
		}
	}
	return true
}

// listen takes in what a look has brought of other guards.
func (w *watcher) listen(l *wire.Conn) {
	if !l.Hear {
		return
	}
	if l.Deaf == nil {
		w.guard.heard(l.Heard)
	}
	w.say(&w.deaf, l.Deaf, unheard)
}

// say tells of a shortcoming once, however often it comes again.
func (w *watcher) say(last *string, err error, what string) {
	why := ""
	if err != nil {
		why = what + ": " + safetext.Error(err)
	}
	if why != *last && why != "" {
		w.guard.tell(w.node.Name(), []restartguard.Event{{At: time.Now(), Kind: "announce", Text: why, Alarm: true}})
	}
	*last = why
}

// announcements are what the guard says of itself on this node, and of locks.
func (w *watcher) announcements() []string {
	w.mu.Lock()
	s := &w.state
	a := announce.Guard{ID: w.guard.id, Delay: w.guard.cfg.Delay, Host: w.guard.host, PID: w.guard.pid, Cluster: safetext.New(w.guard.cfg.Cluster), Use: w.guard.use()}
	switch {
	case !s.Report.Known:
	case s.Report.Verified:
		a.Boot = announce.BootFenced
	default:
		a.Boot, a.Exposed = announce.BootUnfenced, s.Report.BootExposed
	}
	if a.Fence = s.Basis.Fence(); a.Fence == announce.FenceLeaks {
		a.Leak = safetext.New(s.Report.Leak)
	}
	if !s.Report.From.IsZero() && s.Basis.Offset != 0 && s.Basis.Blur <= restartguard.Sharp {
		a.MayVote = time.Unix(0, int64(boottime.Now()+s.Basis.Offset+time.Until(s.Report.From))).Truncate(time.Millisecond)
	}
	a.Cordoned, a.Drained = s.Basis.Cordoned(), s.Basis.Empty
	defer w.mu.Unlock()
	return append([]string{a.Channel()}, w.vouched...)
}

// Vouch has the guard announce on a node what it knows of locks: channels, as package announce makes
// them.
func (g *Guard) Vouch(node string, channels []string) {
	for _, m := range g.members {
		if m.node.Name() != node {
			continue
		}
		m.mu.Lock()
		same := slices.Equal(m.vouched, channels)
		m.vouched = channels
		m.mu.Unlock()
		if !same {
			m.renew()
		}
	}
}

// renew has the announcements renewed if they are others by now.
func (w *member) renew() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// Run guards until ctx ends, and returns after all that it started has ended. It
// never opens a node on its way out. The end of ctx is no error. A guard runs
// once.
func (g *Guard) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	watches := make([]*watcher, len(g.members))
	for i, m := range g.members {
		w := &watcher{guard: g, member: m}
		watches[i] = w
		wg.Go(crash.Safe(func() { w.run(ctx) }))
		if hostOf(m.node.Addr()) != "" {
			wg.Go(crash.Safe(func() { w.resolve(ctx) }))
		}
		if m.method.Kind != restartguard.MethodNone { // it fences nothing there, and must not be taken for one that does
			wg.Go(crash.Safe(func() { w.keepAnnounced(ctx) }))
		}
	}
	wg.Wait()
	for _, w := range watches {
		w.remember(true)
	}
	return nil
}

// keepAnnounced keeps a connection on which the guard is seen, until ctx ends.
func (w *watcher) keepAnnounced(ctx context.Context) {
	last := ""
	a := announcer{node: w.node, timeout: w.guard.cfg.Timeout, text: w.announcements, changed: w.changed, elsewhere: w.elsewhere, seen: func(err error) {
		w.mu.Lock()
		w.unseen, w.invalid = safetext.Error(err), errors.Is(err, resp.ErrBad)
		w.mu.Unlock()
		w.say(&last, err, unannounced)
	}}
	a.run(ctx)
}
