package view

import (
	"time"

	"redlockctl/internal/safetext"
	"redlockctl/monitor"
	"redlockctl/restartguard"
)

// GuardsDoc is what a guard on this machine has written down, beside what is
// seen of the nodes now.
type GuardsDoc struct {
	DelayMs  int64         `json:"delay_ms"`
	StateDir safetext.Text `json:"state_dir"`
	Memory   string        `json:"memory"` // there, none or unreadable
	GuardsSeenDoc
	Error *safetext.Text `json:"error,omitempty"`
	Nodes []GuardDoc     `json:"nodes"`
	OutlookDoc
	Outlook *safetext.Text `json:"outlook,omitempty"`
}

// Guard is the same for those who show nodes.
func (g GuardsDoc) Guard(s *monitor.Snapshot) Guard {
	var list []restartguard.NodeStatus
	for i, one := range g.Nodes {
		status := restartguard.NodeStatus{Node: s.Nodes[i].Name, Known: one.BootFence != "unknown", Verified: one.BootFence == "verified", Phase: restartguard.PhaseServing}
		if one.RejoinMs != nil {
			status.Phase, status.Until = restartguard.PhaseFenced, s.At.Add(time.Duration(*one.RejoinMs)*time.Millisecond)
		}
		if status.Known || one.RejoinMs != nil {
			list = append(list, status)
		}
	}
	guard := NewGuard("", list)
	guard.Configured = time.Duration(g.DelayMs) * time.Millisecond
	guard.See(s)
	return guard
}

// Elsewhere reports whether only a guard elsewhere knows when a node rejoins.
func (g GuardsDoc) Elsewhere(n GuardDoc) bool {
	return n.RejoinMs == nil && !n.Cordoned && n.State == monitor.NodeFenced.String() && (g.Running == nil || *g.Running)
}

// OutlookDoc is what a guard that is known waits for: the node that rejoins first, and when
// there is a quorum again.
type OutlookDoc struct {
	FirstNode    *safetext.Text `json:"first_rejoin_node,omitempty"`
	FirstMs      *int64         `json:"first_rejoin_ms,omitempty"`
	QuorumBackMs *int64         `json:"quorum_back_ms,omitempty"`
}

// DocOfOutlook is an outlook at a moment.
func DocOfOutlook(o restartguard.Outlook, now time.Time) (doc OutlookDoc) {
	if o.First != "" {
		doc.FirstNode, doc.FirstMs = safetext.Optional(o.First), MSUntil(o.FirstAt, now)
	}
	doc.QuorumBackMs = MSUntil(o.Until, now)
	return doc
}

// GuardsSeenDoc are the guards that run, as far as it can be told from here.
type GuardsSeenDoc struct {
	Running     *bool          `json:"guard_running,omitempty"` // left out: not known
	GuardsKnown bool           `json:"guards_known"`
	Guards      []SeenGuardDoc `json:"guards"`
}

// SeenGuardDoc is a guard that announces itself on nodes.
type SeenGuardDoc struct {
	ID      string          `json:"id"`
	Host    safetext.Text   `json:"host"`
	PID     int             `json:"pid,omitempty"`
	DelayMs int64           `json:"delay_ms"`
	On      []safetext.Text `json:"on"`
}
