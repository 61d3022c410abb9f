package redlock

import "time"

// owedRelease is a release that a node has not received yet.
type owedRelease struct {
	key, token string
	until      time.Time // as in request
}

// owe keeps a release for later, if the node may have a copy; s.mu is held. Otherwise a
// node that hangs for long would be owed releases of locks that it never saw, and the
// important ones would be dropped.
func (s *stream) owe(c *call) {
	if c.op != opRelease || c.left != nil && c.left[c.node] == leftNothing {
		return
	}
	if len(s.owed) == owedSize {
		s.owed = append(s.owed[:0], s.owed[1:]...)
	}
	s.owed = append(s.owed, owedRelease{c.key, c.token, c.until})
	s.countOwed()
}

// countOwed publishes how much is owed; s.mu is held. Attempts do not wait for releases
// that the node refuses for now.
func (s *stream) countOwed() {
	s.owedCount.Store(int32(len(s.owed)))
	if s.refused > 0 {
		s.window.owed.Store(0)
		return
	}
	s.window.owed.Store(int32(len(s.owed)))
}

// sendOwed adds at most this many owed releases to the end of the queue; s.mu is held.
func (s *stream) sendOwed(most int, now time.Time) {
	if s.refused > 0 {
		if now.Before(s.owedFrom) {
			return
		}
		most = 1
		s.owedFrom = now.Add(s.owedPause())
	}
	sent := 0
	for ; len(s.owed) > 0 && sent < most; s.owed = s.owed[1:] {
		d := s.owed[0]
		if !d.until.IsZero() && !now.Before(d.until) {
			continue
		}
		sent++
		s.push(&call{request: &request{op: opRelease, key: d.key, token: d.token, until: d.until}})
	}
	if len(s.owed) == 0 {
		s.owed = nil
	}
	s.window.used.Add(int32(sent))
	s.countOwed()
}

// owedPause is how long to wait after a node has refused a release.
func (s *stream) owedPause() time.Duration {
	return min(backoffMin<<min(s.refused-1, 10), backoffMax)
}
