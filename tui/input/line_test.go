package input

import (
	"strings"
	"testing"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"redlockctl/internal/view"
	"redlockctl/tui/styles"
)

func press(l *Line, keys ...tea.KeyPressMsg) {
	for _, k := range keys {
		l.Press(k)
	}
}

// What is typed or pasted first replaces a prefilled text; an editing key edits it.
func TestPrefilledLine(t *testing.T) {
	four, five := tea.KeyPressMsg{Code: '4', Text: "4"}, tea.KeyPressMsg{Code: '5', Text: "5"}
	for want, do := range map[string]func(l *Line){
		"45":   func(l *Line) { press(l, four, five) },
		"9s":   func(l *Line) { l.Paste("9s") },
		"30s":  func(l *Line) { l.Paste("\n") },
		"30":   func(l *Line) { press(l, tea.KeyPressMsg{Code: tea.KeyBackspace}) },
		"30s4": func(l *Line) { press(l, tea.KeyPressMsg{Code: tea.KeyEnd}, four) },
		"20s5": func(l *Line) { l.Set("20s"); press(l, five) },
	} {
		l := Prefilled("30s")
		if do(&l); l.String() != want {
			t.Errorf("%q, want %q", l.String(), want)
		}
	}
}

func TestLine(t *testing.T) {
	ctrl := func(r rune) tea.KeyPressMsg { return tea.KeyPressMsg{Code: r, Mod: tea.ModCtrl} }
	left, backspace, del := tea.KeyPressMsg{Code: tea.KeyLeft}, tea.KeyPressMsg{Code: tea.KeyBackspace}, tea.KeyPressMsg{Code: tea.KeyDelete}
	st := styles.New(styles.Look{Theme: styles.ThemeNone})
	l := New("ab")
	l.Paste("c\x1b\n宽")
	if l.String() != "abc宽" {
		t.Errorf("%q", l.String())
	}
	press(&l, left, left, tea.KeyPressMsg{Code: 'X', Text: "X"}, backspace, del)
	if l.String() != "ab宽" || l.text.Position() != 2 {
		t.Errorf("%q at %d", l.String(), l.text.Position())
	}
	l.Set("one two  ")
	press(&l, ctrl('w'))
	if l.String() != "one " {
		t.Errorf("%q", l.String())
	}
	press(&l, ctrl('u'))
	if l.String() != "" {
		t.Errorf("%q", l.String())
	}
	for _, k := range []tea.KeyPressMsg{ctrl('v'), ctrl('k'), {Code: tea.KeyTab}, {Code: tea.KeyUp}} {
		if l.Press(k) {
			t.Errorf("%s is taken", k)
		}
	}
	l.Paste(strings.Repeat("x\u202e宽", 5000))
	if n := utf8.RuneCountInString(l.String()); n != Longest {
		t.Errorf("%d runes", n)
	}
	for _, pos := range []int{0, 5, Longest} {
		l.text.SetCursor(pos)
		for w := range 30 {
			if s := st.Typed(l.View(&st.Glyphs, w)); view.Width(s) > max(w, 0) && w >= 8 {
				t.Errorf("%d cells of %d: %q", view.Width(s), w, s)
			} else if strings.ContainsRune(s, '\u202e') {
				t.Error("a pasted bidi control is drawn raw")
			}
		}
	}
}
