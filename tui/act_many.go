package tui

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"redlockctl/internal/safetext"
	"redlockctl/internal/view"
	"redlockctl/redlock"
	"redlockctl/tui/page"
	"redlockctl/tui/styles"
)

// batch is an act on several locks, one after the other: each is compared, sent
// and recorded by itself.
type batch struct {
	did     string // "force-released"
	items   []item
	at      int  // the one that runs, or is next
	stopped bool // no further one begins
}

// item is one of them.
type item struct {
	name string // safe to show
	act  func(context.Context) outcome
	end  *outcome // nil: not yet
}

func (b *batch) next() func(context.Context) outcome { return b.items[b.at].act }

// took takes the outcome of the one that ran, and tells if another one follows.
func (b *batch) took(o outcome) bool {
	b.items[b.at].end = &o
	b.at++
	return !b.stopped && b.at < len(b.items)
}

func (b *batch) running() bool { return !b.stopped && b.at < len(b.items) }

// counts are how many failed, and how many had ended by themselves before: then
// nobody holds what was to be taken.
func (b *batch) counts() (failed, gone int) {
	for _, it := range b.items {
		switch {
		case it.end == nil || it.end.err == nil:
		case it.end.gone():
			gone++
		default:
			failed++
		}
	}
	return failed, gone
}

func (o *outcome) gone() bool { return errors.Is(o.err, redlock.ErrNotHeld) }

// progress is a bar and what runs now.
func (b *batch) progress(st *styles.Styles, w int) string {
	n := len(b.items)
	text := fmt.Sprintf(" %s of %s", view.Count(b.at), view.Count(n))
	if b.stopped {
		text += "  stopping after this one"
	} else {
		text += "  esc: stop after this one"
	}
	bar := max(4, min(30, w-view.Width(text)-2))
	return st.Info.Of(st.Bar(float64(b.at)/float64(n), bar)) + st.Cut(text, w-bar)
}

// title sums the results up.
func (b *batch) title(st *styles.Styles, w int) string {
	failed, gone := b.counts()
	text := view.Plural(b.at-failed-gone, "lock") + " " + b.did
	p, glyph := st.Good, st.On
	if gone > 0 {
		text += ", " + view.Count(gone) + " had ended by then"
	}
	if failed > 0 {
		text += ", " + view.Count(failed) + " failed"
		p, glyph = st.Bad, st.Off
	}
	if left := len(b.items) - b.at; left > 0 {
		text += ", " + view.Count(left) + " left as they are"
		if failed == 0 {
			p, glyph = st.Warn, st.Half
		}
	}
	return p.Of(" " + glyph + " " + st.Cut(text, w-4))
}

// lines are the results so far, in the order of the names.
func (b *batch) lines(st *styles.Styles, w int) (out []string) {
	name := 4
	for _, it := range b.items {
		name = max(name, min(w/3, view.Width(it.name)))
	}
	for i, it := range b.items {
		glyph, p, text := st.BareMajority, styles.Paint{}, "not begun"
		switch {
		case it.end == nil && i == b.at && b.running():
			glyph, p, text = st.Wait, st.Info, "working"+st.Ellipsis
		case it.end == nil && b.running():
			return out // what is still to come has nothing to tell
		case it.end == nil:
		case it.end.gone():
			text = "it had ended: nothing of this token was left"
		case it.end.err != nil:
			glyph, p, text = st.Off, st.Bad, st.Whole(it.end.err.Error())
		default:
			glyph, p, text = st.On, st.Good, it.end.done
			if silent := it.end.silent(st); silent != "" {
				glyph, p, text = st.Half, st.Warn, text+"; "+silent
			}
		}
		if it.end != nil {
			text = strings.Join(append([]string{text}, it.end.also...), "; ")
		}
		line := " " + p.Of(glyph) + " " + st.Pad(it.name, name) + "  "
		for i, l := range styles.Wrap(text, w-view.Width(line)-1, 0) {
			if i > 0 {
				line = styles.Blanks(name + 5)
			}
			out = append(out, line+l)
		}
	}
	return out
}

// silent names the nodes on which a copy may be left, with its end; "": none.
func (o *outcome) silent(st *styles.Styles) string {
	var names []string
	for _, n := range o.nodes {
		if !n.MayLiveUntil.IsZero() {
			names = append(names, st.Escape(n.Node, 12)+" until "+view.Clock(n.MayLiveUntil))
		}
	}
	if names == nil {
		return ""
	}
	return "a copy may live on " + strings.Join(names, ", ")
}

// several are the marked locks that an act is about; nil: it is about the one
// under the cursor. A command that is typed is about the one that it names, and
// what is done on a lock's own page is about that lock, whatever is marked.
func (m *model) several() []string {
	if m.single || len(m.Marks) == 0 || m.mode()&page.ModeLock != 0 {
		return nil
	}
	return m.Marks.Sorted()
}

// hidden tells if the filter keeps a marked lock from the list that the act is
// begun from.
func (m *model) hidden(key string) bool {
	x := m.Locks.Listing()
	return !x.Filter.Empty() && x.Find(key) == nil
}

