package tui

import (
	"fmt"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"redlockctl/internal/view"
	"redlockctl/tui/action"
	"redlockctl/tui/page"
	"redlockctl/tui/styles"
)

// View implements [tea.Model]. It draws only if something changed.
func (m *model) View() tea.View {
	if !m.dirty {
		return m.view
	}
	m.dirty = false
	m.view = tea.NewView(m.frame())
	m.view.AltScreen = true
	if m.mouseOn {
		m.view.MouseMode = tea.MouseModeCellMotion
	}
	for _, d := range []*action.Dialog{m.Dialog, m.Result} {
		if d != nil && d.Drawn.IsZero() {
			d.Drawn = m.Now()
		}
	}
	return m.view
}

// frame draws the whole screen: exactly h lines, none wider than w.
func (m *model) frame() string {
	if m.W <= 0 || m.H <= 0 {
		return ""
	}
	m.hits.reset()
	m.Forget()
	m.Screen.Now, m.Asking = m.shownNow(), m.Dialog != nil
	var lines []string
	if m.tooSmall() {
		text := fmt.Sprintf("terminal too small: %d%s%d of at least %d%s%d", m.W, m.St.Times, m.H, minWidth, m.St.Times, minHeight)
		lines = styles.Wrap(text, m.W, 0)
	} else {
		lines = styles.Fill(m.body(), m.H-1)
		lines = append(lines, m.lastLine())
	}
	lines = lines[:min(len(lines), m.H)]
	for i, l := range lines {
		if view.Width(l) > m.W { // a part is too wide: it must not break the screen
			lines[i] = m.St.Cut(l, m.W)
		}
	}
	return strings.Join(lines, "\n")
}

// lastLine is a message, the prompt, or the keys.
func (m *model) lastLine() string {
	st := m.St
	switch mode := m.mode(); {
	case m.notice != "":
		return " " + m.notice
	case mode == page.ModeFilter:
		f := m.Page.(page.Filtered)
		found := "looking" + st.Ellipsis
		if n, of, ok := f.Found(); ok {
			found = fmt.Sprintf("%s of %s", view.Count(n), view.Count(of))
		}
		m.completes.Ask(f.FilterLine(), f.FilterOffers)
		switch why := f.FilterProblem(); {
		case m.refused:
			found = st.Bad.Of("! not applied")
		case why != "" && len(m.completes.Offers) == 0: // otherwise it is incomplete
			found = st.Bad.Of(st.Cut("! "+why, max(m.W/2, m.W-view.Width(f.FilterLine().String())-11)))
		default:
			found = st.Dim.Of(found)
		}
		return m.prompt(" / ", f.FilterLine(), &m.completes, f.FilterOffers, found)
	case mode == page.ModeCommand:
		return m.prompt(" : ", &m.line.Line, &m.line.Completion, m.offers, "")
	default:
		return m.keys.Line(st, mode, m.W)
	}
}

// body is everything above the last line.
func (m *model) body() []string {
	st, now := m.St, m.Screen.Now
	lines := []string{m.Header(m.Viewed())}
	if m.Frozen.On() {
		s := " FROZEN at " + view.Clock(now) + " (" + view.Age(m.Now().Sub(now)) + ") " + st.Sep + " still collecting " + st.Sep + " space: resume"
		lines = append(lines, st.Banner.Of(st.Pad(s, m.W)))
	}
	if m.replay != nil {
		lines = append(lines, m.replayBanner(m.W))
	}
	lines = append(lines, m.KeptLines(m.W)...)
	if m.refused && m.mode() == page.ModeFilter { // in full, however long
		for _, l := range styles.Wrap(st.Bad.Of(m.Page.(page.Filtered).FilterProblem()), m.W-4, 2) {
			lines = append(lines, " "+st.Bad.Of("! ")+l)
		}
	}
	lines = append(lines, m.guide(m.W)...)
	if page.Tabbed(m.H) {
		m.hits.tabRow = len(lines)
		lines = append(lines, m.tabs(m.W))
	}
	m.hits.base = len(lines)
	who := m.WhoLines(m.W, m.H/3)
	room := m.H - 1 - len(lines) - len(who)
	lines = append(styles.Fill(append(lines, m.Page.Lines(room)...), len(lines)+room), who...)
	switch {
	case m.Dialog != nil:
		box := m.Dialog.Box(st, m.boxWidth(), room, m.Now())
		for i := range lines {
			lines[i] = st.Dim.Of(styles.Bare(lines[i]))
		}
		lines = m.over(lines, box, (m.W-view.Width(box[0]))/2, m.hits.base+(room-len(box))/2)
	case m.Result != nil:
		box := m.Result.Box(st, m.boxWidth(), room, m.Now())
		lines = m.over(lines, box, m.W-view.Width(box[0])-1, m.hits.base+room-len(box))
	}
	return lines
}

// boxWidth is the greatest width of a box over the page.
func (m *model) boxWidth() int {
	if m.W < 76 {
		return m.W
	}
	return m.W - 4
}

// over draws a box over lines, its first cell at x, y.
func (m *model) over(lines, box []string, x, y int) []string {
	lines = styles.Fill(lines, m.H-1)
	base := lipgloss.NewLayer(strings.Join(lines, "\n"))
	top := lipgloss.NewLayer(strings.Join(box, "\n")).X(max(0, x)).Y(max(0, y)).Z(1)
	return strings.Split(lipgloss.NewCompositor(base, top).Render(), "\n")
}

// tabs draws the line of pages, with names if they fit, otherwise with numbers.
func (m *model) tabs(w int) string {
	brief := view.Clock(m.Screen.Now)
	clock := m.Screen.Now.Format("MST ") + brief
	for _, try := range []struct {
		pad   int
		clock string // with the space after it
	}{{1, clock + " "}, {0, clock + " "}, {0, brief}} {
		line := m.tabLine(try.pad, true)
		if gap := w - view.Width(line) - view.Width(try.clock); gap > 0 {
			return line + styles.Blanks(gap) + m.St.Dim.Of(strings.TrimSpace(try.clock))
		}
	}
	if line := m.tabLine(0, true); view.Width(line) <= w {
		return line
	}
	return m.St.Cut(m.tabLine(0, false), w)
}

func (m *model) tabLine(pad int, names bool) string {
	st := m.St
	current := m.Viewed().Tab()
	line := " "
	m.hits.tabs = m.hits.tabs[:0]
	for v := range page.NumTabs {
		if m.whyNoView(v) != "" {
			continue
		}
		label := strconv.Itoa(int(v) + 1)
		if names || v == current {
			label += " " + v.String()
		}
		n := len(m.Shown.Findings)
		if v == page.Findings && n > 0 {
			label += " " + view.Count(n)
		}
		label = styles.Blanks(pad) + label + styles.Blanks(pad)
		from := view.Width(line)
		switch {
		case v == current:
			line += st.Cursor.Of(label)
		case v == page.Findings && n > 0:
			line += st.Paint(st.Severity(m.Shown.Findings[0].Severity).Tone).Of(label)
		default:
			line += st.Dim.Of(label)
		}
		m.hits.tabs = append(m.hits.tabs, tabHit{from, from + view.Width(label), v})
		line += " "
	}
	return strings.TrimRight(line, " ")
}
