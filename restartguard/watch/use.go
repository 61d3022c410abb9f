package watch

import (
	"time"

	"redlockctl/base/boottime"
	"redlockctl/restartguard"
	"redlockctl/server/announce"
)

// useSeen takes note of a state, and reports whether it shows for the first time that the
// cluster was in use: a node has served, or has restarted since it was met.
func (g *Guard) useSeen(s *restartguard.State) bool {
	if !s.Report.Used() || !g.used.CompareAndSwap(false, true) {
		return false
	}
	g.usedSince.Store(int64(boottime.Now()))
	return true
}

// newFor is how long after the first node of a new cluster the others are let serve.
const newFor = 5 * time.Second

// mayBeNew reports whether a person may let the node serve before D, since the guard has not known
// its cluster in use before: it says so to who asks.
func (g *Guard) mayBeNew(s *restartguard.State) bool {
	since := time.Duration(g.usedSince.Load())
	return !s.Report.Used() && (!g.used.Load() || since != 0 && boottime.Now()-since < newFor)
}

// use is what the guard announces of that.
func (g *Guard) use() announce.Use {
	if g.used.Load() {
		return announce.UseSeen
	}
	return announce.UseNone
}
