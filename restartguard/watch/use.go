package watch

import (
	"time"

	"redlockctl/base/boottime"
	"redlockctl/restartguard"
	"redlockctl/server/announce"
)

// useSeen reports whether a state is the first to show that the cluster is in use: a node has
// served, or has restarted since the guard met it.
func (g *Guard) useSeen(s *restartguard.State) bool {
	if !s.Report.Used() || !g.used.CompareAndSwap(false, true) {
		return false
	}
	g.usedSince.Store(int64(boottime.Now()))
	return true
}

// newFor is how long after the first node of a new cluster the others may follow.
const newFor = 5 * time.Second

// mayBeNew reports whether an operator may let the node serve before D: the guard has never seen
// its cluster in use, and says so in its announcement.
func (g *Guard) mayBeNew(s *restartguard.State) bool {
	since := time.Duration(g.usedSince.Load())
	return !s.Report.Used() && (!g.used.Load() || since != 0 && boottime.Now()-since < newFor)
}

// use returns what the guard announces about the use of the cluster.
func (g *Guard) use() announce.Use {
	if g.used.Load() {
		return announce.UseSeen
	}
	return announce.UseNone
}
