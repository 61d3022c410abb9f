package tui

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"redlockctl/internal/view"
	"redlockctl/tui/action"
	"redlockctl/tui/page"
	"redlockctl/tui/prefs"
	"redlockctl/tui/source"
)

// Init implements [tea.Model].
func (m *model) Init() tea.Cmd {
	var hinted tea.Cmd
	if m.hints {
		hinted = m.prefs.Keep(func(p *prefs.Preferences) { p.Hinted = true })
	}
	return tea.Batch(m.feed.Begin(m.Latest, m.Events.Seq), m.wanted(), hinted, untilResumed(m.Ctx, m.resumed))
}

// Update implements [tea.Model]: it routes each message to one place. Known messages cause
// a new frame.
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
	case source.SnapshotMsg:
		cmd = m.receive(msg)
	case source.TickMsg:
		cmd = m.tick(msg)
	case source.MovedMsg:
		cmd = m.replayed(msg)
	case source.BeatMsg:
		cmd = m.playOn(msg)
	case source.HistoryMsg:
		m.takeHistory(msg)
	case source.HoldersMsg:
		m.Lock.Holders.Take(msg.Key, msg.Band, msg.From)
	case source.RemovalMsg:
		cmd = m.takeRemoval(msg)
	case page.Built:
		m.Locks.Take(msg)
	case valuesMsg:
		m.know(msg)
	case action.Finished:
		cmd = m.Finish(msg)
	case action.Answered:
		m.TakeAnswer(msg)
	case clusterMsg:
		cmd = m.moved(msg)
	case source.SeenMsg[[]view.ClusterRow]:
		cmd = m.takeClusters(msg)
	case source.SeenMsg[*view.AuditLog]:
		cmd = m.takeAudit(msg)
	case prefs.Failed:
		m.say(m.St.Warn, "your choice is not remembered: "+m.St.Whole(msg.Err.Error()))
	case resumedMsg:
		cmd = tea.Sequence(tea.Exec(nothing{}, nil), redraw, untilResumed(m.Ctx, m.resumed))
	case copiedMsg:
		m.copied(msg)
	default:
		m.dirty = drawn
	}
	m.goOn()
	return m, tea.Batch(cmd, m.wanted())
}

// wanted returns the background work that the pages need: sorting many locks, the history
// of a lock, how it was removed, and values for the filter being typed.
func (m *model) wanted() tea.Cmd {
	var sort, history tea.Cmd
	if build := m.Locks.Build(); build != nil {
		sort = func() tea.Msg {
			time.Sleep(afterFrame)
			return build()
		}
	}
	if key := m.Lock.Watched.Wants; key != "" {
		m.Lock.Watched.Wants = ""
		history = m.feed.History(key, m.Latest)
	}
	read := m.here.Audit
	audit := m.audit.While(m.Ctx, m.Viewed() == page.Audit, auditPace, func(context.Context) func() *view.AuditLog { return read })
	var fleet tea.Cmd
	if m.clusters != nil {
		fleet = m.fleet.While(m.Ctx, m.Viewed() == page.Clusters, fleetPace, m.clusters.Watch)
	}
	return tea.Batch(sort, history, m.learn(), m.askHolders(), m.askRemoval(), audit, fleet)
}

// afterFrame is how long background work waits for the frame of the key that caused it:
// with few processors they would compete. Another key within that time cancels the work.
const afterFrame = 4 * time.Second / frameRate

// The least time between two reads of the audit log, and of all clusters.
const (
	auditPace = time.Second
	fleetPace = time.Second / 2
)

// takeAudit shows the audit log, and waits for more.
func (m *model) takeAudit(msg source.SeenMsg[*view.AuditLog]) tea.Cmd {
	if !m.audit.Shows(msg) {
		return nil
	}
	if !m.Frozen.On() {
		m.Set.Audit.Take(msg.It)
	}
	return msg.Next
}

// takeClusters shows the state of all clusters, and waits for more.
func (m *model) takeClusters(msg source.SeenMsg[[]view.ClusterRow]) tea.Cmd {
	if !m.fleet.Shows(msg) {
		return nil
	}
	if !m.Frozen.On() || m.Set.Clusters.Empty() {
		m.Set.Clusters.Take(msg.It)
	}
	return msg.Next
}

