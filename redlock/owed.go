package redlock

import "time"

// owedRelease is a release that a node still has to hear of.
type owedRelease struct {
	key, token string
	until      time.Time // as in call
}

// owe keeps a release for later, if there may be something to release; s.mu is
// held. A node that hangs for long would otherwise be owed the releases of all
// that it was not even asked, and those that matter would be lost among them.
func (s *stream) owe(c *call) {
	if c.op != opRelease || c.clean != nil && c.clean[c.node] {
		return
	}
	if len(s.owed) == owedSize {
		s.owed = append(s.owed[:0], s.owed[1:]...)
	}
	s.owed = append(s.owed, owedRelease{c.key, c.token, c.until})
	s.countOwed()
}

// countOwed makes known how much is owed; s.mu is held. What the node refuses for
// now is not waited for.
func (s *stream) countOwed() {
	s.owedCount.Store(int32(len(s.owed)))
	if s.refused > 0 {
		s.window.owed.Store(0)
		return
	}
	s.window.owed.Store(int32(len(s.owed)))
}

// sendOwed puts so much of what is owed into the queue, behind all that is there; s.mu
// is held.
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
		s.push(&call{op: opRelease, key: d.key, token: d.token, until: d.until})
	}
	if len(s.owed) == 0 {
		s.owed = nil
	}
	s.window.used.Add(int32(sent))
	s.countOwed()
}

// owedPause is for how long a node that refuses releases is left alone.
func (s *stream) owedPause() time.Duration {
	return min(backoffMin<<min(s.refused-1, 10), backoffMax)
}
