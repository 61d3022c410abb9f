package tui

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"redlockctl/internal/lockform"
	"redlockctl/internal/safetext"
	"redlockctl/monitor"
	"redlockctl/redlock"
)

// target is a lock as it was shown when a dialog opened: what its act is about,
// whatever the cursor does.
type target struct {
	keys  []string // all keys of the lock; the first names it
	token string   // of the holder, which each node compares again
	hash  bool     // a lock of Redisson: the token is its field
}

func targetOf(l *monitor.Lock) target {
	t := target{keys: []string{l.Key.Raw()}, token: l.Holder.Raw()}
	if l.Keys != nil {
		t.keys = t.keys[:0]
		for _, k := range l.Keys {
			t.keys = append(t.keys, k.Raw())
		}
	}
	t.hash = l.Form != nil && !l.Form.Companion && t.token != "" && isHash(l)
	return t
}

// isHash tells if every copy that is known is a hash.
func isHash(l *monitor.Lock) bool {
	found := false
	for i := range l.Copies {
		switch c := &l.Copies[i]; {
		case c.State == monitor.CopyAbsent || c.Type == "":
		case c.Type != "hash":
			return false
		default:
			found = true
		}
	}
	return found
}

// same tells if l is still what the target was.
func (t target) same(l *monitor.Lock) bool {
	now := targetOf(l)
	return now.token == t.token && slices.Equal(now.keys, t.keys)
}

// lockAct is an act that ends the grant of a lock.
type lockAct struct {
	verb, did string // "revoke", "revoked"
	effect    string // of one lock or each of several
	// risk is to whoever works on a lock that may be revoked already; nil: none.
	risk     func(name string, revoked bool) string
	reasoned bool                         // it needs a reason, which the log keeps
	why      func(l *monitor.Lock) string // why not; safe to show
	act      func(t target, reason string) func(context.Context) outcome
}

var releaseWords = map[redlock.Status]string{
	redlock.StatusOK:     "copy deleted",
	redlock.StatusAbsent: "held no copy",
	redlock.StatusHeld:   "another token's copy, left alone",
}

var revokeWords = map[redlock.Status]string{
	redlock.StatusOK:     "a tombstone in its place",
	redlock.StatusAbsent: "held no copy",
	redlock.StatusHeld:   "another token's copy, left alone",
}

// forceRelease deletes the copies of the holder now.
func (m *model) forceRelease() lockAct {
	return lockAct{
		verb: "force-release", did: "force-released",
		effect: "all copies deleted now: the name is free at once",
		risk: func(name string, revoked bool) string {
			if revoked {
				return "it is revoked already and ends by itself; a holder that still works is not told: two clients will work on " + name
			}
			return "a holder that still works is not told: two clients will work on " + name + ". Safer: revoke (R)"
		},
		reasoned: true,
		why:      func(l *monitor.Lock) string { return m.whyNotTaken(l, true) },
		act: func(t target, reason string) func(context.Context) outcome {
			do := m.opt.Actions.ForceReleaseKey
			return m.take("force-release", t, releaseWords, deletedWords, func(ctx context.Context, key string) ([]redlock.NodeResult, error) {
				return do(ctx, key, t.token, reason)
			})
		},
	}
}

// revoke ends the holder's extensions, and lets nobody else in before its time.
func (m *model) revoke() lockAct {
	return lockAct{
		verb: "revoke", did: "revoked",
		effect: "no extension any more, and nobody else gets in before the time that is left is over",
		risk: func(string, bool) string {
			risk := "a holder that works on after that shares it with the next one"
			if most := m.snap.Cluster.MaxTTL; most > 0 {
				risk += "; a copy without an end is given " + span(most)
			}
			return risk
		},
		reasoned: true,
		why: func(l *monitor.Lock) string {
			if redlock.IsTombstone(l.Holder.Raw()) {
				return "it is revoked already: nobody gets in before its time is over"
			}
			return m.whyNotTaken(l, false)
		},
		act: func(t target, reason string) func(context.Context) outcome {
			do := m.opt.Actions.RevokeKey
			return m.take("revoke", t, revokeWords, revokedWords, func(ctx context.Context, key string) ([]redlock.NodeResult, error) {
				return do(ctx, key, t.token, reason)
			})
		},
	}
}

