package observe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"redlockctl/base/crash"
	"redlockctl/base/sleep"
	"redlockctl/monitor"
	"redlockctl/monitor/table"
	"redlockctl/monitor/wire"
	"redlockctl/monitor/words"
	"redlockctl/server/resp"
	"redlockctl/server/safetext"
)

const (
	// A change is read at once, then at most one batch in this time.
	coalesce = 5 * time.Millisecond
	// If most keys were gone when they were read (locks held for less than a read takes),
	// reads are wasted and load the masters: read in this interval instead.
	coalesceGone = 30 * time.Millisecond
	// A feed is pinged seldom, and often while a lock waits for the nodes to confirm its
	// state.
	pingSeldom = 500 * time.Millisecond
	pingOften  = 50 * time.Millisecond
	// A node that reports its changes is still fully read now and then, slowly: with
	// pauses of paceShare times each page, and only so often that reading takes
	// 1/reconcileShare of the time.
	paceShare      = 9
	reconcileShare = 150
	reconcileLeast = 10 * time.Second
	reconcileMost  = 15 * time.Minute
	// An urgent read has no pauses if the node has no other clients at work. Otherwise it
	// has pauses and smaller pages, since those clients wait for each of ours.
	paceBusy  = 3
	batchBusy = 50
	// Reads take at most 1/lineShare of a thin line, all nodes together.
	lineShare = 3
	// A node without a feed is asked again after that time.
	feedRetry     = time.Minute
	feedRetryMost = 15 * time.Minute
)

// errSuperseded ends a session when the server is in another incarnation or cannot be
// read.
var errSuperseded = errors.New("the node restarted or is not seen")

// errMute ends a session whose feed does not answer a ping.
var errMute = errors.New("no answer on the connection that reports changes")

// errAllMute is errMute where the node answered nothing else either: that says nothing
// about feeds.
var errAllMute = fmt.Errorf("%w, as on the others", errMute)

// errRetryFeed ends a session without a feed, to try again for one.
var errRetryFeed = errors.New("time to ask for changes again")

// leave does not read node i for a while, or until its server is in another incarnation.
func (m *Monitor) leave(ctx context.Context, i int, d time.Duration) {
	epoch, _ := m.scanStarts(i, "")
	for end := time.Now().Add(d); ctx.Err() == nil && time.Now().Before(end); {
		_ = sleep.For(ctx, time.Second)
		if now, _ := m.scanStarts(i, ""); now != epoch {
			return
		}
	}
}

// scan keeps the table up to date with node i until ctx ends, in one session after the
// other.
func (m *Monitor) scan(ctx context.Context, i int) {
	wake := m.changes[i].Wake
	var plan feedPlan
	for ctx.Err() == nil {
		if _, ok := m.scanStarts(i, ""); !ok {
			_ = sleep.Woken(ctx, time.Second, wake)
			continue
		}
		err := m.readSession(ctx, i, &plan)
		if ctx.Err() != nil {
			return
		}
		m.unheard(i)
		if m.excused(err) || plan.failed(err, time.Now()) {
			continue
		}
		pause := min(m.opt.ScanEvery, time.Second)
		if !errors.Is(err, errSuperseded) {
			m.scanFailed(i, err)
			if wire.StateOf(err) == monitor.NodeDenied {
				pause = max(pause, m.opt.InfoEvery) // the server logs each refusal
			}
		}
		if errors.Is(err, errEndless) {
			m.leave(ctx, i, plan.giveUp())
			continue
		}
		_ = sleep.Woken(ctx, pause, wake)
	}
}

// feedPlan carries from one session with a node to the next: when to ask for a feed
// again, why there is none, and how large pages of keys may be.
type feedPlan struct {
	why   monitor.Limit // why there is no feed
	next  time.Time
	pause time.Duration
	muted time.Time
	// smaller is how much smaller pages of keys are than configured: their names exceeded
	// the limit of a reply.
	smaller int64
}

