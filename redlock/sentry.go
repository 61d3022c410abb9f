package redlock

import (
	"sync"
	"time"
)

// sentry listens to the copies of a lock that is kept, over the connections of the
// [watcher]: when one is gone, or is another's, before the keeper took it away, the
// keeper looks at once and not at its next extension. What it hears decides only when
// an extension is made; the extension alone says how the lock stands.
type sentry struct {
	resource, token string
	gone            func() // a copy is
	ears            []*ear

	mu   sync.Mutex
	seen []bool // by node: the copy was there when it was last read
}

// postSentry begins to listen; nil where the client has ended.
func (c *Client) postSentry(resource, token string, gone func()) *sentry {
	if c.enter("keep", resource) != nil {
		return nil
	}
	defer c.ops.Done()
	s := &sentry{resource: resource, token: token, gone: gone, ears: c.watcher.ears, seen: make([]bool, len(c.nodes))}
	for i, e := range s.ears {
		if e.attach(s) == earUp {
			s.up(i)
		}
	}
	return s
}

func (s *sentry) end() {
	if s != nil {
		for _, e := range s.ears {
			e.detach(s)
		}
	}
}

func (s *sentry) key() string      { return s.resource }
func (s *sentry) up(node int)      { s.ears[node].ask(s) }
func (s *sentry) down(int)         {}
func (s *sentry) changed(node int) { s.ears[node].ask(s) }

func (s *sentry) read(node int, m message, _ bool, _ time.Time) {
	here := m.there && m.token == s.token
	s.mu.Lock()
	gone := s.seen[node] && !here
	s.seen[node] = here
	s.mu.Unlock()
	if gone {
		s.gone()
	}
}
