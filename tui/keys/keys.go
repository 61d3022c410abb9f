// Package keys has the keys of the program as data. A [Map] defines what they do, the
// help, the key line and many commands.
package keys

import (
	"cmp"
	"slices"
	"strings"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"redlockctl/internal/view"
	"redlockctl/tui/page"
	"redlockctl/tui/styles"
)

// Binding is one key and all that is known about it.
type Binding struct {
	key.Binding
	In     page.Mode
	Group  string
	Brief  page.Mode      // where it is shown in the key line
	Danger bool           // changes something on a server
	Typed  bool           // opens something in which text may be typed
	Name   string         // as a command; "": not a command
	Takes  page.Mode      // what its command may name: a lock or a node
	Why    func() string  // says why it is disabled now; nil or "": it is enabled
	Says   func() string  // help that depends on what is open; nil: Binding.Help
	Do     func() tea.Cmd // nil: handled by the text field
}

// Groups of keys, by purpose.
const (
	Moving   = "Moving"
	Looking  = "Looking"
	Past     = "Back in time"
	Acting   = "Acting"
	Lab      = "In the lab"
	Tour     = "On the tour"
	InDialog = "In a dialog"
	Typing   = "Typing"
)

// Disabled says why the binding does nothing now, or "".
func (b *Binding) Disabled() string {
	if b.Why == nil {
		return ""
	}
	return b.Why()
}

// Text returns the key and what it does now.
func (b *Binding) Text(ascii bool) (keys, text string) {
	h := b.Help()
	text = h.Desc
	if b.Says != nil {
		text = b.Says()
	}
	keys = h.Key
	if ascii {
		keys = strings.NewReplacer("↑", "up", "↓", "down", "←", "left", "→", "right").Replace(keys)
	}
	return keys, text
}

// Map has all keys of the program.
type Map []Binding

// Find returns the binding of a key in a mode, or nil.
func (m Map) Find(msg tea.KeyPressMsg, mode page.Mode) *Binding {
	for i := range m {
		if b := &m[i]; b.In&mode != 0 && b.Do != nil && key.Matches(msg, b.Binding) {
			return b
		}
	}
	return nil
}

// Line returns the keys of a mode in one line, as many as fit. The first, and the last
// one offered (the way out), are always included.
func (m Map) Line(st *styles.Styles, mode page.Mode, w int) string {
	var items []string
	for i := range m {
		b := &m[i]
		if b.Brief&mode == 0 || b.In&mode == 0 {
			continue
		}
		keys, text := b.Text(st.ASCII)
		if b.Disabled() != "" {
			if b.Danger || b.In&page.ModeDialog != 0 || b.In&page.ModeMain != 0 && b.Name != "" {
				continue // the reason is in the help, and is shown when the key is pressed
			}
			items = append(items, st.Dim.Of(keys+" "+text))
			continue
		}
		items = append(items, st.Strong.Of(keys)+" "+text)
	}
	if len(items) == 0 {
		return ""
	}
	apart := "   "
	if w < 100 {
		apart = "  "
	}
	last := items[len(items)-1]
	line := " " + items[0]
	for i, it := range items[1:] {
		final := i == len(items)-2
		n := len(apart)
		if need := view.Width(line) + n + view.Width(it); need > w-1 || !final && need+n+view.Width(last) > w-1 {
			continue
		}
		line += apart + it
	}
	return st.Cut(line, w)
}

// Entry is a key in the help.
type Entry struct {
	Key, Text string
	Name      string // shorter than Text
	Asks      bool   // it asks before it does anything
	Note      string // why it is disabled, or where it works
}

// Help returns the keys of a mode for the help: those that work there, the page's own
// before those of all pages; the disabled ones with the reason; and those of other pages.
// has reports whether keys of a group can work at all.
func (m Map) Help(mode page.Mode, has func(group string) bool) (works, off, away []Entry) {
	var general []Entry
	for i := range m {
		b := &m[i]
		if !slices.Contains([]string{Looking, Acting, Past, Lab, Tour}, b.Group) || !has(b.Group) {
			continue
		}
		h := b.Binding.Help()
		e := Entry{Key: h.Key, Text: h.Desc, Name: cmp.Or(b.Name[strings.LastIndexByte(b.Name, ' ')+1:], h.Desc), Asks: b.Danger}
		own := b.Danger || b.In == page.ModeList || b.Brief&mode != 0 && b.Brief&page.ModeList != page.ModeList
		switch why := b.Disabled; {
		case b.In&mode == 0:
			e.Note = places(b.In)
			away = append(away, e)
		case why() != "":
			e.Note = why()
			off = append(off, e)
		case own:
			works = append(works, e)
		default:
			general = append(general, e)
		}
	}
	return append(works, general...), off, away
}

// places names the pages of a key that is not available everywhere.
func places(in page.Mode) string {
	switch in {
	case page.ModeLab:
		return "7 lab"
	case page.ModeList:
		return "on a list"
	}
	return ""
}
