package action

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"redlockctl/internal/operator"
	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/redlock"
	"redlockctl/server/safetext"
	"redlockctl/tui/page"
)

// hidden reports whether the filter hides a marked lock.
func (m *Desk) hidden(key string) bool {
	x := m.Locks.Listing()
	return !x.Filter.Empty() && x.Find(key) == nil
}

// hiddenMark returns a note for a marked lock that the filter hides; "" for other locks.
func (m *Desk) hiddenMark(key string, marked []string) string {
	if marked != nil && m.hidden(key) {
		return " (hidden by the filter)"
	}
	return ""
}

// several is an action on the marked locks.
type several struct {
	*Desk
	lockAct
	all    []target
	out    []string   // skipped locks, and why
	bare   []string   // warnings about libraries that unlock with a plain DEL
	unseen page.Marks // hidden by the filter when the dialog opened
}

// askSeveral opens one dialog for an action on several locks. It skips locks that the
// action does not apply to.
func (m *Desk) askSeveral(a lockAct, keys []string) tea.Cmd {
	s := several{Desk: m, lockAct: a, unseen: page.Marks{}}
	for _, key := range keys {
		if l := m.LatestLock(key); l != nil {
			s.add(key, l)
		}
	}
	n := len(s.all)
	want := view.Plural(n, "lock")
	title := fmt.Sprintf("%s %s marked %s", capital(a.verb), view.Count(n), strings.TrimPrefix(want, view.Count(n)+" "))
	if len(s.unseen) > 0 {
		title += ", " + view.Count(len(s.unseen)) + " hidden by the filter"
	}
	reason, typed := reasonField(), newField("Type \""+want+"\"", "")
	typed.check = func() string {
		switch strings.Trim(typed.String(), `"`) {
		case want:
			return ""
		case "":
			return "how many are there? type \"" + want + "\""
		}
		return "that is not how many there are: type \"" + want + "\""
	}
	fields := []*field{reason, typed}
	if !a.reasoned {
		fields = fields[1:]
	}
	return m.openOnLock(&Dialog{
		title:  title + "?",
		Verb:   a.verb + " all",
		danger: a.way != nil && *a.way == operator.ForceRelease,
		Did:    a.did,
		Fields: fields,
		facts:  s.facts,
		check: func() string {
			if n == 0 {
				return "none of them can be: see why above"
			}
			return ""
		},
		start: func() (steps []step) {
			for _, t := range s.all {
				steps = append(steps, step{name: m.St.Escape(t.keys[0], 40), run: a.act(t, reason.text())})
			}
			return steps
		},
	})
}

// add adds a marked lock, or says why it is skipped.
func (s *several) add(key string, l *monitor.Lock) {
	why := s.why(l)
	if why == "" && s.way != nil && l.Tokens > 1 {
		why = "several tokens have copies: act on it alone, to choose whose copies go"
	}
	if why != "" {
		s.out = append(s.out, s.St.Escape(key, 40)+": "+why)
		return
	}
	s.all = append(s.all, targetOf(l))
	if s.way != nil {
		if plan, err := s.planOf(*s.way, l, l.Holder.Raw()); err == nil && plan.BareDel != "" && !slices.Contains(s.bare, plan.BareDel) {
			s.bare = append(s.bare, plan.BareDel)
		}
	}
	if s.hidden(key) {
		s.unseen[key] = true
	}
}

func (s *several) facts() []string {
	st := s.St
	facts := []string{st.Fact("Effect", "of each: "+s.effect)}
	warn := func(label, text string) { facts = append(facts, st.Fact(label, st.Warn.Of(text))) }
	if s.way != nil {
		revoked := len(s.all) > 0 && !slices.ContainsFunc(s.all, func(t target) bool { return !redlock.IsTombstone(t.token) })
		warn("Risk", st.Our(strings.Join(append([]string{s.way.Risk(revoked)}, s.bare...), ". ")))
	}
	if n := len(s.unseen); n > 0 {
		warn("Hidden", view.Count(n)+" of them are marked and not in the list: the filter hides them. M unmarks all")
	}
	if n := len(s.out); n > 0 {
		warn("Left out", view.Plural(n, "lock")+" that cannot be: "+someOf(s.out, 3))
	}
	gone, changed := 0, 0
	var names []string
	for _, t := range s.all {
		text := st.Escape(t.keys[0], 40)
		switch l := s.LatestLock(t.keys[0]); {
		case l == nil:
			gone++
			text += " (gone)"
		case !t.same(l):
			changed++
			text += " (another holder by now: left alone)"
		default:
			text += " of " + st.Token(safetext.New(t.token), 16) + ", " + view.Copies(l)
			if l.ReliedOn() && l.Held < s.Latest.Cluster.Quorum {
				text += ", " + view.LockEnd(s.latest(), l)
			}
			if redlock.IsTombstone(t.token) {
				text += ", revoked already"
			}
		}
		if s.unseen[t.keys[0]] {
			text += " (hidden)"
		}
		names = append(names, text)
	}
	if gone+changed > 0 {
		warn("Changed", fmt.Sprintf("since this was opened %s ended and %s passed to another: those are left alone", view.Count(gone), view.Count(changed)))
	}
	if more := len(names) - bounded; more > 0 {
		names = append(names[:bounded], "and "+view.Count(more)+" more")
	}
	for i, name := range names {
		label := ""
		if i == 0 {
			label = "Locks"
		}
		facts = append(facts, st.Fact(label, name))
	}
	return facts
}
