package page

import "time"

// Rewind forgets what happened, for a source that stands at another moment. The cursor,
// filters and orders stay.
func (p *Set) Rewind(now time.Time) {
	t := &p.Events
	t.All, t.weighs, t.Seq, t.until, t.stale = nil, 0, 0, 0, true
	p.Lock.Watched, p.Lock.heldBy.asked = lockLog{}, time.Time{}
	clear(p.Past)
	clear(p.Marks)
	p.began, p.Frozen = now, freeze{}
}
