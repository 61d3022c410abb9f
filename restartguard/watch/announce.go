package watch

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"redlockctl/base/boottime"
	"redlockctl/base/crash"
	"redlockctl/base/sleep"
	"redlockctl/redlock"
	"redlockctl/restartguard"
	"redlockctl/restartguard/wire"
	"redlockctl/server/announce"
	"redlockctl/server/resp"
	"redlockctl/server/safetext"
)

const (
	announcePing  = 2 * time.Second        // between two PINGs
	announceAgain = 100 * time.Millisecond // before the next connection is tried
	announceLater = 2 * time.Second        // if the node refuses
	announceMost  = 30 * time.Second       // if its answers stay invalid
)

// announcer keeps a guard announced on one node.
type announcer struct {
	node     *redlock.Node
	timeout  time.Duration
	channels func() []string // the guard's own announcement, then those of locks
	changed  <-chan struct{} // the channels may have changed
	// nameMoved reports whether the node's host name no longer resolves to an address.
	nameMoved func(netip.AddrPort) bool
	// report is called with why the announcement failed on a node that answers; nil: it did not.
	report func(error)
}

// run keeps one connection at a time, until ctx ends.
func (a announcer) run(ctx context.Context) {
	invalid := announceLater // the pause after an invalid answer
	for ctx.Err() == nil {
		conn, err := wire.Open(ctx, a.node, a.timeout)
		opened := err == nil
		if opened {
			var seen bool
			if seen, err = a.announced(ctx, conn); seen {
				invalid = announceLater
			}
		}
		if ctx.Err() != nil {
			return
		}
		pause := announceAgain
		switch bad := errors.Is(err, resp.ErrBad); {
		case bad:
			pause = invalid
			invalid = min(2*invalid, announceMost)
		case wire.Answered(err), errors.Is(err, resp.ErrFull):
			pause = announceLater
		}
		// Failures to connect are reported by the watcher.
		if opened && pause != announceAgain {
			a.report(err)
		}
		_ = sleep.For(ctx, pause)
	}
}

// announced subscribes on one connection until that ends. seen: the server has confirmed the
// announcement.
func (a announcer) announced(ctx context.Context, conn net.Conn) (seen bool, err error) {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	s := subscription{conn, bufio.NewReader(conn), a.timeout}
	// Until the watcher has seen this incarnation of the node, the announcement may be about an
	// earlier one.
	said := a.channels()
	if err := s.send(resp.AppendCommand(nil, append([]string{"SUBSCRIBE"}, said...)...)); err != nil {
		return false, err
	}
	if what, err := s.next(); err != nil {
		return false, fmt.Errorf("SUBSCRIBE: %w", err)
	} else if what != "subscribe" {
		return false, fmt.Errorf("SUBSCRIBE: %w: it says %.40q", resp.ErrBad, what)
	}
	a.report(nil)
	ended := make(chan error, 1)
	crash.Go(func() {
		for {
			// Messages, which anybody may publish there, mean nothing.
			if _, err := s.next(); err != nil {
				ended <- err
				return
			}
		}
	})
	defer func() { _ = conn.Close(); <-ended }()
	ping := time.NewTicker(announcePing)
	defer ping.Stop()
	for {
		var out []byte
		select {
		case err := <-ended:
			ended <- err
			return true, err
		case <-ping.C:
			if a.nameMoved(wire.AddrOf(conn)) {
				return true, fmt.Errorf("%s: %w", a.node.Addr(), net.ErrClosed)
			}
			out = resp.AppendCommand(nil, "PING")
		case <-a.changed:
			next := a.channels()
			// Subscribe before unsubscribing, so that the guard is always announced.
			if fresh := without(next, said); len(fresh) > 0 {
				out = resp.AppendCommand(out, append([]string{"SUBSCRIBE"}, fresh...)...)
			}
			if gone := without(said, next); len(gone) > 0 {
				out = resp.AppendCommand(out, append([]string{"UNSUBSCRIBE"}, gone...)...)
			}
			if said = next; out == nil {
				continue
			}
		}
		if err := s.send(out); err != nil {
			return true, err
		}
	}
}

// without returns the channels in some that are not in others.
func without(some, others []string) []string {
	return slices.DeleteFunc(slices.Clone(some), func(c string) bool { return slices.Contains(others, c) })
}

