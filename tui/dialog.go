package tui

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"redlockctl/internal/view"
	"redlockctl/redlock"
	"redlockctl/tui/input"
	"redlockctl/tui/page"
	"redlockctl/tui/styles"
)

// settleTime is how long a dialog stands on the screen, with no key pressed,
// before it listens: what was typed for the screen before it must not answer a
// question that nobody has read.
const settleTime = 300 * time.Millisecond

// field is one line to fill in, or a choice.
type field struct {
	label string
	input.Line
	choices []string // nil: a line of text
	chosen  int      // of the choices
}

func newField(label, text string) *field { return &field{label: label, Line: input.New(text)} }

// choose takes a key pressed at a choice: a blank is the next one, a letter the
// one that begins with it.
func (f *field) choose(text string) {
	if text == " " {
		f.chosen = (f.chosen + 1) % len(f.choices)
		return
	}
	for i, c := range f.choices {
		if strings.HasPrefix(c, text) {
			f.chosen = i
			return
		}
	}
}

// line draws what stands in the field in at most w cells.
func (f *field) line(st *styles.Styles, w int, focused bool) string {
	switch {
	case f.choices == nil && focused:
		return f.View(st, w)
	case f.choices == nil:
		return st.Cut(st.Whole(f.String()), w)
	case focused:
		return st.Cut(st.Cursor.Of(f.choices[f.chosen])+st.Dim.Of("  space: change"), w)
	default:
		return st.Cut(f.choices[f.chosen], w)
	}
}

// dialog asks before an act, runs it, and tells how it ended. It is about what
// was on the screen when it opened: lock, token, node are kept in it and do not
// follow the cursor.
type dialog struct {
	id     int
	title  string
	verb   string // what enter does
	danger bool
	facts  func(w int) []string // what is known, and what the act will do
	fields []*field
	focus  int
	check  func() string // what is still missing or in the way; "": nothing
	// start makes the act out of what was filled in. It runs in the model's
	// goroutine; what it returns does not, and touches nothing of the model.
	start func() func(context.Context) outcome
	// many is an act on several locks, one after the other, which prepare fills;
	// start is nil then.
	many    *batch
	prepare func()

	scroll  int
	pressed bool      // enter was pressed while something was missing
	drawn   time.Time // since when it is on the screen; zero: not yet
	early   time.Time // the last key that came too early
	began   time.Time // of the act; zero: it asks
	end     *outcome  // of the act
}

// outcome is how an act ended.
type outcome struct {
	id    int
	what  string // "force-release orders:42", safe to show
	words map[redlock.Status]string
	nodes []redlock.NodeResult
	err   error
	done  string         // what to say where there is no error
	also  []string       // what became of further keys of the lock, safe to show
	grant *grant         // what was acquired or extended
	freed *grant         // what was released
	then  func() tea.Cmd // what follows, in the model's goroutine, if there is no error
}

// partly tells of an act that failed if something was done all the same.
func (o *outcome) partly() bool {
	return slices.ContainsFunc(o.nodes, func(n redlock.NodeResult) bool { return n.Status == redlock.StatusOK })
}

func (d *dialog) mode() page.Mode {
	switch {
	case d.end != nil:
		return page.ModeResult
	case !d.began.IsZero():
		return page.ModeWorking
	default:
		return page.ModeDialog
	}
}

// listens tells if a key pressed now was pressed at this dialog.
func (d *dialog) listens(now time.Time) bool {
	if d.drawn.IsZero() {
		return false
	}
	return now.Sub(d.drawn) >= settleTime && now.Sub(d.early) >= settleTime
}

