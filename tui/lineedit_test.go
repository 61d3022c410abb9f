package tui

import (
	"strings"
	"testing"

	"redlockctl/internal/view"
	"redlockctl/tui/styles"
)

func TestLineEdit(t *testing.T) {
	st := styles.New(false, styles.ThemeNone)
	e := newLineEdit("ab")
	e.insert("c\x1b\n宽")
	if e.String() != "abc宽" {
		t.Errorf("%q", e.String())
	}
	e.move(-2)
	e.insert("X")
	e.backspace()
	e.del()
	if e.String() != "ab宽" || e.pos != 2 {
		t.Errorf("%q at %d", e.String(), e.pos)
	}
	e = newLineEdit("one two  ")
	e.killWord()
	if e.String() != "one " {
		t.Errorf("%q", e.String())
	}
	e.killStart()
	if e.String() != "" {
		t.Errorf("%q", e.String())
	}
	e.insert(strings.Repeat("x\u202e宽", 5000))
	if len(e.runes) != longestLine {
		t.Errorf("%d runes", len(e.runes))
	}
	for pos := range []int{0, 5, longestLine} {
		e.pos = pos
		for w := range 30 {
			if s := e.view(&st, w); view.Width(s) > max(w, 0) && w >= 8 {
				t.Errorf("%d cells of %d: %q", view.Width(s), w, s)
			} else if strings.ContainsRune(s, '\u202e') {
				t.Error("a pasted bidi control is drawn raw")
			}
		}
	}
}
