package table

import (
	"slices"
	"time"

	"redlockctl/monitor"
	"redlockctl/monitor/internal/packed"
	"redlockctl/server/safetext"
)

// leaving is a grant of which some copies were deleted, and others are still there, while another
// client has a majority: a release that has not reached all nodes, or a deletion by somebody else.
// What it was is decided as for any grant; the next grant does not wait for that.
type leaving struct {
	token  packed.Token
	grant  grant
	copies int // that were left when it was last reviewed
}

// confirmsWithin is how long a new grant waits for the nodes to confirm which copies of the last one
// are left. Most releases are complete by then, so that events come in their order.
const confirmsWithin = 20 * time.Millisecond

// leavingMost is the largest number of them that is kept of a lock.
const leavingMost = 8

// setAside sets the grant of r, which is being released, aside: another token has a majority. False:
// it waits a moment for the end of the release.
func (t *Table) setAside(r *record, a *assessment) bool {
	if due := r.changed + packed.Moment(confirmsWithin); !a.confirmed && a.now < due {
		a.wakeAt(due)
		return false
	}
	all := t.leaving[r]
	if len(all) == leavingMost {
		all = slices.Delete(all, 0, 1)
	}
	g := &r.grant
	t.leaving[r] = append(all, leaving{r.Tokens[g.token], *g, r.copiesOf(g.token)})
	*g = grant{token: -1}
	return true
}

// isAside reports whether the grant of token k of r was set aside: what has become of it is decided there.
func (t *Table) isAside(r *record, k int8) bool {
	return slices.ContainsFunc(t.leaving[r], func(l leaving) bool { return l.token == r.Tokens[k] })
}

// copiesOf returns the number of copies of a token.
func (r *record) copiesOf(token int8) (n int) {
	for i := range r.Copies {
		if c := &r.Copies[i]; c.Kind == packed.LockCopy && int8(c.Token) == token {
			n++
		}
	}
	return n
}

// reviewLeaving ends the grants of r that were set aside, as [Table.reviewGrant] does, or has their
// holders rely on the lock besides the present one. If that has gone, the last of them is the grant
// of r again.
func (t *Table) reviewLeaving(r *record, now packed.Moment) {
	all := t.leaving[r]
	if all == nil {
		return
	}
	own, kept := r.grant, all[:0]
	for _, l := range all {
		g := &r.grant
		*g = l.grant
		if g.token = int8(slices.Index(r.Tokens, l.token)); g.token < 0 {
			r.own()
			r.Tokens = append(slices.Clip(r.Tokens), l.token)
			g.token = int8(len(r.Tokens) - 1)
		}
		if n := r.copiesOf(g.token); n < l.copies { // the release goes on
			l.copies, g.deletedAt = n, now
		}
		switch t.reviewGrant(r, g.deletedAt, now); {
		case g.token < 0: // it has ended
		case g.fell:
			sum := r.sumOf(g)
			r.addEarlier(earlier{Reliance: monitor.Reliance{Token: safetext.New(l.token.Prefix), Until: t.Time(g.end)}, sum: sum, was: *g})
		default:
			kept = append(kept, leaving{l.token, *g, l.copies})
		}
	}
	r.grant = own
	if n := len(kept); own.token < 0 && n > 0 {
		r.grant, kept = kept[n-1].grant, kept[:n-1]
	}
	if t.leaving[r] = kept; len(kept) == 0 {
		delete(t.leaving, r)
	}
}

// forgetLeaving forgets a grant that was set aside: its token has a majority again.
func (t *Table) forgetLeaving(r *record, token packed.Token) {
	if all := t.leaving[r]; all != nil {
		if t.leaving[r] = slices.DeleteFunc(all, func(l leaving) bool { return l.token == token }); len(t.leaving[r]) == 0 {
			delete(t.leaving, r)
		}
	}
}

// wakeToReview has the grants of r that were set aside reviewed in time.
func (t *Table) wakeToReview(r *record, a *assessment) {
	for _, l := range t.leaving[r] {
		a.wakeAt(l.grant.deletedAt + t.releaseTakes(a.now))
		a.wakeAt(l.grant.end)
	}
}