// lines draws the dialog in at most h lines. The fields and what is missing are
// always in sight; facts that do not fit are scrolled.
func (d *dialog) lines(st *styles.Styles, w, h int, now time.Time) []string {
	title := st.Title.Of(" " + st.Cut(d.title, w-2))
	var body, foot []string
	switch mode := d.mode(); {
	case mode == page.ModeResult:
		title, body = d.result(st, w, now)
	case mode == page.ModeWorking && d.many != nil:
		body = d.many.lines(st, w)
		d.scroll = len(body) // the latest
		foot = append(foot, " "+d.hint(st, w-2, now))
	default:
		for _, f := range d.facts(w - 2) {
			for _, l := range styles.Wrap(f, w-2, styles.FactIndent) {
				body = append(body, " "+l)
			}
		}
		label := 0
		for _, f := range d.fields {
			label = max(label, view.Width(f.label))
		}
		label = min(label, w/2)
		for i, f := range d.fields {
			mark := "  "
			if i == d.focus && d.began.IsZero() {
				mark = "> "
			}
			line := " " + st.Pad(f.label, label) + " " + mark
			foot = append(foot, line+f.line(st, w-view.Width(line)-1, i == d.focus && d.began.IsZero()))
		}
		foot = append(foot, " "+d.hint(st, w-2, now))
	}
	// The most that facts may take: blanks go first, then they scroll.
	room := h - 1 - len(foot)
	if len(body)+1 > room {
		body = styles.DropBlank(body)
	}
	out := []string{title}
	if len(body) > room {
		room = max(0, room-1)
		d.scroll = max(0, min(d.scroll, len(body)-room))
		left := len(body) - d.scroll - room
		body = body[d.scroll:min(len(body), d.scroll+room)]
		out = append(out, body...)
		more := " pgup"
		if left > 0 {
			more = " " + view.Count(left) + " more lines: pgdn"
		}
		out = append(out, st.Warn.Of(more))
	} else {
		d.scroll = 0
		spare := room - len(body)
		if spare > 0 && len(body) > 0 {
			out = append(out, "")
			spare--
		}
		out = append(out, body...)
		if spare > 0 && len(foot) > 1 {
			out = append(out, "")
		}
	}
	return append(out, foot...)
}

func (d *dialog) hint(st *styles.Styles, w int, now time.Time) string {
	if !d.began.IsZero() {
		since := " " + view.Age(now.Sub(d.began))
		if d.many != nil {
			return d.many.progress(st, w-view.Width(since)) + since
		}
		return st.Info.Of("working" + st.Ellipsis + since)
	}
	missing := d.check()
	switch {
	case missing == "":
		return st.Strong.Of(st.Cut("enter: "+d.verb, w))
	case d.pressed:
		return st.Bad.Of(st.Cut("! "+missing, w))
	default:
		return st.Warn.Of(st.Cut(missing, w))
	}
}

// result tells what happened, on each node.
func (d *dialog) result(st *styles.Styles, w int, now time.Time) (title string, body []string) {
	if d.many != nil {
		return d.many.title(st, w), d.many.lines(st, w)
	}
	o := d.end
	nodes := o.nodes
	if o.err != nil {
		how := ": failed"
		if o.partly() {
			how = ": done in part"
		}
		title = st.Bad.Of(" " + st.Off + " " + st.Cut(o.what, w-4-view.Width(how)) + how)
		for _, l := range styles.Wrap(st.Whole(o.err.Error()), w-2, 2) {
			body = append(body, " "+l)
		}
		if len(nodes) == 0 {
			nodes = failedNodes(o.err)
		}
	} else {
		p, glyph := st.Good, st.On
		for _, n := range nodes {
			if !n.MayLiveUntil.IsZero() {
				p, glyph = st.Warn, st.Half
			}
		}
		title = p.Of(" " + glyph + " " + st.Cut(o.what, w-10) + ": done")
		if o.done != "" {
			for _, l := range styles.Wrap(o.done, w-2, 2) {
				body = append(body, " "+l)
			}
		}
	}
	for _, more := range o.also {
		for _, l := range styles.Wrap(more, w-2, 2) {
			body = append(body, " "+l)
		}
	}
	if len(nodes) > 0 && len(body) > 0 {
		body = append(body, "")
	}
	name := 4
	for _, n := range nodes {
		name = max(name, min(12, view.Width(st.Whole(n.Node))))
	}
	for _, n := range nodes {
		body = append(body, nodeResult(st, n, o.words, name, w, now)...)
	}
	return title, body
}

