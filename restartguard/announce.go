package restartguard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/internal/announce"
	"redlockctl/internal/safetext"
	"redlockctl/redlock"
)

const (
	// hearEvery is how often the announcements of other guards are read on a node
	// that need not wait; on one that waits they are read with each look.
	hearEvery = time.Second
	// PeerKept is for how long an announcement counts after it was last seen: longer
	// than nodes, and the guards on them, take to come back together.
	PeerKept = time.Minute

	announcePing  = 2 * time.Second        // between two signs of life on the connection
	announceAgain = 100 * time.Millisecond // before the next connection is tried
	announceLater = 2 * time.Second        // where the node does not let us
	mostPeers     = 64
)

const unheard = "the announcements of other guards cannot be read, so that only its own D counts here"

// Peers are the other guards that a guard has seen on its nodes. It is pure: the
// simulator uses it as well.
type Peers struct{ seen []peer }

type peer struct {
	announce.Guard
	at time.Time // when it was last seen
}

// Hear takes in the announcements that were read on one node; own is the id of who
// reads.
func (p *Peers) Hear(now time.Time, own string, all []announce.Guard) {
	for _, g := range all {
		if g.ID == own {
			continue
		}
		i := slices.IndexFunc(p.seen, func(o peer) bool { return o.Same(g) && o.Delay == g.Delay })
		if i < 0 {
			i = len(p.seen)
			p.seen = append(p.seen, peer{})
		}
		p.seen[i] = peer{g, now}
	}
	if len(p.seen) > mostPeers {
		p.forget(now)
		slices.SortStableFunc(p.seen, func(a, b peer) int { return cmp.Compare(b.Delay, a.Delay) })
		p.seen = p.seen[:min(len(p.seen), mostPeers)] // never the greatest
	}
}

func (p *Peers) forget(now time.Time) {
	p.seen = slices.DeleteFunc(p.seen, func(o peer) bool { return now.Sub(o.at) > PeerKept })
}

// Greatest is the greatest D among those that count; 0: there is none.
func (p *Peers) Greatest(now time.Time) time.Duration {
	most := time.Duration(0)
	for _, o := range p.seen {
		if now.Sub(o.at) <= PeerKept {
			most = max(most, o.Delay)
		}
	}
	return most
}

// Others are the guards that announce themselves beside this one, or did within
// [PeerKept].
func (g *Guard) Others() []announce.Guard {
	g.hearing.Lock()
	defer g.hearing.Unlock()
	now := time.Now()
	g.peers.forget(now)
	all := make([]announce.Guard, len(g.peers.seen))
	for i, o := range g.peers.seen {
		all[i] = o.Guard
	}
	slices.SortStableFunc(all, func(a, b announce.Guard) int {
		return cmp.Or(cmp.Compare(b.Delay, a.Delay), cmp.Compare(a.ID, b.ID))
	})
	return all
}

// ID tells this guard from all others.
func (g *Guard) ID() string { return g.id }

// Delay is the guard's own D.
func (g *Guard) Delay() time.Duration { return g.cfg.Delay }

// heard takes in what a node tells of other guards, and says so where their D is
// another one.
func (g *Guard) heard(all []announce.Guard) {
	own, _ := announce.Decode(announce.Guard{ID: g.id, Delay: g.cfg.Delay}.Channel()) // rounded as theirs
	var events []Event
	now := time.Now()
	g.hearing.Lock()
	for _, o := range all {
		known := slices.ContainsFunc(g.peers.seen, func(p peer) bool { return p.Same(o) && p.Delay == o.Delay && now.Sub(p.at) <= PeerKept })
		if o.ID == g.id || known || o.Delay == own.Delay && !o.Absurd {
			continue
		}
		text := fmt.Sprintf("guard %s has D = %s, this one has %s: the greater one counts. Give both the same max_ttl and delay", peerName(o), o.Delay, g.cfg.Delay)
		if o.Absurd {
			text = fmt.Sprintf("guard %s announces a D of more than %s, which no configuration allows: it counts as %s. End it, or who pretends to be one", peerName(o), announce.MostDelay, o.Delay)
		}
		events = append(events, Event{At: now, Kind: "delays", Text: text, Alarm: true})
	}
	g.peers.Hear(now, g.id, all)
	g.hearing.Unlock()
	g.tell("", events)
}

