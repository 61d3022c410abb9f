package watch

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"redlockctl/redlock"
	"redlockctl/restartguard"
)

// Healthy fails, and names the node, if a watcher has not begun an observation for longer than any
// answer may take.
func (g *Guard) Healthy() error {
	limit := g.cfg.Poll + 2*restartguard.MaxActions*g.cfg.Timeout + 2*time.Second
	for _, w := range g.members {
		w.mu.Lock()
		since := time.Since(w.lastRound)
		w.mu.Unlock()
		if since > limit {
			return fmt.Errorf("the watch of node %q has not come round for %s", w.node.Name(), restartguard.Round(since))
		}
	}
	return nil
}

// ErrBlind is returned by [Guard.Sees] while nodes refuse the guard.
var ErrBlind = errors.New("the guard is blind")

// Sees returns an [ErrBlind] that names the nodes whose servers answer and refuse the guard,
// because of a wrong password or missing rights: it protects none of them, and cannot know whether
// they serve. nil: there is no such node. A blind guard is healthy: restarting it helps only if its
// password was changed.
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

// Met reports whether every node was observed, or tried, at least once.
func (g *Guard) Met() bool {
	return !slices.ContainsFunc(g.Status(), func(s restartguard.NodeStatus) bool { return s.Phase == restartguard.PhaseUnknown })
}

// Outlook returns what the fences mean for the cluster.
func (g *Guard) Outlook() restartguard.Outlook {
	return restartguard.OutlookOf(g.Status(), g.cfg.N, redlock.Quorum(g.cfg.N))
}

// reportQuorum reports when the quorum is lost, and when it is back.
func (g *Guard) reportQuorum() {
	if !g.Met() {
		return
	}
	g.quorumMu.Lock()
	defer g.quorumMu.Unlock()
	o := g.Outlook()
	if o.Possible() != g.noQuorum || o.Unknown() {
		return // each node has its own event then
	}
	g.noQuorum = !o.Possible()
	kind, now := "quorum", time.Now()
	if g.noQuorum {
		kind = "no quorum"
	}
	g.emit("", []restartguard.Event{{At: now, Kind: kind, Text: o.Text()}})
}

// Status returns the status of each node, in the order of nodes. Its times carry the monotonic
// clock.
func (g *Guard) Status() []restartguard.NodeStatus {
	now := time.Now()
	all := make([]restartguard.NodeStatus, len(g.members))
	for i, w := range g.members {
		all[i] = w.status(now, g.cfg.Delay)
	}
	return all
}

func (w *member) status(now time.Time, delay time.Duration) restartguard.NodeStatus {
	w.mu.Lock()
	s, same, others, unseen, invalid := w.state, w.same, w.others, w.announceErr, w.announceInvalid
	w.mu.Unlock()
	st := restartguard.NodeStatus{
		Node: w.node.Name(), Phase: s.Basis.Phase, Verified: s.Report.Verified, Known: s.Report.Known, Proven: s.Basis.Proven,
		RunID: s.Basis.RunID, Since: s.Report.Since, Exposed: s.Report.Exposed, Reason: s.Report.Reason, Err: s.Report.Failing,
		Out: s.Report.Out, Method: w.method, Lacking: s.Basis.Lacking, Delay: max(delay, s.Basis.Heard), BootExposed: s.Report.BootExposed, AtStart: s.Report.AtStart,
		Denied: s.Basis.Phase == restartguard.PhaseUnreachable && s.Report.Denied, Nobody: s.Basis.Phase == restartguard.PhaseUnreachable && s.Report.Nobody,
		Same: same,
	}
	if s.Basis.Phase == restartguard.PhaseUnreachable && !s.Report.Denied {
		st.Absent = s.Report.Absent
	}
	if same != "" {
		st.Err = restartguard.SameServer(same)
	}
	if !s.Basis.Deadline.IsZero() {
		st.Delay = max(st.Delay, s.Basis.Delay)
	}
	if st.Err == "" {
		st.Err = s.Report.Err
	}
	if st.Err == "" && s.Basis.Clockless {
		st.Err = restartguard.Clockless
	}
	if s.Basis.Phase != restartguard.PhaseUnreachable && unseen != "" {
		st.Err = cmp.Or(st.Err, unannounced+": "+unseen)
		if invalid {
			st.Invalid = unseen
		}
	}
	switch s.Basis.Phase {
	case restartguard.PhaseExposed:
		st.Until = s.Basis.Deadline
		if st.Exposed = 0; !s.Report.UnfencedSince.IsZero() {
			st.Exposed = restartguard.AtMost(now.Sub(s.Report.UnfencedSince))
		}
	case restartguard.PhaseCordoned:
		st.Until, st.Drained = s.Basis.Deadline, !s.Basis.Drained.IsZero()
	case restartguard.PhaseFenced:
		if st.Until = s.Basis.Deadline; others.After(st.Until) { // it waits for them too
			st.Until = others
		}
		if restartguard.Foreign(s.Basis.Role) != "" {
			st.Until = time.Time{}
		}
		if s.Report.Doubt != "" {
			st.Reason += "; " + s.Report.Doubt
		}
	}
	return st
}

// sameAs returns the name of an earlier node at whose address the same incarnation answers; "":
// there is none.
func (g *Guard) sameAs(w *member, runID string) string {
	for _, o := range g.members {
		if o == w {
			break
		}
		o.mu.Lock()
		same := o.state.Basis.RunID == runID && o.state.Basis.Phase != restartguard.PhaseUnreachable
		o.mu.Unlock()
		if same {
			return o.node.Name()
		}
	}
	return ""
}
