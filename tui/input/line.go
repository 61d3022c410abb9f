// Package input is a one-line text field with completion and history.
package input

import (
	"strings"
	"unicode"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"

	"redlockctl/internal/view"
)

// Longest is the greatest length of a line, in characters.
const Longest = 4096

// Keys returns the editing keys of a line, with their help.
func Keys() []key.Binding {
	k := func(show, help string, keys ...string) key.Binding {
		return key.NewBinding(key.WithKeys(keys...), key.WithHelp(show, help))
	}
	return []key.Binding{
		k("←", "left", "left", "ctrl+b"),
		k("→", "right", "right", "ctrl+f"),
		k("home", "to the start", "home", "ctrl+a"),
		k("end", "to the end", "end", "ctrl+e"),
		k("backspace", "delete back", "backspace", "ctrl+h"),
		k("delete", "delete", "delete", "ctrl+d"),
		k("ctrl+w", "delete the word before", "ctrl+w"),
		k("ctrl+u", "delete all before", "ctrl+u"),
	}
}

// Line is a text with a cursor. The zero value accepts no keys: see [New].
type Line struct {
	text      textinput.Model
	prefilled bool // what is typed or pasted next replaces the text
}

// New returns a line with the text s and the cursor at its end.
func New(s string) Line {
	k := Keys()
	t := textinput.New()
	t.SetVirtualCursor(false)
	t.CharLimit = Longest
	t.KeyMap = textinput.KeyMap{
		CharacterBackward: k[0], CharacterForward: k[1], LineStart: k[2], LineEnd: k[3],
		DeleteCharacterBackward: k[4], DeleteCharacterForward: k[5], DeleteWordBackward: k[6], DeleteBeforeCursor: k[7],
	}
	t.Focus()
	t.SetValue(s)
	return Line{text: t}
}

// Prefilled returns a line with a proposed text: the first letter or paste replaces it, and an editing
// key edits it.
func Prefilled(s string) Line {
	l := New(s)
	l.prefilled = true
	return l
}

// edit ends the proposal of a prefilled text; replaces says that other text takes its place.
func (l *Line) edit(replaces bool) {
	if l.prefilled && replaces {
		l.text.SetValue("")
	}
	l.prefilled = false
}

func (l *Line) String() string { return l.text.Value() }

// Set replaces the text by s and moves the cursor to its end.
func (l *Line) Set(s string) {
	l.prefilled = false
	l.text.SetValue(s)
	l.text.CursorEnd()
}

// End moves the cursor to the end of the text.
func (l *Line) End() { l.text.CursorEnd() }

// Press handles a key and reports whether it is a letter or one of [Keys].
func (l *Line) Press(msg tea.KeyPressMsg) bool {
	if msg.Text == "" && !key.Matches(msg, Keys()...) {
		return false
	}
	l.edit(msg.Text != "")
	l.text, _ = l.text.Update(msg)
	return true
}

// Paste inserts text at the cursor, without control characters such as line ends.
func (l *Line) Paste(s string) {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, s)
	l.edit(s != "")
	l.text, _ = l.text.Update(tea.PasteMsg{Content: s})
}

// View returns the text before, at and after the cursor in at most w cells, scrolled so
// that the cursor is visible. Pasted text is untrusted, so it is escaped here instead of
// being drawn by the text input.
func (l *Line) View(g *view.Glyphs, w int) (before, at, after string) {
	if w < 2 {
		return "", "", ""
	}
	runes, pos := []rune(l.text.Value()), l.text.Position()
	before, at = g.Whole(string(runes[:pos])), " "
	if pos < len(runes) {
		at, after = g.Whole(string(runes[pos])), g.Whole(string(runes[pos+1:]))
	}
	if room := w - view.Width(at); view.Width(before) > room {
		before = view.CutLeft(before, room)
	}
	after = g.Cut(after, w-view.Width(before)-view.Width(at))
	return before, at, after
}
