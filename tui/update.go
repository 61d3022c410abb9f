package tui

import (
	"redlockctl/tui/page"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
)

// Init implements [tea.Model].
func (m *model) Init() tea.Cmd {
	return tea.Batch(m.feed.next(m.Latest, m.Events.Seq, 0), m.feed.tick(), m.wanted())
}

// Update implements [tea.Model]: each message has one place where it goes. Frames are
// drawn for those that are known.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	drawn := m.dirty
	m.dirty = true
	var cmd tea.Cmd
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		cmd = m.resize(msg.Width, msg.Height)
	case tea.KeyPressMsg:
		cmd = m.takeKey(msg)
	case tea.MouseMsg:
		cmd = m.mouse(msg)
	case tea.PasteMsg:
		m.paste(msg.Content)
	case snapshotMsg:
		cmd = m.receive(msg)
	case tickMsg:
		cmd = m.tick(msg)
	case historyMsg:
		m.Lock.Watched.Before(msg.key, msg.events)
	case page.Built:
		m.Locks.Take(msg)
	case finished:
		cmd = m.finish(msg)
	case clusterMsg:
		cmd = m.moved(msg)
	case savedMsg:
		m.say(m.St.Warn, "your choice is not remembered: "+m.St.Whole(msg.err.Error()))
	case copiedMsg:
		m.copied(msg)
	default:
		m.dirty = drawn
	}
	return m, tea.Batch(cmd, m.wanted())
}

// wanted are the commands that the pages want to be run: many locks sorted anew, and
// what happened to a lock before it was looked at.
func (m *model) wanted() tea.Cmd {
	var sort, history tea.Cmd
	if build := m.Locks.Build(); build != nil {
		sort = func() tea.Msg { return build() }
	}
	if key := m.Lock.Watched.Wants; key != "" {
		m.Lock.Watched.Wants = ""
		history = m.feed.history(key)
	}
	return tea.Batch(sort, history)
}

func (m *model) resize(w, h int) tea.Cmd {
	first := m.W == 0
	if m.W, m.H = w, h; first {
		return nil
	}
	return redraw
}

// receive takes in a snapshot, and waits for the next one.
func (m *model) receive(msg snapshotMsg) tea.Cmd {
	if msg.cluster != m.feed.cluster {
		return nil
	}
	m.seeGuard(msg.guard)
	m.Receive(msg.snap, msg.changed, msg.known, msg.events)
	return m.feed.next(msg.snap, m.Events.Seq, m.feed.pace)
}

func (m *model) seeGuard(g guardState) { m.TakeGuard(g.id, g.status, m.opt.Delay) }

// tick is a second that has passed.
func (m *model) tick(msg tickMsg) tea.Cmd {
	if msg.cluster != m.feed.cluster {
		return nil
	}
	m.seeGuard(msg.guard)
	m.Set.Tick(m.now())
	m.lookAfter()
	m.forgetEnded()
	if m.notice != "" && m.now().Sub(m.noticeAt) >= noticeTime {
		m.notice = ""
	}
	return m.feed.tick()
}

// takeKey takes a key. Two escapes that come in one burst, as over a slow line, are
// read as one with alt.
func (m *model) takeKey(msg tea.KeyPressMsg) tea.Cmd {
	if msg.Code == tea.KeyEscape && msg.Mod == tea.ModAlt {
		msg.Mod = 0
		return tea.Batch(m.press(msg), m.press(msg))
	}
	return m.press(msg)
}

// press is a key.
func (m *model) press(msg tea.KeyPressMsg) tea.Cmd {
	m.notice = ""
	mode := m.mode()
	if m.tooSmall() && msg.String() != "ctrl+c" && msg.String() != "q" {
		return nil // nobody acts on what cannot be seen
	}
	if d := m.dialog; d != nil && msg.String() != "ctrl+c" && msg.String() != "esc" && !d.listens(m.now()) {
		d.early = m.now()
		return nil
	}
	for i := range m.keys {
		b := &m.keys[i]
		if b.in&mode == 0 || b.do == nil || !key.Matches(msg, b.Binding) {
			continue
		}
		return m.try(b)
	}
	if e := m.editor(); e != nil {
		if e.Press(msg) {
			m.edited()
		}
	} else if mode == page.ModeDialog && msg.Text != "" {
		if f := m.dialog.focused(); f != nil {
			f.choose(msg.Text)
			m.edited()
		}
	}
	return nil
}

func (m *model) paste(s string) {
	if m.tooSmall() {
		return
	}
	if d := m.dialog; d != nil && !d.listens(m.now()) {
		d.early = m.now()
		return
	}
	if e := m.editor(); e != nil {
		e.Paste(s)
		m.edited()
	}
}

// edited is called after the editor's text has changed.
func (m *model) edited() {
	switch m.mode() {
	case page.ModeFilter:
		m.page.(page.Filtered).Filter(m.now())
	case page.ModeCommand:
		m.line.typed()
	case page.ModeDialog:
		m.dialog.pressed = false
	}
}

// View implements [tea.Model]. The frame is made only when something changed.
func (m *model) View() tea.View {
	if !m.dirty {
		return m.view
	}
	m.dirty = false
	m.view = tea.NewView(m.frame())
	m.view.AltScreen = true
	if m.opt.Mouse {
		m.view.MouseMode = tea.MouseModeCellMotion
	}
	if d := m.dialog; d != nil && d.drawn.IsZero() {
		d.drawn = m.now()
	}
	return m.view
}
