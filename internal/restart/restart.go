// Package restart restarts masters one after the other, so that no lock is lost and a
// quorum serves all the time. It decides by snapshots of a monitor, and acts through the
// operator.
package restart

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/monitor/words"
	"redlockctl/redlock/attempt"
	"redlockctl/server/announce"
)

// ErrNotReady is returned if no node may be restarted now. Nothing was done.
var ErrNotReady = errors.New("not restarted")

// ErrUncordoned is returned by [Plan.Drain] and [Plan.Cordoned] when somebody ended the cordon of a
// node meanwhile. It may serve by now, and have new copies.
var ErrUncordoned = errors.New("the cordon was ended meanwhile")

// Monitor is the part of *[observe.Monitor] that a restart needs.
type Monitor interface {
	Snapshot() *monitor.Snapshot
	Changed(version uint64) <-chan struct{}
}

// Actions is the part of *[operator.Operator] that a restart needs.
type Actions interface {
	BeginDrain(ctx context.Context, node, reason string, restart []string) (ended func(how string, err error) error, err error)
	Uncordon(ctx context.Context, node, reason string) error
	RunRestart(ctx context.Context, node, reason string, run func(context.Context) (output string, err error)) error
}

// Plan is one planned restart of several nodes.
type Plan struct {
	Nodes  []string
	Reason string
	// Resume allows the first node to be cordoned or fenced, as an interrupted restart
	// leaves it.
	Resume bool
	// Most limits each wait; 0: the longest time that the wait should take, plus a minute.
	Most time.Duration
	// Look returns a snapshot in which each node was read after the call.
	Look func(ctx context.Context) (*monitor.Snapshot, error)
	// Drain waits until a cordoned node has no copy, and reports its progress.
	Drain func(ctx context.Context, node string, says func(string)) error
	// Cordoned fails with [ErrUncordoned] if a node that was drained is not cordoned any more.
	Cordoned func(ctx context.Context, node string) error
	// Command restarts a node and returns its output.
	Command func(ctx context.Context, n *monitor.Node) (output string, err error)
	Tell    func(format string, args ...any)
}

// Error says at which node a restart stopped, and in which state that node is.
type Error struct {
	Node string
	Left []string // nodes that still have to be restarted; Node comes first unless it is done
	Out  bool     // Node is cordoned or fenced
	Err  error
}

func (e *Error) Error() string { return e.Node + ": " + e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Run restarts the nodes of a plan. It fails with [ErrNotReady] or an [Error].
func Run(ctx context.Context, mon Monitor, do Actions, p Plan) error {
	r := runner{Plan: p, mon: mon, do: do}
	for i, name := range p.Nodes {
		again := p.Resume && i == 0
		err := Ready(mon.Snapshot(), name, again)
		if i > 0 && CopiesMustCount(&mon.Snapshot().Cluster) {
			p.Tell("%s: waiting until copies that were put back on %s count", name, p.Nodes[i-1])
			err = r.othersServe(ctx, name) // also where another restart has begun meanwhile
		}
		switch {
		case err != nil && i == 0:
			return err
		case err != nil:
			return &Error{Node: name, Left: p.Nodes[i:], Err: err}
		}
		left := p.Nodes[i:]
		out, err := r.one(ctx, left, again)
		if i == 0 && !out && errors.Is(err, ErrNotReady) {
			return err
		}
		if err == nil {
			left = p.Nodes[i+1:]
			err = r.whole(ctx, name)
		}
		if err != nil {
			return &Error{Node: name, Left: left, Out: out, Err: err}
		}
		p.Tell("%s is done: every lock is whole", name)
	}
	return nil
}

// Ready returns why a node may not be restarted now, or nil. With again, the node may
// already be cordoned or fenced.
func Ready(s *monitor.Snapshot, name string, again bool) error {
	var why []string
	out := others(s, name)
	for i := range s.Nodes {
		n := &s.Nodes[i]
		switch {
		case n.State == monitor.NodeServing:
			if len(n.Guards) == 0 {
				why = append(why, "no guard is seen on "+n.Name)
			}
		case slices.Contains(out, n) || !again:
			why = append(why, stateOf(n))
		}
	}
	if serving := len(s.Nodes) - 1 - len(out); serving < s.Cluster.Quorum {
		why = append(why, fmt.Sprintf("without %s only %d of %d nodes would serve, and a quorum is %d", name, serving, s.Cluster.N, s.Cluster.Quorum))
	}
	if n := s.Dangers(); n > 0 {
		why = append(why, words.Count(n, "danger is", "dangers are")+" open (redlockctl doctor)")
	}
	if why != nil {
		return fmt.Errorf("%w: %s: %s", ErrNotReady, name, strings.Join(why, "; "))
	}
	return nil
}

// CopiesMustCount reports whether the copies that holders have put back on the last node must count before the
// next one is cordoned: without both nodes there is no quorum.
func CopiesMustCount(c *monitor.Cluster) bool { return c.N-2 < c.Quorum }

// lately returns a node beside one that serves for so short a time that copies which were put back on it may not
// count yet; nil: none. How long a node has served that was found serving is not known: a start is.
func lately(s *monitor.Snapshot, name string) *monitor.Node {
	_, rejoin, _ := Longest(s)
	counts := ttl(s) + counting
	i := slices.IndexFunc(s.Nodes, func(n monitor.Node) bool {
		return n.Name != name && s.At.Sub(n.Since) < counts && !(n.Older && n.Uptime >= rejoin+counts)
	})
	if i < 0 {
		return nil
	}
	return &s.Nodes[i]
}

// others returns the nodes beside one that do not serve.
func others(s *monitor.Snapshot, name string) (out []*monitor.Node) {
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.Name != name && n.State != monitor.NodeServing {
			out = append(out, n)
		}
	}
	return out
}

