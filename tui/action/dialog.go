package action

import (
	"context"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"redlockctl/internal/operator"
	"redlockctl/internal/view"
	"redlockctl/tui/input"
	"redlockctl/tui/page"
	"redlockctl/tui/styles"
)

// SettleTime is how long a dialog must be shown without a key press before it accepts
// enter, so that a key for the previous screen does not answer an unread question. Text
// goes into its fields at once.
const SettleTime = 300 * time.Millisecond

// field is a text field or a choice.
type field struct {
	label string
	input.Line
	Choices []string      // nil: a text field
	chosen  int           // index of the choice
	check   func() string // what is missing or wrong in it; nil or "": nothing
}

// newField returns a text field; text stands in it until something is typed.
func newField(label, text string) *field { return &field{label: label, Line: input.Prefilled(text)} }

// text returns the typed text without blanks around it.
func (f *field) text() string { return strings.TrimSpace(f.String()) }

// untouched reports whether nothing was typed or chosen.
func (f *field) untouched() bool { return f.chosen == 0 && f.String() == "" }

// Choose handles a key at a choice: space selects the next one, a letter the one that
// begins with it.
func (f *field) Choose(text string) {
	if text == " " {
		f.chosen = (f.chosen + 1) % len(f.Choices)
	} else if i := slices.IndexFunc(f.Choices, func(c string) bool { return strings.HasPrefix(c, text) }); i >= 0 {
		f.chosen = i
	}
}

// line draws the content of the field in at most w cells.
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

// Dialog asks before an action, runs its steps, and reports their results. It keeps the
// lock, token and node for which it was opened, wherever the cursor moves.
type Dialog struct {
	title, Verb string          // verb: what enter does
	Lock        string          // its target, if that is to be removed; empty: something else
	danger      bool            // it can let two clients hold one lock
	Refusal     bool            // it only says why an action is not possible
	facts       func() []string // the target, and what the action will do
	Fields      []*field
	check       func() string // what is wrong apart from the fields; nil or "": nothing
	// start makes the steps from the fields. It runs in the program's goroutine; the steps
	// run in others and must not use the model.
	start func() []step
	Did   string         // the result of each step, for several locks: "revoked"
	then  func() tea.Cmd // runs if nothing failed; nil: show the result

	Focus, Scroll int
	Pressed       bool      // enter was pressed while something was missing
	Drawn         time.Time // when it was first shown; zero: not yet
	early         time.Time // the last key before it accepted enter
	held          string    // why the last key, an enter, was ignored; empty: it was not
	Stray         bool      // text was typed, and there is no field for it
	began         time.Time // start of the action; zero: not started
	waited        time.Time // when its result was last seen to wait for something; zero: it never did
	steps         []step
	at            int  // the running or next step
	stopped       bool // no further step starts
	ended         bool
	failed        bool // a step failed
	long          bool // it does not fit on the screen
}

// step is a part of an action that is sent, logged and reported by itself.
type step struct {
	name string // safe to show
	run  func(context.Context) Outcome
	end  *Outcome // nil: not yet
}

// oneStep returns the steps of a dialog with a single step.
func oneStep(run func(context.Context) Outcome) []step { return []step{{run: run}} }

// waits reports whether what it did still waits for something.
func (d *Dialog) waits() bool {
	return slices.ContainsFunc(d.steps, func(s step) bool { return s.end != nil && s.end.waits() != "" })
}

// shown returns since when its result, as it is now, has been shown.
func (d *Dialog) shown() time.Time {
	if d.waited.After(d.Drawn) {
		return d.waited
	}
	return d.Drawn
}

func (d *Dialog) Mode() page.Mode {
	if d.began.IsZero() {
		return page.ModeDialog
	}
	return page.ModeWorking
}

// missing says what is missing or wrong, and in which field; -1: in none.
func (d *Dialog) missing() (why string, at int) {
	if d.check != nil {
		if why = d.check(); why != "" {
			return why, -1
		}
	}
	for i, f := range d.Fields {
		if f.check != nil {
			if why = f.check(); why != "" {
				return why, i
			}
		}
	}
	return "", -1
}

// listens reports whether a key pressed now is meant for this dialog.
func (d *Dialog) listens(now time.Time) bool {
	return !d.Drawn.IsZero() && now.Sub(d.Drawn) >= SettleTime && now.Sub(d.early) >= SettleTime
}

// HoldsBack records a key, and reports whether it is an enter that may have been meant for
// the previous screen, or after text that has no field. The dialog then says so.
func (d *Dialog) HoldsBack(key string, now time.Time) bool {
	early := !d.listens(now)
	if early {
		d.early = now
	}
	d.held = ""
	if key != "enter" || d.Mode() != page.ModeDialog {
		return false
	}
	switch {
	case early:
		d.held = "enter came too soon and was not taken: pause, then press it again"
	case d.Stray:
		d.held, d.Stray = "what was typed was not taken: there is no field here; press enter again", false
	}
	return d.held != ""
}

// Focused returns the field that receives letters; nil if none.
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

// running reports whether a step runs or another one follows.
func (d *Dialog) running() bool { return !d.stopped && d.at < len(d.steps) }

// mostWide bounds the width of a dialog: longer lines are hard to read.
const mostWide = 100

// Box draws the dialog, or the result of its action, as a box in w by h cells. The fields
// and what is missing are always visible; facts that do not fit are scrolled.
func (d *Dialog) Box(st *styles.Styles, w, h int, now time.Time) []string {
	w = min(w, mostWide)
	in := w - 2
	title := page.Pane{Title: d.title, Focused: true}
	switch {
	case d.danger:
		title.Paint = &st.Bad
	case d.Refusal:
		title.Paint = &st.Warn
	}
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
	// Room for facts: empty lines are dropped first, then facts scroll.
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

// form draws the fields, one per line; the label of one that nobody has touched is dim.
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
		name := st.Pad(f.label, label)
		if !focused && f.untouched() {
			name = st.Dim.Of(name)
		}
		line := " " + name + " " + mark
		lines = append(lines, line+f.line(st, w-view.Width(line)-1, focused))
	}
	return lines
}

// hint says what enter does, or what is missing, or the progress of a running action.
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
	switch missing, _ := d.missing(); {
	case d.held != "":
		return st.Warn.Of(st.Cut(d.held, w))
	case d.Refusal:
		return st.Cut(st.Strong.Of("enter")+" or "+st.Strong.Of("esc")+" closes this", w)
	case missing == "":
		p := st.Strong
		if d.danger {
			p = st.Bad
		}
		return st.Cut(p.Of("enter "+d.Verb)+" "+st.Sep+" esc cancel", w)
	case d.Pressed:
		return st.Bad.Of(st.Cut("! "+missing, w))
	default:
		return st.Warn.Of(st.Cut(missing, w))
	}
}

// counts returns how many of several locks failed, and how many had already ended.
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

// summary summarizes the results for several locks.
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

// progress lists the results for several locks so far, in the order of the names.
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
			return out // the following steps have no results yet
		case s.end == nil:
		case s.end.gone():
			text = "it had ended: nothing of this token was left"
			if by := operator.OvertakenBy(s.end.err); by != "" {
				text += "; " + st.Whole(by)
			}
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
