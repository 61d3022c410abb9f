package action

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"redlockctl/internal/operator"
	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/redlock"
	"redlockctl/server/safetext"
)

// StopKeeping stops all extensions when the program has ended. It reports the locks that were
// released at quitting and those that are still held.
func (m *Desk) StopKeeping() (p Parting) {
	kept, released := m.Running.stop()
	slices.Sort(released)
	for _, key := range released {
		p.Released = append(p.Released, safetext.New(key))
	}
	for _, k := range kept {
		p.Left = append(p.Left, Left{safetext.New(k.Resource()), k.Until()})
	}
	for _, g := range m.Mine {
		if g.Kept == nil && m.Now().Before(g.Until) {
			p.Left = append(p.Left, Left{safetext.New(g.Key), g.Until})
		}
	}
	slices.SortFunc(p.Left, func(a, b Left) int { return cmp.Compare(a.Key.Raw(), b.Key.Raw()) })
	return p
}

// KeptText says who keeps a lock here and until when; "" if nobody does.
func (m *Desk) KeptText(key, token string) string {
	g, ok := m.Mine[key]
	if !ok || g.Kept == nil || g.Token != token {
		return ""
	}
	is := g.Kept.Terms()
	return view.KeptText("this screen, "+m.St.Whole(is.By)+",", is.Since, is.End, m.St.Whole(is.Reason), m.Now())
}

func (m *Desk) IsMine(key, token string) bool {
	g, ok := m.Mine[key]
	return ok && g.Token == token
}

// ForgetEnded drops grants that have expired and whose token has no copies: there is
// nothing left to release.
func (m *Desk) ForgetEnded() {
	for k, g := range m.Mine {
		if g.Kept != nil || m.Now().Before(g.Until) {
			continue
		}
		if l := m.LatestLock(k); l == nil || l.Holder.Raw() != g.Token {
			delete(m.Mine, k)
		}
	}
}

// keptGrants returns the kept grants, the most endangered first.
func (m *Desk) keptGrants() (all []Grant) {
	for _, g := range m.Mine {
		if g.Kept != nil {
			all = append(all, g)
		}
	}
	slices.SortFunc(all, func(a, b Grant) int {
		return cmp.Or(cmp.Compare(b.state, a.state), cmp.Compare(a.Key, b.Key)) // endangered ones first
	})
	return all
}

// CheckKept checks the state of the kept locks, and reports those that got worse.
func (m *Desk) CheckKept() {
	for key, g := range m.Mine {
		if g.Kept == nil {
			continue
		}
		before := g.state
		g.state, g.Until = g.Kept.State(), g.Kept.Until()
		name := m.St.Escape(key, 40)
		switch {
		case g.state == redlock.Lost:
			why := "its validity has ended"
			if err := g.Kept.Err(); err != nil {
				why = err.Error()
			}
			m.Losses = append(m.Losses, loss{key, why, operator.LossOf(g.Until, m.Now())})
			g.Kept = nil
		case g.state == redlock.Released:
			if end := g.Kept.Terms().End; !end.IsZero() && !m.Now().Before(end) {
				m.Say(m.St.Info, name+", kept here, was released: its time has ended")
			}
			g.Kept = nil
		case g.state != before && g.state == redlock.Uncertain:
			m.Say(m.St.Warn, name+", kept here, is uncertain: an extension failed, and it is tried again until "+view.Clock(g.Until))
		case g.state != before:
			m.Say(m.St.Good, name+", kept here, is held again")
		}
		m.Mine[key] = g
	}
}

// mostLosses bounds the list of lost locks.
const mostLosses = 20

// KeptLines returns a line about the kept locks, and one about lost ones, which stays
// until the user has seen it.
func (m *Desk) KeptLines(w int) (lines []string) {
	st := m.St
	if m.Losses = m.Losses[max(0, len(m.Losses)-mostLosses):]; len(m.Losses) > 0 {
		l := m.Losses[len(m.Losses)-1]
		text := " " + st.Off + " LOST at " + view.Clock(l.At) + l.Noticed() + ": " + st.Escape(l.key, 40)
		if more := len(m.Losses) - 1; more > 0 {
			text += " and " + view.Count(more) + " before"
		}
		text += ", kept here: whatever was done under it must stop " + st.Sep + " esc: close " + st.Sep + " " + st.Whole(l.why)
		lines = append(lines, st.Bad.Of(st.Pad(text, w)))
	}
	kept := m.keptGrants()
	if len(kept) == 0 {
		return lines
	}
	text := " KEPT HERE"
	if n := len(kept); n > 1 {
		text += " (" + view.Count(n) + ")"
	}
	for _, g := range kept {
		glyph, p, more := st.On, st.Good, ""
		if g.state == redlock.Uncertain {
			glyph, p = st.Half, st.Warn
			if err := g.Kept.Err(); err != nil {
				more = ": " + st.Whole(err.Error())
			}
		}
		is := g.Kept.Terms()
		one := "  " + p.Of(glyph+" "+st.Escape(g.Key, 30)) + " " + g.state.String() + " since " + view.Clock(is.Since)
		if !is.End.IsZero() {
			one += ", " + view.Remaining(is.End.Sub(m.Now())) + " more"
		}
		if g.state == redlock.Uncertain {
			one += ", valid " + view.Remaining(g.Until.Sub(m.Now()))
		}
		one += p.Of(more)
		if text += one; view.Width(text) > w {
			break
		}
	}
	return append(lines, st.Cut(text, w))
}