// stateOf says "n2 is cordoned".
func stateOf(n *monitor.Node) string { return n.Name + " is " + n.State.String() }

// Longest returns the longest time that each wait for a node takes: until it is drained,
// until it may serve again, until every lock is whole.
func Longest(s *monitor.Snapshot) (drain, rejoin, whole time.Duration) {
	all, _ := s.Guards()
	d := announce.Greatest(all, "")
	return max(ttl(s), d), d, max(ttl(s), d)
}

// ttl is the longest TTL of a lock, as far as is known.
func ttl(s *monitor.Snapshot) time.Duration { return max(s.Cluster.TTLBound, s.Cluster.MaxTTL) }

// settles is how long a condition must hold: announcements of guards may be slightly old.
const settles = 500 * time.Millisecond

type runner struct {
	Plan
	mon Monitor
	do  Actions
}

// one restarts the first of the nodes that are left and waits until it serves again. out reports that it
// does not serve yet.
func (r *runner) one(ctx context.Context, left []string, again bool) (out bool, err error) {
	name := left[0]
	drain, rejoin, _ := Longest(r.mon.Snapshot())
	before := r.node(name).RunID
	if up := r.node(name).State.Readable(); up || !again {
		ended, err := r.cordon(ctx, left)
		if err != nil {
			return r.out(name), err
		}
		r.Tell("%s: draining, for %s at most", name, min(drain, r.most(drain)).Round(time.Second))
		if err := ended("drained", r.drained(ctx, name, drain)); err != nil {
			return !errors.Is(err, ErrUncordoned), err
		}
		before = r.node(name).RunID
	}
	r.Tell("%s: running the command", name)
	err = r.do.RunRestart(ctx, name, r.Reason, func(ctx context.Context) (string, error) { return r.Command(ctx, r.node(name)) })
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return r.out(name), err
	}
	err = r.wait(ctx, 0, "for its new incarnation to be seen, started fenced", func(s *monitor.Snapshot) (bool, string, error) {
		n := s.Node(name)
		if n.RunID == before || !n.State.Answers() {
			return false, name + " is " + n.State.String() + map[bool]string{true: ", in the same incarnation as before"}[n.RunID == before && n.State.Answers()], nil
		}
		return started(n)
	})
	if err != nil {
		return r.out(name), err
	}
	if err := r.do.Uncordon(ctx, name, r.Reason); err != nil {
		return r.out(name), err
	}
	r.Tell("%s: started fenced, rejoins", name)
	var told time.Time
	err = r.wait(ctx, rejoin, "until it serves", func(s *monitor.Snapshot) (bool, string, error) {
		n := s.Node(name)
		if at, known := n.MayRejoin(s.At); n.State == monitor.NodeFenced && known && at.After(s.At) && at.Sub(told).Abs() > time.Second {
			told = at // not again for each estimate of its clock
			r.Tell("%s: fenced, %s", name, view.MayServe(n, s.At))
		}
		return n.State == monitor.NodeServing, name + " is " + n.State.String(), nil
	})
	return err != nil, err
}