// peerName is a guard for people.
func peerName(o announce.Guard) string {
	name := o.ID[:min(6, len(o.ID))]
	if !o.Host.Empty() {
		name += " on " + o.Host.String()
	}
	return name
}

// greatest is the greatest D of others that counts now.
func (g *Guard) greatest() time.Duration {
	g.hearing.Lock()
	defer g.hearing.Unlock()
	return g.peers.Greatest(time.Now())
}

// listen takes in what a look has brought of other guards.
func (w *watch) listen(l *conn) {
	if !l.hear {
		return
	}
	if l.deaf == nil {
		w.guard.heard(l.heard)
	}
	w.say(&w.deaf, l.deaf, unheard)
}

// say tells of a shortcoming once, however often it comes again.
func (w *watch) say(last *string, err error, what string) {
	why := ""
	if err != nil {
		why = what + ": " + show(err)
	}
	if why != *last && why != "" {
		w.guard.tell(w.node.Name(), []Event{{At: time.Now(), Kind: "announce", Text: why, Alarm: true}})
	}
	*last = why
}

// announcement is what the guard says of itself on this node.
func (w *watch) announcement() string {
	w.mu.Lock()
	s := &w.state
	a := announce.Guard{ID: w.guard.id, Delay: w.guard.cfg.Delay, Host: w.guard.host, PID: w.guard.pid, Cluster: safetext.New(w.guard.cfg.Cluster)}
	switch {
	case !s.Known:
	case s.Verified:
		a.Boot = announce.BootFenced
	default:
		a.Boot, a.Exposed = announce.BootUnfenced, s.BootExposed
	}
	w.mu.Unlock()
	return a.Channel()
}

// renew has the announcement renewed if it says something else by now.
func (w *watch) renew() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// announce keeps a connection on which the guard is seen, until ctx ends.
func (w *watch) announce(ctx context.Context) {
	last := ""
	for ctx.Err() == nil {
		err := w.announced(ctx)
		if ctx.Err() != nil {
			return
		}
		pause := announceAgain
		if denied := answered(err) && !isSetup(err); denied {
			w.say(&last, err, "cannot announce itself, so that nobody sees that it watches")
			pause = announceLater
		} else if answered(err) || errors.Is(err, redlock.ErrFull) {
			pause = announceLater // the watch itself has told it
		}
		sleep(ctx, pause)
	}
}

// isSetup reports whether the server refused the connection, and not the command.
func isSetup(err error) bool {
	return redis.IsAuthError(err) || redis.HasErrorPrefix(err, "LOADING")
}

// announced is one connection: subscribed until it breaks.
func (w *watch) announced(ctx context.Context) error {
	timeout := w.guard.cfg.Timeout
	client := w.node.Within(redlock.NewBudget(guardReply, 0)).OneConnection(timeout, func(opt *redis.Options) { opt.PoolSize = 2 }, abrupt)
	defer client.Close()
	sub := client.Subscribe(ctx)
	// What it says may be of an earlier incarnation of the node for a moment, until
	// the watch has met this one.
	said := w.announcement()
	if err := sub.Subscribe(ctx, said); err != nil {
		_ = sub.Close()
		return err
	}
	ended := make(chan error, 1)
	go func() {
		for {
			// Messages, which anybody may send there, say nothing.
			if _, err := sub.ReceiveTimeout(ctx, announcePing+timeout); err != nil {
				ended <- err
				return
			}
		}
	}()
	ping := time.NewTicker(announcePing)
	defer ping.Stop()
	err := func() error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case err := <-ended:
				ended <- err
				return err
			case <-ping.C:
				if err := sub.Ping(ctx); err != nil {
					return err
				}
			case <-w.changed:
				next := w.announcement()
				if next == said {
					continue
				}
				// The one before the other: at no moment is there none.
				if err := errors.Join(sub.Subscribe(ctx, next), sub.Unsubscribe(ctx, said)); err != nil {
					return err
				}
				said = next
			}
		}
	}()
	_ = sub.Close()
	<-ended
	return err
}