// ttlField returns a field for a TTL within max_ttl.
func (m *Desk) ttlField(ttl time.Duration) (f *field, parse func() (time.Duration, string)) {
	f = newField("TTL", ttl.String())
	parse = func() (time.Duration, string) {
		d, err := time.ParseDuration(f.text())
		switch most := m.Latest.Cluster.TTLBound; {
		case err != nil:
			return 0, "the TTL is a number with a unit: 30s, 1m30s"
		case d < time.Millisecond:
			return 0, "the TTL must be a millisecond or more"
		case most > 0 && d > most:
			return 0, fmt.Sprintf("%s is above %s, the limit by max TTL and guards", d, most)
		}
		return d, ""
	}
	f.check = wrong(parse)
	return f, parse
}

// wrong returns what parse says of a field.
func wrong(parse func() (time.Duration, string)) func() string {
	return func() string { _, why := parse(); return why }
}

var acquireWords = map[redlock.Status]string{redlock.StatusOK: "copy written", redlock.StatusHeld: "held by another"}

func (m *Desk) AskAcquire() tea.Cmd {
	name := newField("Name", "")
	name.check = func() string {
		if name.String() == "" {
			return "the name of the lock is missing"
		}
		return ""
	}
	span, parse := m.ttlField(operator.HandTTL(0, m.Latest.Cluster.TTLBound))
	keep := &field{label: "Keep", Choices: []string{"no", "yes"}}
	long, parseLong := keepField()
	kept := func() bool {
		if long.text() != "" {
			keep.chosen = 1 // a duration implies keep
		}
		return keep.chosen == 1
	}
	reason := newField("Reason (audit log)", "")
	return m.open(&Dialog{
		title: "Acquire a lock by hand",
		Verb:  "acquire",
		facts: func() []string {
			c := &m.Latest.Cluster
			effect := "for the TTL; only e extends it"
			if kept() {
				effect = "and extended until r releases it; when the console ends, it ends with its TTL"
				if d, why := parseLong(); d > 0 && why == "" {
					effect = "extended for " + d.String() + " and released then, or by r; when the console ends, it ends with its TTL"
				}
			}
			out := []string{m.St.Fact("Effect", fmt.Sprintf("the name is held on a quorum of %d of %d nodes, %s", c.Quorum, c.N, effect))}
			if c.Serving < c.Quorum && c.Verdict != monitor.VerdictUnknown {
				out = append(out, m.St.Fact("", m.St.Bad.Of(fmt.Sprintf("only %d of %d nodes accept writes: this will fail", c.Serving, c.N))))
			}
			if l := m.LatestLock(name.String()); l != nil && name.String() != "" {
				out = append(out, m.St.Fact("Now", m.St.Warn.Of("held by "+m.St.Token(l.Holder, 24)+", "+view.Copies(l))))
			}
			return out
		},
		Fields: []*field{name, span, keep, long, reason},
		start: func() []step {
			ttl, _ := parse()
			d, _ := parseLong()
			return oneStep(m.acquire(name.String(), ttl, kept(), operator.AcquireOptions{For: d, Reason: reason.text()}))
		},
	})
}

// keepField returns a field for how long to keep a lock; empty: until it is released.
func keepField() (f *field, parse func() (time.Duration, string)) {
	f = newField("Keep for", "")
	parse = func() (time.Duration, string) {
		text := f.text()
		if text == "" {
			return 0, ""
		}
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			return 0, "a number with a unit, such as 10m; empty: until r releases it"
		}
		return d, ""
	}
	f.check = wrong(parse)
	return f, parse
}