// hiddenMark says of a marked lock that it is not in the list; "": it is.
func (m *model) hiddenMark(key string) string {
	if m.hidden(key) {
		return " (hidden by the filter)"
	}
	return ""
}

// bounded is how many names a dialog lists.
const bounded = 12

// askSeveral asks once before an act on several locks. Those that it cannot be
// done to are left out.
func (m *model) askSeveral(a lockAct, keys []string) tea.Cmd {
	var all []target
	var out []string       // those that are left out, and why
	var bare []string      // what libraries that unlock by a bare DEL do
	unseen := page.Marks{} // by the filter, when the dialog opens
	for _, key := range keys {
		l := m.latestLock(key)
		if l == nil {
			continue
		}
		why := a.why(l)
		if why == "" && a.way != nil && l.Tokens > 1 {
			why = "several tokens have copies: take it away by itself, to choose whose go"
		}
		if why != "" {
			out = append(out, m.St.Escape(key, 40)+": "+why)
			continue
		}
		all = append(all, targetOf(l))
		if a.way != nil {
			if plan, err := m.planOf(*a.way, l, l.Holder.Raw()); err == nil && plan.BareDel != "" && !slices.Contains(bare, plan.BareDel) {
				bare = append(bare, plan.BareDel)
			}
		}
		if m.hidden(key) {
			unseen[key] = true
		}
	}
	n := len(all)
	want := view.Plural(n, "lock")
	title := fmt.Sprintf("%s %s marked %s", capital(a.verb), view.Count(n), strings.TrimPrefix(want, view.Count(n)+" "))
	if len(unseen) > 0 {
		title += ", " + view.Count(len(unseen)) + " hidden by the filter"
	}
	reason, typed := newField("Reason", ""), newField("Type "+want, "")
	fields := []*field{reason, typed}
	if !a.reasoned {
		fields = fields[1:]
	}
	d := &dialog{
		title:  title + " ?",
		verb:   a.verb + " all",
		danger: true,
		fields: fields,
		many:   &batch{did: a.did},
	}
	d.facts = func(int) []string {
		st := m.St
		facts := []string{st.Fact("Effect", "of each: "+a.effect)}
		if a.way != nil {
			revoked := n > 0 && !slices.ContainsFunc(all, func(t target) bool { return !redlock.IsTombstone(t.token) })
			risk := a.way.Risk(revoked)
			for _, more := range bare {
				risk += ". " + more
			}
			facts = append(facts, st.Fact("Risk", st.Warn.Of(st.Our(risk))))
		}
		if len(unseen) > 0 {
			facts = append(facts, st.Fact("Hidden", st.Warn.Of(view.Count(len(unseen))+" of them are marked and not in the list: the filter hides them. M unmarks all")))
		}
		if len(out) > 0 {
			facts = append(facts, st.Fact("Left out", st.Warn.Of(view.Plural(len(out), "lock")+" that cannot be: "+m.someOf(out, 3))))
		}
		gone, changed := 0, 0
		var names []string
		for _, t := range all {
			text := m.St.Escape(t.keys[0], 40)
			switch l := m.latestLock(t.keys[0]); {
			case l == nil:
				gone++
				text += " (gone)"
			case !t.same(l):
				changed++
				text += " (another holder by now: left alone)"
			default:
				text += " of " + st.Token(safetext.New(t.token), 16) + ", " + page.Copies(l)
				if redlock.IsTombstone(t.token) {
					text += ", revoked already"
				}
			}
			if unseen[t.keys[0]] {
				text += " (hidden)"
			}
			names = append(names, text)
		}
		if gone+changed > 0 {
			facts = append(facts, st.Fact("Changed", st.Warn.Of(fmt.Sprintf("since this was opened %s ended and %s passed to another: those are left alone", view.Count(gone), view.Count(changed)))))
		}
		label := "Locks"
		for _, s := range names[:min(len(names), bounded)] {
			facts = append(facts, st.Fact(label, s))
			label = ""
		}
		if more := len(names) - bounded; more > 0 {
			facts = append(facts, st.Fact("", "and "+view.Count(more)+" more"))
		}
		return facts
	}
	d.check = func() string {
		if n == 0 {
			return "none of them can be: see why above"
		}
		if a.reasoned {
			if why := missingReason(reason.String()); why != "" {
				return why
			}
		}
		switch typed.String() {
		case want:
			return ""
		case "":
			return "how many are they? type " + want
		default:
			return "that is not how many they are: type " + want
		}
	}
	d.prepare = func() {
		why := strings.TrimSpace(reason.String())
		for _, t := range all {
			d.many.items = append(d.many.items, item{name: m.St.Escape(t.keys[0], 40), act: a.act(t, why)})
		}
	}
	return m.openDialog(d)
}

// someOf are the first of texts, and how many more there are.
func (m *model) someOf(texts []string, most int) string {
	s := strings.Join(texts[:min(len(texts), most)], "; ")
	if more := len(texts) - most; more > 0 {
		s += "; and " + view.Count(more) + " more"
	}
	return s
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
