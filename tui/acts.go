package tui

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"redlockctl/internal/safetext"
	"redlockctl/monitor"
	"redlockctl/redlock"
	"redlockctl/restartguard"
)

// actTimeout bounds an act: retries of an acquire, or the proof of a fence.
const actTimeout = 15 * time.Second

// running counts the acts on their way, so that the program does not end
// between an act and the record of its outcome.
type running struct {
	mu     sync.Mutex
	n      int
	closed bool
	idle   chan struct{} // closed when n is 0 after closed
}

func newRunning() *running { return &running{idle: make(chan struct{})} }

// begin tells if an act may start.
func (r *running) begin() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.n++
	return true
}

func (r *running) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.n--; r.n == 0 && r.closed {
		close(r.idle)
	}
}

// close lets no further act begin and waits for those that run, at most for
// limit.
func (r *running) close(limit time.Duration) {
	r.mu.Lock()
	if !r.closed {
		r.closed = true
		if r.n == 0 {
			close(r.idle)
		}
	}
	r.mu.Unlock()
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-r.idle:
	case <-t.C:
	}
}

// Why an act is refused before it is asked for. The refusals that matter are
// made again where commands are sent.

func (m *model) whyNoAct() string {
	switch {
	case m.opt.Actions == nil:
		return "there is nothing here to act with"
	case m.opt.Actions.ReadOnly():
		return "read-only: acts are refused"
	case m.busy > 0:
		return "an act is still running"
	}
	return ""
}

func (m *model) whyNoLock() string {
	if why := m.whyNoAct(); why != "" {
		return why
	}
	if m.mode()&modeOnLock == 0 {
		return "go to the locks first: tab, or 2"
	}
	if m.picked() == nil {
		return "no lock under the cursor"
	}
	return ""
}

func (m *model) whyNoNode() string {
	if why := m.whyNoAct(); why != "" {
		return why
	}
	return m.whyNoPickedNode()
}

func (m *model) whyNoPickedNode() string {
	if m.mode()&modeOnNode == 0 {
		return "go to the nodes first: tab, or 3"
	}
	if m.pickedNode() == nil {
		return "no node under the cursor"
	}
	return ""
}

func (m *model) whyNoRelease() string {
	if why := m.whyNoLock(); why != "" {
		return why
	}
	if _, ok := m.mine[m.picked().Key.Raw()]; !ok {
		return "not acquired here: r releases only what this screen acquired"
	}
	return ""
}

func (m *model) whyNoForce() string {
	if why := m.whyNoLock(); why != "" {
		return why
	}
	l := m.latestLock(m.picked().Key.Raw())
	if l == nil {
		return "the lock is gone"
	}
	return whyNotComparable(l)
}

// whyNotComparable is why the holder's token cannot be compared when the lock is
// taken away; what cannot be compared is not deleted.
func whyNotComparable(l *monitor.Lock) string {
	for i := range l.Copies {
		c := &l.Copies[i]
		if c.State == monitor.CopyAbsent {
			continue
		}
		switch {
		case c.Type != "" && c.Type != "string":
			return "a " + safetext.Escape(c.Type) + ", not a string: it cannot be compared, so it is not taken away"
		case c.Token == l.Holder && c.Len > int64(len(c.Token.Raw())):
			return fmt.Sprintf("its value has %d bytes, of which only the first are known: it is not taken away", c.Len)
		}
	}
	if l.Holder.Empty() {
		return "its value is empty: there is no token to compare"
	}
	return ""
}

func (m *model) whyNoFence() string {
	if why := m.whyNoNode(); why != "" {
		return why
	}
	n := m.latestNode(m.pickedNode().Name)
	switch {
	case n == nil:
		return "the node is gone"
	case n.State == monitor.NodeHeld:
		return m.st.whole(n.Name) + " is held already"
	case n.State == monitor.NodeServing || n.State == monitor.NodeFenced:
		return ""
	}
	return m.st.whole(n.Name) + " cannot be fenced: " + n.State.String()
}

