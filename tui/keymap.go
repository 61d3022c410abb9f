package tui

import (
	"strconv"
	"strings"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"redlockctl/internal/view"
	"redlockctl/tui/input"
	"redlockctl/tui/page"
)

// binding is one key and all that is known of it.
type binding struct {
	key.Binding
	in     page.Mode
	group  string
	brief  page.Mode            // where it is in the key line
	danger bool                 // changes something on a server
	name   string               // as a command; "": it is none
	also   string               // another name of it
	takes  page.Mode            // what its command may be told to be about: a lock or a node
	why    func(*model) string  // why it is disabled now; nil or "": it is not
	says   func(*model) string  // help that depends on what is open; nil: Binding.Help
	do     func(*model) tea.Cmd // nil: it is a key of the line that is typed
}

// keyMap is every key of the program. The keys that are obeyed, the help page,
// the key line and many commands are all made from it.
type keyMap []binding

const (
	groupMove   = "Moving"
	groupLook   = "Looking"
	groupAct    = "Acting"
	groupLab    = "In the lab"
	groupDialog = "In a dialog"
	groupEdit   = "Typing"
)

func newKeyMap() keyMap {
	k := func(in page.Mode, group, show, help string, do func(*model) tea.Cmd, keys ...string) binding {
		return binding{Binding: key.NewBinding(key.WithKeys(keys...), key.WithHelp(show, help)), in: in, group: group, do: do}
	}
	move := func(d func(*model) int) func(*model) tea.Cmd {
		return func(m *model) tea.Cmd { m.page.Move(d(m)); return nil }
	}
	turn := func(by int) func(*model) tea.Cmd {
		return func(m *model) tea.Cmd { m.dialog.turnField(by); return nil }
	}
	read := func(lines int) func(*model) tea.Cmd {
		return func(m *model) tea.Cmd { m.dialog.scroll = max(0, m.dialog.scroll+lines); return nil }
	}
	whyOneField := func(m *model) string {
		if len(m.dialog.fields) < 2 {
			return "there is no other field"
		}
		return ""
	}
	by := func(d int) func(*model) int { return func(*model) int { return d } }
	to := func(v page.Kind) binding {
		n := strconv.Itoa(int(v) + 1)
		b := k(page.ModeMain, groupMove, n, v.String(), func(m *model) tea.Cmd { return m.goTo(v) }, n)
		b.why = func(m *model) string { return m.whyNoView(v) }
		return b
	}
	brief := func(in page.Mode, b binding) binding { b.brief = in; return b }
	when := func(b binding, why func(*model) string) binding { b.why = why; return b }
	// An act is a command too, by the name that its help gives it; on is what it
	// may be told to be about. Its key is known on all pages, and says where it
	// belongs.
	act := func(on page.Mode, b binding, why func(*model) string) binding {
		b.danger, b.brief, b.takes, b.why = true, on, on, why
		b.name = b.Help().Desc
		return b
	}
	inLab := func(on, in page.Mode, key, action string) binding {
		return act(on, k(in, groupLab, key, action, func(m *model) tea.Cmd { return m.askLab(action) }, key),
			func(m *model) string { return m.whyNoLab(action) })
	}
	marked := func(b binding) binding {
		verb := b.Help().Desc
		b.says = func(m *model) string {
			if n := len(m.marked()); n > 0 {
				return verb + " (" + view.Count(n) + ")"
			}
			return verb
		}
		return b
	}
	named := func(name string, b binding) binding { b.name = name; return b }

	dialogEnter := brief(page.ModeDialog, k(page.ModeDialog, groupDialog, "enter", "do it, once nothing is missing", (*model).submit, "enter"))
	dialogEnter.says = func(m *model) string { return m.dialog.verb }

	leave := brief(page.ModeWorking, k(page.ModeWorking, groupDialog, "esc", "let it work in the background; of several: stop after this one", (*model).leaveWork, "esc"))
	leave.says = func(m *model) string {
		if m.dialog.did != "" {
			return "stop after this one"
		}
		return "let it work in the background"
	}

	tab := brief(page.ModeLocks|page.ModeNodes, k(page.ModeMain, groupMove, "tab", "the other table of the overview, or the next page", (*model).tab, "tab"))
	tab.says = func(m *model) string {
		switch {
		case m.viewed() != page.Overview:
			return "next page"
		case m.Overview.OnNodes:
			return "locks"
		default:
			return "nodes"
		}
	}
	detail := brief(page.ModeList, k(page.ModeList, groupLook, "enter", "a look at it, below", (*model).enter, "enter"))
	detail.says = func(m *model) string {
		switch d, ok := m.page.(page.Detailed); {
		case !ok:
			return "look"
		case *d.Detail():
			return "close detail"
		default:
			return "detail"
		}
	}

	// The key line is short, the help says the name that the shell has for it too.
	hold := act(page.ModeOnNode, k(page.ModeOnNode, groupAct, "f", "fence", (*model).askFence, "f"), (*model).whyNoFence)
	hold.also = "hold"
	hold.SetHelp("f", "hold closed (fence)")
	hold.says = func(m *model) string {
		if m.viewed() == page.Help {
			return "hold closed (fence)"
		}
		return "fence"
	}

	keys := keyMap{
		brief(page.ModeMain, k(page.ModeMain&^page.ModeHelp, groupLook, "?", "help", func(m *model) tea.Cmd { return m.goTo(page.Help) }, "?")),
		brief(page.ModeLocks|page.ModeEvents, when(k(page.ModeMain, groupLook, "/", "filter", (*model).openFilter, "/"), (*model).whyNoFilter)),
		brief(page.ModeList, k(page.ModeMain, groupLook, ":", "command", (*model).openLine, ":")),
		k(page.ModeMain, groupMove, "↑ k", "up", move(by(-1)), "up", "k"),
		k(page.ModeMain, groupMove, "↓ j", "down", move(by(1)), "down", "j"),
		k(page.ModeMain, groupMove, "pgup", "a page up", move(func(m *model) int { return -m.page.Rows() }), "pgup", "ctrl+b"),
		k(page.ModeMain, groupMove, "pgdn", "a page down", move(func(m *model) int { return m.page.Rows() }), "pgdown", "ctrl+f"),
		k(page.ModeMain, groupMove, "home g", "to the first", move(by(-1<<30)), "home", "g"),
		k(page.ModeMain, groupMove, "end G", "to the last", move(by(1<<30)), "end", "G"),
		tab,
		k(page.ModeMain, groupMove, "→ l ]", "the next page", func(m *model) tea.Cmd { return m.turn(1) }, "right", "l", "]"),
		k(page.ModeMain, groupMove, "← h [", "the page before", func(m *model) tea.Cmd { return m.turn(-1) }, "left", "h", "[", "shift+tab"),
		to(page.Overview), to(page.Locks), to(page.Nodes), to(page.Events), to(page.Findings), to(page.Guard), to(page.Lab), to(page.Help),
		detail,
		when(k(page.ModeMain, groupLook, "o", "open it on a page of its own", (*model).openPicked, "o"), (*model).whyNoOpenPicked),

		act(page.ModeOnLock, k(page.ModeMain, groupAct, "a", "acquire", (*model).askAcquire, "a"), (*model).whyNoAction),
		act(page.ModeOnLock, k(page.ModeMain, groupAct, "e", "extend", (*model).askExtend, "e"), (*model).whyNoExtend),
		marked(act(page.ModeOnLock, k(page.ModeMain, groupAct, "r", "release", (*model).askRelease, "r"), (*model).whyNoRelease)),
		marked(act(page.ModeOnLock, k(page.ModeMain, groupAct, "R", "revoke", (*model).askRevoke, "R"), (*model).whyNoRevoke)),
		marked(act(page.ModeOnLock, k(page.ModeMain, groupAct, "X", "force-release", (*model).askForce, "X"), (*model).whyNoForce)),
		hold,
		act(page.ModeOnNode, k(page.ModeMain, groupAct, "O", "open", (*model).askOpen, "O"), (*model).whyNoOpen),

		inLab(page.ModeOnNode, page.ModeMain, "c", "crash"),
		inLab(page.ModeOnNode, page.ModeLab, "z", "stop"),
		inLab(page.ModeOnNode, page.ModeLab, "Z", "continue"),
		inLab(page.ModeOnNode, page.ModeLab, "t", "skew"),
		inLab(page.ModeOnNode, page.ModeLab, "F", "flush"),
		inLab(page.ModeLab, page.ModeLab, "n", "clients"),

		brief(page.ModeLocks, when(k(page.ModeMain, groupLook, "s", "sort", (*model).nextOrder, "s"), (*model).whyNoSort)),
		brief(page.ModeMain&^page.ModeHelp, named("freeze", k(page.ModeMain&^page.ModeHelp, groupLook, "space", "freeze", (*model).toggleFreeze, "space"))),
		brief(page.ModeEvents, named("follow", when(k(page.ModeMain&^page.ModeOnNode, groupLook, "f", "follow the newest", (*model).toggleFollow, "f"), (*model).whyNoFollow))),
		brief(page.ModeLocks, when(k(page.ModeMain, groupLook, "m", "mark", (*model).toggleMark, "m"), (*model).whyNoMark)),
		when(k(page.ModeMain, groupLook, "M", "unmark all", (*model).clearMarks, "M"), (*model).whyNoMarks),
		named("wide", when(k(page.ModeMain, groupLook, "w", "wide: every column", (*model).toggleWide, "w"), (*model).whyNoSort)),
		named("copy", when(k(page.ModeMain, groupLook, "y", "copy its name to the clipboard", (*model).copyPicked, "y"), (*model).whyNoCopy)),
		k(page.ModeMain, groupLook, "esc", "back: close the detail or the page, clear the filter", (*model).escape, "esc"),
		brief(page.ModeMain&^page.ModeHelp, named("quit", when(k(page.ModeMain&^page.ModeHelp, groupLook, "q", "quit", (*model).askQuit, "q"), (*model).whyNoQuit))),
		brief(page.ModeHelp, k(page.ModeHelp, "", "q", "close", (*model).back, "q", "?", "enter")),
		named("redraw", k(page.ModeAny, groupLook, "ctrl+l", "draw the screen anew", func(*model) tea.Cmd { return redraw }, "ctrl+l")),
		k(page.ModeAny, groupLook, "ctrl+c", "quit at once", func(*model) tea.Cmd { return quit() }, "ctrl+c"),

		dialogEnter,
		brief(page.ModeDialog, when(k(page.ModeDialog, groupDialog, "tab", "next field", turn(1), "tab", "down"), whyOneField)),
		k(page.ModeDialog, groupDialog, "shift+tab", "field before", turn(-1), "shift+tab", "up"),
		k(page.ModeDialog|page.ModeResult, groupDialog, "pgdn", "read on", read(3), "pgdown"),
		k(page.ModeDialog|page.ModeResult, groupDialog, "pgup", "read back", read(-3), "pgup"),
		k(page.ModeResult, groupDialog, "↓ j", "a line on", read(1), "down", "j"),
		k(page.ModeResult, groupDialog, "↑ k", "a line back", read(-1), "up", "k"),
		brief(page.ModeDialog, k(page.ModeDialog, groupDialog, "esc", "leave everything as it is", (*model).closeDialog, "esc")),
		leave,
		brief(page.ModeResult, k(page.ModeResult, groupDialog, "enter", "close", (*model).closeDialog, "enter", "esc", "q")),

		brief(page.ModeFilter, k(page.ModeFilter, groupEdit, "enter", "keep the filter", (*model).keepFilter, "enter")),
		brief(page.ModeFilter, k(page.ModeFilter, groupEdit, "esc", "clear it", (*model).clearFilter, "esc")),
		brief(page.ModeCommand, k(page.ModeCommand, groupEdit, "enter", "do the command", (*model).doLine, "enter")),
		brief(page.ModeCommand, k(page.ModeCommand, groupEdit, "tab", "complete it", func(m *model) tea.Cmd { m.line.complete(m, 1); return nil }, "tab")),
		k(page.ModeCommand, groupEdit, "shift+tab", "the completion before", func(m *model) tea.Cmd { m.line.complete(m, -1); return nil }, "shift+tab"),
		k(page.ModeCommand, groupEdit, "↑", "the command before", func(m *model) tea.Cmd { m.line.recall(-1); return nil }, "up", "ctrl+p"),
		k(page.ModeCommand, groupEdit, "↓", "the command after", func(m *model) tea.Cmd { m.line.recall(1); return nil }, "down", "ctrl+n"),
		brief(page.ModeCommand, k(page.ModeCommand, groupEdit, "esc", "leave it", (*model).closeLine, "esc")),
	}
	for _, b := range input.Keys() {
		keys = append(keys, binding{Binding: b, in: page.ModeEdit, group: groupEdit}) // the line that is typed obeys them
	}
	return keys
}

// try does what a binding does, or says why not.
func (m *model) try(b *binding) tea.Cmd {
	if why := b.disabled(m); why != "" {
		k, text := b.help(m)
		m.say(m.St.Warn, k+" "+text+": "+why)
		return nil
	}
	return b.do(m)
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
	if m.St.ASCII {
		keys = strings.NewReplacer("↑", "up", "↓", "down", "←", "left", "→", "right").Replace(keys)
	}
	return keys, text
}

// keyLine is the keys of now in one line: as many as fit. The first, and the
// last that is offered (the way out), are always there.
func (m *model) keyLine(w int) string {
	var items []string
	mode := m.mode()
	for i := range m.keys {
		b := &m.keys[i]
		if b.brief&mode == 0 || b.in&mode == 0 {
			continue
		}
		k, text := b.help(m)
		if b.disabled(m) != "" {
			if b.danger || b.in&(page.ModeDialog|page.ModeMain) != 0 && b.name != "" {
				continue // its reason is in the help, and is shown when it is pressed
			}
			items = append(items, m.St.Dim.Of(k+" "+text))
			continue
		}
		items = append(items, m.St.Strong.Of(k)+" "+text)
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
	return m.St.Cut(line, w)
}
