package action

import (
	"context"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"redlockctl/internal/view"
	"redlockctl/tui/input"
	"redlockctl/tui/page"
	"redlockctl/tui/styles"
)

// SettleTime is how long a dialog stands on the screen, with no key pressed,
// before it takes enter: what was typed for the screen before it must not answer a
// question that nobody has read. Text goes into its fields at once.
const SettleTime = 300 * time.Millisecond

// field is one line to fill in, or a choice.
type field struct {
	label string
	input.Line
	Choices []string // nil: a line of text
	chosen  int      // of the choices
}

func newField(label, text string) *field { return &field{label: label, Line: input.New(text)} }

// Choose takes a key pressed at a choice: a blank is the next one, a letter the
// one that begins with it.
func (f *field) Choose(text string) {
	if text == " " {
		f.chosen = (f.chosen + 1) % len(f.Choices)
	} else if i := slices.IndexFunc(f.Choices, func(c string) bool { return strings.HasPrefix(c, text) }); i >= 0 {
		f.chosen = i
	}
}

// line draws what stands in the field in at most w cells.
func (f *field) line(st *styles.Styles, w int, focused bool) string {
	switch {
	case f.Choices == nil && focused:
		return st.Typed(f.View(&st.Glyphs, w))
	case f.Choices == nil:
		return st.Cut(st.Whole(f.String()), w)
	case focused:
		return st.Cut(st.Cursor.Of(f.Choices[f.chosen])+st.Dim.Of("  space: change"), w)
	default:
		return st.Cut(f.Choices[f.chosen], w)
	}
}

// Dialog asks before an action, runs its steps, and tells how they ended. It is
// about what was on the screen when it opened: lock, token, node are kept in it and
// do not follow the cursor.
type Dialog struct {
	title, Verb string          // verb: what enter does
	facts       func() []string // what is known, and what the action will do
	Fields      []*field
	check       func() string // what is still missing or in the way; nil, "": nothing
	// start makes the steps out of what was filled in. It runs in the program's
	// goroutine; the steps do not, and touch nothing of the model.
	start func() []step
	Did   string         // of a step on each of several locks: "revoked"
	then  func() tea.Cmd // what follows where nothing failed; nil: the result is shown

	Focus, Scroll int
	Pressed       bool      // enter was pressed while something was missing
	Drawn         time.Time // since when it is on the screen; zero: not yet
	early         time.Time // the last key that came before it listened
	held          bool      // the last key was an enter that was not taken
	began         time.Time // of the action; zero: it asks
	steps         []step
	at            int  // the step that runs, or is next
	stopped       bool // no further one begins
	ended         bool
	failed        bool // of what has ended
	long          bool // not all of it is in sight
}

// step is a part of an action that is sent, recorded and told of by itself.
type step struct {
	name string // safe to show
	run  func(context.Context) Outcome
	end  *Outcome // nil: not yet
}

// oneStep is a dialog's only step.
func oneStep(run func(context.Context) Outcome) []step { return []step{{run: run}} }

func (d *Dialog) Mode() page.Mode {
	if d.began.IsZero() {
		return page.ModeDialog
	}
	return page.ModeWorking
}

// missing is what is missing or in the way.
func (d *Dialog) missing() string {
	if d.check == nil {
		return ""
	}
	return d.check()
}

// listens reports whether a key pressed now was pressed at this dialog.
func (d *Dialog) listens(now time.Time) bool {
	return !d.Drawn.IsZero() && now.Sub(d.Drawn) >= SettleTime && now.Sub(d.early) >= SettleTime
}

// HoldsBack takes note of a key, and reports whether it is an enter that may have been
// meant for the screen before. The dialog says so.
func (d *Dialog) HoldsBack(key string, now time.Time) bool {
	early := !d.listens(now)
	if early {
		d.early = now
	}
	d.held = early && key == "enter" && d.Mode() == page.ModeDialog
	return d.held
}

// Focused is the field that takes letters; nil: none does.
func (d *Dialog) Focused() *field {
	if d.Mode() != page.ModeDialog || len(d.Fields) == 0 {
		return nil
	}
	return d.Fields[d.Focus]
}

func (d *Dialog) TurnField(by int) {
	if n := len(d.Fields); n > 0 {
		d.Focus = (d.Focus + by + n) % n
	}
}

// running reports whether a step is under way, or another one follows.
func (d *Dialog) running() bool { return !d.stopped && d.at < len(d.steps) }

// mostWide bounds a dialog: longer lines are hard to read.
const mostWide = 100

