package tui

import (
	"strconv"
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"redlockctl/internal/view"
	"redlockctl/tui/action"
	"redlockctl/tui/input"
	"redlockctl/tui/page"
)

func newKeyMap() keyMap {
	k := func(in page.Mode, group, show, help string, do func(*model) tea.Cmd, keys ...string) binding {
		return binding{Binding: key.NewBinding(key.WithKeys(keys...), key.WithHelp(show, help)), in: in, group: group, do: do}
	}
	move := func(d func(*model) int) func(*model) tea.Cmd {
		return func(m *model) tea.Cmd { m.page.Move(d(m)); return nil }
	}
	turn := func(by int) func(*model) tea.Cmd {
		return func(m *model) tea.Cmd { m.Dialog.TurnField(by); return nil }
	}
	read := func(lines int) func(*model) tea.Cmd {
		return func(m *model) tea.Cmd { m.Dialog.Scroll = max(0, m.Dialog.Scroll+lines); return nil }
	}
	whyOneField := func(m *model) string {
		if len(m.Dialog.Fields) < 2 {
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
	onNode := func(key, action string, do func(*model) tea.Cmd, why func(*model) string) binding {
		b := act(page.ModeOnNode, k(page.ModeMain, groupAct, key, action, do, key), why)
		b.name = "node " + action
		return b
	}
	inLab := func(on, in page.Mode, key, action string) binding {
		return act(on, k(in, groupLab, key, action, func(m *model) tea.Cmd { return m.AskLab(action) }, key),
			func(m *model) string { return m.WhyNoLab(action) })
	}
	marked := func(b binding) binding {
		verb := b.Help().Desc
		b.says = func(m *model) string {
			if n := len(m.Marked()); n > 0 {
				return verb + " (" + view.Count(n) + ")"
			}
			return verb
		}
		return b
	}
	named := func(name string, b binding) binding { b.name = name; return b }

	dialogEnter := brief(page.ModeDialog, k(page.ModeDialog, groupDialog, "enter", "do it, once nothing is missing", (*model).Submit, "enter"))
	dialogEnter.says = func(m *model) string { return m.Dialog.Verb }

	leave := brief(page.ModeWorking, k(page.ModeWorking, groupDialog, "esc", "let it work in the background; of several: stop after this one", (*model).LeaveWork, "esc"))
	leave.says = func(m *model) string {
		if m.Dialog.Did != "" {
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
			return "events"
		case m.Overview.OnEvents:
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

	freeze := k(page.ModeMain&^page.ModeHelp, groupLook, "space", "freeze; play and pause the past", (*model).toggleFreeze, "space")
	freeze.says = func(m *model) string {
		switch {
		case m.viewed() == page.Help:
			return "freeze; play and pause the past"
		case m.replay == nil:
			return "freeze"
		case m.replay.playing:
			return "pause"
		}
		return "play"
	}

	whoKey := brief(page.ModeOnLock, named("who", when(k(page.ModeMain, groupLook, "w", "who holds it: watches it for up to a minute", (*model).AskWho, "w"), (*model).WhyNoWho)))
	whoKey.takes = page.ModeOnLock
	whoKey.says = func(*model) string { return "who" }

	// The help is a page that covers another one: what opens it closes it, and what
	// leaves the program leaves the help first.
	helpKey := k(page.ModeMain, groupLook, "?", "help, and back from it", (*model).toggleHelp, "?")
	helpKey.says = func(m *model) string {
		if m.viewed() == page.Help {
			return "close"
		}
		return "help"
	}
	leaveKey := when(k(page.ModeMain, groupLook, "q", "quit; leaves the help first", (*model).leave, "q"), (*model).whyNoLeave)
	leaveKey.says = func(m *model) string {
		if m.viewed() == page.Help {
			return "close"
		}
		return "quit"
	}

	keys := keyMap{
		brief(page.ModeMain&^page.ModeHelp, helpKey),
		brief(page.ModeLocks|page.ModeEvents|page.ModeAudit, when(k(page.ModeMain, groupLook, "/", "filter", (*model).openFilter, "/"), (*model).whyNoFilter)),
		brief(page.ModeList, k(page.ModeMain, groupLook, ":", "command", (*model).openLine, ":")),
		k(page.ModeMain, groupMove, "↑ k", "up", move(by(-1)), "up", "k"),
		k(page.ModeMain, groupMove, "↓ j", "down", move(by(1)), "down", "j"),
		k(page.ModeMain, groupMove, "pgup", "a page up", move(func(m *model) int { return -m.page.Rows() }), "pgup", "ctrl+b"),
		k(page.ModeMain, groupMove, "pgdn", "a page down", move(func(m *model) int { return m.page.Rows() }), "pgdown", "ctrl+f"),
		k(page.ModeMain, groupMove, "home g", "to the first", move(by(-1<<30)), "home", "g"),
		k(page.ModeMain, groupMove, "end G", "to the last", move(by(1<<30)), "end", "G"),
		tab,
		k(page.ModeMain, groupMove, "→ l", "the next page", func(m *model) tea.Cmd { return m.turn(1) }, "right", "l"),
		k(page.ModeMain, groupMove, "← h", "the page before", func(m *model) tea.Cmd { return m.turn(-1) }, "left", "h", "shift+tab"),
		to(page.Overview), to(page.Locks), to(page.Nodes), to(page.Events), to(page.Findings), to(page.Guard), to(page.Lab), to(page.Help),
		when(k(page.ModeMain, groupPast, "[", "one event back", stepPast(true), "["), (*model).whyNoReplay),
		when(k(page.ModeMain, groupPast, "]", "one event forward", stepPast(false), "]"), (*model).whyNotInReplay),
		when(k(page.ModeMain, groupPast, "{", "a minute back", shiftPast(-time.Minute), "{"), (*model).whyNoReplay),
		when(k(page.ModeMain, groupPast, "}", "a minute forward", shiftPast(time.Minute), "}"), (*model).whyNotInReplay),
		when(k(page.ModeMain, groupPast, ".", "to now", (*model).toNow, "."), (*model).whyNotInReplay),
		when(k(page.ModeMain, groupPast, "+", "play faster", func(m *model) tea.Cmd { return m.changeSpeed(1) }, "+"), (*model).whyNotInReplay),
		when(k(page.ModeMain, groupPast, "-", "play slower", func(m *model) tea.Cmd { return m.changeSpeed(-1) }, "-"), (*model).whyNotInReplay),
		detail,
		when(k(page.ModeMain, groupLook, "o", "open it on a page of its own", (*model).openPicked, "o"), (*model).whyNoOpenPicked),

		act(page.ModeOnLock, k(page.ModeMain, groupAct, "a", "acquire", (*model).AskAcquire, "a"), (*model).WhyNoAction),
		act(page.ModeOnLock, k(page.ModeMain, groupAct, "e", "extend", (*model).AskExtend, "e"), (*model).WhyNoExtend),
		marked(act(page.ModeOnLock, k(page.ModeMain, groupAct, "r", "release", (*model).AskRelease, "r"), (*model).WhyNoRelease)),
		marked(act(page.ModeOnLock, k(page.ModeMain, groupAct, "R", "revoke", (*model).AskRevoke, "R"), (*model).WhyNoRevoke)),
		marked(act(page.ModeOnLock, k(page.ModeMain, groupAct, "X", "force-release", (*model).AskForce, "X"), (*model).WhyNoForce)),
		whoKey,
		onNode("C", "cordon", (*model).AskCordon, (*model).WhyNoCordon),
		onNode("U", "uncordon", (*model).AskUncordon, (*model).WhyNoUncordon),
		onNode("J", "rejoin", (*model).AskRejoin, (*model).WhyNoRejoin),

		inLab(page.ModeOnNode, page.ModeMain, "c", "crash"),
		inLab(page.ModeOnNode, page.ModeLab, "z", "stop"),
		inLab(page.ModeOnNode, page.ModeLab, "Z", "continue"),
		inLab(page.ModeOnNode, page.ModeLab, "t", "skew"),
		inLab(page.ModeOnNode, page.ModeLab, "F", "flush"),
		inLab(page.ModeLab, page.ModeLab, "n", "clients"),

		named("tour", when(k(page.ModeMain, groupTour, "T", "begin or end the tour", (*model).toggleTour, "T"), (*model).whyNoTour)),
		when(k(page.ModeMain, groupTour, "N", "the next step of the tour", (*model).nextStep, "N"), (*model).whyNoStep),

		brief(page.ModeLocks, when(k(page.ModeMain, groupLook, "s", "sort", (*model).nextOrder, "s"), (*model).whyNoSort)),
		when(k(page.ModeMain, groupLook, "S", "sort the other way round", (*model).turnOrder, "S"), (*model).whyNoSort),
		brief(page.ModeMain&^page.ModeHelp, named("freeze", freeze)),
		brief(page.ModeEvents, named("follow", when(k(page.ModeMain, groupLook, "f", "follow the newest", (*model).toggleFollow, "f"), (*model).whyNoFollow))),
		brief(page.ModeLocks, when(k(page.ModeMain, groupLook, "m", "mark", (*model).toggleMark, "m"), (*model).whyNoMark)),
		when(k(page.ModeMain, groupLook, "M", "unmark all", (*model).clearMarks, "M"), (*model).whyNoMarks),
		named("wide", when(k(page.ModeMain, groupLook, "W", "wide: every column", (*model).toggleWide, "W"), (*model).whyNoSort)),
		named("copy", when(k(page.ModeMain, groupLook, "y", "copy its name to the clipboard", (*model).copyPicked, "y"), (*model).whyNoCopy)),
		k(page.ModeMain, groupLook, "esc", "back: close the detail or the page, clear the filter", (*model).escape, "esc"),
		brief(page.ModeMain, named("quit", leaveKey)),
		named("redraw", k(page.ModeAny, groupLook, "ctrl+l", "draw the screen anew", func(*model) tea.Cmd { return redraw }, "ctrl+l")),
		when(k(page.ModeAny, groupLook, "ctrl+z", "suspend: fg goes on", func(*model) tea.Cmd { return tea.Suspend }, "ctrl+z"), (*model).whyNoSuspend),
		k(page.ModeAny, groupLook, "ctrl+c", "quit at once", func(*model) tea.Cmd { return action.Quit() }, "ctrl+c"),

		dialogEnter,
		brief(page.ModeDialog, when(k(page.ModeDialog, groupDialog, "tab", "next field", turn(1), "tab", "down"), whyOneField)),
		k(page.ModeDialog, groupDialog, "shift+tab", "field before", turn(-1), "shift+tab", "up"),
		k(page.ModeDialog, groupDialog, "pgdn", "read on", read(3), "pgdown"),
		k(page.ModeDialog, groupDialog, "pgup", "read back", read(-3), "pgup"),
		brief(page.ModeDialog, k(page.ModeDialog, groupDialog, "esc", "leave everything as it is", (*model).CloseDialog, "esc")),
		leave,

		brief(page.ModeFilter, k(page.ModeFilter, groupEdit, "enter", "keep the filter", (*model).keepFilter, "enter")),
		brief(page.ModeFilter, k(page.ModeFilter, groupEdit, "tab", "complete a field or a value", completeFilter(1), "tab")),
		k(page.ModeFilter, groupEdit, "shift+tab", "the completion before", completeFilter(-1), "shift+tab"),
		brief(page.ModeFilter, k(page.ModeFilter, groupEdit, "esc", "clear it", (*model).clearFilter, "esc")),
		brief(page.ModeCommand, k(page.ModeCommand, groupEdit, "enter", "do the command", (*model).doLine, "enter")),
		brief(page.ModeCommand, k(page.ModeCommand, groupEdit, "tab", "complete it", completeLine(1), "tab")),
		k(page.ModeCommand, groupEdit, "shift+tab", "the completion before", completeLine(-1), "shift+tab"),
		k(page.ModeCommand, groupEdit, "↑", "the command before", func(m *model) tea.Cmd { m.line.recall(-1); return nil }, "up", "ctrl+p"),
		k(page.ModeCommand, groupEdit, "↓", "the command after", func(m *model) tea.Cmd { m.line.recall(1); return nil }, "down", "ctrl+n"),
		brief(page.ModeCommand, k(page.ModeCommand, groupEdit, "esc", "leave it", (*model).closeLine, "esc")),
	}
	for _, b := range input.Keys() {
		keys = append(keys, binding{Binding: b, in: page.ModeEdit, group: groupEdit}) // the line that is typed obeys them
	}
	return keys
}
