package table

import (
	"cmp"
	"slices"
	"time"

	"redlockctl/monitor/internal/packed"
	"redlockctl/server/announce"
)

// stepBack is a step of a node's clock back, as it was seen: the copies that were there end later by that
// much, and their holders do not rely on them for longer.
type stepBack struct {
	at packed.Moment
	by time.Duration
}

// stretch is by how much a copy of a record outlasts what its holder relies on: the copy of this token with this
// end. It is zero if its holder set it since the last step.
type stretch struct {
	node    int
	token   packed.Token
	expires packed.Moment
	by      time.Duration
	// sure: a copy on a node whose clock was not stepped back shows it. Otherwise its holder may have extended it by
	// as much.
	sure bool
}

// stepSlack is by how much a step and the ends of two copies may differ: reads are slow on a busy machine.
const stepSlack = 500 * time.Millisecond

// backsKept is for how long steps back explain how long copies last, if no TTL is known.
const backsKept = time.Hour

// noteBack records a step back of the clock of node i.
func (t *Table) noteBack(i int, by time.Duration, now packed.Moment) {
	n := &t.nodes[i]
	if n.backs = append(n.backs, stepBack{now, by}); len(n.backs) > 4 {
		n.backs = n.backs[1:]
	}
	t.sweepAll()
}

// stretchOf returns by how much copy i of r outlasts what its holder relies on; ok: something is known of that.
func (t *Table) stretchOf(r *record, i int) (s stretch, ok bool) {
	if len(t.stretched) == 0 {
		return stretch{}, false
	}
	c := &r.Copies[i]
	for _, s := range t.stretched[r] {
		if s.node == i && packed.Alike(s.expires, c.Expires) && s.token == r.Tokens[c.Token] {
			return s, true
		}
	}
	return stretch{}, false
}

// reliedOn returns until when the holder of copy i of r relies on it, as far as is known: not for longer because
// the clock of its node was stepped back; zero: it has no TTL.
func (t *Table) reliedOn(r *record, i int) packed.Moment {
	end := r.Copies[i].Expires
	if s, _ := t.stretchOf(r, i); s.sure {
		end -= packed.Moment(s.by)
	}
	return end
}

func (t *Table) setStretch(r *record, i int, s stretch) {
	s.node, s.token = i, r.Tokens[r.Copies[i].Token]
	t.stretched[r] = append(slices.DeleteFunc(t.stretched[r], func(o stretch) bool { return o.node == i }), s)
}

// explainsBack returns the sum of the last steps back of a node, seen after since, that is about
// how much later a copy ends; 0: none is.
func (n *node) explainsBack(later time.Duration, since packed.Moment) time.Duration {
	sum := time.Duration(0)
	for k := len(n.backs) - 1; k >= 0 && n.backs[k].at >= since; k-- {
		if sum += n.backs[k].by; (later - sum).Abs() <= min(stepSlack, sum/4) {
			return sum
		}
	}
	return 0
}

// movedBack notes why copy i of r ends later than when it was last read: by a step back of its node's clock
// since then, or because its holder extended it. It reports whether it was the step.
func (t *Table) movedBack(r *record, i int, expires packed.Moment) bool {
	n, c := &t.nodes[i], &r.Copies[i]
	if len(n.backs) == 0 {
		return false
	}
	was, _ := t.stretchOf(r, i)
	by := n.explainsBack(time.Duration(expires-c.Expires), c.Sent)
	if by != 0 {
		t.setStretch(r, i, stretch{expires: expires, by: was.by + by})
	} else if c.Sent > n.backs[len(n.backs)-1].at {
		t.setStretch(r, i, stretch{expires: expires, sure: true})
	}
	return by != 0
}

// findStretched finds copies of r that outlast what their holders rely on: those that end later than one on a node
// whose clock was not stepped back, by as much as theirs was. If one on such a node ends as late, their holder has
// set them since.
func (t *Table) findStretched(r *record, now packed.Moment) {
	since := now - packed.Moment(cmp.Or(max(t.maxTTL, t.bound), backsKept))
	for i := range r.Copies {
		n, c := &t.nodes[i], &r.Copies[i]
		if len(n.backs) == 0 || c.Kind != packed.LockCopy || c.Expires == 0 {
			continue
		}
		s, _ := t.stretchOf(r, i)
		switch {
		case s.sure && s.by == 0:
			continue
		case s.sure && c.Expires-packed.Moment(s.by) <= now: // a majority of such copies still keeps others out
			s.sure = false
			t.setStretch(r, i, s)
		}
		if s.by == 0 && t.leftBySteps.has(r.key(), announce.TokenSum(r.Tokens[c.Token].Prefix)) {
			t.setStretch(r, i, stretch{expires: c.Expires, by: n.backs[len(n.backs)-1].by})
		}
		for k := range r.Copies {
			o := &r.Copies[k]
			if o.Kind != packed.LockCopy && !o.Lost() || o.Token != c.Token || o.Expires == 0 || len(t.nodes[k].backs) != 0 {
				continue
			}
			later := time.Duration(c.Expires - o.Expires)
			if later.Abs() <= stepSlack {
				t.setStretch(r, i, stretch{expires: c.Expires, sure: true})
				break
			}
			if by := n.explainsBack(later, since); by != 0 && !s.sure && o.Expires > now {
				t.setStretch(r, i, stretch{expires: c.Expires, by: by, sure: true})
			}
		}
	}
}

// leftByStep reports whether the copies of token k of r that are left are so because the clocks of their nodes were
// stepped back.
func (t *Table) leftByStep(r *record, k int8) (left bool) {
	for i := range r.Copies {
		if c := &r.Copies[i]; c.Kind == packed.LockCopy && int8(c.Token) == k {
			if s, _ := t.stretchOf(r, i); s.by == 0 {
				return false
			}
			left = true
		}
	}
	return left
}