// cordon cordons the first of the nodes that are left, to be drained, while all others serve and have all copies.
// Several restarts may look at the same moment, and each sees that all serve. So it looks again once its node is
// cordoned: of two restarts at least one sees the other then. It stands back, before anything is lost, and tries
// again. A node that was out before stays so: it was there to be seen by the others.
func (r *runner) cordon(ctx context.Context, left []string) (ended func(how string, err error) error, err error) {
	for name := left[0]; ; {
		if err := r.spared(ctx, name); err != nil {
			return nil, err
		}
		s := r.mon.Snapshot()
		serves, out := s.Node(name).State == monitor.NodeServing, others(s, name)
		var fresh *monitor.Node // while it waited, another restart may have begun and ended
		if CopiesMustCount(&s.Cluster) {
			fresh = lately(s, name)
		}
		if !serves || len(out) == 0 && fresh == nil {
			if ended, err = r.do.BeginDrain(ctx, name, r.Reason, left); err != nil || !serves {
				return ended, err
			}
			if s, err = r.Look(ctx); err != nil {
				return nil, ended("", err)
			}
			if out = others(s, name); len(out) == 0 {
				return ended, nil
			}
			stood := "stood back: " + stateOf(out[0])
			_ = ended("", errors.New(stood))
			if err := r.do.Uncordon(ctx, name, r.Reason+"; "+stood); err != nil {
				return nil, err
			}
		}
		switch {
		case len(out) == 0:
			r.Tell("%s: %s has served for a short time only: waiting until copies that were put back there count", name, fresh.Name)
		case out[0].Cordon != nil:
			r.Tell("%s: %s meanwhile, by %s (%s): waiting until all other nodes serve", name, stateOf(out[0]), out[0].Cordon.Actor, out[0].Cordon.Reason)
		default:
			r.Tell("%s: %s meanwhile: waiting until all other nodes serve", name, stateOf(out[0]))
		}
		if err := r.othersServe(ctx, name); err != nil {
			return nil, err
		}
	}
}

const (
	// counting is how long copies that were put back take to count, beside the longest TTL of a lock.
	counting = attempt.SettleTime + time.Second
	// spread is for how much longer a restart waits at most, so that two do not try again at the same moment.
	spread = 2 * time.Second
)

// Counts is how long it takes at most until copies that were put back on a node count.
func Counts(s *monitor.Snapshot) time.Duration { return ttl(s) + counting + spread }

// othersServe waits until a node may be restarted, and has been so for as long as copies take to count that their
// holders put back on the others: they do not count before the next extension. It holds for a random time more: two
// restarts that stand back at the same moment do not try again at the same moment.
func (r *runner) othersServe(ctx context.Context, name string) error {
	const what = "until all other nodes serve"
	s := r.mon.Snapshot()
	drain, rejoin, whole := Longest(s)
	holds := ttl(s) + counting + rand.N(spread)
	for {
		var not error
		err := r.wait(ctx, drain+rejoin+whole, what, func(s *monitor.Snapshot) (bool, string, error) {
			not = Ready(s, name, false)
			return not == nil, fmt.Sprint(not), nil
		})
		switch {
		case err != nil && ctx.Err() == nil && not != nil:
			return not
		case err != nil:
			return err
		}
		err = r.waitFor(ctx, 0, holds, what, func(s *monitor.Snapshot) (bool, string, error) {
			return true, "they serve", Ready(s, name, false)
		})
		if !errors.Is(err, ErrNotReady) { // else it is another restart's turn
			return err
		}
	}
}

// spared waits until each lock can be extended without the node: a cordoned node refuses
// extensions, so a lock with a bare majority would be lost.
func (r *runner) spared(ctx context.Context, name string) error {
	_, _, most := Longest(r.mon.Snapshot())
	told := false
	var pending map[string]bool
	return r.wait(ctx, most, "until no lock needs its copy there to be extended", func(s *monitor.Snapshot) (bool, string, error) {
		i := slices.IndexFunc(s.Nodes, func(n monitor.Node) bool { return n.Name == name })
		for key := range pending {
			if l := s.Locks.Get(key); l == nil || !s.Needs(l, i) {
				delete(pending, key)
			}
		}
		if len(pending) == 0 {
			pending = map[string]bool{}
			for _, l := range s.Needing(i) {
				pending[l.Key.Raw()] = true
			}
		}
		if len(pending) == 0 {
			return s.Complete, "not all locks are read", nil
		}
		is := words.Count(len(pending), "lock needs", "locks need") + " it, such as " + slices.Min(slices.Collect(maps.Keys(pending)))
		if !told {
			told = true
			r.Tell("%s: %s, and could not be extended while it is cordoned; waiting until that ends, for %s at most", name, is, min(most, r.most(most)).Round(time.Second))
		}
		return false, is, nil
	})
}

