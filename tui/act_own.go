package tui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"redlockctl/internal/safetext"
	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/redlock"
)

// grant is a lock that was acquired by hand on this screen.
type grant struct {
	key, token string
	ttl        time.Duration
	until      time.Time // end of validity, as far as it is known
	// kept extends it; nil: nothing does. state is how it stood when somebody last
	// looked.
	kept  Kept
	state redlock.KeeperState
}

// extended is the grant after an extension, which never makes it shorter.
func (g grant) extended(ttl time.Duration, until time.Time) grant {
	g.ttl = ttl
	if until.After(g.until) {
		g.until = until
	}
	return g
}

// loss is a lock that was kept here and is lost.
type loss struct {
	key, why string
	at       time.Time
}

// letGo ends all extensions and tells of the locks that go on without them. The
// program has ended.
func (m *desk) letGo() (left []Left) {
	for _, k := range m.running.stop() {
		left = append(left, Left{safetext.New(k.Resource()), k.Until()})
	}
	for _, g := range m.mine {
		if g.kept == nil && m.now().Before(g.until) {
			left = append(left, Left{safetext.New(g.key), g.until})
		}
	}
	slices.SortFunc(left, func(a, b Left) int { return cmp.Compare(a.Key.Raw(), b.Key.Raw()) })
	return left
}

func (m *desk) isMine(key, token string) bool {
	g, ok := m.mine[key]
	return ok && g.token == token
}

// forgetEnded drops grants whose validity is over and whose token holds nothing
// any more: there is nothing left to release.
func (m *desk) forgetEnded() {
	for k, g := range m.mine {
		if g.kept != nil || m.now().Before(g.until) {
			continue
		}
		if l := m.latestLock(k); l == nil || l.Holder.Raw() != g.token {
			delete(m.mine, k)
		}
	}
}

// keptGrants are the grants that are kept, by their keys.
func (m *desk) keptGrants() (all []grant) {
	for _, g := range m.mine {
		if g.kept != nil {
			all = append(all, g)
		}
	}
	slices.SortFunc(all, func(a, b grant) int {
		return cmp.Or(cmp.Compare(b.state, a.state), cmp.Compare(a.key, b.key)) // what is in danger first
	})
	return all
}

// lookAfter asks how the locks stand that are kept, and tells what changed for
// the worse.
func (m *desk) lookAfter() {
	for key, g := range m.mine {
		if g.kept == nil {
			continue
		}
		before := g.state
		g.state, g.until = g.kept.State(), g.kept.Until()
		name := m.St.Escape(key, 40)
		switch {
		case g.state == redlock.Lost:
			why := "its validity is over"
			if err := g.kept.Err(); err != nil {
				why = err.Error()
			}
			m.losses = append(m.losses, loss{key, why, m.now()})
			g.kept = nil
		case g.state == redlock.Released:
			g.kept = nil
		case g.state != before && g.state == redlock.Uncertain:
			m.say(m.St.Warn, name+", kept here, is uncertain: an extension failed, and it is tried again until "+view.Clock(g.until))
		case g.state != before:
			m.say(m.St.Good, name+", kept here, is held again")
		}
		m.mine[key] = g
	}
}

// mostLosses bounds what is told of locks that were lost.
const mostLosses = 20

// keptLines are a line of what is kept here, and one of what was lost, which
// stays until somebody has seen it.
func (m *desk) keptLines(w int) (lines []string) {
	st := m.St
	if m.losses = m.losses[max(0, len(m.losses)-mostLosses):]; len(m.losses) > 0 {
		l := m.losses[len(m.losses)-1]
		text := " " + st.Off + " LOST at " + view.Clock(l.at) + ": " + st.Escape(l.key, 40)
		if more := len(m.losses) - 1; more > 0 {
			text += " and " + view.Count(more) + " before"
		}
		text += ", kept here: whatever was done under it must stop " + st.Sep + " esc: seen " + st.Sep + " " + st.Whole(l.why)
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
			if err := g.kept.Err(); err != nil {
				more = ": " + st.Whole(err.Error())
			}
		}
		one := "  " + p.Of(glyph+" "+st.Escape(g.key, 30)) + " " + g.state.String() + " " + view.Remaining(g.until.Sub(m.now())) + p.Of(more)
		if text += one; view.Width(text) > w {
			break
		}
	}
	return append(lines, st.Cut(text, w))
}

// ttlField is a field for a TTL that the cluster allows.
func (m *desk) ttlField(ttl time.Duration) (f *field, parse func() (time.Duration, string)) {
	f = newField("TTL", ttl.String())
	return f, func() (time.Duration, string) {
		d, err := time.ParseDuration(strings.TrimSpace(f.String()))
		switch most := m.Latest.Cluster.MaxTTL; {
		case err != nil:
			return 0, "the TTL is a number with a unit: 30s, 1m30s"
		case d < time.Millisecond:
			return 0, "the TTL must be a millisecond or more"
		case most > 0 && d > most:
			return 0, fmt.Sprintf("a TTL of %s is above the cluster's max TTL of %s", d, most)
		}
		return d, ""
	}
}