func (m *model) whyNoOpen() string {
	if why := m.whyNoNode(); why != "" {
		return why
	}
	n := m.latestNode(m.pickedNode().Name)
	switch {
	case n == nil:
		return "the node is gone"
	case n.State == monitor.NodeServing:
		return m.st.whole(n.Name) + " is open already"
	case n.State == monitor.NodeHeld || n.State == monitor.NodeFenced:
		return ""
	}
	return m.st.whole(n.Name) + " cannot be opened: " + n.State.String()
}

func (m *model) whyNoQuit() string {
	if m.busy > 0 {
		return "an act is still running: wait for it, or ctrl+c"
	}
	return ""
}

// latestLock and latestNode look into the latest snapshot, also while the
// screen is frozen: nobody acts on an old picture.
func (m *model) latestLock(key string) *monitor.Lock {
	return m.snap.Locks.Get(key)
}

func (m *model) latestNode(name string) *monitor.Node {
	for i := range m.snap.Nodes {
		if m.snap.Nodes[i].Name == name {
			return &m.snap.Nodes[i]
		}
	}
	return nil
}

// confirmation is what has to be typed to confirm an act on raw: its name as it
// is shown, or the end of one that is too long to type.
func (m *model) confirmation(raw string) (text, label string) {
	const most, tail = 40, 12
	shown := m.st.name(raw)
	if width(shown) <= most {
		return shown, "Type the name to confirm"
	}
	end := cutLeft(shown, tail)
	return end, fmt.Sprintf("Type its last %d characters", width(end))
}

func missingName(typed, want string) string {
	if typed == want {
		return ""
	}
	if typed == "" {
		return "the name is missing: type " + want
	}
	return "that is not the name: type " + want
}

func missingReason(reason string) string {
	if strings.TrimSpace(reason) == "" {
		return "a reason is missing: it is written to the audit log"
	}
	return ""
}

func (m *model) askAcquire() tea.Cmd {
	ttl := 30 * time.Second
	if most := m.snap.Cluster.MaxTTL; most > 0 {
		ttl = min(ttl, most)
	}
	name := &field{label: "Name"}
	span := &field{label: "TTL", lineEdit: newLineEdit(ttl.String())}
	most := func() time.Duration { return m.snap.Cluster.MaxTTL }
	parse := func() (time.Duration, string) {
		d, err := time.ParseDuration(strings.TrimSpace(span.String()))
		switch {
		case err != nil:
			return 0, "the TTL is a number with a unit: 30s, 1m30s"
		case d < time.Millisecond:
			return 0, "the TTL must be a millisecond or more"
		case most() > 0 && d > most():
			return 0, fmt.Sprintf("a TTL of %s is above the cluster's max TTL of %s", d, most())
		}
		return d, ""
	}
	return m.openDialog(&dialog{
		title: "Acquire a lock by hand",
		verb:  "acquire",
		facts: func(int) []string {
			c := &m.snap.Cluster
			out := []string{fact(m.st, "Effect", "the name is held for the TTL, on a quorum of "+fmt.Sprintf("%d of %d nodes; nothing extends it", c.Quorum, c.N))}
			if c.Serving < c.Quorum && c.Verdict != monitor.VerdictUnknown {
				out = append(out, fact(m.st, "", m.st.bad.of(fmt.Sprintf("only %d of %d nodes accept writes: this will fail", c.Serving, c.N))))
			}
			if l := m.latestLock(name.String()); l != nil && name.String() != "" {
				out = append(out, fact(m.st, "Now", m.st.warn.of("held by "+m.st.token(l.Holder, 24)+", "+copies(l))))
			}
			return out
		},
		fields: []*field{name, span},
		check: func() string {
			if name.String() == "" {
				return "the name of the lock is missing"
			}
			_, why := parse()
			return why
		},
		start: func() func(context.Context) outcome {
			key, acts := name.String(), m.opt.Actions
			ttl, _ := parse()
			what := "acquire " + m.st.escape(key, 60)
			words := map[redlock.Status]string{redlock.StatusOK: "copy written", redlock.StatusHeld: "held by another"}
			return func(ctx context.Context) outcome {
				l, err := acts.Acquire(ctx, key, ttl)
				if err != nil || l == nil {
					return outcome{what: what, words: words, err: err}
				}
				return outcome{
					what: what, words: words, nodes: l.Nodes(),
					done:  "valid until " + clock(l.Until()) + "; r releases it",
					grant: &grant{l.Resource(), l.Token(), ttl, l.Until()},
				}
			}
		},
	})
}

