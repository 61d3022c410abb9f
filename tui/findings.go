package tui

import (
	"fmt"
	"time"

	"redlockctl/monitor"
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

func (t *findingTable) move(d int) { t.goTo(max(0, t.pos()) + d) }

func (t *findingTable) goTo(i int) {
	if len(t.all) > 0 {
		t.id = findingID(&t.all[max(0, min(len(t.all)-1, i))])
	}
}

func (t *findingTable) click(row int) { t.goTo(t.top + row) }

func (t *findingTable) selected() *monitor.Finding {
	if i := t.pos(); i >= 0 {
		return &t.all[i]
	}
	return nil
}

// findingsPage is which assumptions of Redlock do not hold here, and what that
// means; the one under the cursor in full.
func (m *model) findingsPage(h int, now time.Time) []string {
	st, t := m.st, &m.findings
	left := " " + st.title.of("FINDINGS "+count(len(t.all))) + "   "
	lines := []string{left + st.dim.of(st.cut("what the safety of the locks rests on, and does not hold here", m.w-width(left)))}
	if len(t.all) == 0 {
		glyph, p := st.on, st.good
		text := "nothing found"
		if m.shown.Cluster.Verdict == monitor.VerdictUnknown {
			glyph, p, text = st.wait, st.dim, "looking"+st.ellipsis
		}
		return append(lines, "", blanks(lockLead)+p.of(glyph+" "+text))
	}
	dock := append([]string{m.ruler()}, m.finding(t.selected(), m.w, now)...)
	most := max(3, h-1-len(dock))
	rows := min(len(t.all), most)
	dock = dock[:min(len(dock), max(0, h-1-rows))]
	pos := max(0, t.pos())
	if pos < t.top {
		t.top = pos
	}
	if pos >= t.top+rows {
		t.top = pos - rows + 1
	}
	t.top = max(0, min(t.top, len(t.all)-rows))
	m.pageRows = rows
	m.hits.findings = lineSpan{m.hits.base + 1, rows}
	for i := t.top; i < min(len(t.all), t.top+rows); i++ {
		lines = append(lines, m.findingRow(&t.all[i], i == pos, now))
	}
	return append(fill(lines, h-len(dock)), dock...)
}

func (m *model) findingRow(f *monitor.Finding, under bool, now time.Time) string {
	st := m.st
	glyph, word, p := st.severity(f.Severity)
	what := st.whole(f.Title)
	if f.Node != "" {
		what = st.escape(f.Node, 12) + ": " + what
	}
	if f.Count > 1 {
		what += fmt.Sprintf(" (%s locks)", count(f.Count))
	}
	when := ""
	if !f.Since.IsZero() {
		when = age(now.Sub(f.Since))
	}
	kind := st.pad(glyph+" "+word, 10)
	room := m.w - lockLead - 10 - gap - 8
	text := st.pad(st.cut(what, room), room) + st.padLeft(when, 7)
	if under {
		return st.cursor.of(st.pad(" "+st.pointer+" "+kind+blanks(gap)+text, m.w))
	}
	return blanks(lockLead) + p.of(kind) + blanks(gap) + text
}

// finding is one finding in full.
func (m *model) finding(f *monitor.Finding, w int, now time.Time) []string {
	if f == nil {
		return nil
	}
	st := m.st
	glyph, word, p := st.severity(f.Severity)
	head := " " + p.of(glyph+" "+word) + "  " + st.strong.of(st.whole(f.Title)) + "  " + st.dim.of(st.whole(f.ID)+since(f.Since, now))
	out := []string{st.cut(head, w)}
	add := func(label, text string) {
		if text == "" {
			return
		}
		for _, l := range wrap(st.label.of(st.pad(label, 13))+text, w-2, 13) {
			out = append(out, " "+l)
		}
	}
	add("Seen", st.whole(f.Evidence.Raw()))
	if !f.Key.Empty() {
		add("First lock", st.name(f.Key.Raw()))
	}
	add("Means", st.whole(f.Consequence))
	add("What to do", st.whole(f.Remedy))
	return out
}
