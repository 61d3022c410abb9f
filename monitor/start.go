package monitor

import "redlockctl/server/announce"

// Started returns how the node started last, as far as guards saw; every view says that. own is what
// the guard in this process knows. One that saw it start unfenced counts, whatever others saw. A
// fenced start that is remembered on this host counts where no guard is seen: of one that is, all views say the same.
func (n *Node) Started(own GuardedNode) announce.Boot {
	var fenced, unfenced bool
	note := func(boot announce.Boot) {
		fenced, unfenced = fenced || boot == announce.BootFenced, unfenced || boot == announce.BootUnfenced
	}
	if len(n.Guards) == 0 || n.Remembered == announce.BootUnfenced {
		note(n.Remembered)
	}
	if own.Known && (own.RunID == "" || n.RunID == "" || own.RunID == n.RunID) {
		note(map[bool]announce.Boot{true: announce.BootFenced, false: announce.BootUnfenced}[own.Verified])
	}
	for _, g := range n.Guards {
		note(g.Boot)
	}
	switch {
	case unfenced, n.StartedUnfenced && !fenced:
		return announce.BootUnfenced
	case fenced:
		return announce.BootFenced
	}
	return announce.BootUnknown
}