// acquire takes a lock, and keeps it on request.
func (m *Desk) acquire(key string, ttl time.Duration, keep bool, opt operator.AcquireOptions) func(context.Context) Outcome {
	o := Outcome{what: "acquire " + m.St.Escape(key, 60), words: acquireWords}
	granted := func(g Grant, nodes []redlock.NodeResult, done string) Outcome {
		o.nodes, o.done = nodes, done
		o.apply = func() { m.Mine[key] = g }
		return o
	}
	return func(ctx context.Context) Outcome {
		if keep {
			k, err := m.Actions.Keep(ctx, key, ttl, opt)
			if o.err = err; err != nil {
				return o
			}
			m.Running.keep(k)
			done := "kept: it is extended until r releases it"
			if opt.For > 0 {
				done = "kept for " + view.Span(opt.For) + ": released then, or by r before"
			}
			return granted(Grant{Key: key, Token: k.Token(), TTL: ttl, Until: k.Until(), Kept: k}, k.Nodes(), done)
		}
		l, err := m.Actions.AcquireWith(ctx, key, ttl, opt)
		if o.err = err; err != nil || l == nil {
			return o
		}
		return granted(Grant{Key: key, Token: l.Token(), TTL: ttl, Until: l.Until()}, l.Nodes(), "valid until "+view.Clock(l.Until())+"; e extends it, r releases it")
	}
}

// own returns the grant of the lock under the cursor, if it was acquired here.
func (m *Desk) own() (Grant, bool) {
	l := m.On().Lock
	if l == nil {
		return Grant{}, false
	}
	g, ok := m.Mine[l.Key.Raw()]
	return g, ok
}

func (m *Desk) WhyNoExtend() string {
	if why := m.whyNoLock(); why != "" {
		return why
	}
	switch g, ok := m.own(); {
	case !ok:
		return "not acquired here: e extends only what this screen acquired"
	case g.Kept != nil:
		return "it is kept: it is extended until r releases it"
	case !m.Now().Before(g.Until):
		return "the lock has expired: release it and acquire it again"
	}
	return ""
}

var extendWords = map[redlock.Status]string{
	redlock.StatusOK:     "copy extended",
	redlock.StatusAbsent: "held no copy; an extension makes none",
	redlock.StatusHeld:   "another token's copy, left alone",
}

func (m *Desk) AskExtend() tea.Cmd {
	g, _ := m.own()
	name := m.St.Escape(g.Key, 60)
	span, parse := m.ttlField(g.TTL)
	return m.openOnLock(&Dialog{
		title: "Extend " + name + "?",
		Verb:  "extend",
		facts: func() []string {
			return []string{
				m.St.Fact("Held by", "this screen, "+m.St.Token(safetext.New(g.Token), 24)+", valid until "+view.Clock(g.Until)+" ("+view.Remaining(g.Until.Sub(m.Now()))+")"),
				m.St.Fact("Effect", "its copies live for this long from now on; none is created, and none is shortened"),
			}
		},
		Fields: []*field{span},
		check: func() string {
			if !m.Now().Before(g.Until) {
				return "the lock has expired: esc, release it and acquire it again"
			}
			return ""
		},
		start: func() []step {
			acts := m.Actions
			ttl, _ := parse()
			return oneStep(func(ctx context.Context) Outcome {
				o := Outcome{what: "extend " + name, words: extendWords}
				var l *redlock.Lock
				if l, o.err = acts.Extend(ctx, g.Key, g.Token, ttl); l != nil {
					now := g.Extended(ttl, l.Until())
					o.nodes, o.done = l.Nodes(), "valid until "+view.Clock(now.Until)
					o.apply = func() { m.Mine[g.Key] = now }
				}
				return o
			})
		},
	})
}

// release releases a lock that was acquired here.
func (m *Desk) release() lockAct {
	return lockAct{
		verb: "release", did: "released",
		effect: "its copies are deleted on all nodes: the name is free at once",
		why: func(l *monitor.Lock) string {
			if _, ok := m.Mine[l.Key.Raw()]; !ok {
				return "not acquired here: r releases only what this screen acquired"
			}
			return ""
		},
		act: func(t target, _ string) func(context.Context) Outcome { return m.giveBack(m.Mine[t.keys[0]]) },
	}
}

// giveBack releases a grant and stops extending it.
func (m *Desk) giveBack(g Grant) func(context.Context) Outcome {
	name, acts := m.St.Escape(g.Key, 60), m.Actions
	return func(ctx context.Context) Outcome {
		o := Outcome{what: "release " + name, words: releaseWords}
		if g.Kept != nil {
			o.nodes, o.err = g.Kept.Release(ctx)
		} else {
			o.nodes, o.err = acts.Release(ctx, g.Key, g.Token)
		}
		if o.err == nil {
			o.done = deletedWords(o.nodes)
			o.apply = func() {
				if m.IsMine(g.Key, g.Token) {
					delete(m.Mine, g.Key)
				}
			}
		}
		return o
	}
}

func (m *Desk) WhyNoRelease() string { return m.whyNotAct(m.release()) }