// subscription is a connection that has sent SUBSCRIBE. It reads the answers itself, because
// go-redis' reader panics on an answer of an unexpected form.
type subscription struct {
	conn    net.Conn
	in      *bufio.Reader
	timeout time.Duration
}

func (s subscription) send(b []byte) error {
	if err := s.conn.SetWriteDeadline(time.Now().Add(s.timeout)); err != nil {
		return err
	}
	_, err := s.conn.Write(b)
	return err
}

// next waits for the next reply or message, and returns its kind: "subscribe", "message" or
// similar. It fails with [resp.ErrBad] if the reply is not one of a subscription.
func (s subscription) next() (what string, err error) {
	defer resp.Contain(&err, "a subscription")
	if err := s.conn.SetReadDeadline(time.Now().Add(announcePing + s.timeout)); err != nil {
		return "", err
	}
	kind, n, text, err := resp.ReadHead(s.in)
	switch {
	case err != nil:
		return "", err
	case kind == '-':
		return "", resp.ServerError(text)
	case kind == '+':
		return string(text), nil
	case kind != '*' && kind != '>':
		return "", fmt.Errorf("%w: it begins with %q", resp.ErrBad, kind)
	case n < 2 || n > resp.MostItems:
		return "", fmt.Errorf("%w: a list of %d", resp.ErrBad, n)
	}
	most := resp.ItemCost
	name, err := resp.ReadItem(s.in, 1, &most)
	if err != nil {
		return "", err
	}
	if name.Kind != '$' && name.Kind != '+' {
		return "", fmt.Errorf("%w: a list that begins with %q", resp.ErrBad, name.Kind)
	}
	for range n - 1 {
		if err := resp.Skip(s.in); err != nil {
			return "", err
		}
	}
	return name.Text, nil
}

// announcements returns what the guard announces on this node about itself and about locks.
func (w *watcher) announcements() []string {
	w.mu.Lock()
	s := &w.state
	a := announce.Guard{ID: w.guard.id, Delay: w.guard.cfg.Delay, Host: w.guard.host, PID: w.guard.pid, Cluster: safetext.New(w.guard.cfg.Cluster), Use: w.guard.use(), Run: announce.RunOf(s.Basis.RunID)}
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
	if s.Basis.Offset != 0 && s.Basis.Blur <= restartguard.Sharp {
		byNode := func(t time.Time) time.Time {
			return time.Unix(0, int64(boottime.Now()+s.Basis.Offset+time.Until(t))).Truncate(time.Millisecond)
		}
		if from := s.Report.From; !from.IsZero() {
			a.MayVote = byNode(from)
		}
		if trusted := s.Basis.Trusted; !trusted.IsZero() {
			a.NoLossSince = byNode(trusted.Add(-s.Basis.Delay))
		}
		a.Wipes = s.Basis.Wipes
	}
	a.Cordoned, a.Drained = s.Basis.Cordoned(), s.Basis.Empty
	defer w.mu.Unlock()
	return append([]string{a.Channel()}, w.lockAnnouncements...)
}

// Vouch has the guard announce on a node what it knows about locks, as channels made by package
// announce.
func (g *Guard) Vouch(node string, channels []string) {
	for _, m := range g.members {
		if m.node.Name() != node {
			continue
		}
		m.mu.Lock()
		same := slices.Equal(m.lockAnnouncements, channels)
		m.lockAnnouncements = channels
		m.mu.Unlock()
		if !same {
			m.renewAnnouncements()
		}
	}
}

// keepAnnounced keeps the guard announced on the node until ctx ends.
func (w *watcher) keepAnnounced(ctx context.Context) {
	last := ""
	a := announcer{node: w.node, timeout: w.guard.cfg.Timeout, channels: w.announcements, changed: w.changed, nameMoved: w.nameMoved, report: func(err error) {
		w.mu.Lock()
		w.announceErr, w.announceInvalid = safetext.Error(err), errors.Is(err, resp.ErrBad)
		w.mu.Unlock()
		w.report(&last, err, unannounced)
	}}
	a.run(ctx)
}

const unannounced = "cannot announce itself, so that nobody sees that it watches"