var releaseWords = map[redlock.Status]string{
	redlock.StatusOK:     "copy deleted",
	redlock.StatusAbsent: "held no copy",
	redlock.StatusHeld:   "another token's copy, left alone",
}

func (m *model) askRelease() tea.Cmd {
	g := m.mine[m.picked().Key.Raw()]
	name := m.st.escape(g.key, 60)
	return m.openDialog(&dialog{
		title: "Release " + name + " ?",
		verb:  "release",
		facts: func(int) []string {
			return []string{
				fact(m.st, "Held by", "this screen, "+m.st.token(safetext.New(g.token), 24)+", valid until "+clock(g.until)),
				fact(m.st, "Effect", "its copies are deleted on all nodes: the name is free at once"),
			}
		},
		check: func() string { return "" },
		start: func() func(context.Context) outcome {
			acts := m.opt.Actions
			return func(ctx context.Context) outcome {
				nodes, err := acts.Release(ctx, g.key, g.token)
				return outcome{what: "release " + name, words: releaseWords, nodes: nodes, err: err, freed: &g}
			}
		},
	})
}

func (m *model) askForce() tea.Cmd {
	l := m.latestLock(m.picked().Key.Raw())
	key, token := l.Key.Raw(), l.Holder.Raw()
	name := m.st.escape(key, 60)
	want, label := m.confirmation(key)
	reason, typed := &field{label: "Reason"}, &field{label: label}
	return m.openDialog(&dialog{
		title:  "Force-release " + name + " ?",
		verb:   "force-release",
		danger: true,
		facts:  func(int) []string { return m.forceFacts(key, token) },
		fields: []*field{reason, typed},
		check: func() string {
			now := m.latestLock(key)
			switch {
			case now == nil:
				return "the lock is gone: there is nothing to take away"
			case now.Holder.Raw() != token:
				return "the holder changed since this was opened: esc, and look again"
			}
			if why := whyNotComparable(now); why != "" {
				return why
			}
			if why := missingReason(reason.String()); why != "" {
				return why
			}
			return missingName(typed.String(), want)
		},
		start: func() func(context.Context) outcome {
			acts, why := m.opt.Actions, strings.TrimSpace(reason.String())
			return func(ctx context.Context) outcome {
				nodes, err := acts.ForceRelease(ctx, key, token, why)
				o := outcome{what: "force-release " + name, words: releaseWords, nodes: nodes, err: err}
				if err == nil {
					o.done = deletedWords(nodes)
				}
				return o
			}
		},
	})
}

func deletedWords(nodes []redlock.NodeResult) string {
	n := 0
	for _, r := range nodes {
		if r.Status == redlock.StatusOK {
			n++
		}
	}
	switch n {
	case 0:
		return "no copy of this token was there to delete"
	case 1:
		return "1 copy deleted"
	default:
		return fmt.Sprintf("%d copies deleted", n)
	}
}

// forceFacts says who holds the lock, where, and what taking it away does.
func (m *model) forceFacts(key, token string) []string {
	st, now := m.st, m.now()
	held := st.token(safetext.New(token), 40)
	l := m.latestLock(key)
	if l == nil {
		return []string{fact(st, "Held by", held), fact(st, "Copies", "gone")}
	}
	if !l.Since.IsZero() {
		held += ", first seen " + clock(l.Since) + " (" + age(now.Sub(l.Since)) + " ago)"
	}
	if g, ok := m.mine[key]; ok && g.token == token {
		held += ", acquired here: r releases it"
	}
	var has, lacks []string
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
			if c.Token.Raw() != token {
				lacks = append(lacks, node+state+": a copy of "+st.token(c.Token, 16)+", "+left+", stays")
				continue
			}
			has = append(has, node+state+" "+left)
		case monitor.CopyAbsent:
			lacks = append(lacks, node+state+": holds none")
		default:
			lacks = append(lacks, node+state+": "+m.unknownCopy(n, c))
		}
	}
	copyLine := st.none
	if len(has) > 0 {
		copyLine = strings.Join(has, " "+st.sep+" ")
	}
	out := []string{
		fact(st, "Held by", held),
		fact(st, "Copies", copyLine),
	}
	if len(lacks) > 0 {
		out = append(out, fact(st, "", strings.Join(lacks, ";  ")))
	}
	return append(out, fact(st, "Effect", st.warn.of("the name is free at once; if the holder still works, two clients will work on "+st.escape(key, 40))))
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

