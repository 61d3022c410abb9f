package table

import "time"

// Sample returns the keys of some locks seen on node i; most is the limit. from is a
// position among all locks, next is where to continue.
func (t *Table) Sample(i, from, most int) (keys []string, next int) {
	for range min(len(t.all), 8*most) {
		if from >= len(t.all) {
			from = 0
		}
		r := t.all[from]
		if from++; t.seen(r, i) {
			if keys = append(keys, r.key()); len(keys) == most {
				break
			}
		}
	}
	return keys, from
}

// Unseen returns the keys that are not known to be on node i.
func (t *Table) Unseen(i int, keys []string) (unseen []string) {
	for _, key := range keys {
		if r := t.records[key]; r == nil || !t.seen(r, i) {
			unseen = append(unseen, key)
		}
	}
	return unseen
}

// endSlack is how far the expiry of a copy may differ between two reads, because of round
// trips and clocks that run at different rates.
const endSlack = time.Second

// Differs returns the keys for which a new read of node i differs from an earlier one.
// With ends, it compares the expiry of copies too. It changes nothing.
func (t *Table) Differs(i int, sentAt, receivedAt time.Time, rows []Row, ends bool) (keys []string) {
	if n := &t.nodes[i]; !n.reachable || n.scanned != n.epoch || !n.isCurrent() {
		return nil
	}
	for k := range rows {
		if t.differs(i, sentAt, receivedAt, &rows[k], ends) {
			keys = append(keys, rows[k].Key)
		}
	}
	return keys
}

func (t *Table) differs(i int, sentAt, receivedAt time.Time, w *Row, ends bool) bool {
	sent, soon := t.Moment(sentAt), t.Moment(receivedAt.Add(endSlack))
	ending := w.TTL >= 0 && t.Moment(sentAt.Add(w.TTL)) <= soon
	r := t.records[w.Key]
	if r == nil || !r.Copies[i].Have() {
		// If the budget is used up, some keys are unknown only for that reason.
		return w.Type != "none" && !ending && !t.room.full() && t.nodes[i].unkept().keys == 0
	}
	c := &r.Copies[i]
	if c.Sent > sent || c.Epoch != t.nodes[i].epoch {
		return false
	}
	if w.Type == "none" || ending {
		return c.Expires == 0 || c.Expires > soon
	}
	tok, isLock := tokenOf(w, receivedAt)
	switch {
	case c.Type != t.TypeNumber(w.Type), isLock && r.Tokens[c.Token] != tok:
		return true
	case (c.Expires == 0) != (w.TTL < 0):
		return true
	}
	end := t.Moment(sentAt.Add(w.TTL))
	return ends && c.Expires != 0 && time.Duration(c.Expires-end).Abs() > endSlack
}