var acquireWords = map[redlock.Status]string{redlock.StatusOK: "copy written", redlock.StatusHeld: "held by another"}

func (m *desk) askAcquire() tea.Cmd {
	ttl := 30 * time.Second
	if most := m.Latest.Cluster.MaxTTL; most > 0 {
		ttl = min(ttl, most)
	}
	name := newField("Name", "")
	span, parse := m.ttlField(ttl)
	keep := &field{label: "Keep", choices: []string{"no", "yes"}}
	kept := func() bool { return keep.chosen == 1 }
	return m.open(&dialog{
		title: "Acquire a lock by hand",
		verb:  "acquire",
		facts: func() []string {
			c := &m.Latest.Cluster
			effect := "for the TTL; nothing extends it but e"
			if kept() {
				effect = "and extended until r releases it; when the console ends, it ends with its TTL"
			}
			out := []string{m.St.Fact("Effect", fmt.Sprintf("the name is held on a quorum of %d of %d nodes, %s", c.Quorum, c.N, effect))}
			if c.Serving < c.Quorum && c.Verdict != monitor.VerdictUnknown {
				out = append(out, m.St.Fact("", m.St.Bad.Of(fmt.Sprintf("only %d of %d nodes accept writes: this will fail", c.Serving, c.N))))
			}
			if l := m.latestLock(name.String()); l != nil && name.String() != "" {
				out = append(out, m.St.Fact("Now", m.St.Warn.Of("held by "+m.St.Token(l.Holder, 24)+", "+view.Copies(l))))
			}
			return out
		},
		fields: []*field{name, span, keep},
		check: func() string {
			if name.String() == "" {
				return "the name of the lock is missing"
			}
			_, why := parse()
			return why
		},
		start: func() []step {
			key := name.String()
			ttl, _ := parse()
			return oneStep(m.acquire(key, ttl, kept()))
		},
	})
}

// acquire takes a lock, and keeps it if that is wanted.
func (m *desk) acquire(key string, ttl time.Duration, keep bool) func(context.Context) outcome {
	o := outcome{what: "acquire " + m.St.Escape(key, 60), words: acquireWords}
	granted := func(g grant, nodes []redlock.NodeResult, done string) outcome {
		o.nodes, o.done = nodes, done
		o.apply = func() { m.mine[key] = g }
		return o
	}
	return func(ctx context.Context) outcome {
		if keep {
			k, err := m.actions.Keep(ctx, key, ttl)
			if o.err = err; err != nil {
				return o
			}
			m.running.keep(k)
			return granted(grant{key: key, token: k.Token(), ttl: ttl, until: k.Until(), kept: k}, k.Nodes(), "kept: it is extended until r releases it")
		}
		l, err := m.actions.Acquire(ctx, key, ttl)
		if o.err = err; err != nil || l == nil {
			return o
		}
		return granted(grant{key: key, token: l.Token(), ttl: ttl, until: l.Until()}, l.Nodes(), "valid until "+view.Clock(l.Until())+"; e extends it, r releases it")
	}
}

// own is the grant of the lock under the cursor, if it was acquired here.
func (m *desk) own() (grant, bool) {
	l := m.on().Lock
	if l == nil {
		return grant{}, false
	}
	g, ok := m.mine[l.Key.Raw()]
	return g, ok
}

func (m *desk) whyNoExtend() string {
	if why := m.whyNoLock(); why != "" {
		return why
	}
	switch g, ok := m.own(); {
	case !ok:
		return "not acquired here: e extends only what this screen acquired"
	case g.kept != nil:
		return "it is kept: it is extended until r releases it"
	case !m.now().Before(g.until):
		return "its validity is over: release it, and acquire it anew"
	}
	return ""
}

var extendWords = map[redlock.Status]string{
	redlock.StatusOK:     "copy extended",
	redlock.StatusAbsent: "held no copy; an extension makes none",
	redlock.StatusHeld:   "another token's copy, left alone",
}

func (m *desk) askExtend() tea.Cmd {
	g, _ := m.own()
	name := m.St.Escape(g.key, 60)
	span, parse := m.ttlField(g.ttl)
	return m.open(&dialog{
		title: "Extend " + name + " ?",
		verb:  "extend",
		facts: func() []string {
			return []string{
				m.St.Fact("Held by", "this screen, "+m.St.Token(safetext.New(g.token), 24)+", valid until "+view.Clock(g.until)+" ("+view.Remaining(g.until.Sub(m.now()))+")"),
				m.St.Fact("Effect", "its copies live for this long from now on; none is made anew, and none is shortened"),
			}
		},
		fields: []*field{span},
		check: func() string {
			if !m.now().Before(g.until) {
				return "its validity is over: esc, release it, and acquire it anew"
			}
			_, why := parse()
			return why
		},
		start: func() []step {
			acts := m.actions
			ttl, _ := parse()
			return oneStep(func(ctx context.Context) outcome {
				o := outcome{what: "extend " + name, words: extendWords}
				var l *redlock.Lock
				if l, o.err = acts.Extend(ctx, g.key, g.token, ttl); l != nil {
					now := g.extended(ttl, l.Until())
					o.nodes, o.done = l.Nodes(), "valid until "+view.Clock(now.until)
					o.apply = func() { m.mine[g.key] = now }
				}
				return o
			})
		},
	})
}

