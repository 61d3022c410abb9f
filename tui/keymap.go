package tui

import (
	"slices"
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

// newKeyMap returns all keys of the program and what they do, in the order of the key line
// and the help.
func newKeyMap(m *model) keys.Map {
	all := slices.Concat(firstKeys(m), lookKeys(m), actingKeys(m), movingKeys(m), pastKeys(m), labKeys(m), tableKeys(m), programKeys(m),
		dialogKeys(m), filterKeys(m), commandKeys(m))
	for _, b := range input.Keys() {
		all = append(all, keys.Binding{Binding: b, In: page.ModeEdit, Group: keys.Typing}) // handled by the text field
	}
	return all
}

func keyBound(in page.Mode, group, show, help string, do func() tea.Cmd, on ...string) keys.Binding {
	return keys.Binding{Binding: key.NewBinding(key.WithKeys(on...), key.WithHelp(show, help)), In: in, Group: group, Do: do}
}

// onMain returns a binding for all pages, named like its key.
func onMain(group, k, help string, do func() tea.Cmd) keys.Binding {
	return keyBound(page.ModeMain, group, k, help, do, k)
}

func inKeyLine(in page.Mode, b keys.Binding) keys.Binding     { b.Brief = in; return b }
func offWhen(b keys.Binding, why func() string) keys.Binding  { b.Why = why; return b }
func asCommand(name string, b keys.Binding) keys.Binding      { b.Name = name; return b }
func helpNow(b keys.Binding, says func() string) keys.Binding { b.Says = says; return b }

// doing makes a command of do that sends no message.
func doing(do func()) func() tea.Cmd { return func() tea.Cmd { do(); return nil } }

// firstKeys are first in the key line, before the actions for what is under the cursor.
func firstKeys(m *model) keys.Map {
	// The help covers a page; the key that opens it also closes it.
	help := onMain(keys.Looking, "?", "help, and back from it", m.toggleHelp)
	find := offWhen(onMain(keys.Looking, "/", "filter", m.openFilter), m.whyNoFilter)
	find.Typed = true
	// On pages that have no number, the way back is in the key line.
	back := inKeyLine(page.ModeLock|page.ModeNode|page.ModeClusters|page.ModeAudit, onMain(keys.Looking, "esc", "close what was opened last", m.escape))
	return keys.Map{
		inKeyLine(page.ModeMain&^page.ModeHelp, helpNow(help, func() string { return inHelp(m, "close", "help") })),
		inKeyLine(page.ModeLocks|page.ModeEvents|page.ModeAudit, find),
		helpNow(back, func() string { return "back" }),
	}
}

// inHelp returns one text on the help page and another elsewhere.
func inHelp(m *model, there, elsewhere string) string {
	if m.Viewed() == page.Help {
		return there
	}
	return elsewhere
}

func movingKeys(m *model) keys.Map {
	move := func(show, help string, d func() int, on ...string) keys.Binding {
		return keyBound(page.ModeMain, keys.Moving, show, help, doing(func() { m.Page.Move(d()) }), on...)
	}
	by := func(d int) func() int { return func() int { return d } }
	// A page that cuts what is under its cursor says so with the key that shows the rest.
	pages := func(d int) func() int {
		return func() int {
			if s, ok := m.Page.(page.Scroller); ok && s.Scroll(d) {
				return 0
			}
			return d * m.Page.Rows()
		}
	}
	tab := inKeyLine(page.ModeLocks|page.ModeNodes, onMain(keys.Moving, "tab", "next table, or next page", m.tab))
	all := keys.Map{
		inKeyLine(page.ModeList, onMain(keys.Looking, ":", "command", m.openLine)),
		move("↑ k", "up", by(-1), "up", "k"),
		move("↓ j", "down", by(1), "down", "j"),
		move("pgup", "a page up", pages(-1), "pgup", "ctrl+b"),
		move("pgdn", "a page down", pages(1), "pgdown", "ctrl+f"),
		move("home g", "to the first", by(-1<<30), "home", "g"),
		move("end G", "to the last", by(1<<30), "end", "G"),
		helpNow(tab, func() string {
			switch {
			case m.Viewed() != page.Overview:
				return "next page"
			case m.Overview.OnNodes:
				return "events"
			case m.Overview.OnEvents:
				return "locks"
			}
			return "nodes"
		}),
		keyBound(page.ModeMain, keys.Moving, "→ l", "the next page", func() tea.Cmd { return m.turn(1) }, "right", "l"),
		keyBound(page.ModeMain, keys.Moving, "← h", "the page before", func() tea.Cmd { return m.turn(-1) }, "left", "h", "shift+tab"),
	}
	for v := range page.NumTabs {
		to := onMain(keys.Moving, strconv.Itoa(int(v)+1), v.String(), func() tea.Cmd { return m.goTo(v) })
		all = append(all, offWhen(to, func() string { return m.whyNoView(v) }))
	}
	return all
}

func pastKeys(m *model) keys.Map {
	past := func(k, help string, do func() tea.Cmd, why func() string) keys.Binding {
		return offWhen(onMain(keys.Past, k, help, do), why)
	}
	return keys.Map{
		past("[", "one event back", m.stepPast(true), m.whyNoReplay),
		past("]", "one event forward", m.stepPast(false), m.whyNotInReplay),
		past("{", "a minute back", m.shiftPast(-time.Minute), m.whyNoReplay),
		past("}", "a minute forward", m.shiftPast(time.Minute), m.whyNotInReplay),
		past(".", "to now", m.toNow, m.whyNotInReplay),
		past("+", "play faster", m.faster(1), m.whyNotInReplay),
		past("-", "play slower", m.faster(-1), m.whyNotInReplay),
	}
}

// lookKeys open what is under the cursor.
func lookKeys(m *model) keys.Map {
	detail := inKeyLine(page.ModeList&^page.ModeNode, keyBound(page.ModeList, keys.Looking, "enter", "details, or open its page", m.enter, "enter"))
	return keys.Map{
		helpNow(offWhen(detail, m.whyNoEnter), func() string {
			switch shown, ok := m.ShowsDetail(); {
			case m.Viewed() == page.Clusters:
				return "change to it"
			case !ok:
				return "open"
			case shown:
				return "close detail"
			}
			return "detail"
		}),
		inKeyLine(page.ModeHelp, keyBound(page.ModeHelp, keys.Moving, "enter", "say why keys are disabled", m.enter, "enter")),
		offWhen(onMain(keys.Looking, "o", "open its page", m.openPicked), m.whyNoOpenPicked),
	}
}

// actionKey returns the binding of an action, which is a command too, named as in its help;
// on is what its argument may name. The key says on other pages where it belongs.
func actionKey(on page.Mode, b keys.Binding, why func() string) keys.Binding {
	b.Danger, b.Typed, b.Brief, b.Takes, b.Why = true, true, on, on, why
	b.Name = b.Help().Desc
	return b
}

func actingKeys(m *model) keys.Map {
	onLock := func(k, action string, do func() tea.Cmd, why func() string) keys.Binding {
		return actionKey(page.ModeOnLock, onMain(keys.Acting, k, action, do), why)
	}
	onNode := func(k, action string, do func() tea.Cmd, why func() string) keys.Binding {
		return asCommand("node "+action, actionKey(page.ModeOnNode, onMain(keys.Acting, k, action, do), why))
	}
	marked := func(b keys.Binding) keys.Binding {
		return helpNow(b, func() string {
			if n := len(m.Marked()); n > 0 {
				return b.Name + " (" + view.Count(n) + ")"
			}
			return b.Name
		})
	}
	who := inKeyLine(page.ModeOnLock, asCommand("who", offWhen(onMain(keys.Looking, "w", "who holds it: watches it for up to a minute", m.AskWho), m.WhyNoWho)))
	who.Takes = page.ModeOnLock
	acquire := onLock("a", "acquire", m.AskAcquire, m.WhyNoAction)
	acquire.Takes = 0 // its dialog asks for a name
	return keys.Map{
		onLock("e", "extend", m.AskExtend, m.WhyNoExtend),
		marked(onLock("r", "release", m.AskRelease, m.WhyNoRelease)),
		marked(onLock("R", "revoke", m.AskRevoke, m.WhyNoRevoke)),
		marked(onLock("X", "force-release", m.AskForce, m.WhyNoForce)),
		helpNow(who, func() string { return "who" }),
		acquire,
		onNode("C", "cordon", m.AskCordon, m.WhyNoCordon),
		onNode("D", "drain", m.AskDrain, m.WhyNoCordon),
		onNode("U", "uncordon", m.AskUncordon, m.WhyNoUncordon),
		onNode("J", "rejoin", m.AskRejoin, m.WhyNoRejoin),
	}
}

// labKeys are the keys of the demo: its nodes and the tour.
func labKeys(m *model) keys.Map {
	inLab := func(on, in page.Mode, k, action string) keys.Binding {
		return actionKey(on, keyBound(in, keys.Lab, k, action, func() tea.Cmd { return m.AskLab(action) }, k), func() string { return m.WhyNoLab(action) })
	}
	return keys.Map{
		inLab(page.ModeOnNode, page.ModeMain, "c", "crash"),
		inLab(page.ModeOnNode, page.ModeLab, "z", "stop"),
		inLab(page.ModeOnNode, page.ModeLab, "Z", "continue"),
		inLab(page.ModeOnNode, page.ModeLab, "t", "skew"),
		inLab(page.ModeOnNode, page.ModeLab, "F", "flush"),
		asCommand("tour", offWhen(onMain(keys.Tour, "T", "begin or end the tour", m.toggleTour), m.whyNoTour)),
		offWhen(onMain(keys.Tour, "N", "the next step of the tour", m.nextStep), m.whyNoStep),
	}
}

// tableKeys sort, filter and mark rows.
func tableKeys(m *model) keys.Map {
	sorted := page.ModeLocks | page.ModeNodes | page.ModeFindings | page.ModeClusters | page.ModeAudit
	freeze := asCommand("freeze", keyBound(page.ModeMain&^page.ModeHelp, keys.Looking, "space", "freeze, or pause a replay", m.toggleFreeze, "space"))
	follow := asCommand("follow", offWhen(onMain(keys.Looking, "f", "follow the newest, or stay", m.toggleFollow), m.whyNoFollow))
	return keys.Map{
		inKeyLine(sorted, offWhen(onMain(keys.Looking, "s", "sort", m.nextOrder), m.whyNoSort)),
		offWhen(onMain(keys.Looking, "S", "sort the other way round", m.turnOrder), m.whyNoSort),
		inKeyLine(page.ModeMain&^page.ModeHelp, helpNow(freeze, func() string {
			switch {
			case m.replay == nil:
				return "freeze"
			case m.replay.Playing:
				return "pause"
			}
			return "play"
		})),
		inKeyLine(page.ModeEvents, helpNow(follow, func() string {
			if m.Events.Follows() {
				return "stay here"
			}
			return "follow the newest"
		})),
		inKeyLine(page.ModeLocks, offWhen(onMain(keys.Looking, "m", "mark", m.toggleMark), m.whyNoMark)),
		offWhen(onMain(keys.Looking, "M", "unmark all", m.clearMarks), m.whyNoMarks),
		asCommand("wide", offWhen(onMain(keys.Looking, "W", "wide: every column", m.toggleWide), m.whyNoWide)),
		asCommand("copy", offWhen(onMain(keys.Looking, "y", "copy its name", m.copyPicked), m.whyNoCopy)),
		asCommand("copy-page", onMain(keys.Looking, "Y", "copy the page as shown", m.copyPage)),
	}
}

// programKeys close what is open, or quit. In the help they close the help first.
func programKeys(m *model) keys.Map {
	anywhere := func(k, help string, do func() tea.Cmd) keys.Binding {
		return keyBound(page.ModeAny, keys.Looking, k, help, do, k)
	}
	quit := asCommand("quit", offWhen(onMain(keys.Looking, "q", "quit, or leave the help", m.leave), m.whyNoLeave))
	return keys.Map{
		inKeyLine(page.ModeMain, helpNow(quit, func() string { return inHelp(m, "close", "quit") })),
		asCommand("redraw", anywhere("ctrl+l", "redraw", func() tea.Cmd { return redraw })),
		offWhen(anywhere("ctrl+z", "suspend; fg resumes", func() tea.Cmd { return tea.Suspend }), m.whyNoSuspend),
		anywhere("ctrl+c", "quit at once", func() tea.Cmd { return action.Quit() }),
	}
}

func dialogKeys(m *model) keys.Map {
	in := func(show, help string, do func() tea.Cmd, on ...string) keys.Binding {
		return keyBound(page.ModeDialog, keys.InDialog, show, help, do, on...)
	}
	read := func(lines int) func() tea.Cmd {
		return doing(func() { m.Dialog.Scroll = max(0, m.Dialog.Scroll+lines) })
	}
	turn := func(by int) func() tea.Cmd { return doing(func() { m.Dialog.TurnField(by) }) }
	whyOneField := func() string {
		if len(m.Dialog.Fields) < 2 {
			return "there is no other field"
		}
		return ""
	}
	leave := keyBound(page.ModeWorking, keys.InDialog, "esc", "let it work in the background; of several: stop after this one", m.LeaveWork, "esc")
	return keys.Map{
		inKeyLine(page.ModeDialog, helpNow(in("enter", "do it, or go to what is missing", m.Submit, "enter"), func() string { return m.Dialog.Verb })),
		inKeyLine(page.ModeDialog, offWhen(in("tab", "next field", turn(1), "tab", "down"), whyOneField)),
		in("shift+tab", "field before", turn(-1), "shift+tab", "up"),
		in("pgdn", "read on", read(3), "pgdown"),
		in("pgup", "read back", read(-3), "pgup"),
		inKeyLine(page.ModeDialog, helpNow(in("esc", "leave everything as it is", m.CloseDialog, "esc"), func() string {
			if m.Dialog.Refusal {
				return "close"
			}
			return "cancel"
		})),
		inKeyLine(page.ModeWorking, helpNow(leave, func() string {
			if m.Dialog.Did != "" {
				return "stop after this one"
			}
			return "let it work in the background"
		})),
	}
}

func filterKeys(m *model) keys.Map {
	in := func(show, help string, do func() tea.Cmd) keys.Binding {
		return keyBound(page.ModeFilter, keys.Typing, show, help, do, show)
	}
	complete := func(d int) func() tea.Cmd { return doing(func() { m.completeFilter(d) }) }
	return keys.Map{
		inKeyLine(page.ModeFilter, in("enter", "keep the filter", m.keepFilter)),
		inKeyLine(page.ModeFilter, in("tab", "complete a field or a value", complete(1))),
		in("shift+tab", "the completion before", complete(-1)),
		inKeyLine(page.ModeFilter, in("esc", "clear it", m.clearFilter)),
	}
}

func commandKeys(m *model) keys.Map {
	in := func(show, help string, do func() tea.Cmd, on ...string) keys.Binding {
		return keyBound(page.ModeCommand, keys.Typing, show, help, do, on...)
	}
	complete := func(d int) func() tea.Cmd {
		return doing(func() { m.line.Complete(&m.line.Line, m.offers, d) })
	}
	return keys.Map{
		inKeyLine(page.ModeCommand, in("enter", "do the command", m.doLine, "enter")),
		inKeyLine(page.ModeCommand, in("tab", "complete it", complete(1), "tab")),
		in("shift+tab", "the completion before", complete(-1), "shift+tab"),
		in("↑", "the command before", doing(func() { m.line.Recall(-1) }), "up", "ctrl+p"),
		in("↓", "the command after", doing(func() { m.line.Recall(1) }), "down", "ctrl+n"),
		inKeyLine(page.ModeCommand, in("esc", "leave it", m.closeLine, "esc")),
	}
}