func (m *model) askFence() tea.Cmd {
	name := m.pickedNode().Name
	return m.askNode(name, "Fence", "fence", func() []string {
		c := &m.snap.Cluster
		out := []string{fact(m.st, "Effect", "it refuses writes until a person opens it: no guard lifts this fence")}
		serving := c.Serving
		if n := m.latestNode(name); n != nil && n.State == monitor.NodeServing {
			serving--
		}
		left := fmt.Sprintf("%d of %d nodes go on serving, the quorum is %d", serving, c.N, c.Quorum)
		if serving < c.Quorum {
			return append(out, fact(m.st, "", m.st.bad.of(left+": NOTHING can be locked any more")))
		}
		return append(out, fact(m.st, "", left))
	}, func(ctx context.Context, a Actions, reason string) error { return a.FenceNode(ctx, name, reason) },
		"it refuses writes now; O opens it again")
}

func (m *model) askOpen() tea.Cmd {
	name := m.pickedNode().Name
	return m.askNode(name, "Open", "open", func() []string {
		out := []string{fact(m.st, "Effect", "it accepts writes and votes at once")}
		s, ok := m.fences.status[name]
		n := m.latestNode(name)
		switch {
		case ok && s.Phase == restartguard.PhaseClosed && !s.Until.IsZero() && s.Until.After(m.now()):
			out = append(out, fact(m.st, "Risk", m.st.bad.of("it restarted, and is safe only in "+remaining(s.Until.Sub(m.now()))+
				": a lock that it forgot can be granted a second time")))
		case n != nil && n.State == monitor.NodeFenced:
			risk := "if it restarted less than D ago, a lock that it forgot can be granted a second time"
			if m.opt.Delay > 0 {
				risk += " (D = " + span(m.opt.Delay) + ")"
			}
			out = append(out, fact(m.st, "Risk", m.st.warn.of(risk)))
		}
		return out
	}, func(ctx context.Context, a Actions, reason string) error { return a.OpenNode(ctx, name, reason) },
		"it accepts writes now")
}

func (m *model) askNode(node, title, verb string, effect func() []string, do func(context.Context, Actions, string) error, done string) tea.Cmd {
	shown := m.st.escape(node, 40)
	want, label := m.confirmation(node)
	reason, typed := &field{label: "Reason"}, &field{label: label}
	return m.openDialog(&dialog{
		title:  title + " " + shown + " ?",
		verb:   verb,
		danger: true,
		facts: func(int) []string {
			var out []string
			if n := m.latestNode(node); n != nil {
				now := n.State.String()
				if !n.Since.IsZero() {
					now += " since " + clock(n.Since)
				}
				out = append(out, fact(m.st, "Now", now+", "+count(n.Locks)+" copies"))
			}
			return append(out, effect()...)
		},
		fields: []*field{reason, typed},
		check: func() string {
			if m.latestNode(node) == nil {
				return "the node is gone"
			}
			if why := missingReason(reason.String()); why != "" {
				return why
			}
			return missingName(typed.String(), want)
		},
		start: func() func(context.Context) outcome {
			acts, why := m.opt.Actions, strings.TrimSpace(reason.String())
			return func(ctx context.Context) outcome {
				return outcome{what: verb + " " + shown, err: do(ctx, acts, why), done: done}
			}
		},
	})
}
