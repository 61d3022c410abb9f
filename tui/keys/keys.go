// Package keys has the keys of the program as data. A [Map] defines what they do, the
// help, the key line and many commands.
package keys

import (
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

// Help returns the keys of a page in a mode as lines of w cells: those that work there,
// the disabled ones with the reason, and those of other pages. has reports whether keys
// of a group can work at all.
func (m Map) Help(st *styles.Styles, mode page.Mode, w int, has func(group string) bool) (works, off, away []string) {
	for i := range m {
		b := &m[i]
		h := b.Binding.Help()
		switch keys, text := h.Key, h.Desc; {
		case !slices.Contains([]string{Looking, Acting, Past, Lab, Tour}, b.Group) || !has(b.Group):
		case b.In&mode == 0:
			away = append(away, "   "+st.Pad(keys, 9)+text+st.Dim.Of(places(b.In)))
		case b.Disabled() != "":
			why := b.Disabled()
			if name := b.Name[strings.LastIndexByte(b.Name, ' ')+1:]; name != "" && view.Width(text) > offWidth(w) {
				text = name
			}
			off = append(off, "   "+st.Pad(keys, 9)+st.Pad(text, offWidth(w))+" "+st.Dim.Of(why))
		case b.Danger:
			works = append(works, "   "+st.Pad(keys, 9)+text+st.Dim.Of("  asks first"))
		default:
			works = append(works, "   "+st.Pad(keys, 9)+text)
		}
	}
	return works, off, away
}

// offWidth returns the width for the label of a disabled key, in lines of w cells.
func offWidth(w int) int {
	if w < 90 {
		return 18
	}
	return 25 // no label is cut
}

// places names the pages of a key that is not available everywhere.
func places(in page.Mode) string {
	switch in {
	case page.ModeLab:
		return "  7 lab"
	case page.ModeList:
		return "  on a list"
	}
	return ""
}
