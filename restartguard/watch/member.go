package watch

import (
	"net/netip"
	"slices"
	"sync"
	"time"

	"redlockctl/redlock"
	"redlockctl/restartguard"
	"redlockctl/restartguard/memory"
	"redlockctl/server/fences"
)

// member is what a guard knows about one node. Only its watcher changes it.
type member struct {
	node   *redlock.Node
	method fences.Method

	mu    sync.Mutex
	state restartguard.State
	same  string // see [NodeStatus]
	// others is until when other guards keep the node fenced, as they announced last.
	others time.Time
	// announceErr is why the guard's announcement failed on a node that answers; "": it did not, or
	// that is not known. announceInvalid: the node's answer to it was invalid.
	announceErr       string
	announceInvalid   bool
	lastRound         time.Time    // when its watcher last began an observation
	lockAnnouncements []string     // see [Guard.Vouch]
	addrs             []netip.Addr // that its host name resolves to; none: it has no name, or they are not known

	changed chan struct{} // the announcements may have changed
}

func (w *member) remembered() memory.Node {
	return memory.Node{Name: w.node.Name(), Addr: w.node.Addr(), Fence: w.method.ID(), State: w.state}
}

// nameMoved reports whether the node's host name now resolves to other addresses than peer.
func (w *member) nameMoved(peer netip.AddrPort) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return peer.IsValid() && len(w.addrs) > 0 && !slices.ContainsFunc(w.addrs, func(a netip.Addr) bool {
		return a.Unmap().WithZone("") == peer.Addr().WithZone("")
	})
}

// renewAnnouncements has the announcements sent again if they have changed.
func (w *member) renewAnnouncements() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}
