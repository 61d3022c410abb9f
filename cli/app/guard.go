package app

import (
	"context"
	"time"

	"redlockctl/base/sleep"
	"redlockctl/internal/operator"
	"redlockctl/monitor"
	"redlockctl/monitor/observe"
	"redlockctl/restartguard"
	"redlockctl/restartguard/watch"
	"redlockctl/server/fences"
)

// guardEvents takes the events of a guard of this process: to the log of the daemon or the events
// of the session, and to the audit log. It outlives a change of the configuration.
type guardEvents struct {
	tell   func(e restartguard.Event)
	record *operator.GuardRecorder
}

// newGuardEvents begins to write to the audit log at path; it must be closed. If the log cannot be
// written, that is an event, and the guard continues.
func newGuardEvents(path string, tell func(restartguard.Event)) *guardEvents {
	trouble := func(err error) {
		e := restartguard.Event{At: time.Now(), Kind: "audit log", Text: "the audit log can be written again"}
		if err != nil {
			e.Text, e.Alarm = "the audit log cannot be written; the guard continues: "+err.Error(), true
		}
		tell(e)
	}
	return &guardEvents{tell, operator.RecordGuard(path, trouble)}
}

// newGuard makes the guard of a session or of the daemon; if there was a former guard, its
// successor.
func (k *guardEvents) newGuard(s Spec, former *watch.Guard) (*watch.Guard, error) {
	cfg, cluster := s.Guard, s.Monitor.ClusterName
	cfg.OnEvent = func(e restartguard.Event) { k.take(cluster, s.Monitor.ActedOn, e) }
	if former != nil {
		return former.Successor(s.Guarded, cfg)
	}
	g, err := watch.New(s.Guarded, cfg)
	if err == nil {
		k.record.By(g.ID()) // which its successors keep
	}
	return g, err
}

func (k *guardEvents) take(cluster string, actedOn func(string) (monitor.Action, bool), e restartguard.Event) {
	switch e.Kind { // a person should look at these
	case "exposed", "unreachable", "no quorum", "clock", "wiped", "evicted", "restored", "memory":
		e.Alarm = true
	}
	k.record.Take(cluster, e)
	if e.Kind == "cordoned" && actedOn != nil {
		if a, ok := actedOn(e.Node); ok && a.KeepsOut() {
			e.Text += "; " + a.Act + a.By()
		}
	}
	k.tell(e)
}

// vouch has a guard announce what a monitor beside it knows about locks, until ctx ends, so that a
// monitor that starts later says the same.
func vouch(ctx context.Context, mon *observe.Monitor, g *watch.Guard) {
	const pause = 50 * time.Millisecond // what others read is at most this much older than the last probe
	for version := uint64(0); ; {
		select {
		case <-ctx.Done():
			return
		case <-mon.Changed(version):
		}
		s := mon.Snapshot()
		version = s.Version
		for i := range s.Nodes {
			g.Vouch(s.Nodes[i].Name, mon.Vouches(s.Nodes[i].Name))
		}
		if sleep.For(ctx, pause) != nil {
			return
		}
	}
}

func guardView(g *watch.Guard) monitor.GuardView {
	sight := monitor.GuardView{Nodes: map[string]monitor.GuardedNode{}, Delay: g.Delay()}
	for _, s := range g.Status() {
		if s.Method.Kind == fences.None {
			continue // such a guard fences nothing
		}
		sight.Nodes[s.Node] = monitor.GuardedNode{
			RunID: s.RunID, Known: s.Known, Verified: s.Verified, Exposed: s.Phase == restartguard.PhaseExposed, AtStart: s.AtStart && !s.Verified, Since: s.Since,
			OpenFor: restartguard.AtMost(s.BootExposed), Err: s.Err, Invalid: s.Invalid,
		}
	}
	if o := g.Outlook(); !o.Possible() && g.Met() {
		sight.Outlook = o.Text()
	}
	return sight
}