// Box draws the dialog, or the result of its action, as a box that fits into w by h
// cells. The fields and what is missing are always in sight; facts that do not fit are
// scrolled.
func (d *Dialog) Box(st *styles.Styles, w, h int, now time.Time) []string {
	w = min(w, mostWide)
	in := w - 2
	title := page.Pane{Title: d.title, Focused: true}
	var body, foot []string
	switch {
	case d.ended && d.Did != "":
		title.Paint, title.Title = d.summary(st)
		body = d.progress(st, in)
	case d.ended:
		title.Paint, title.Title, body = d.steps[0].end.lines(st, in, now)
	case !d.began.IsZero() && d.Did != "":
		body = d.progress(st, in)
		d.Scroll = len(body) // the latest
		foot = []string{" " + d.hint(st, in-2, now)}
	default:
		for _, f := range d.facts() {
			body = append(body, indented(f, in, styles.FactIndent)...)
		}
		foot = append(d.form(st, in), " "+d.hint(st, in-2, now))
	}
	// The most that facts may take: blanks go first, then they scroll.
	room := h - 2 - len(foot)
	if len(body) > room {
		body = styles.DropBlank(body)
	}
	var lines []string
	if d.long = len(body) > room; d.long {
		room = max(0, room-1)
		d.Scroll = max(0, min(d.Scroll, len(body)-room))
		left := len(body) - d.Scroll - room
		more := " pgup"
		if left > 0 {
			more = " " + view.Count(left) + " more lines: pgdn"
		}
		lines = append(slices.Clone(body[d.Scroll:min(len(body), d.Scroll+room)]), st.Warn.Of(more))
	} else {
		d.Scroll = 0
		spare := room - len(body)
		if spare > 2 && len(body) > 0 && len(foot) > 0 {
			lines = append(lines, "")
			spare--
		}
		lines = append(lines, body...)
		if spare > 0 && len(foot) > 1 {
			lines = append(lines, "")
		}
	}
	lines = append(lines, foot...)
	return title.Box(st, lines, w, len(lines)+2)
}

// form is the fields, one a line.
func (d *Dialog) form(st *styles.Styles, w int) (lines []string) {
	label := 0
	for _, f := range d.Fields {
		label = max(label, view.Width(f.label))
	}
	label = min(label, w/2)
	for i, f := range d.Fields {
		focused, mark := i == d.Focus && d.began.IsZero(), "  "
		if focused {
			mark = "> "
		}
		line := " " + st.Pad(f.label, label) + " " + mark
		lines = append(lines, line+f.line(st, w-view.Width(line)-1, focused))
	}
	return lines
}

// hint is what enter does, or what is missing; while it works, how far it is.
func (d *Dialog) hint(st *styles.Styles, w int, now time.Time) string {
	if !d.began.IsZero() {
		since := " " + view.Age(now.Sub(d.began))
		if d.Did == "" {
			return st.Info.Of("working" + st.Ellipsis + since)
		}
		text := " " + view.Count(d.at) + " of " + view.Count(len(d.steps)) + "  esc: stop after this one"
		if d.stopped {
			text = strings.Replace(text, "esc: stop", "stopping", 1)
		}
		room := w - view.Width(since)
		bar := max(4, min(30, room-view.Width(text)-2))
		return st.Info.Of(st.Bar(float64(d.at)/float64(len(d.steps)), bar)) + st.Cut(text, room-bar) + since
	}
	switch missing := d.missing(); {
	case d.held:
		return st.Warn.Of(st.Cut("enter came too soon and was not taken: pause, then press it again", w))
	case missing == "":
		return st.Strong.Of(st.Cut("enter: "+d.Verb, w))
	case d.Pressed:
		return st.Bad.Of(st.Cut("! "+missing, w))
	default:
		return st.Warn.Of(st.Cut(missing, w))
	}
}

// counts are how many of several locks failed, and how many had ended before.
func (d *Dialog) counts() (failed, gone int) {
	for _, s := range d.steps {
		switch {
		case s.end == nil || s.end.err == nil:
		case s.end.gone():
			gone++
		default:
			failed++
		}
	}
	return failed, gone
}

// summary sums the results for several locks up.
func (d *Dialog) summary(st *styles.Styles) (*styles.Paint, string) {
	failed, gone := d.counts()
	text := view.Plural(d.at-failed-gone, "lock") + " " + d.Did
	p, glyph := &st.Good, st.On
	if gone > 0 {
		text += ", " + view.Count(gone) + " had ended by then"
	}
	if failed > 0 {
		text += ", " + view.Count(failed) + " failed"
		p, glyph = &st.Bad, st.Off
	}
	if left := len(d.steps) - d.at; left > 0 {
		text += ", " + view.Count(left) + " left as they are"
		if failed == 0 {
			p, glyph = &st.Warn, st.Half
		}
	}
	return p, glyph + " " + text
}

// progress is the results for several locks so far, in the order of the names.
func (d *Dialog) progress(st *styles.Styles, w int) (out []string) {
	name := 4
	for _, s := range d.steps {
		name = max(name, min(w/3, view.Width(s.name)))
	}
	for i, s := range d.steps {
		glyph, p, text := st.BareMajority, styles.Paint{}, "not begun"
		switch {
		case s.end == nil && i == d.at && d.running():
			glyph, p, text = st.Wait, st.Info, "working"+st.Ellipsis
		case s.end == nil && d.running():
			return out // what is still to come has nothing to tell
		case s.end == nil:
		case s.end.gone():
			text = "it had ended: nothing of this token was left"
		case s.end.err != nil:
			glyph, p, text = st.Off, st.Bad, st.Whole(s.end.err.Error())
		default:
			glyph, p, text = st.On, st.Good, s.end.done
			if silent := s.end.silent(st); silent != "" {
				glyph, p, text = st.Half, st.Warn, text+"; "+silent
			}
		}
		if s.end != nil {
			text = strings.Join(append([]string{text}, s.end.also...), "; ")
		}
		out = append(out, hanging(" "+p.Of(glyph)+" "+st.Pad(s.name, name)+"  ", text, w)...)
	}
	return out
}