// take does an act to all keys of a lock, with the token that was shown. Those
// that follow from the name of the first go with it. One key that has nothing of
// the token any more is no failure while another one had.
func (m *model) take(verb string, t target, words map[redlock.Status]string, done func([]redlock.NodeResult) string, do func(ctx context.Context, key string) ([]redlock.NodeResult, error)) func(context.Context) outcome {
	names := make([]string, len(t.keys))
	for i, key := range t.keys {
		names[i] = m.st.escape(key, 60)
	}
	whole := m.st.whole
	along := lockform.Siblings(t.keys[0], t.token)
	return func(ctx context.Context) outcome {
		o := outcome{what: verb + " " + names[0], words: words}
		took := false
		var gone error
		for i, key := range t.keys {
			if i > 0 && took && o.err == nil && slices.Contains(along, key) {
				o.also = append(o.also, names[i]+": went with the first")
				continue
			}
			if ctx.Err() != nil {
				o.err = errors.Join(o.err, context.Cause(ctx))
				break
			}
			nodes, err := do(ctx, key)
			if i == 0 {
				o.nodes = nodes
			}
			said := ""
			switch {
			case err == nil:
				took = true
				said = done(nodes)
			case errors.Is(err, redlock.ErrNotHeld):
				gone = err
				said = "nothing of this token was left"
			default:
				if o.err == nil {
					o.err = err
				}
				said = whole(err.Error())
			}
			if i == 0 {
				o.done = said
			} else {
				o.also = append(o.also, names[i]+": "+said)
			}
		}
		if o.err == nil && !took {
			o.err = gone
		}
		return o
	}
}

func deletedWords(nodes []redlock.NodeResult) string {
	return doneWords(nodes, "no copy of this token was there to delete", "%s deleted")
}

func revokedWords(nodes []redlock.NodeResult) string {
	return doneWords(nodes, "no copy of this token was there to revoke", "%s revoked: it ends by itself")
}

func doneWords(nodes []redlock.NodeResult, none, some string) string {
	n := 0
	for _, r := range nodes {
		if r.Status == redlock.StatusOK {
			n++
		}
	}
	switch n {
	case 0:
		return none
	case 1:
		return fmt.Sprintf(some, "1 copy")
	default:
		return fmt.Sprintf(some, count(n)+" copies")
	}
}

// whyNotTaken is why a lock is not taken from its holder: what cannot be
// compared is not touched, and some forms are not to be.
func (m *model) whyNotTaken(l *monitor.Lock, hashes bool) string {
	if f := l.Form; f != nil && f.Refused != "" {
		return m.st.whole(f.Refused)
	}
	t := targetOf(l)
	if slices.Contains(t.keys, "") {
		return "its name is empty, and a lock needs a name to be acted on: no act can be recorded of it"
	}
	if t.hash && !hashes {
		return "it is a hash, in whose place no tombstone can be put: X takes it away"
	}
	for i := range l.Copies {
		c := &l.Copies[i]
		if c.State == monitor.CopyAbsent || t.hash {
			continue
		}
		switch {
		case c.Type != "" && c.Type != "string":
			return "a " + safetext.Escape(c.Type) + ", not a string: it cannot be compared, so it is not taken away"
		case c.Token == l.Holder && c.Len > int64(len(c.Token.Raw())):
			return fmt.Sprintf("its value has %d bytes, of which only the first are known: it is not taken away", c.Len)
		}
	}
	if t.token == "" {
		return "its value is empty: there is no token to compare"
	}
	return ""
}

// whyNotAct is why an act cannot be done to the lock under the cursor, or to
// those that are marked.
func (m *model) whyNotAct(a lockAct) string {
	if why := m.whyNoAct(); why != "" {
		return why
	}
	if m.mode()&modeOnLock == 0 {
		return "go to the locks first: tab, or 2"
	}
	if keys := m.several(); keys != nil {
		first := ""
		for _, key := range keys {
			l := m.latestLock(key)
			if l == nil {
				continue
			}
			why := a.why(l)
			if why == "" {
				return ""
			}
			if first == "" {
				first = why
			}
		}
		if first == "" {
			first = "gone"
		}
		return "none of the " + plural(len(keys), "lock") + " marked: " + first
	}
	if m.picked() == nil {
		return "no lock under the cursor"
	}
	l := m.one(nil)
	if l == nil {
		return "the lock is gone"
	}
	return a.why(l)
}

// one is the only lock that is marked, or the one under the cursor, as it is
// now; nil: it is gone.
func (m *model) one(marked []string) *monitor.Lock {
	if len(marked) > 0 {
		return m.latestLock(marked[0])
	}
	return m.latestLock(m.picked().Key.Raw())
}

func (m *model) whyNoForce() string  { return m.whyNotAct(m.forceRelease()) }
func (m *model) whyNoRevoke() string { return m.whyNotAct(m.revoke()) }
func (m *model) askForce() tea.Cmd   { return m.askTake(m.forceRelease()) }
func (m *model) askRevoke() tea.Cmd  { return m.askTake(m.revoke()) }

