package action

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"redlockctl/internal/operator"
	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/redlock"
	"redlockctl/server/safetext"
	"redlockctl/tui/page"
)

// target is a lock as it was when the dialog opened: the target of the action, wherever
// the cursor moves.
type target struct {
	keys   []string // all keys of the lock; the first names it
	token  string   // the holder's token
	tokens []string // tokens to remove, compared again on each node; nil: the holder's
}

func targetOf(l *monitor.Lock) target {
	t := target{keys: []string{l.Key.Raw()}, token: l.Holder.Raw()}
	if l.Keys() != nil {
		t.keys = t.keys[:0]
		for _, k := range l.Keys() {
			t.keys = append(t.keys, k.Raw())
		}
	}
	return t
}

// same reports whether l still has the token and the keys of the target.
func (t target) same(l *monitor.Lock) bool {
	now := targetOf(l)
	return now.token == t.token && slices.Equal(now.keys, t.keys)
}

// planOf returns the plan for removing one token of a lock, or all (""), by the latest
// snapshot.
func (m *Desk) planOf(way operator.RemovalKind, l *monitor.Lock, token string) (operator.Plan, error) {
	var tokens []string
	if token != "" {
		tokens = []string{token}
	}
	return operator.PlanOf(way, m.Latest, l, m.St.Escape(l.Key.Raw(), 40), m.Now(), tokens...)
}

// lockAct is an action that ends the grant of a lock.
type lockAct struct {
	verb, did string                       // "revoke", "revoked"
	way       *operator.RemovalKind        // force-release or revoke; nil: release
	effect    string                       // for each of several locks
	reasoned  bool                         // it needs a reason for the audit log
	why       func(l *monitor.Lock) string // why not; safe to show
	act       func(t target, reason string) func(context.Context) Outcome
}

var releaseWords = map[redlock.Status]string{
	redlock.StatusOK:     "copy deleted",
	redlock.StatusAbsent: "no copy is there",
	redlock.StatusHeld:   "another token's copy, left alone",
	// A release of a kept lock is done when its token has no quorum any more.
	redlock.StatusUnanswered: "it was sent the release, and had not answered yet when that was done",
}

var revokeWords = map[redlock.Status]string{
	redlock.StatusOK:     "replaced by a tombstone",
	redlock.StatusAbsent: "held no copy",
	redlock.StatusHeld:   "another token's copy, left alone",
}

// forceRelease deletes copies now.
func (m *Desk) forceRelease() lockAct {
	return m.taking(operator.ForceRelease, "force-released", releaseWords, deletedWords)
}

// revoke stops the holder's extensions; others wait until the TTL expires.
func (m *Desk) revoke() lockAct {
	return m.taking(operator.Revoke, "revoked", revokeWords, revokedWords)
}

func (m *Desk) taking(way operator.RemovalKind, did string, words map[redlock.Status]string, done func([]redlock.NodeResult) string) lockAct {
	return lockAct{
		verb: way.String(), did: did, way: &way, effect: way.Effect(), reasoned: true,
		why: func(l *monitor.Lock) string { return m.whyNotTaken(way, l) },
		act: func(t target, reason string) func(context.Context) Outcome {
			r := operator.Removal{Kind: way, Keys: t.keys, Tokens: t.whose(), Reason: reason}
			if l := m.LatestLock(t.keys[0]); l != nil {
				r.Standing = operator.StandingOf(m.Latest, l)
			}
			return m.remove(r, words, done)
		},
	}
}

// whose returns the tokens whose copies are removed.
func (t target) whose() []string {
	if t.tokens == nil {
		return []string{t.token}
	}
	return t.tokens
}

