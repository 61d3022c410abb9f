package watch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"redlockctl/base/sleep"
	"redlockctl/restartguard"
	"redlockctl/server/safetext"
)

const (
	// resolveEvery is how often the host name of a node is resolved, and so how late it is seen
	// that it leads to another server.
	resolveEvery = time.Second
	// resolveTimeout bounds one resolution.
	resolveTimeout = 2 * time.Second
)

// hostOf returns the host name in an address; "": it has none that can change.
func hostOf(addr string) string {
	host, _, err := net.SplitHostPort(addr)
	if err != nil || host == "" {
		return "" // a unix socket
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return ""
	}
	return host
}

// resolve keeps the addresses of the node's host name up to date until ctx ends.
func (w *watcher) resolve(ctx context.Context) {
	host, failing := hostOf(w.node.Addr()), false
	for sleep.For(ctx, resolveEvery) == nil {
		limited, cancel := context.WithTimeout(ctx, resolveTimeout)
		found, err := net.DefaultResolver.LookupNetIP(limited, "ip", host)
		cancel()
		if ctx.Err() != nil {
			return
		}
		if err == nil && len(found) == 0 {
			err = errors.New("it has no address")
		}
		if err != nil && !failing { // its text differs each time
			w.guard.emit(w.node.Name(), []restartguard.Event{{At: time.Now(), Kind: "moved", Text: unresolved + ": " + safetext.Error(err), Alarm: true}})
		}
		failing = err != nil
		w.mu.Lock()
		w.addrs = found // empty if not known
		w.mu.Unlock()
	}
}

// reportMoved reports that the node's host name leads to another address, while the former server
// still answers.
func (w *watcher) reportMoved(peer netip.AddrPort) {
	w.guard.emit(w.node.Name(), []restartguard.Event{{At: time.Now(), Kind: "moved", Alarm: true, Text: fmt.Sprintf(
		"its name does not lead to %s any more, where a server still answers: clients that are connected there go on taking its vote. End that server", peer)}})
}

const unresolved = "its name cannot be resolved, so that it would not be seen that it leads to another server"
