package redlock

import (
	"context"
	"sync"
	"time"
)

// copyWatch watches the copies of a kept lock, over the connections of the
// [waitQueues]. When a copy disappears, or is replaced, without the keeper having done
// so, the keeper extends at once and not at the next regular time. This decides only
// when an extension is made; only the extension decides whether the lock is held.
type copyWatch struct {
	resource, token string
	gone            func() // a copy is
	trackers        []*tracker

	mu   sync.Mutex
	seen []bool // by node: the copy was there when it was last read
}

// watchCopies begins to watch; nil if the client is closed.
func (c *Client) watchCopies(resource, token string, gone func()) *copyWatch {
	if c.enter(context.Background(), "keep", resource) != nil {
		return nil
	}
	defer c.ops.Done()
	s := &copyWatch{resource: resource, token: token, gone: gone, trackers: c.waits.trackers, seen: make([]bool, len(c.nodes))}
	for i, e := range s.trackers {
		if e.attach(s) == trackerUp {
			s.up(i)
		}
	}
	return s
}

func (w *copyWatch) end() {
	if w != nil {
		for _, e := range w.trackers {
			e.detach(w)
		}
	}
}

func (w *copyWatch) key() string      { return w.resource }
func (w *copyWatch) up(node int)      { w.trackers[node].ask(w) }
func (w *copyWatch) down(int)         {}
func (w *copyWatch) changed(node int) { w.trackers[node].ask(w) }

func (w *copyWatch) read(node int, m message, _ bool, _ time.Time) {
	here := m.there && m.token == w.token
	w.mu.Lock()
	gone := w.seen[node] && !here
	w.seen[node] = here
	w.mu.Unlock()
	if gone {
		w.gone()
	}
}