// remove force-releases or revokes a lock and reports the result for each of its keys.
func (m *Desk) remove(r operator.Removal, words map[redlock.Status]string, done func([]redlock.NodeResult) string) func(context.Context) Outcome {
	st, acts := m.St, m.Actions
	return func(ctx context.Context) Outcome {
		keys := acts.Remove(ctx, r)
		o := Outcome{what: r.Kind.String() + " " + st.Escape(r.Keys[0], 60), words: words, nodes: keys[0].Results, err: keys.Err()}
		for i, k := range keys {
			said := ""
			switch {
			case k.Err == nil:
				said = done(k.Results)
			case errors.Is(k.Err, redlock.ErrNotHeld):
				said = "nothing of this token was left"
			default:
				said = st.Whole(k.Err.Error())
			}
			if i == 0 {
				o.done = said
			} else {
				o.also = append(o.also, st.Escape(k.Key, 60)+": "+said)
			}
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
		return fmt.Sprintf(some, view.Count(n)+" copies")
	}
}

// whyNotTaken says why a lock cannot be force-released or revoked.
func (m *Desk) whyNotTaken(way operator.RemovalKind, l *monitor.Lock) string {
	token := ""
	if l.Tokens <= 1 {
		token = l.Holder.Raw()
	}
	_, err := m.planOf(way, l, token)
	if err == nil {
		return ""
	}
	return m.St.Whole(strings.TrimPrefix(err.Error(), operator.ErrRefused.Error()+": "))
}

// whyNotAct says why an action is not possible on the lock under the cursor, or on the
// marked ones.
func (m *Desk) whyNotAct(a lockAct) string {
	if why := m.WhyNoAction(); why != "" {
		return why
	}
	keys := m.Marked()
	if keys == nil || m.On().Mode&page.ModeOnLock == 0 {
		if why := m.whyNoLock(); why != "" {
			return why
		}
		l := m.one(nil)
		if l == nil {
			return "the lock is gone"
		}
		return a.why(l)
	}
	first := ""
	for _, key := range keys {
		if l := m.LatestLock(key); l != nil {
			why := a.why(l)
			if why == "" {
				return ""
			}
			first = cmp.Or(first, why)
		}
	}
	return "none of the " + view.Plural(len(keys), "lock") + " marked: " + cmp.Or(first, "gone")
}

// one returns the present state of the only marked lock, or of the one under the cursor;
// nil if it is gone.
func (m *Desk) one(marked []string) *monitor.Lock {
	if len(marked) > 0 {
		return m.LatestLock(marked[0])
	}
	return m.LatestLock(m.On().Lock.Key.Raw())
}

func (m *Desk) WhyNoForce() string  { return m.whyNotAct(m.forceRelease()) }
func (m *Desk) WhyNoRevoke() string { return m.whyNotAct(m.revoke()) }
func (m *Desk) AskForce() tea.Cmd   { return m.askTake(m.forceRelease()) }
func (m *Desk) AskRevoke() tea.Cmd  { return m.askTake(m.revoke()) }

// askTake opens the dialog to force-release or revoke a lock. If several tokens have
// copies, it asks which of them to remove.
func (m *Desk) askTake(a lockAct) tea.Cmd {
	keys := m.Marked()
	if len(keys) > 1 {
		return m.askSeveral(a, keys)
	}
	l := m.one(keys)
	t := m.targetOf(*a.way, l)
	key := t.keys[0]
	c := m.Confirm(key)
	fields := c.fields()
	opened, _ := m.planOf(*a.way, l, "")
	several := len(opened.Tokens) > 1
	// The first choice is none, so that a token must be chosen explicitly.
	which := &field{label: "Copies of", Choices: []string{"?", "all"}}
	which.check = func() string {
		if which.chosen == 0 {
			return "whose copies? space chooses: all, or those of one token"
		}
		return ""
	}
	if several {
		for i := range opened.Tokens {
			which.Choices = append(which.Choices, strconv.Itoa(i+1))
		}
		fields = append([]*field{which}, fields...)
	}
	chosen := func() []string {
		switch {
		case !several:
			return []string{t.token}
		case which.chosen == 0:
			return nil
		case which.chosen == 1:
			all := make([]string, len(opened.Tokens))
			for i, c := range opened.Tokens {
				all[i] = c.Token
			}
			return all
		}
		return []string{opened.Tokens[which.chosen-2].Token}
	}
	return m.openOnLock(&Dialog{
		title: capital(a.verb) + " " + m.St.Escape(key, 60) + m.hiddenMark(key, keys) + "?",
		Verb:  a.verb, Lock: key, danger: *a.way == operator.ForceRelease,
		facts: func() []string {
			u := t
			u.tokens = chosen()
			return m.takeFacts(*a.way, u, opened)
		},
		Fields: fields,
		check: func() string {
			now := m.LatestLock(key)
			switch {
			case now == nil:
				return "the lock is gone: there is nothing to remove"
			case !several && m.targetOf(*a.way, now).token != t.token:
				if plan, _ := m.planOf(*a.way, now, t.token); plan.Unheard(m.Latest.Cluster.Quorum) != "" {
					return plan.Unheard(m.Latest.Cluster.Quorum)
				}
				return "the holder changed since this was opened: esc, and look again"
			case !slices.Equal(targetOf(now).keys, t.keys):
				return "its keys changed since this was opened: esc, and look again"
			}
			if why := a.why(now); why != "" {
				return why
			}
			if several {
				plan, _ := m.planOf(*a.way, now, "")
				if !sameTokens(plan.Tokens, opened.Tokens) {
					return "its tokens changed since this was opened: esc, and look again"
				}
			}
			return ""
		},
		start: func() []step {
			u := t
			u.tokens = chosen()
			return oneStep(a.act(u, c.why()))
		},
	})
}

// targetOf is [targetOf] with the token whose copies a revoke replaces, where tombstones are on most
// nodes already.
func (m *Desk) targetOf(way operator.RemovalKind, l *monitor.Lock) target {
	t := targetOf(l)
	if way == operator.Revoke && redlock.IsTombstone(t.token) {
		if plan, err := m.planOf(way, l, ""); err == nil && len(plan.Tokens) == 1 {
			t.token = plan.Tokens[0].Token
		}
	}
	return t
}

// sameTokens reports whether both are copies of the same tokens.
func sameTokens(a, b []operator.TokenCopies) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(x operator.TokenCopies) bool {
		return !slices.ContainsFunc(b, func(y operator.TokenCopies) bool { return x.Token == y.Token })
	})
}

