package tui

import (
	"strings"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
)

// mode is which keys are listened to now.
type mode uint8

const (
	modeOverview mode = 1 << iota
	modeFilter        // a filter is being typed
	modeDialog        // a dialog asks
	modeWorking       // its act runs
	modeResult        // it tells how the act ended
	modeHelp

	modeEdit = modeFilter | modeDialog
	modeAny  = modeOverview | modeEdit | modeWorking | modeResult | modeHelp
)

// binding is one key and all that is known of it.
type binding struct {
	key.Binding
	in     mode
	group  string
	brief  bool                // in the key line
	danger bool                // changes something on a server
	why    func(*model) string // why it is disabled now; nil or "": it is not
	says   func(*model) string // help that depends on what is open; nil: Binding.Help
	do     func(*model) tea.Cmd
}

// keyMap is every key of the program. The keys that are obeyed, the help screen
// and the key line are all made from it.
type keyMap []binding

const (
	groupMove   = "Moving"
	groupLook   = "Looking"
	groupAct    = "Acting"
	groupDialog = "In a dialog"
	groupEdit   = "Typing"
)

func newKeyMap() keyMap {
	k := func(in mode, group, show, help string, do func(*model) tea.Cmd, keys ...string) binding {
		return binding{Binding: key.NewBinding(key.WithKeys(keys...), key.WithHelp(show, help)), in: in, group: group, do: do}
	}
	move := func(d func(*model) int) func(*model) tea.Cmd {
		return func(m *model) tea.Cmd { m.moveCursor(d(m)); return nil }
	}
	by := func(d int) func(*model) int { return func(*model) int { return d } }
	edit := func(f func(*lineEdit)) func(*model) tea.Cmd {
		return func(m *model) tea.Cmd {
			if e := m.editor(); e != nil {
				f(e)
				m.edited()
			}
			return nil
		}
	}
	brief := func(b binding) binding { b.brief = true; return b }
	when := func(b binding, why func(*model) string) binding { b.why = why; return b }
	danger := func(b binding) binding { b.danger = true; b.brief = true; return b }

	dialogEnter := brief(k(modeDialog, groupDialog, "enter", "do it, once nothing is missing", (*model).submit, "enter"))
	dialogEnter.says = func(m *model) string { return m.dialog.verb }

	tab := brief(k(modeOverview, groupMove, "tab", "nodes or locks", (*model).switchFocus, "tab", "shift+tab"))
	tab.says = func(m *model) string {
		if m.focus == focusNodes {
			return "locks"
		}
		return "nodes"
	}

	detail := brief(k(modeOverview, groupLook, "enter", "detail", (*model).toggleDetail, "enter"))
	detail.says = func(m *model) string {
		if m.detail {
			return "close detail"
		}
		return "detail"
	}

	return keyMap{
		brief(k(modeOverview, groupLook, "?", "help", (*model).openHelp, "?")),
		brief(k(modeOverview, groupLook, "/", "filter", (*model).openFilter, "/")),
		k(modeOverview, groupMove, "↑ k", "up", move(by(-1)), "up", "k"),
		k(modeOverview, groupMove, "↓ j", "down", move(by(1)), "down", "j"),
		k(modeOverview, groupMove, "pgup", "a page up", move(func(m *model) int { return -m.page() }), "pgup", "ctrl+b"),
		k(modeOverview, groupMove, "pgdn", "a page down", move(func(m *model) int { return m.page() }), "pgdown", "ctrl+f"),
		k(modeOverview, groupMove, "home g", "to the first", move(by(-1<<30)), "home", "g"),
		k(modeOverview, groupMove, "end G", "to the last", move(by(1<<30)), "end", "G"),
		tab,
		detail,

		danger(when(k(modeOverview, groupAct, "a", "acquire", (*model).askAcquire, "a"), (*model).whyNoAct)),
		danger(when(k(modeOverview, groupAct, "r", "release", (*model).askRelease, "r"), (*model).whyNoRelease)),
		danger(when(k(modeOverview, groupAct, "X", "force-release", (*model).askForce, "X"), (*model).whyNoForce)),
		danger(when(k(modeOverview, groupAct, "f", "fence", (*model).askFence, "f"), (*model).whyNoFence)),
		danger(when(k(modeOverview, groupAct, "o", "open", (*model).askOpen, "o"), (*model).whyNoOpen)),
		danger(when(k(modeOverview, groupAct, "c", "crash", (*model).askCrash, "c"), (*model).whyNoCrash)),

		brief(k(modeOverview, groupLook, "s", "sort", (*model).nextOrder, "s")),
		brief(k(modeOverview, groupLook, "space", "freeze", (*model).toggleFreeze, "space")),
		k(modeOverview, groupLook, "esc", "close the detail, clear the filter", (*model).back, "esc"),
		brief(when(k(modeOverview, groupLook, "q", "quit", (*model).quit, "q"), (*model).whyNoQuit)),
		k(modeAny, groupLook, "ctrl+c", "quit at once", (*model).quit, "ctrl+c"),

		dialogEnter,
		brief(when(k(modeDialog, groupDialog, "tab", "next field", (*model).nextField, "tab", "down"), (*model).whyOneField)),
		k(modeDialog, groupDialog, "shift+tab", "field before", (*model).prevField, "shift+tab", "up"),
		k(modeDialog, groupDialog, "pgdn", "read on", func(m *model) tea.Cmd { m.dialog.scroll += 3; return nil }, "pgdown"),
		k(modeDialog, groupDialog, "pgup", "read back", func(m *model) tea.Cmd { m.dialog.scroll -= 3; return nil }, "pgup"),
		brief(k(modeDialog, groupDialog, "esc", "leave everything as it is", (*model).closeDialog, "esc")),
		brief(k(modeWorking, groupDialog, "esc", "let it work in the background", (*model).closeDialog, "esc")),
		brief(k(modeResult, groupDialog, "enter", "close", (*model).closeDialog, "enter", "esc", "q")),

		brief(k(modeFilter, groupEdit, "enter", "keep the filter", (*model).keepFilter, "enter")),
		brief(k(modeFilter, groupEdit, "esc", "clear it", (*model).clearFilter, "esc")),
		k(modeEdit, groupEdit, "←", "left", edit(func(e *lineEdit) { e.move(-1) }), "left", "ctrl+b"),
		k(modeEdit, groupEdit, "→", "right", edit(func(e *lineEdit) { e.move(1) }), "right", "ctrl+f"),
		k(modeEdit, groupEdit, "home", "to the start", edit(func(e *lineEdit) { e.move(-longestLine) }), "home", "ctrl+a"),
		k(modeEdit, groupEdit, "end", "to the end", edit(func(e *lineEdit) { e.move(longestLine) }), "end", "ctrl+e"),
		k(modeEdit, groupEdit, "backspace", "delete back", edit((*lineEdit).backspace), "backspace", "ctrl+h"),
		k(modeEdit, groupEdit, "delete", "delete", edit((*lineEdit).del), "delete", "ctrl+d"),
		k(modeEdit, groupEdit, "ctrl+w", "delete the word before", edit((*lineEdit).killWord), "ctrl+w"),
		k(modeEdit, groupEdit, "ctrl+u", "delete all before", edit((*lineEdit).killStart), "ctrl+u"),

		k(modeHelp, "", "↑ k", "up", func(m *model) tea.Cmd { m.helpTop--; return nil }, "up", "k"),
		brief(k(modeHelp, "", "↓ j", "read on", func(m *model) tea.Cmd { m.helpTop++; return nil }, "down", "j")),
		k(modeHelp, "", "pgup", "a page up", func(m *model) tea.Cmd { m.helpTop -= max(1, m.h-4); return nil }, "pgup"),
		k(modeHelp, "", "pgdn", "a page down", func(m *model) tea.Cmd { m.helpTop += max(1, m.h-4); return nil }, "pgdown", "space"),
		k(modeHelp, "", "home g", "to the top", func(m *model) tea.Cmd { m.helpTop = 0; return nil }, "home", "g"),
		k(modeHelp, "", "end G", "to the end", func(m *model) tea.Cmd { m.helpTop = 1 << 20; return nil }, "end", "G"),
		brief(k(modeHelp, "", "esc", "close", (*model).closeHelp, "esc", "q", "?", "enter")),
	}
}