// page returns how many keys a step of a scan covers.
func (p *feedPlan) page(configured int) int64 {
	return max(1, int64(configured)/max(1, p.smaller))
}

func (p *feedPlan) putOff(why monitor.Limit, now time.Time) {
	p.why = why
	if now.Sub(p.next) > p.pause { // it worked for longer than it was left alone
		p.pause = 0
	}
	p.pause = min(max(2*p.pause, feedRetry), feedRetryMost)
	p.next = now.Add(p.pause)
}

// giveUp returns how long to leave a node alone that cannot be read.
func (p *feedPlan) giveUp() time.Duration {
	p.pause = min(max(2*p.pause, feedRetry), feedRetryMost)
	return p.pause
}

// failed records the end of a session. It reports whether the next one may start at once:
// the feed ended, not the node.
func (p *feedPlan) failed(err error, now time.Time) bool {
	switch {
	case errors.Is(err, errRetryFeed):
		return true
	case errors.Is(err, resp.ErrLong):
		p.smaller = min(max(1, p.smaller)*8, 1<<20)
		return false
	case errors.Is(err, wire.ErrFlood):
		p.putOff(monitor.Limit{Text: err.Error(), Do: adviceFlood}, now)
		return true
	case errors.Is(err, wire.ErrBadPush):
		p.putOff(monitor.Limit{Text: safetext.Escape(err.Error()), Do: adviceFeed}, now)
		return true
	case errors.Is(err, errAllMute):
	case errors.Is(err, errMute):
		if !p.muted.IsZero() && now.Sub(p.muted) < feedRetry {
			p.putOff(monitor.Limit{Text: err.Error(), Do: adviceSilence}, now)
			return true
		}
		p.muted = now
	}
	return false
}

// readSession reads on one connection and listens for changes on another, until one of
// them breaks. It starts with a full read.
func (m *Monitor) readSession(ctx context.Context, i int, plan *feedPlan) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	queue := m.changes[i]
	queue.Reset()
	f, err := m.feed(ctx, i, plan)
	if err != nil {
		return err
	}
	m.listens(i, f != nil)
	if f != nil {
		done := make(chan struct{})
		crash.Go(func() {
			defer close(done)
			cancel(f.Listen(queue, m.watchedKeys.match))
		})
		defer func() { f.Close(); <-done }()
	}
	s, err := wire.Dial(ctx, m.nodes[i].Within(wire.ReadBudget(len(m.nodes))), m.patience[i])
	if err != nil {
		return err
	}
	defer s.Close()
	follower := follower{monitor: m, node: i, reader: wire.NewReader(s), feed: f, plan: plan, began: time.Now(), missing: true}
	follower.reader.Patient = m.opt.Patient
	err = follower.run(ctx)
	if broken := context.Cause(ctx); broken != nil {
		return broken
	}
	return err
}

// feed opens the feed of node i; nil: there is none, and the plan says why.
func (m *Monitor) feed(ctx context.Context, i int, plan *feedPlan) (*wire.Feed, error) {
	if time.Now().Before(plan.next) || m.watchedKeys.patterns == nil && m.watchedKeys.also == nil {
		return nil, nil
	}
	f, err := wire.OpenFeed(ctx, m.nodes[i], m.watchedKeys.prefixes(), m.patience[i])
	var none wire.ErrNoFeed
	if errors.As(err, &none) {
		why := monitor.Limit{Text: safetext.Escape(none.Why), Do: adviceFeed}
		if none.Denied {
			why.Do = monitor.AdviceRights
		}
		plan.putOff(why, time.Now())
		return nil, nil
	}
	return f, err
}

// follower keeps the table up to date with one node for one session. It reads changed
// keys at once, and everything at the start, after a gap, and now and then between the
// changes. If the node does not report changes, it reads everything repeatedly.
type follower struct {
	monitor *Monitor
	node    int
	runID   string // of the server; empty: unknown
	reader  *wire.Reader
	feed    *wire.Feed // nil: the node does not report changes
	plan    *feedPlan
	began   time.Time

	full       *fullRead     // in progress
	missing    bool          // anything may have changed since the last full read began
	due        time.Time     // of the next full read
	ended      time.Time     // of the last one
	busy       time.Duration // duration of the last one
	pinged     time.Time
	readAgain  time.Time // earliest next read of changes
	comparison comparison
}