// heldBy says who holds the lock of a target; l is nil if the lock is gone.
func (m *Desk) heldBy(t target, l *monitor.Lock) string {
	held := m.St.Token(safetext.New(t.token), 40)
	switch still := l != nil && monitor.IsToken(l.Holder, t.token); {
	case l == nil:
	case l.Nobody, l.Contested:
		held = l.NobodyText()
	case !still && redlock.IsTombstone(l.Holder.Raw()):
		held += ", revoked meanwhile"
	case !still:
		held += ", no longer the holder"
	case !l.Since().IsZero():
		held += ", first seen " + view.Clock(l.Since()) + " (" + view.Age(m.Now().Sub(l.Since())) + " ago)"
	}
	if g, ok := m.Mine[t.keys[0]]; ok && g.Token == t.token {
		held += ", acquired here: r releases it"
	}
	if redlock.IsTombstone(t.token) {
		held += ", revoked already"
	}
	return held
}

// takeFacts says who holds the lock, what the removal does, and where the copies are: the
// most important facts first, because the rest may have to be scrolled.
// opened returns the plan for all tokens when the dialog opened.
func (m *Desk) takeFacts(way operator.RemovalKind, t target, opened operator.Plan) []string {
	st := m.St
	several := len(opened.Tokens) > 1
	l := m.LatestLock(t.keys[0])
	has, lacks := "gone", ""
	effect, risk := "", ""
	if l != nil {
		one := t
		if len(t.tokens) == 1 {
			one.token = t.tokens[0]
		}
		has, lacks = m.copyFacts(l, one)
		token := one.token
		if len(t.tokens) != 1 {
			token = ""
		}
		if several && t.tokens == nil {
			effect = "choose below whose copies go: those of one token, or all"
		} else if plan, err := m.planOf(way, l, token); err == nil {
			effect, risk = plan.Effect, plan.Risk
		}
	}
	label := "Held by"
	if l != nil && !l.ReliedOn() && !l.Nobody && !l.Contested && l.Held >= 0 && l.Held < m.Latest.Cluster.Quorum {
		label = "Copies of"
	}
	held := l // nil: its holder is another client, of which nothing belongs here
	if l != nil && !several && !monitor.IsToken(l.Holder, t.token) {
		held = nil
	}
	out := append([]string{st.Fact(label, m.heldBy(t, l))}, m.ownerFacts(t, held, several)...)
	if several {
		for i, c := range opened.Tokens {
			label := ""
			if i == 0 {
				label = "Tokens"
			}
			out = append(out, st.Fact(label, strconv.Itoa(i+1)+": "+st.Token(safetext.New(c.Token), 24)+" on "+st.Whole(strings.Join(c.Nodes, " "))))
		}
	} else {
		out = append(out, st.Fact("Copies", has))
	}
	if l == nil || l.Holder.Raw() != t.token {
		for _, f := range m.Lock.Removal.Facts(&st.Glyphs, t.keys[0]) {
			out = append(out, st.Fact(f.Label, f.Text))
		}
	}
	if effect != "" {
		out = append(out, st.Fact("Effect", st.Our(effect)))
	}
	if risk != "" {
		out = append(out, st.Fact("Risk", st.Warn.Of(st.Our(risk))))
	}
	if held != nil {
		for _, f := range view.MarginFacts(m.latest(), held) {
			if f.Label == "Margin" {
				f.Label = "Now" // without this action
			}
			out = append(out, st.Fact(f.Label, st.Paint(f.Tone).Of(f.Text)))
		}
	}
	if lacks != "" && !several {
		out = append(out, st.Fact("Else", lacks))
	}
	if n := len(t.keys); n > 1 {
		names := make([]string, n)
		for i, k := range t.keys {
			names[i] = st.Escape(k, 40)
		}
		out = append(out, st.Fact("Keys", view.Plural(n, "key")+" with this token are one lock and go together: "+someOf(names, bounded)))
	}
	if l != nil && m.Answers[t.token] == nil && way == operator.ForceRelease && !several {
		life := m.whoText(t.keys[0])
		if l.Holder.Raw() == t.token {
			life = strings.TrimPrefix(view.WhoLivenessNow(m.latest(), l, nil)+"; "+life, "; ")
		}
		out = append(out, st.Fact("Liveness", life))
	}
	if held != nil && held.Form != nil {
		out = append(out, st.Fact("Made by", m.madeBy(held, t.token)))
	}
	return out
}

