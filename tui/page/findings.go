package page

import (
	"fmt"
	"time"

	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/tui/styles"
)

// findingTable is the findings and which one is under the cursor, by what it is.
type findingTable struct {
	all []monitor.Finding
	id  string
	top int
}

func findingID(f *monitor.Finding) string { return f.ID + "\x00" + f.Node }

func (t *findingTable) set(all []monitor.Finding) {
	before := t.pos()
	t.all = all
	if t.pos() < 0 && len(all) > 0 {
		t.id = findingID(&all[max(0, min(before, len(all)-1))])
	}
}

func (t *findingTable) pos() int {
	for i := range t.all {
		if findingID(&t.all[i]) == t.id {
			return i
		}
	}
	return -1
}

func (t *findingTable) move(d int) { t.GoTo(max(0, t.pos()) + d) }

func (t *findingTable) GoTo(i int) {
	if len(t.all) > 0 {
		t.id = findingID(&t.all[max(0, min(len(t.all)-1, i))])
	}
}

func (t *findingTable) Selected() *monitor.Finding {
	if i := t.pos(); i >= 0 {
		return &t.all[i]
	}
	return nil
}

// findingsPage is which assumptions of Redlock do not hold here, and what that
// means; the one under the cursor in full.
type findingsPage struct {
	*Screen
	findings *findingTable
	height   int
	span     lineSpan // of its rows
	detailed bool
}

func (m *findingsPage) Place() Place        { return Place{Kind: Findings} }
func (m *findingsPage) Mode() Mode          { return ModeFindings }
func (m *findingsPage) Detail() *bool       { return &m.detailed }
func (m *findingsPage) Move(d int)          { m.findings.move(d) }
func (m *findingsPage) Rows() int           { return max(1, m.height-1) }
func (m *findingsPage) Selected() Selection { return Selection{Finding: m.findings.Selected()} }

func (m *findingsPage) Click(y int) bool {
	if i, ok := m.span.at(y); ok {
		m.findings.GoTo(m.findings.top + i)
	}
	return false
}

func (m *findingsPage) Lines(h int) []string {
	st, t, now := m.St, m.findings, m.Now
	left := " " + st.Title.Of("FINDINGS "+view.Count(len(t.all))) + "   "
	lines := []string{left + st.Dim.Of(st.Cut("what the safety of the locks rests on, and does not hold here", m.W-view.Width(left)))}
	if len(t.all) == 0 {
		glyph, p := st.On, st.Good
		text := "nothing found"
		if m.Shown.Cluster.Verdict == monitor.VerdictUnknown {
			glyph, p, text = st.Wait, st.Dim, "looking"+st.Ellipsis
		}
		return append(lines, "", styles.Blanks(styles.Lead)+p.Of(glyph+" "+text))
	}
	dock := append([]string{st.Ruler(m.W)}, m.finding(t.Selected(), m.W, now)...)
	most := max(3, h-1-len(dock))
	rows := min(len(t.all), most)
	dock = dock[:min(len(dock), max(0, h-1-rows))]
	pos := max(0, t.pos())
	t.top = scrollTo(t.top, pos, len(t.all), rows)
	m.height = rows
	m.span = lineSpan{1, rows}
	for i := t.top; i < min(len(t.all), t.top+rows); i++ {
		lines = append(lines, m.findingRow(&t.all[i], i == pos, now))
	}
	return append(styles.Fill(lines, h-len(dock)), dock...)
}

func (m *findingsPage) findingRow(f *monitor.Finding, under bool, now time.Time) string {
	st := m.St
	glyph, word, p := st.Severity(f.Severity)
	what := st.Whole(f.Title)
	if f.Node != "" {
		what = st.Escape(f.Node, 12) + ": " + what
	}
	if f.Count > 1 {
		what += fmt.Sprintf(" (%s locks)", view.Count(f.Count))
	}
	when := ""
	if !f.Since.IsZero() {
		when = view.Age(now.Sub(f.Since))
	}
	kind := st.Pad(glyph+" "+word, 10)
	room := m.W - styles.Lead - 10 - styles.Gap - 8
	text := st.Pad(st.Cut(what, room), room) + st.PadLeft(when, 7)
	if under {
		return st.Cursor.Of(st.Pad(" "+st.Pointer+" "+kind+styles.Blanks(styles.Gap)+text, m.W))
	}
	return styles.Blanks(styles.Lead) + p.Of(kind) + styles.Blanks(styles.Gap) + text
}

// finding is one finding in full.
func (m *findingsPage) finding(f *monitor.Finding, w int, now time.Time) []string {
	if f == nil {
		return nil
	}
	st := m.St
	glyph, word, p := st.Severity(f.Severity)
	head := " " + p.Of(glyph+" "+word) + "  " + st.Strong.Of(st.Whole(f.Title)) + "  " + st.Dim.Of(st.Whole(f.ID)+styles.Since(f.Since, now))
	out := []string{st.Cut(head, w)}
	add := func(label, text string) {
		if text == "" {
			return
		}
		for _, l := range styles.Wrap(st.Label.Of(st.Pad(label, 13))+text, w-2, 13) {
			out = append(out, " "+l)
		}
	}
	add("Seen", st.Whole(f.Evidence.Raw()))
	if !f.Key.Empty() {
		add("First lock", st.Name(f.Key.Raw()))
	}
	add("Means", st.Whole(f.Consequence))
	add("What to do", st.Whole(f.Remedy))
	return out
}
