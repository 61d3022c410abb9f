// Package input is one line of text that a person types: its letters, what it may become, and
// what was typed before.
package input

import (
	"strings"
	"unicode"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"

	"redlockctl/internal/view"
)

// Longest bounds, in characters, what a paste may put into a line.
const Longest = 4096

// Keys are those that a line obeys besides letters, with their help.
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

// Line is the text and its cursor. The zero value takes no keys: see [New].
type Line struct{ text textinput.Model }

// New is a line with s in it and the cursor behind it.
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
	return Line{t}
}

func (l *Line) String() string { return l.text.Value() }

// Set puts s into the line, and the cursor behind it.
func (l *Line) Set(s string) {
	l.text.SetValue(s)
	l.text.CursorEnd()
}

// End moves the cursor behind the text.
func (l *Line) End() { l.text.CursorEnd() }

// Press takes a key that is a letter or one of [Keys], and reports whether it did.
func (l *Line) Press(msg tea.KeyPressMsg) bool {
	if msg.Text == "" && !key.Matches(msg, Keys()...) {
		return false
	}
	l.text, _ = l.text.Update(msg)
	return true
}

// Paste puts text at the cursor. Control characters, such as the line end of what
// was copied, are left out.
func (l *Line) Paste(s string) {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, s)
	l.text, _ = l.text.Update(tea.PasteMsg{Content: s})
}

// View is the line before its cursor, at it and after it in at most w cells; the part
// around the cursor stays in sight. What was pasted is as untrusted as what was read, so
// the text input does not draw it itself.
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