func (l *follower) run(ctx context.Context) (err error) {
	if l.runID, err = l.reader.RunID(ctx); err != nil {
		return err
	}
	queue := l.monitor.changes[l.node]
	for ctx.Err() == nil {
		t, ok := l.monitor.task(l.node, l.runID)
		if !ok {
			return errSuperseded
		}
		now := time.Now()
		wait := time.Second
		if l.feed != nil {
			if wait, err = l.ping(t, now); err != nil {
				return err
			}
		} else if l.full == nil && now.Sub(l.began) >= feedRetry && now.After(l.plan.next) {
			return errRetryFeed
		}
		if queue.Wiped() {
			l.monitor.wiped(l.node, l.runID)
		}
		// Changes are read first.
		if left := l.readAgain.Sub(now); left <= 0 {
			keys, until := queue.Take(wire.BatchKeys, wire.BatchBytes)
			l.comparison.explain(keys)
			current := !until.IsZero() && !l.missing && (l.full == nil || l.full.pace == paceShare)
			if current {
				l.monitor.readUpTo(l.node, l.runID, until)
				if err := l.confirm(ctx, until); err != nil {
					return err
				}
			}
			if keys = l.monitor.wanted(l.node, keys, false); len(keys) > 0 {
				if err := l.read(ctx, keys, !queue.Empty()); err != nil {
					return err
				}
				continue
			}
			if current {
				continue
			}
		} else if !queue.Empty() {
			wait = min(wait, left)
		}
		l.schedule(t, queue.Everything(), now)
		if l.feed != nil && !l.missing && (l.full == nil || l.full.pace == paceShare) {
			if l.comparison.next.After(now) {
				wait = min(wait, l.comparison.next.Sub(now))
			} else if err := l.compare(ctx, now); err != nil {
				return err
			}
		}
		switch {
		case l.full == nil && l.due.After(now):
			wait = min(wait, l.due.Sub(now))
		case l.full == nil:
			l.reader.Load.Begin(t.busy, now)
			l.full = newFullRead(t.epoch, now, l.pace(t), l.monitor.watchedKeys.keys)
			l.full.stride.fixed, l.full.stride.least = l.plan.smaller > 0, l.reader.Trip
			l.full.shares = lineShare * len(l.monitor.nodes)
			l.monitor.reads(l.node)
			l.missing = false
			continue
		case l.full.next.After(now):
			wait = min(wait, l.full.next.Sub(now))
		default:
			if err := l.step(ctx); err != nil {
				return err
			}
			continue
		}
		_ = sleep.Woken(ctx, wait, queue.Wake)
	}
	return context.Cause(ctx)
}

// pace returns the pause after each page of a full read, as a multiple of the time of the
// page.
func (l *follower) pace(t task) int {
	if l.feed != nil && !t.gap && !l.missing {
		return paceShare
	}
	return l.urgentPace()
}

// urgentPace is the pace of a read that is waited for.
func (l *follower) urgentPace() int {
	if l.reader.Patient && l.reader.Load.Busy {
		return paceBusy
	}
	return 0
}

// schedule sets when the next full read is due.
func (l *follower) schedule(t task, everything bool, now time.Time) {
	if everything {
		l.missing = true
		l.monitor.missed(l.node)
		if l.full != nil && l.full.pace == paceShare {
			l.full, l.due = nil, l.ended.Add(4*l.busy) // an urgent read replaces one that is not
		}
	}
	l.missing = l.missing || t.hasten && l.feed == nil
	switch {
	case l.full != nil && l.full.epoch != t.epoch:
		l.full, l.due = nil, now // the node was lost meanwhile
	case l.full != nil:
	case t.gap, t.hasten && l.feed == nil:
		l.due = now
	case l.missing, t.stepped.After(l.ended):
		// Bounded, because the node has other work, however often it is flushed.
		if soon := l.ended.Add(4 * l.busy); soon.Before(l.due) {
			l.due = soon
		}
	}
}