// nodeResult is one node's part in an act: a line, or several where there is
// trouble to tell of.
func nodeResult(st *styles.Styles, n redlock.NodeResult, words map[redlock.Status]string, name, w int, now time.Time) []string {
	glyph, p := st.Off, st.Bad
	switch n.Status {
	case redlock.StatusOK:
		glyph, p = st.On, st.Good
	case redlock.StatusAbsent:
		glyph, p = st.BareMajority, styles.Paint{}
	case redlock.StatusUnanswered, redlock.StatusSkipped, redlock.StatusSlow:
		glyph, p = st.Wait, st.Warn
	case redlock.StatusFenced:
		glyph, p = st.Half, st.Warn
	case redlock.StatusDenied:
		glyph, p = st.Odd, st.Bad
	}
	line := " " + st.Pad(st.Escape(n.Node, name), name) + "  " + p.Of(st.Pad(glyph+" "+n.Status.String(), styles.StateWidth)) + "  "
	var parts []string
	if s := words[n.Status]; s != "" {
		parts = append(parts, s)
	}
	if !n.MayLiveUntil.IsZero() {
		left := n.MayLiveUntil.Sub(now)
		if left > 0 {
			parts = append(parts, "a copy may live there until "+view.Clock(n.MayLiveUntil)+" ("+view.Remaining(left)+")")
		}
	}
	if n.Err != nil {
		parts = append(parts, st.Whole(n.Err.Error()))
	}
	if n.Status == redlock.StatusUnanswered && parts == nil {
		parts = append(parts, "it was decided before this node answered")
	}
	if n.Status == redlock.StatusDenied {
		parts = append(parts, missingRight)
	}
	var lines []string
	for i, l := range styles.Wrap(strings.Join(parts, "; "), max(4, w-view.Width(line)-1), 0) {
		if i > 0 {
			line = styles.Blanks(view.Width(line))
		}
		lines = append(lines, line+l)
	}
	return lines
}

// missingRight is what to do about a user that must not do what was asked.
const missingRight = "redlockctl config acl operator prints the rights that its user needs, unless its guard has closed it"

// failedNodes are the nodes' results in an error of the lock algorithm.
func failedNodes(err error) []redlock.NodeResult {
	var e *redlock.Error
	if errors.As(err, &e) {
		return e.Nodes
	}
	return nil
}

// openDialog shows d. The order of the table stands still until it is closed.
func (m *model) openDialog(d *dialog) tea.Cmd {
	m.lastID++
	d.id = m.lastID
	m.dialog = d
	m.Locks.Pin(true)
	return nil
}

func (m *model) closeDialog() tea.Cmd {
	m.dialog = nil
	m.Locks.Pin(false)
	return nil
}

// submit is enter in a dialog: the act, if nothing is missing.
func (m *model) submit() tea.Cmd {
	d := m.dialog
	if d.check() != "" {
		d.pressed = true
		return nil
	}
	d.began = m.now()
	if d.many != nil {
		d.prepare()
		return m.carryOut(d, d.many.next())
	}
	return m.carryOut(d, d.start())
}

// carryOut runs an act of a dialog.
func (m *model) carryOut(d *dialog, act func(context.Context) outcome) tea.Cmd {
	m.busy++
	run, ctx, id := m.running, m.ctx, d.id
	return func() tea.Msg {
		if !run.begin() {
			return nil
		}
		defer run.end()
		ctx, cancel := context.WithTimeout(ctx, actTimeout)
		defer cancel()
		o := act(ctx)
		o.id = id
		return o
	}
}

// finish takes the outcome of an act.
func (m *model) finish(o outcome) tea.Cmd {
	m.busy--
	if o.grant != nil {
		m.mine[o.grant.key] = *o.grant
	}
	if f := o.freed; f != nil && o.err == nil && m.mine[f.key].token == f.token {
		delete(m.mine, f.key)
	}
	if o.then != nil && o.err == nil {
		return o.then()
	}
	d := m.dialog
	if d == nil || d.id != o.id {
		// It was sent to the background: a line must do.
		if o.err != nil {
			m.say(m.St.Bad, o.what+": failed: "+m.St.Whole(o.err.Error()))
		} else {
			m.say(m.St.Good, o.what+": done")
		}
		return nil
	}
	if d.many != nil && d.many.took(o) {
		return m.carryOut(d, d.many.next())
	}
	d.end = &o
	d.drawn = time.Time{}
	d.scroll = 0
	return nil
}

// leaveWork is esc while an act runs: one act goes on in the background, of
// several the one that runs is the last.
func (m *model) leaveWork() tea.Cmd {
	if d := m.dialog; d.many != nil {
		d.many.stopped = true
		return nil
	}
	return m.closeDialog()
}

// readOn turns the lines of a dialog that do not fit.
func (m *model) readOn(lines int) tea.Cmd {
	m.dialog.scroll = max(0, m.dialog.scroll+lines)
	return nil
}

func (m *model) nextField() tea.Cmd { return m.turnField(1) }
func (m *model) prevField() tea.Cmd { return m.turnField(-1) }

func (m *model) turnField(d int) tea.Cmd {
	if n := len(m.dialog.fields); n > 0 {
		m.dialog.focus = (m.dialog.focus + d + n) % n
	}
	return nil
}

func (m *model) whyOneField() string {
	if len(m.dialog.fields) < 2 {
		return "there is no other field"
	}
	return ""
}