func (m *model) resize(w, h int) tea.Cmd {
	first := m.W == 0
	if m.W, m.H = w, h; first {
		return nil
	}
	return redraw
}

// receive shows a snapshot, and waits for the next one.
func (m *model) receive(msg source.SnapshotMsg) tea.Cmd {
	if msg.Turn != m.feed.Turn {
		return nil
	}
	if m.replay != nil {
		m.Rewind(m.Now())
		m.Recall(m.replay.Turns())
	}
	m.seeGuard(msg.Guard)
	m.Receive(msg.Snap, msg.Changed, msg.Known, msg.Events)
	return m.feed.Next(msg.Snap, m.Events.Seq, m.pace())
}

// pace returns the least time until the next snapshot.
func (m *model) pace() time.Duration {
	if m.Latest.Settled.IsZero() && m.Latest.Locks.Len() == 0 {
		return min(firstPace, m.feed.Pace)
	}
	return m.feed.Pace
}

// tick runs once a second.
func (m *model) tick(msg source.TickMsg) tea.Cmd {
	if msg.Turn != m.feed.Turn {
		return nil
	}
	m.seeGuard(msg.Guard)
	m.Set.Tick(m.Now())
	m.CheckKept()
	m.ExpireResult()
	m.ForgetEnded()
	if m.notice != "" && m.Now().Sub(m.noticeAt) >= noticeTime {
		m.notice = ""
	}
	return m.feed.Tick()
}

// takeKey handles a key. Two escapes in one burst, as over a slow line, arrive as
// alt+escape.
func (m *model) takeKey(msg tea.KeyPressMsg) tea.Cmd {
	if msg.Code == tea.KeyEscape && msg.Mod == tea.ModAlt {
		msg.Mod = 0
		return tea.Batch(m.press(msg), m.press(msg))
	}
	return m.press(msg)
}

// press handles a key.
func (m *model) press(msg tea.KeyPressMsg) tea.Cmd {
	m.notice = ""
	mode := m.mode()
	if m.tooSmall() && msg.String() != "ctrl+c" && msg.String() != "q" {
		return nil // no actions on a screen that is too small
	}
	if d := m.Dialog; d != nil && d.HoldsBack(msg.String(), m.Now()) {
		return nil
	}
	if mode != page.ModeWorking && m.ResultKey(msg.String()) {
		return nil
	}
	if b := m.keys.Find(msg, mode); b != nil {
		return m.try(b)
	}
	if e := m.editor(); e != nil {
		switch mode {
		case page.ModeFilter:
			m.completes.Join(e, msg.Text)
		case page.ModeCommand:
			m.line.Join(e, msg.Text)
		}
		if e.Press(msg) {
			m.edited()
		}
	} else if mode == page.ModeDialog && msg.Text != "" {
		if f := m.Dialog.Focused(); f != nil {
			f.Choose(msg.Text)
			m.edited()
		} else {
			m.Dialog.Stray = true
		}
	}
	return nil
}

// moved shows the newly opened cluster.
func (m *model) moved(msg clusterMsg) tea.Cmd {
	m.Moving = false
	if msg.err != nil {
		m.say(m.St.Bad, m.St.Escape(msg.name, 40)+" cannot be opened: "+m.St.Whole(msg.err.Error()))
		return nil
	}
	c := msg.cluster
	if m.replay != nil {
		_ = m.replay.Close()
		m.replay, m.Off = nil, ""
	}
	m.here, m.Actions = c, c.Actions
	m.feed.Show(c.Source, c.Guard)
	m.Dialog, m.line = nil, nil
	m.CloseWho()
	m.Reset(m.Now())
	m.Home()
	m.seeGuard(m.feed.Status())
	m.say(m.St.Good, "this is "+m.St.Escape(msg.name, 40))
	first := c.Source.Snapshot()
	m.Set.Receive(first, nil, false, nil)
	m.lay()
	return m.feed.Begin(m.Latest, m.Events.Seq)
}