func (m *Desk) AskRelease() tea.Cmd {
	a := m.release()
	keys := m.Marked()
	if len(keys) > 1 {
		return m.askSeveral(a, keys)
	}
	g := m.Mine[m.one(keys).Key.Raw()]
	return m.openOnLock(&Dialog{
		title: "Release " + m.St.Escape(g.Key, 60) + m.hiddenMark(g.Key, keys) + "?",
		Verb:  "release",
		facts: func() []string {
			held := "this screen, " + m.St.Token(safetext.New(g.Token), 24)
			if g.Kept != nil {
				held += ", kept: extended until it is released"
			} else {
				held += ", valid until " + view.Clock(g.Until)
			}
			return []string{m.St.Fact("Held by", held), m.St.Fact("Effect", a.effect)}
		},
		start: func() []step { return oneStep(m.giveBack(g)) },
	})
}

func (m *Desk) WhyNoQuit() string {
	if m.Busy > 0 {
		return "an action is still running: wait for it, or ctrl+c"
	}
	return ""
}

func Quit() tea.Cmd { return tea.Quit }

// AskQuit quits. It asks first if locks are kept here, or if no guard would remain to let
// nodes rejoin.
func (m *Desk) AskQuit() tea.Cmd {
	if len(m.keptGrants()) == 0 {
		return m.AskLeave("Quit?", "quit", Quit)
	}
	then := &field{label: "Then", Choices: []string{"release them", "leave them"}}
	return m.open(&Dialog{
		title:  "Quit?",
		Verb:   "quit",
		Fields: []*field{then},
		facts: func() []string {
			var names []string
			kept := m.keptGrants()
			last := m.Now()
			for _, g := range kept {
				names = append(names, m.St.Escape(g.Key, 40)+" ("+g.state.String()+")")
				if g.Until.After(last) {
					last = g.Until
				}
			}
			effect := "their copies are deleted on all nodes: the names are free at once"
			if then.chosen == 1 {
				effect = "nothing extends them any more: they end by themselves, the last at " + view.Clock(last)
			}
			return append([]string{
				m.St.Fact("Kept here", view.Plural(len(kept), "lock")+": "+someOf(names, bounded)),
				m.St.Fact("Effect", effect),
			}, m.leftWaiting()...)
		},
		start: func() []step {
			o := Outcome{what: "release what is kept here, and quit", words: releaseWords}
			kept, st, parted := m.keptGrants(), m.St, m.Running.part
			if then.chosen == 1 {
				kept = nil
			}
			return oneStep(func(ctx context.Context) Outcome {
				for _, g := range kept {
					if _, err := g.Kept.Release(ctx); err == nil {
						parted(g.Key)
					} else if !errors.Is(err, redlock.ErrNotHeld) && !errors.Is(err, redlock.ErrLost) {
						o.err = errors.Join(o.err, fmt.Errorf("%s: %w", st.Escape(g.Key, 40), err))
					}
				}
				return o
			})
		},
		then: Quit,
	})
}

// AskLeave leaves the cluster. It asks first if no guard would remain to let nodes rejoin.
func (m *Desk) AskLeave(title, verb string, leave func() tea.Cmd) tea.Cmd {
	if m.leftWaiting() == nil {
		return leave()
	}
	return m.open(&Dialog{title: title, Verb: verb, then: leave, facts: func() []string {
		if waiting := m.leftWaiting(); waiting != nil {
			return waiting
		}
		return m.nothingWaits()
	}})
}

// nothingWaits says why leaving keeps no node fenced.
func (m *Desk) nothingWaits() []string {
	var names []string
	for i := range m.Latest.Nodes {
		if n := &m.Latest.Nodes[i]; n.State == monitor.NodeFenced {
			names = append(names, m.St.Escape(n.Name, 40))
		}
	}
	if names == nil {
		return []string{m.St.Fact("Fenced", "no node waits any more: nothing is in the way")}
	}
	return []string{m.St.Fact("Fenced", someOf(names, bounded)+", watched by "+m.Guards.Elsewhere()+" too: nothing is in the way")}
}

// leftWaiting returns the nodes that stay fenced if the guard in this console, the only
// one, ends; nil if none. A lab ends with its screen.
func (m *Desk) leftWaiting() []string {
	names := m.Guards.Waiting(m.Latest)
	if len(names) == 0 || m.Lab != nil {
		return nil
	}
	for i, name := range names {
		names[i] = m.St.Escape(name, 40)
		if n := m.latestNode(name); n != nil {
			if left, ok := m.Guards.Countdown(n, m.Now()); ok {
				names[i] += " (" + view.Remaining(left) + ")"
			}
		}
	}
	wait := " waits"
	if len(names) > 1 {
		wait = " wait"
	}
	return []string{
		m.St.Fact("Fenced", someOf(names, bounded)+wait),
		m.St.Fact("Risk", m.St.Bad.Of("the guard in this console is the only one: without it nobody lets a fenced node rejoin")),
		m.St.Fact("Instead", "stay until no node is fenced, or start redlockctl guard first"),
	}
}
