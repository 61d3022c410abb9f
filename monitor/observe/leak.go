package observe

import (
	"slices"

	"redlockctl/monitor"
	"redlockctl/server/announce"
	"redlockctl/server/minreplicas"
	"redlockctl/server/safetext"
)

// userState returns the state of a node that is fenced by its ACL user: as read by the
// monitor, or as its guards say if the monitor may not read it.
func (w *watch) userState() monitor.NodeState {
	fenced, cordoned := w.byUser.fenced, w.byUser.cordoned
	if fenced || !w.byUser.known {
		cordoned = cordoned || w.guardSays(announce.FenceCordoned)
		fenced = fenced || cordoned || w.guardSays(announce.FenceUp)
	}
	switch {
	case cordoned:
		return monitor.NodeCordoned
	case fenced:
		return monitor.NodeFenced
	}
	return monitor.NodeServing
}

func (w *watch) guardSays(f announce.Fence) bool {
	return slices.ContainsFunc(w.Guards, func(g announce.Guard) bool { return g.Fence == f })
}

// leak says why a node accepts writes although it is fenced: as a guard found, or by its
// version and role.
func (w *watch) leak() string {
	for _, g := range w.Guards {
		if g.Fence == announce.FenceLeaks {
			if g.Leak.Empty() {
				return "a canary write of its guard got through"
			}
			return g.Leak.String()
		}
	}
	up := w.byUser == nil && w.MinReplicasToWrite >= minreplicas.FenceCordon && w.maxLag != 0
	switch {
	case up && w.Role == "slave" && w.writable:
		return "a replica accepts writes unless replica-read-only is yes"
	case up && !minreplicas.StopsScripts(w.Version):
		return "scripts write through it on version " + safetext.Escape(w.Version)
	}
	return ""
}

// passesScripts reports whether scripts can write through the node's fence, now or after
// its next start.
func (w *watch) passesScripts() bool {
	return w.byUser == nil && !w.unfenced && !minreplicas.StopsScripts(w.Version)
}
