package tui

import (
	"strconv"
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"redlockctl/internal/view"
	"redlockctl/tui/action"
	"redlockctl/tui/input"
	"redlockctl/tui/keys"
	"redlockctl/tui/page"
)

// newKeyMap is every key of the program, and what it does to m.
func newKeyMap(m *model) keys.Map {
	k := func(in page.Mode, group, show, help string, do func() tea.Cmd, on ...string) keys.Binding {
		return keys.Binding{Binding: key.NewBinding(key.WithKeys(on...), key.WithHelp(show, help)), In: in, Group: group, Do: do}
	}
	move := func(d func() int) func() tea.Cmd {
		return func() tea.Cmd { m.Page.Move(d()); return nil }
	}
	turn := func(by int) func() tea.Cmd {
		return func() tea.Cmd { m.Dialog.TurnField(by); return nil }
	}
	read := func(lines int) func() tea.Cmd {
		return func() tea.Cmd { m.Dialog.Scroll = max(0, m.Dialog.Scroll+lines); return nil }
	}
	complete := func(d int) func() tea.Cmd {
		return func() tea.Cmd { m.line.Complete(&m.line.Line, m.offers, d); return nil }
	}
	whyOneField := func() string {
		if len(m.Dialog.Fields) < 2 {
			return "there is no other field"
		}
		return ""
	}
	by := func(d int) func() int { return func() int { return d } }
	to := func(v page.Kind) keys.Binding {
		n := strconv.Itoa(int(v) + 1)
		b := k(page.ModeMain, keys.Moving, n, v.String(), func() tea.Cmd { return m.goTo(v) }, n)
		b.Why = func() string { return m.whyNoView(v) }
		return b
	}
	brief := func(in page.Mode, b keys.Binding) keys.Binding { b.Brief = in; return b }
	when := func(b keys.Binding, why func() string) keys.Binding { b.Why = why; return b }
	// An act is a command too, by the name that its help gives it; on is what it
	// may be told to be about. Its key is known on all pages, and says where it
	// belongs.
	act := func(on page.Mode, b keys.Binding, why func() string) keys.Binding {
		b.Danger, b.Brief, b.Takes, b.Why = true, on, on, why
		b.Name = b.Help().Desc
		return b
	}
	onNode := func(key, action string, do func() tea.Cmd, why func() string) keys.Binding {
		b := act(page.ModeOnNode, k(page.ModeMain, keys.Acting, key, action, do, key), why)
		b.Name = "node " + action
		return b
	}
	inLab := func(on, in page.Mode, key, action string) keys.Binding {
		return act(on, k(in, keys.Lab, key, action, func() tea.Cmd { return m.AskLab(action) }, key),
			func() string { return m.WhyNoLab(action) })
	}
	marked := func(b keys.Binding) keys.Binding {
		verb := b.Help().Desc
		b.Says = func() string {
			if n := len(m.Marked()); n > 0 {
				return verb + " (" + view.Count(n) + ")"
			}
			return verb
		}
		return b
	}
	named := func(name string, b keys.Binding) keys.Binding { b.Name = name; return b }

	dialogEnter := brief(page.ModeDialog, k(page.ModeDialog, keys.InDialog, "enter", "do it, once nothing is missing", m.Submit, "enter"))
	dialogEnter.Says = func() string { return m.Dialog.Verb }

	leave := brief(page.ModeWorking, k(page.ModeWorking, keys.InDialog, "esc", "let it work in the background; of several: stop after this one", m.LeaveWork, "esc"))
	leave.Says = func() string {
		if m.Dialog.Did != "" {
			return "stop after this one"
		}
		return "let it work in the background"
	}

	tab := brief(page.ModeLocks|page.ModeNodes, k(page.ModeMain, keys.Moving, "tab", "the other table of the overview, or the next page", m.tab, "tab"))
	tab.Says = func() string {
		switch {
		case m.Viewed() != page.Overview:
			return "next page"
		case m.Overview.OnNodes:
			return "events"
		case m.Overview.OnEvents:
			return "locks"
		default:
			return "nodes"
		}
	}
	detail := brief(page.ModeList, k(page.ModeList, keys.Looking, "enter", "a look at it, below", m.enter, "enter"))
	detail.Says = func() string {
		switch d, ok := m.Page.(page.Detailed); {
		case !ok:
			return "look"
		case *d.Detail():
			return "close detail"
		default:
			return "detail"
		}
	}

	freeze := k(page.ModeMain&^page.ModeHelp, keys.Looking, "space", "freeze; play and pause the past", m.toggleFreeze, "space")
	freeze.Says = func() string {
		switch {
		case m.Viewed() == page.Help:
			return "freeze; play and pause the past"
		case m.replay == nil:
			return "freeze"
		case m.replay.Playing:
			return "pause"
		}
		return "play"
	}

	whoKey := brief(page.ModeOnLock, named("who", when(k(page.ModeMain, keys.Looking, "w", "who holds it: watches it for up to a minute", m.AskWho, "w"), m.WhyNoWho)))
	whoKey.Takes = page.ModeOnLock
	whoKey.Says = func() string { return "who" }

	// The help is a page that covers another one: what opens it closes it, and what
	// leaves the program leaves the help first.
	helpKey := k(page.ModeMain, keys.Looking, "?", "help, and back from it", m.toggleHelp, "?")
	helpKey.Says = func() string {
		if m.Viewed() == page.Help {
			return "close"
		}
		return "help"
	}
	leaveKey := when(k(page.ModeMain, keys.Looking, "q", "quit; leaves the help first", m.leave, "q"), m.whyNoLeave)
	leaveKey.Says = func() string {
		if m.Viewed() == page.Help {
			return "close"
		}
		return "quit"
	}

	all := keys.Map{
		brief(page.ModeMain&^page.ModeHelp, helpKey),
		brief(page.ModeLocks|page.ModeEvents|page.ModeAudit, when(k(page.ModeMain, keys.Looking, "/", "filter", m.openFilter, "/"), m.whyNoFilter)),
		brief(page.ModeList, k(page.ModeMain, keys.Looking, ":", "command", m.openLine, ":")),
		k(page.ModeMain, keys.Moving, "↑ k", "up", move(by(-1)), "up", "k"),
		k(page.ModeMain, keys.Moving, "↓ j", "down", move(by(1)), "down", "j"),
		k(page.ModeMain, keys.Moving, "pgup", "a page up", move(func() int { return -m.Page.Rows() }), "pgup", "ctrl+b"),
		k(page.ModeMain, keys.Moving, "pgdn", "a page down", move(func() int { return m.Page.Rows() }), "pgdown", "ctrl+f"),
		k(page.ModeMain, keys.Moving, "home g", "to the first", move(by(-1<<30)), "home", "g"),
		k(page.ModeMain, keys.Moving, "end G", "to the last", move(by(1<<30)), "end", "G"),
		tab,
		k(page.ModeMain, keys.Moving, "→ l", "the next page", func() tea.Cmd { return m.turn(1) }, "right", "l"),
		k(page.ModeMain, keys.Moving, "← h", "the page before", func() tea.Cmd { return m.turn(-1) }, "left", "h", "shift+tab"),
		to(page.Overview), to(page.Locks), to(page.Nodes), to(page.Events), to(page.Findings), to(page.Guard), to(page.Lab), to(page.Help),
		when(k(page.ModeMain, keys.Past, "[", "one event back", m.stepPast(true), "["), m.whyNoReplay),
		when(k(page.ModeMain, keys.Past, "]", "one event forward", m.stepPast(false), "]"), m.whyNotInReplay),
		when(k(page.ModeMain, keys.Past, "{", "a minute back", m.shiftPast(-time.Minute), "{"), m.whyNoReplay),
		when(k(page.ModeMain, keys.Past, "}", "a minute forward", m.shiftPast(time.Minute), "}"), m.whyNotInReplay),
		when(k(page.ModeMain, keys.Past, ".", "to now", m.toNow, "."), m.whyNotInReplay),
		when(k(page.ModeMain, keys.Past, "+", "play faster", m.faster(1), "+"), m.whyNotInReplay),
		when(k(page.ModeMain, keys.Past, "-", "play slower", m.faster(-1), "-"), m.whyNotInReplay),
		detail,
		when(k(page.ModeMain, keys.Looking, "o", "open it on a page of its own", m.openPicked, "o"), m.whyNoOpenPicked),

		act(page.ModeOnLock, k(page.ModeMain, keys.Acting, "a", "acquire", m.AskAcquire, "a"), m.WhyNoAction),
		act(page.ModeOnLock, k(page.ModeMain, keys.Acting, "e", "extend", m.AskExtend, "e"), m.WhyNoExtend),
		marked(act(page.ModeOnLock, k(page.ModeMain, keys.Acting, "r", "release", m.AskRelease, "r"), m.WhyNoRelease)),
		marked(act(page.ModeOnLock, k(page.ModeMain, keys.Acting, "R", "revoke", m.AskRevoke, "R"), m.WhyNoRevoke)),
		marked(act(page.ModeOnLock, k(page.ModeMain, keys.Acting, "X", "force-release", m.AskForce, "X"), m.WhyNoForce)),
		whoKey,
		onNode("C", "cordon", m.AskCordon, m.WhyNoCordon),
		onNode("U", "uncordon", m.AskUncordon, m.WhyNoUncordon),
		onNode("J", "rejoin", m.AskRejoin, m.WhyNoRejoin),

		inLab(page.ModeOnNode, page.ModeMain, "c", "crash"),
		inLab(page.ModeOnNode, page.ModeLab, "z", "stop"),
		inLab(page.ModeOnNode, page.ModeLab, "Z", "continue"),
		inLab(page.ModeOnNode, page.ModeLab, "t", "skew"),
		inLab(page.ModeOnNode, page.ModeLab, "F", "flush"),
		inLab(page.ModeLab, page.ModeLab, "n", "clients"),

		named("tour", when(k(page.ModeMain, keys.Tour, "T", "begin or end the tour", m.toggleTour, "T"), m.whyNoTour)),
		when(k(page.ModeMain, keys.Tour, "N", "the next step of the tour", m.nextStep, "N"), m.whyNoStep),

		brief(page.ModeLocks|page.ModeNodes|page.ModeFindings|page.ModeClusters|page.ModeAudit, when(k(page.ModeMain, keys.Looking, "s", "sort", m.nextOrder, "s"), m.whyNoSort)),
		when(k(page.ModeMain, keys.Looking, "S", "sort the other way round", m.turnOrder, "S"), m.whyNoSort),
		brief(page.ModeMain&^page.ModeHelp, named("freeze", freeze)),
		brief(page.ModeEvents, named("follow", when(k(page.ModeMain, keys.Looking, "f", "follow the newest", m.toggleFollow, "f"), m.whyNoFollow))),
		brief(page.ModeLocks, when(k(page.ModeMain, keys.Looking, "m", "mark", m.toggleMark, "m"), m.whyNoMark)),
		when(k(page.ModeMain, keys.Looking, "M", "unmark all", m.clearMarks, "M"), m.whyNoMarks),
		named("wide", when(k(page.ModeMain, keys.Looking, "W", "wide: every column", m.toggleWide, "W"), m.whyNoWide)),
		named("copy", when(k(page.ModeMain, keys.Looking, "y", "copy its name to the clipboard", m.copyPicked, "y"), m.whyNoCopy)),
		k(page.ModeMain, keys.Looking, "esc", "back: close the detail or the page, clear the filter", m.escape, "esc"),
		brief(page.ModeMain, named("quit", leaveKey)),
		named("redraw", k(page.ModeAny, keys.Looking, "ctrl+l", "draw the screen anew", func() tea.Cmd { return redraw }, "ctrl+l")),
		when(k(page.ModeAny, keys.Looking, "ctrl+z", "suspend: fg goes on", func() tea.Cmd { return tea.Suspend }, "ctrl+z"), m.whyNoSuspend),
		k(page.ModeAny, keys.Looking, "ctrl+c", "quit at once", func() tea.Cmd { return action.Quit() }, "ctrl+c"),

		dialogEnter,
		brief(page.ModeDialog, when(k(page.ModeDialog, keys.InDialog, "tab", "next field", turn(1), "tab", "down"), whyOneField)),
		k(page.ModeDialog, keys.InDialog, "shift+tab", "field before", turn(-1), "shift+tab", "up"),
		k(page.ModeDialog, keys.InDialog, "pgdn", "read on", read(3), "pgdown"),
		k(page.ModeDialog, keys.InDialog, "pgup", "read back", read(-3), "pgup"),
		brief(page.ModeDialog, k(page.ModeDialog, keys.InDialog, "esc", "leave everything as it is", m.CloseDialog, "esc")),
		leave,

		brief(page.ModeFilter, k(page.ModeFilter, keys.Typing, "enter", "keep the filter", m.keepFilter, "enter")),
		brief(page.ModeFilter, k(page.ModeFilter, keys.Typing, "tab", "complete a field or a value", func() tea.Cmd { m.completeFilter(1); return nil }, "tab")),
		k(page.ModeFilter, keys.Typing, "shift+tab", "the completion before", func() tea.Cmd { m.completeFilter(-1); return nil }, "shift+tab"),
		brief(page.ModeFilter, k(page.ModeFilter, keys.Typing, "esc", "clear it", m.clearFilter, "esc")),
		brief(page.ModeCommand, k(page.ModeCommand, keys.Typing, "enter", "do the command", m.doLine, "enter")),
		brief(page.ModeCommand, k(page.ModeCommand, keys.Typing, "tab", "complete it", complete(1), "tab")),
		k(page.ModeCommand, keys.Typing, "shift+tab", "the completion before", complete(-1), "shift+tab"),
		k(page.ModeCommand, keys.Typing, "↑", "the command before", func() tea.Cmd { m.line.Recall(-1); return nil }, "up", "ctrl+p"),
		k(page.ModeCommand, keys.Typing, "↓", "the command after", func() tea.Cmd { m.line.Recall(1); return nil }, "down", "ctrl+n"),
		brief(page.ModeCommand, k(page.ModeCommand, keys.Typing, "esc", "leave it", m.closeLine, "esc")),
	}
	for _, b := range input.Keys() {
		all = append(all, keys.Binding{Binding: b, In: page.ModeEdit, Group: keys.Typing}) // the line that is typed obeys them
	}
	return all
}
