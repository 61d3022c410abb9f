package view

import (
	"slices"
	"strings"
	"time"

	"redlockctl/monitor"
	"redlockctl/restartguard"
	"redlockctl/server/announce"
)

// Guard is what is known about fences besides a snapshot: from a guard in this process,
// from its announcements, its /status or its memory on disk.
type Guard struct {
	Here   bool   // a guard runs in this process
	ID     string // of the guard in this process
	Status map[string]restartguard.NodeStatus
	List   []restartguard.NodeStatus // the same, in the nodes' order
	Delay  time.Duration             // D; zero: not known
	// Configured is the D of this program.
	Configured time.Duration
	Others     []announce.Guard // those that are seen, without the one in this process

	told []restartguard.NodeStatus // List, without what the nodes announce
}

// NewGuard returns what a guard knows about nodes; id is empty if it runs in another
// process.
func NewGuard(id string, list []restartguard.NodeStatus) Guard {
	g := Guard{Here: id != "", ID: id, told: list}
	g.know(list)
	return g
}

func (g *Guard) know(list []restartguard.NodeStatus) {
	g.List, g.Status = list, make(map[string]restartguard.NodeStatus, len(list))
	for _, s := range list {
		g.Status[s.Node] = s
	}
}

// See records the guards that announce themselves, and until when they keep nodes fenced: the
// last of them counts, for the guard in this process too. The greatest D counts; this program's
// own D counts if its guard runs, or if no guard is seen.
func (g *Guard) See(s *monitor.Snapshot) {
	if !g.Here { // one that is here knows that by itself
		g.know(withAnnounced(g.told, s))
	}
	all, _ := s.Guards()
	g.Delay, g.Others = 0, nil
	if g.Here || len(all) == 0 {
		g.Delay = g.Configured
	}
	for _, one := range all {
		g.Delay = max(g.Delay, one.Delay)
		if one.ID != g.ID {
			g.Others = append(g.Others, one)
		}
	}
}

// withAnnounced adds to what a guard elsewhere has told what all guards announce of fenced nodes.
func withAnnounced(told []restartguard.NodeStatus, s *monitor.Snapshot) []restartguard.NodeStatus {
	list := slices.Clone(told)
	for i := range s.Nodes {
		n := &s.Nodes[i]
		at, known := n.MayRejoin(s.At)
		if n.State != monitor.NodeFenced || !known || !at.After(s.At) {
			continue
		}
		j := slices.IndexFunc(list, func(st restartguard.NodeStatus) bool { return st.Node == n.Name })
		if j < 0 {
			j, list = len(list), append(list, restartguard.NodeStatus{Node: n.Name})
		}
		if st := &list[j]; at.After(st.Until) {
			st.Phase, st.Until = restartguard.PhaseFenced, at
		}
	}
	return list
}

// Outlook returns what the fences mean for the cluster: by the guard in this process, or by a
// snapshot and what is known of other guards.
func (g *Guard) Outlook(s *monitor.Snapshot) restartguard.Outlook {
	status := g.List
	if !g.Here {
		status = make([]restartguard.NodeStatus, 0, len(s.Nodes))
		for i := range s.Nodes {
			status = append(status, g.statusOf(&s.Nodes[i]))
		}
	}
	return restartguard.OutlookOf(status, s.Cluster.N, s.Cluster.Quorum)
}

// statusOf returns the state that is seen of a node, and until when guards elsewhere keep it fenced.
func (g *Guard) statusOf(n *monitor.Node) restartguard.NodeStatus {
	st := restartguard.NodeStatus{Node: n.Name, Phase: restartguard.PhaseUnreachable}
	switch n.State {
	case monitor.NodeServing:
		st.Phase = restartguard.PhaseServing
	case monitor.NodeCordoned:
		st.Phase = restartguard.PhaseCordoned
	case monitor.NodeFenced:
		told, ok := g.Status[n.Name]
		ok = ok && told.Phase == restartguard.PhaseFenced
		st.Phase, st.Waits = restartguard.PhaseFenced, ok || len(n.Guards) > 0
		if ok {
			st.Until, st.Reason = told.Until, told.Reason
		}
	case monitor.NodeDown:
	default:
		st.Absent = n.State.String()
	}
	return st
}

// Protectors names the guards that watch, in a few words; empty if none is seen.
func (g *Guard) Protectors() string {
	elsewhere := g.Elsewhere()
	switch {
	case !g.Here:
		return elsewhere
	case elsewhere == "":
		return "guard here"
	}
	return "guard here and " + elsewhere
}

// Number says how many guards watch.
func (g *Guard) Number() string {
	n := len(g.Others)
	if g.Here {
		n++
	}
	return Plural(n, "guard")
}

// Elsewhere names the guards in other processes; empty if none is seen.
func (g *Guard) Elsewhere() string {
	var names []string
	for _, one := range g.Others {
		names = append(names, guardName(one))
	}
	if len(names) > 2 {
		names = append(names[:1], Plural(len(names)-1, "more guard"))
	}
	return strings.Join(names, " and ")
}

func guardName(g announce.Guard) string {
	if g.Host.Empty() {
		return "guard " + g.ID[:min(6, len(g.ID))]
	}
	return "guard@" + Unicode.Escape(g.Host.Raw(), 20)
}

// Waiting returns the nodes that only the guard in this process lets rejoin.
func (g *Guard) Waiting(s *monitor.Snapshot) (names []string) {
	if !g.Here {
		return nil
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		another := slices.ContainsFunc(n.Guards, func(one announce.Guard) bool { return one.ID != g.ID })
		if fenced := n.State == monitor.NodeFenced || g.Status[n.Name].Phase == restartguard.PhaseFenced; fenced && !another {
			names = append(names, n.Name)
		}
	}
	return names
}

// Countdown returns the time until the node rejoins, if that is known.
func (g *Guard) Countdown(n *monitor.Node, now time.Time) (time.Duration, bool) {
	s, ok := g.Status[n.Name]
	if !ok || s.Phase != restartguard.PhaseFenced || s.Until.IsZero() || n.State != monitor.NodeFenced {
		return 0, false
	}
	return max(0, s.Until.Sub(now)), true
}

// NotBefore returns the earliest moment at which a guard elsewhere may let a restarted
// node rejoin. The guard may wait longer.
func (g *Guard) NotBefore(n *monitor.Node, now time.Time) (time.Time, bool) {
	return n.RejoinsAfter, n.State == monitor.NodeFenced && n.RejoinsAfter.After(now)
}

// How a node started last, as far as a guard saw.
const (
	StartedFenced   = "verified"
	StartedUnfenced = "started unfenced"
	StartUnseen     = "start not seen yet"
)

// BootFence is how a node started last: one of these three.
func (g *Guard) BootFence(n *monitor.Node) string {
	s := g.Status[n.Name]
	return startWord(n.Started(monitor.GuardedNode{RunID: s.RunID, Known: s.Known, Verified: s.Verified}))
}

func startWord(boot announce.Boot) string {
	switch boot {
	case announce.BootFenced:
		return StartedFenced
	case announce.BootUnfenced:
		return StartedUnfenced
	}
	return StartUnseen
}
