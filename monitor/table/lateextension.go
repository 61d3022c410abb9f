package table

import (
	"time"

	"redlockctl/monitor/internal/packed"
)

// lateExtension is the last extension of copies of a grant that had lost its majority before. A node that was
// known to have no copy by then had no part in it.
type lateExtension struct {
	token    packed.Token
	from, to packed.Moment // it came after from, and was seen at to
	before   packed.Moment // the latest end of its copies and lost votes before it
}

// noteExtension records that the copy of r on node i, of its grant, was found to be extended. Of several
// extensions in which the same nodes had no part, the end before the first one counts.
func (t *Table) noteExtension(r *record, i int, received packed.Moment) {
	c, n, tok := &r.Copies[i], &t.nodes[i], r.grant.token
	if tok < 0 || int8(c.Token) != tok || !r.known || r.lock.Held >= t.quorum {
		return
	}
	next := lateExtension{token: r.Tokens[tok], from: c.Sent, to: received}
	if n.isCurrent() && n.scanned == n.epoch && c.Epoch == n.epoch {
		next.from = max(c.Sent, n.looked())
	}
	if was, ok := t.late[r]; ok && was.token == next.token {
		if was.to = received; t.leavesOutAll(r, &was) {
			next = was
		}
	}
	if next.before == 0 {
		for k := range r.Copies {
			if o := &r.Copies[k]; (o.Kind == packed.LockCopy || o.Lost()) && int8(o.Token) == tok {
				next.before = max(next.before, t.reliedOn(r, k))
			}
		}
	}
	t.late[r] = next
}

// leavesOutAll reports whether all nodes without a copy of the grant's token had no part in this extension.
func (t *Table) leavesOutAll(r *record, e *lateExtension) bool {
	for i := range r.Copies {
		if c := &r.Copies[i]; (c.Kind != packed.LockCopy || int8(c.Token) != r.grant.token) && !t.leftOut(r, i, e) {
			return false
		}
	}
	return true
}

// leftOut reports whether node i, which has no copy of the token, had no part in this extension: its last loss
// was known an attempt before, and it was read without a copy after it.
func (t *Table) leftOut(r *record, i int, e *lateExtension) bool {
	n, attempt := &t.nodes[i], packed.Moment(t.Attempt)
	if n.loss.known && n.loss.at+attempt > e.from || r.Copies[i].Lost() && r.Copies[i].Sent+attempt > e.from {
		return false
	}
	return n.reachable && n.scanned == n.epoch || n.looked() >= e.to+attempt
}

// outlasts reports whether the holder of r, whose majority is lost, may rely on it for longer than is known, also
// once the copies that are left are extended.
func (t *Table) outlasts(r *record, now packed.Moment) bool {
	unseen := t.unseen(r, &assessment{now: now}, r.grant.token, true)
	if unseen == nil {
		return false
	}
	if !t.leavesOutAll(r, &lateExtension{from: now, to: now}) {
		return true
	}
	end, never := t.majorityEnd(r, r.grant.token, 0, true, unseen)
	return never || time.Duration(end-r.grant.end) > extendedBy
}

// endBefore returns the end that a vote of token tok of r on node i, which has no copy of it, cannot outlast: the
// one before an extension in which the node had no part; far: none is known.
func (t *Table) endBefore(r *record, tok int8, i int) packed.Moment {
	if len(t.late) == 0 {
		return far
	}
	if e, ok := t.late[r]; ok && e.token == r.Tokens[tok] && t.leftOut(r, i, &e) {
		return e.before
	}
	return far
}