// disabled is why the binding does nothing now, or "".
func (b *binding) disabled(m *model) string {
	if b.why == nil {
		return ""
	}
	return b.why(m)
}

func (b *binding) help(m *model) (keys, text string) {
	h := b.Help()
	text = h.Desc
	if b.says != nil {
		text = b.says(m)
	}
	keys = h.Key
	if m.st.ascii {
		keys = strings.NewReplacer("↑", "up", "↓", "down", "←", "left", "→", "right").Replace(keys)
	}
	return keys, text
}

// keyLine is the keys of now in one line: as many as fit. The first, and the
// last that is offered (the way out), are always there.
func (m *model) keyLine(w int) string {
	var items []string
	for i := range m.keys {
		b := &m.keys[i]
		if !b.brief || b.in&m.mode() == 0 {
			continue
		}
		k, text := b.help(m)
		if b.disabled(m) != "" {
			if b.in == modeOverview && b.danger || b.in == modeDialog {
				continue // its reason is in the help, and is shown when it is pressed
			}
			items = append(items, m.st.dim.of(k+" "+text))
			continue
		}
		items = append(items, m.st.strong.of(k)+" "+text)
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
		if need := width(line) + n + width(it); need > w-1 || !final && need+n+width(last) > w-1 {
			continue
		}
		line += apart + it
	}
	return m.st.cut(line, w)
}