// latest returns the context for facts of the latest snapshot.
func (m *Desk) latest() *view.Context {
	return &view.Context{Glyphs: &m.St.Glyphs, Snap: m.Latest, Now: m.Now(), Guard: m.Guards}
}

// ownerFacts says who holds the lock of a target, or left it orphaned, by earlier answers
// and the record; several: more than one token has copies.
func (m *Desk) ownerFacts(t target, l *monitor.Lock, several bool) (out []string) {
	ctx := m.latest()
	if w := m.Answers[t.token]; w != nil && !several {
		later := max(0, m.Now().Sub(w.At))
		out = append(out, m.St.Fact("Owner", view.WhoHeadline(w)+", asked "+view.Age(later)+" ago"))
		if life := view.WhoLivenessNow(ctx, l, w); life != "" {
			out = append(out, m.St.Fact("Liveness", life))
		}
		for _, f := range view.WhoFind(ctx, w) {
			out = append(out, m.St.Fact(f.Label, f.Text))
		}
	}
	if l != nil && view.LeftBehind(ctx, l) {
		m.Lock.Watch(t.keys[0]) // reads the record
		for _, f := range m.Lock.Holders.Maker(ctx, l) {
			out = append(out, m.St.Fact(f.Label, f.Text))
		}
	}
	return out
}

// madeBy says which library made a lock, and what a removal means for it.
func (m *Desk) madeBy(l *monitor.Lock, token string) string {
	f := l.Form
	made := m.St.Whole(f.Guess())
	if !f.Owner.Empty() && f.Owner.Raw() != token {
		made += ", " + view.ToldBy(m.latest(), f.Owner)
	}
	if f.TakingAway != "" {
		made += ": " + m.St.Whole(f.TakingAway)
	}
	return made
}

// copyFacts says which nodes have copies of the lock and for how long, and what is known
// about the other nodes.
func (m *Desk) copyFacts(l *monitor.Lock, t target) (has, lacks string) {
	st, now := m.St, m.Now()
	var there, others []string
	last := ""
	other := func(node, says string) {
		if says == last { // several nodes with the same text
			one := &others[len(others)-1]
			*one = strings.TrimSuffix(*one, says) + " " + node + says
			return
		}
		last = says
		others = append(others, node+says)
	}
	for i, c := range l.Copies.All() {
		if i >= len(m.Latest.Nodes) {
			break
		}
		n := &m.Latest.Nodes[i]
		node := st.Escape(n.Name, 12)
		state := ""
		if n.State != monitor.NodeServing {
			state = " " + n.State.String()
		}
		switch c.State {
		case monitor.CopyPresent:
			left := "no TTL"
			if !c.Expires.IsZero() {
				left = view.Remaining(c.Expires.Sub(now))
			}
			if c.Token.Raw() != t.token {
				other(node, state+": a copy of "+st.Token(c.Token, 16)+", "+left+", stays")
				continue
			}
			there = append(there, node+state+" "+left)
		case monitor.CopyAbsent:
			other(node, state+": no copy")
		case monitor.CopyLost:
			why := c.Cause.String()
			if why != "" {
				why = " (" + why + ")"
			}
			other(node, state+": lost its copy"+why)
		default:
			other(node, state+": "+view.UnknownCopy(m.latest(), n, l, i))
		}
	}
	has = st.None
	if len(there) > 0 {
		has = strings.Join(there, " "+st.Sep+" ")
	}
	return has, strings.Join(others, ";  ")
}