// release gives back what was acquired here.
func (m *desk) release() lockAct {
	return lockAct{
		verb: "release", did: "released",
		effect: "its copies are deleted on all nodes: the name is free at once",
		why: func(l *monitor.Lock) string {
			if _, ok := m.mine[l.Key.Raw()]; !ok {
				return "not acquired here: r releases only what this screen acquired"
			}
			return ""
		},
		act: func(t target, _ string) func(context.Context) outcome { return m.giveBack(m.mine[t.keys[0]]) },
	}
}

// giveBack releases a grant; one that is kept is extended no more.
func (m *desk) giveBack(g grant) func(context.Context) outcome {
	name, acts := m.St.Escape(g.key, 60), m.actions
	return func(ctx context.Context) outcome {
		o := outcome{what: "release " + name, words: releaseWords}
		if g.kept != nil {
			o.nodes, o.err = g.kept.Release(ctx)
		} else {
			o.nodes, o.err = acts.Release(ctx, g.key, g.token)
		}
		if o.err == nil {
			o.done = deletedWords(o.nodes)
			o.apply = func() {
				if m.isMine(g.key, g.token) {
					delete(m.mine, g.key)
				}
			}
		}
		return o
	}
}

func (m *desk) whyNoRelease() string { return m.whyNotAct(m.release()) }

func (m *desk) askRelease() tea.Cmd {
	a := m.release()
	keys := m.marked()
	if len(keys) > 1 {
		return m.askSeveral(a, keys)
	}
	g := m.mine[m.one(keys).Key.Raw()]
	hidden := ""
	if keys != nil {
		hidden = m.hiddenMark(g.key)
	}
	return m.open(&dialog{
		title: "Release " + m.St.Escape(g.key, 60) + hidden + " ?",
		verb:  "release",
		facts: func() []string {
			held := "this screen, " + m.St.Token(safetext.New(g.token), 24)
			if g.kept != nil {
				held += ", kept: extended until it is released"
			} else {
				held += ", valid until " + view.Clock(g.until)
			}
			return []string{m.St.Fact("Held by", held), m.St.Fact("Effect", a.effect)}
		},
		start: func() []step { return oneStep(m.giveBack(g)) },
	})
}

func (m *desk) whyNoQuit() string {
	if m.busy > 0 {
		return "an act is still running: wait for it, or ctrl+c"
	}
	return ""
}

func quit() tea.Cmd { return tea.Quit }

// askQuit quits, after a question about the locks that are kept here, and about
// nodes that nobody lets rejoin then.
func (m *desk) askQuit() tea.Cmd {
	if len(m.keptGrants()) == 0 {
		return m.askLeave("Quit ?", "quit", quit)
	}
	then := &field{label: "Then", choices: []string{"release them", "leave them"}}
	return m.open(&dialog{
		title:  "Quit ?",
		verb:   "quit",
		fields: []*field{then},
		facts: func() []string {
			var names []string
			kept := m.keptGrants()
			last := m.now()
			for _, g := range kept {
				names = append(names, m.St.Escape(g.key, 40)+" ("+g.state.String()+")")
				if g.until.After(last) {
					last = g.until
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
			o := outcome{what: "release what is kept here, and quit", words: releaseWords}
			kept, st := m.keptGrants(), m.St
			if then.chosen == 1 {
				kept = nil
			}
			return oneStep(func(ctx context.Context) outcome {
				for _, g := range kept {
					if _, err := g.kept.Release(ctx); err != nil && !errors.Is(err, redlock.ErrNotHeld) && !errors.Is(err, redlock.ErrLost) {
						o.err = errors.Join(o.err, fmt.Errorf("%s: %w", st.Escape(g.key, 40), err))
					}
				}
				return o
			})
		},
		then: quit,
	})
}

// askLeave leaves the cluster, after a question about nodes that nobody lets rejoin
// then.
func (m *desk) askLeave(title, verb string, leave func() tea.Cmd) tea.Cmd {
	if m.leftWaiting() == nil {
		return leave()
	}
	return m.open(&dialog{title: title, verb: verb, facts: m.leftWaiting, then: leave})
}

// leftWaiting says which nodes wait, where the guard in this console is the only one:
// nobody lets them rejoin when it has ended. nil: none. A lab ends with its screen.
func (m *desk) leftWaiting() []string {
	names := m.Guards.Waiting(m.Latest)
	if len(names) == 0 || m.lab != nil {
		return nil
	}
	for i, name := range names {
		names[i] = m.St.Escape(name, 40)
		if n := m.latestNode(name); n != nil {
			if left, ok := m.Guards.Countdown(n, m.now()); ok {
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