// drained waits until a node is drained and each guard that watches it has seen that.
func (r *runner) drained(ctx context.Context, name string, most time.Duration) error {
	waiting, cancel := context.WithTimeout(ctx, r.most(most))
	defer cancel()
	if err := r.Drain(waiting, name, func(text string) { r.Tell("%s: %s", name, text) }); err != nil {
		if !errors.Is(err, context.Canceled) {
			err = errors.Join(err, ctx.Err())
		}
		return err
	}
	err := r.wait(ctx, 0, "until each guard has seen that it is drained", func(s *monitor.Snapshot) (bool, string, error) {
		n := s.Node(name)
		if n.State != monitor.NodeCordoned {
			if err := r.Cordoned(ctx, name); errors.Is(err, ErrUncordoned) {
				return false, "", err
			}
		}
		return drained(n), name + " is " + n.State.String(), nil
	})
	if err == nil {
		err = r.Cordoned(ctx, name) // a snapshot is older
	}
	return err
}

// drained reports whether each guard that watches a node announces it as drained.
func drained(n *monitor.Node) bool {
	return n.State == monitor.NodeCordoned && len(n.Guards) > 0 && !slices.ContainsFunc(n.Guards, func(g announce.Guard) bool { return !g.Drained })
}

// started reports whether a guard has seen the incarnation and keeps it cordoned.
func started(n *monitor.Node) (ok bool, is string, err error) {
	for _, g := range n.Guards {
		if g.Boot == announce.BootUnfenced {
			return false, "", errors.New("it started unfenced: redlockctl node boot-fence " + n.Name)
		}
		ok = ok || g.Cordoned && g.Boot == announce.BootFenced
	}
	return ok && n.State == monitor.NodeCordoned, n.Name + " is " + n.State.String() + ", and no guard has said yet that it started fenced", nil
}

// whole waits until each lock that lacks a copy has all of them, or has ended. It ignores
// locks acquired from now on: they find all nodes.
func (r *runner) whole(ctx context.Context, name string) error {
	_, _, most := Longest(r.mon.Snapshot())
	var pending map[string]string // token by lock name
	return r.wait(ctx, most, "until every lock is whole", func(s *monitor.Snapshot) (bool, string, error) {
		if pending == nil {
			if !s.Complete {
				return false, "not all locks are read", nil
			}
			pending = map[string]string{}
			for l := range s.Locks.All() {
				if l.ReliedOn() && l.Held < len(s.Nodes) {
					pending[l.Key.Raw()] = l.Holder.Raw()
				}
			}
		}
		one := ""
		for key, token := range pending {
			if l := s.Locks.Get(key); l == nil || !l.ReliedOn() || l.Holder.Raw() != token || l.Held == len(s.Nodes) {
				delete(pending, key)
			} else {
				one = fmt.Sprintf("%s has %d of %d copies: its holder extends it and does not put back what a node lost", l.Key.Word(), l.Held, len(s.Nodes))
			}
		}
		return len(pending) == 0, fmt.Sprintf("%s, such as %s", words.Count(len(pending), "lock is not whole", "locks are not whole"), one), nil
	})
}

// out reports whether a node does not serve, as far as is known.
func (r *runner) out(name string) bool { return r.node(name).State != monitor.NodeServing }

func (r *runner) node(name string) *monitor.Node { return r.mon.Snapshot().Node(name) }

// most returns the limit of a wait.
func (r *runner) most(usual time.Duration) time.Duration {
	if r.Most > 0 {
		return r.Most
	}
	return usual + time.Minute
}

// wait checks each new snapshot until done is true. It gives up after most plus a minute,
// or after [Plan.Most].
func (r *runner) wait(ctx context.Context, most time.Duration, what string, done func(*monitor.Snapshot) (ok bool, is string, err error)) error {
	return r.waitFor(ctx, most, settles, what, done)
}

// waitFor is like wait; the condition must be true for as long as holds.
func (r *runner) waitFor(ctx context.Context, most, holds time.Duration, what string, done func(*monitor.Snapshot) (ok bool, is string, err error)) error {
	most = r.most(most)
	over := time.NewTimer(most + holds)
	defer over.Stop()
	var since time.Time // when ok became true
	for version := uint64(0); ; {
		s := r.mon.Snapshot()
		version = s.Version
		ok, is, err := done(s)
		switch {
		case err != nil:
			return err
		case !ok:
			since = time.Time{}
		case since.IsZero():
			since = s.At
		case s.At.Sub(since) >= holds:
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("interrupted while waiting %s: %s: %w", what, is, ctx.Err())
		case <-over.C:
			return fmt.Errorf("waited %s %s, and %s", most, what, is)
		case <-r.mon.Changed(version):
		}
	}
}
