package restartguard

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"redlockctl/redlock"
)

// Event is something the guard saw or did.
type Event struct {
	At   time.Time
	Node string
	// Kind is a word for machines. Of a loss: "restart", "wiped", "role", "clock",
	// "evicted", "restored". Of the node: "first contact", "waiting", "fenced",
	// "rejoined", "cordoned", "exposed", "unreachable", "reachable", "clock back". Of the
	// cluster, without a node: "no quorum", "quorum". Of the guard: "memory",
	// "same server", of two nodes that are one, "in-flight command", of orders that may still be on their way, "delays", of another guard
	// whose D is not this one's, and "announce", where guards cannot see each other.
	Kind string
	// Text is the sentence, without the node's name. Text of a server in it is
	// rendered already, as safetext does.
	Text string
	// Alarm: a node that must not vote does or did, or the guard cannot do to it what
	// it should. Kinds of bad news (losses but restarts, "exposed", "unreachable", "no
	// quorum", "memory") are no less so without.
	Alarm bool
}

// NodeStatus is one node as the guard sees it.
type NodeStatus struct {
	Node     string
	Phase    Phase
	Verified bool // its last start started fenced ("boot fence verified")
	Known    bool // Verified means something: a start of it has been seen
	Proven   bool // a canary write was refused with NOREPLICAS since it was closed
	RunID    string
	Since    time.Time     // of Phase
	Until    time.Time     // when it may rejoin; zero where not waiting
	Exposed  time.Duration // how long its last life was open before it was closed, at most
	Reason   string        // why it is in this phase, in a few words
	Err      string        // last failure to talk to it, or to close or open it
	Out      time.Time     // since when it has no vote; zero while it has one
	Method   Method        // how it is closed
	// Lacking: it refuses writes for want of replicas, although no fence is up.
	Lacking bool
	// Delay is the D that counts for it: the guard's own, or the greatest that
	// another guard announces.
	Delay time.Duration
	// BootExposed is how long it was open after its last start, at most; 0: it was
	// not, or that is not known. Other than Exposed, it is not of a later loss.
	BootExposed time.Duration
	// Denied and Nobody, of a node that is unreachable: its server answers and
	// refuses the guard; nobody listens there. Neither: silence.
	Denied, Nobody bool
	// Same is an earlier node that is the same server, by another address: this one has
	// no vote of its own. "": none.
	Same string
}

// Healthy fails, and names the node, if the watch of a node has not come round
// for longer than any answer may take.
func (g *Guard) Healthy() error {
	limit := g.cfg.Poll + 2*maxActions*g.cfg.Timeout + 2*time.Second
	for _, w := range g.watches {
		w.mu.Lock()
		since := time.Since(w.beat)
		w.mu.Unlock()
		if since > limit {
			return fmt.Errorf("the watch of node %q has not come round for %s", w.node.Name(), round(since))
		}
	}
	return nil
}

// ErrBlind is returned by [Guard.Sees] while nodes refuse the guard.
var ErrBlind = errors.New("the guard is blind")

// Sees is an [ErrBlind] that names the nodes whose servers answer and refuse the
// guard, by a wrong password or for want of rights: it protects none of them, and
// cannot know if they serve. nil: there is none. A guard that is blind is healthy:
// to start it again helps only where its password was changed.
func (g *Guard) Sees() error {
	var names []string
	why := ""
	for _, s := range g.Status() {
		if s.Denied {
			names = append(names, s.Node)
			why = s.Err
		}
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("%w: refused by %s: %s", ErrBlind, strings.Join(names, ", "), why)
}

// Met reports whether every node was met, or tried, at least once.
func (g *Guard) Met() bool {
	for _, s := range g.Status() {
		if s.Phase == PhaseUnknown {
			return false
		}
	}
	return true
}

// Outlook is what the fences mean for the cluster.
func (g *Guard) Outlook() Outlook {
	return OutlookOf(g.Status(), g.cfg.N, redlock.Quorum(g.cfg.N))
}

// lookOut tells when a quorum is lost, and when it is back.
func (g *Guard) lookOut() {
	if !g.Met() {
		return
	}
	g.outlooking.Lock()
	defer g.outlooking.Unlock()
	o := g.Outlook()
	if o.Possible() != g.noQuorum || o.Unknown() {
		return // what is not known is told of each node
	}
	g.noQuorum = !o.Possible()
	kind, now := "quorum", time.Now()
	if g.noQuorum {
		kind = "no quorum"
	}
	g.tell("", []Event{{At: now, Kind: kind, Text: o.Text(now)}})
}

// Status is the state of each node, in the order of nodes. Its times carry the
// monotonic clock.
func (g *Guard) Status() []NodeStatus {
	now := time.Now()
	all := make([]NodeStatus, len(g.watches))
	for i, w := range g.watches {
		all[i] = w.status(now)
	}
	return all
}

func (w *watch) status(now time.Time) NodeStatus {
	w.mu.Lock()
	s, same := w.state, w.same
	w.mu.Unlock()
	st := NodeStatus{
		Node: w.node.Name(), Phase: s.Phase, Verified: s.Verified, Known: s.Known, Proven: s.Proven,
		RunID: s.RunID, Since: s.Since, Exposed: s.Exposed, Reason: s.Reason, Err: s.Failing,
		Out: s.Out, Method: w.method, Lacking: s.Lacking, Delay: max(w.guard.cfg.Delay, s.Heard), BootExposed: s.BootExposed,
		Denied: s.Phase == PhaseUnreachable && s.Denied, Nobody: s.Phase == PhaseUnreachable && s.Nobody,
		Same: same,
	}
	if same != "" {
		st.Err = sameServer(same)
	}
	if !s.Deadline.IsZero() {
		st.Delay = max(st.Delay, s.Delay)
	}
	if st.Err == "" {
		st.Err = s.Err
	}
	if st.Err == "" && s.Clockless {
		st.Err = clockless
	}
	switch s.Phase {
	case PhaseExposed:
		st.Until = s.Deadline
		if st.Exposed = 0; !s.UnfencedSince.IsZero() {
			st.Exposed = AtMost(now.Sub(s.UnfencedSince))
		}
	case PhaseFenced:
		st.Until = s.Deadline
		if s.Doubt != "" {
			st.Reason += "; " + s.Doubt
		}
	}
	return st
}

// short is enough of a run_id to tell two apart.
func short(id string) string { return id[:min(4, len(id))] }

// AtMost rounds an upper bound, up: what was not nothing is never shown as 0.
func AtMost(d time.Duration) time.Duration {
	unit := time.Millisecond
	if d >= time.Second {
		unit = 10 * time.Millisecond
	}
	if r := d % unit; r > 0 {
		d += unit - r
	}
	return d
}

// round drops digits that nobody reads.
func round(d time.Duration) time.Duration {
	if d < time.Second {
		return d.Round(time.Millisecond)
	}
	return d.Round(10 * time.Millisecond)
}