// askTake asks before a lock is taken from its holder.
func (m *model) askTake(a lockAct) tea.Cmd {
	keys := m.several()
	if len(keys) > 1 {
		return m.askSeveral(a, keys)
	}
	t := targetOf(m.one(keys))
	key := t.keys[0]
	want, label := m.confirmation(key)
	reason, typed := &field{label: "Reason"}, &field{label: label}
	hidden := ""
	if keys != nil {
		hidden = m.hiddenMark(key)
	}
	return m.openDialog(&dialog{
		title:  capital(a.verb) + " " + m.st.escape(key, 60) + hidden + " ?",
		verb:   a.verb,
		danger: true,
		facts:  func(int) []string { return m.takeFacts(a, t) },
		fields: []*field{reason, typed},
		check: func() string {
			now := m.latestLock(key)
			switch {
			case now == nil:
				return "the lock is gone: there is nothing to take away"
			case targetOf(now).token != t.token:
				return "the holder changed since this was opened: esc, and look again"
			case !t.same(now):
				return "its keys changed since this was opened: esc, and look again"
			}
			if why := a.why(now); why != "" {
				return why
			}
			if why := missingReason(reason.String()); why != "" {
				return why
			}
			return missingName(typed.String(), want)
		},
		start: func() func(context.Context) outcome { return a.act(t, strings.TrimSpace(reason.String())) },
	})
}

// takeFacts says who holds the lock, what taking it away does, and where its
// copies are: what matters most first, since the rest may have to be scrolled.
func (m *model) takeFacts(a lockAct, t target) []string {
	st, now := m.st, m.now()
	key := t.keys[0]
	held := st.token(safetext.New(t.token), 40)
	l := m.latestLock(key)
	if l != nil && !l.Since.IsZero() {
		held += ", first seen " + clock(l.Since) + " (" + age(now.Sub(l.Since)) + " ago)"
	}
	if g, ok := m.mine[key]; ok && g.token == t.token {
		held += ", acquired here: r releases it"
	}
	if redlock.IsTombstone(t.token) {
		held += ", revoked already"
	}
	has, lacks := "gone", ""
	if l != nil {
		has, lacks = m.copyFacts(l, t)
	}
	out := []string{
		fact(st, "Held by", held),
		fact(st, "Copies", has),
		fact(st, "Effect", a.effect),
		fact(st, "Risk", st.warn.of(a.risk(st.escape(key, 40), redlock.IsTombstone(t.token)))),
	}
	if lacks != "" {
		out = append(out, fact(st, "Else", lacks))
	}
	if n := len(t.keys); n > 1 {
		names := make([]string, n)
		for i, k := range t.keys {
			names[i] = st.escape(k, 40)
		}
		out = append(out, fact(st, "Keys", plural(n, "key")+" with this token are one lock and go together: "+m.someOf(names, bounded)))
	}
	if l == nil {
		return out
	}
	if f := l.Form; f != nil {
		made := st.whole(f.Library)
		if !f.Owner.Empty() && f.Owner.Raw() != t.token {
			made += ", " + st.text(f.Owner, 40)
		}
		if f.TakingAway != "" {
			made += ": " + st.whole(f.TakingAway)
		}
		out = append(out, fact(st, "Made by", made))
	}
	return out
}

// copyFacts says which nodes have copies of the lock and for how long, and what
// is known of the others.
func (m *model) copyFacts(l *monitor.Lock, t target) (has, lacks string) {
	st, now := m.st, m.now()
	var there, others []string
	for i := range l.Copies {
		if i >= len(m.snap.Nodes) {
			break
		}
		n, c := &m.snap.Nodes[i], &l.Copies[i]
		node := st.escape(n.Name, 12)
		state := ""
		if n.State != monitor.NodeServing {
			state = " " + n.State.String()
		}
		switch c.State {
		case monitor.CopyPresent:
			left := "no end"
			if !c.Expires.IsZero() {
				left = remaining(c.Expires.Sub(now))
			}
			if c.Token.Raw() != t.token {
				others = append(others, node+state+": a copy of "+st.token(c.Token, 16)+", "+left+", stays")
				continue
			}
			there = append(there, node+state+" "+left)
		case monitor.CopyAbsent:
			others = append(others, node+state+": holds none")
		default:
			others = append(others, node+state+": "+m.unknownCopy(n, c))
		}
	}
	has = st.none
	if len(there) > 0 {
		has = strings.Join(there, " "+st.sep+" ")
	}
	if l.Held >= m.snap.Cluster.Quorum {
		has += "; margin " + count(l.Margin)
	}
	return has, strings.Join(others, ";  ")
}

// unknownCopy says what may be on a node that does not answer.
func (m *model) unknownCopy(n *monitor.Node, c *monitor.Copy) string {
	end := c.Expires
	if end.IsZero() {
		if !c.Token.Empty() {
			return "the copy that was seen there has no end"
		}
		most := m.snap.Cluster.MaxTTL
		if most <= 0 || n.Since.IsZero() {
			return "a copy may be there"
		}
		end = n.Since.Add(most) // of a copy set just before we lost sight of the node
	}
	if end.Before(m.now()) {
		return "a copy there, if any, ended by " + clock(end) + ", unless it was extended"
	}
	return "a copy there, if any, ends by " + clock(end) + ", unless it is extended"
}