// ping pings the feed when it is due, and returns the time until the next ping.
func (l *follower) ping(t task, now time.Time) (wait time.Duration, err error) {
	if l.feed.Silent(now) {
		if asked := l.feed.Asked(); !l.monitor.heardSince(l.node, asked.Add(now.Sub(asked)/2)) {
			return 0, errAllMute
		}
		return 0, errMute
	}
	every := pingSeldom
	if t.unconfirmed {
		every = pingOften
	}
	if now.Sub(l.pinged) >= every {
		l.pinged = now
		if err := l.feed.Ping(now); err != nil {
			return 0, err
		}
	}
	return l.pinged.Add(every).Sub(now), nil
}

// read reads some keys. The next changes are read after a pause, a shorter one if more
// has changed already.
func (l *follower) read(ctx context.Context, keys []string, more bool) error {
	rows, sent, received, err := l.reader.Read(ctx, keys)
	if err != nil {
		return err
	}
	if !l.monitor.read(l.node, l.runID, sent, received, rows) {
		return errSuperseded
	}
	rest := received.Sub(sent)
	if !more {
		rest = max(rest, coalesceFor(rows))
	}
	l.readAgain = received.Add(rest)
	return nil
}

// coalesceFor returns how long to collect changes after these rows were read.
func coalesceFor(rows []table.Row) time.Duration {
	gone := 0
	for i := range rows {
		if rows[i].Type == "none" {
			gone++
		}
	}
	if 2*gone > len(rows) {
		return coalesceGone
	}
	return coalesce
}

// step continues the full read.
func (l *follower) step(ctx context.Context) error {
	m, f := l.monitor, l.full
	if f.brought > scanSlack && f.brought > m.keysMost(l.node) {
		return errEndless
	}
	wanted := func(keys []string) []string { return m.wanted(l.node, keys, true) }
	done, err := f.step(ctx, l.reader, m.watchedKeys, l.plan.page(m.opt.ScanCount), wanted, func(sent, received time.Time, rows []table.Row) error {
		if !m.read(l.node, l.runID, sent, received, rows) {
			return errSuperseded
		}
		return nil
	})
	if err == nil && !done {
		m.passed(l.node, f.epoch, f.part)
		if f.pace != paceShare {
			f.setPace(l.urgentPace())
		}
	}
	if err != nil || !done {
		return err
	}
	notes := map[string]monitor.Limit{"read": l.reader.Note, "changes": {}, "names": {}}
	if l.feed == nil && l.plan.why.Text != "" && !slices.Contains(m.opt.Meant, "limited-sight") {
		notes["changes"] = monitor.Limit{Text: "changes are seen by scanning alone: " + l.plan.why.Text, Do: l.plan.why.Do}
	}
	if f.long > 0 {
		notes["names"] = monitor.Limit{Text: fmt.Sprintf("%s with names longer than %d KiB left out", words.Count(f.long, "key", "keys"), wire.LongestKey>>10), Do: adviceNames}
	}
	if !m.scanned(l.node, l.runID, f.epoch, f.began, l.missing && l.feed != nil, notes) {
		return errSuperseded
	}
	l.full, l.ended, l.busy = nil, time.Now(), f.busy
	switch {
	case l.missing:
		l.due = l.ended.Add(4 * l.busy)
	case l.feed != nil:
		l.due = l.ended.Add(max(m.opt.ScanEvery, min(max(reconcileShare*l.busy, reconcileLeast), reconcileMost)))
	default:
		// At most a fifth of the time: the masters have other work.
		l.due = l.ended.Add(max(m.opt.ScanEvery, 4*l.busy))
	}
	return nil
}
