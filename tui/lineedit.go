package tui

import (
	"slices"
	"unicode"

	"redlockctl/internal/view"
	"redlockctl/tui/styles"
)

// lineEdit is one line of text that a person types.
type lineEdit struct {
	runes []rune
	pos   int // the cursor stands before this rune
}

// longestLine bounds what a paste may put into a line.
const longestLine = 4096

func newLineEdit(s string) lineEdit {
	r := []rune(s)
	return lineEdit{r, len(r)}
}

func (e *lineEdit) String() string { return string(e.runes) }

// insert puts text at the cursor. Control characters, such as the line end of
// a paste, are left out.
func (e *lineEdit) insert(s string) {
	var in []rune
	for _, r := range s {
		if !unicode.IsControl(r) {
			in = append(in, r)
		}
	}
	in = in[:max(0, min(len(in), longestLine-len(e.runes)))]
	e.runes = slices.Insert(e.runes, e.pos, in...)
	e.pos += len(in)
}

func (e *lineEdit) backspace() {
	if e.pos > 0 {
		e.pos--
		e.runes = slices.Delete(e.runes, e.pos, e.pos+1)
	}
}

func (e *lineEdit) del() {
	if e.pos < len(e.runes) {
		e.runes = slices.Delete(e.runes, e.pos, e.pos+1)
	}
}

// killWord deletes the word before the cursor.
func (e *lineEdit) killWord() {
	i := e.pos
	for i > 0 && unicode.IsSpace(e.runes[i-1]) {
		i--
	}
	for i > 0 && !unicode.IsSpace(e.runes[i-1]) {
		i--
	}
	e.runes = slices.Delete(e.runes, i, e.pos)
	e.pos = i
}

// killStart deletes everything before the cursor.
func (e *lineEdit) killStart() {
	e.runes = slices.Delete(e.runes, 0, e.pos)
	e.pos = 0
}

func (e *lineEdit) move(d int) { e.pos = max(0, min(len(e.runes), e.pos+d)) }

// view draws the line with its cursor in at most w cells; the part around the
// cursor stays in sight. What was pasted is as untrusted as what was read.
func (e *lineEdit) view(st *styles.Styles, w int) string {
	if w < 2 {
		return ""
	}
	before := st.Whole(string(e.runes[:e.pos]))
	at, after := " ", ""
	if e.pos < len(e.runes) {
		at = st.Whole(string(e.runes[e.pos]))
		after = st.Whole(string(e.runes[e.pos+1:]))
	}
	if room := w - view.Width(at); view.Width(before) > room {
		before = view.CutLeft(before, room)
	}
	after = st.Cut(after, w-view.Width(before)-view.Width(at))
	return before + st.Cursor.Of(at) + after
}
