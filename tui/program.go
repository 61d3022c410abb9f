package tui

import (
	"context"
	"errors"
	"redlockctl/tui/page"
	"redlockctl/tui/styles"
	"time"

	"charm.land/bubbles/v2/key"

	tea "charm.land/bubbletea/v2"

	"redlockctl/tui/action"

	"github.com/charmbracelet/colorprofile"
)

const (
	defaultFPS = 15
	// frameRate is how often what was drawn is sent: a key's answer must not wait
	// for the next picture.
	frameRate = 60
)

// Run shows the UI until the person quits or ctx ends, and leaves the terminal
// as it found it; then it returns nil. It handles no signal: whoever calls it ends
// ctx on one. Acts that are on their way are given a
// moment to end, so that their outcome is recorded. Nothing is extended any more.
func Run(ctx context.Context, opt Options) error {
	ctx, cancel := context.WithCancel(ctx)
	m := newModel(ctx, opt, time.Now)
	defer func() {
		cancel()
		m.Running.Close(goodbye)
		if p := m.LetGo(); opt.Tell != nil {
			opt.Tell(p)
		}
	}()
	_, err := newProgram(m).Run()
	if ctx.Err() != nil && errors.Is(err, tea.ErrProgramKilled) && !errors.Is(err, tea.ErrProgramPanic) {
		return nil
	}
	return err
}

// goodbye is how long Run waits for acts whose context it has ended.
const goodbye = 3 * time.Second

// newProgram makes the program around a model. The terminal is not asked for
// its colours: the environment tells how many there are, and an answer
// that never comes must not hold up the first screen. Signals end the context,
// and that ends the program: the toolkit's own handler waits for a place in the
// queue that nobody reads any more by then, and the program for the handler.
func newProgram(m *model, more ...tea.ProgramOption) *tea.Program {
	profile := max(m.opt.Profile, colorprofile.ANSI)
	if m.opt.NoColor {
		profile = colorprofile.ASCII
	}
	opts := []tea.ProgramOption{
		tea.WithContext(m.Ctx),
		tea.WithoutSignalHandler(),
		tea.WithFPS(frameRate),
		tea.WithColorProfile(profile),
	}
	if m.opt.In != nil {
		opts = append(opts, tea.WithInput(m.opt.In))
	}
	if m.opt.Out != nil {
		opts = append(opts, tea.WithOutput(m.opt.Out))
	}
	return tea.NewProgram(m, append(opts, more...)...)
}

func newModel(ctx context.Context, opt Options, now func() time.Time) *model {
	if opt.FPS <= 0 {
		opt.FPS = defaultFPS
	}
	saver, prefs, loadErr := newSaver(opt.Store)
	theme := opt.Theme
	switch {
	case opt.NoColor:
		theme = styles.ThemeNone
	case theme == "":
		theme = prefs.Theme
	}
	st := styles.New(styles.Look{Theme: theme, Own: opt.Colors, ASCII: opt.ASCII, Sixteen: opt.Profile <= colorprofile.ANSI})
	m := &model{
		Desk:  &action.Desk{Ctx: ctx, Now: now, Actions: opt.Actions, Lab: opt.Lab, Mine: map[string]action.Grant{}},
		opt:   opt,
		feed:  feed{ctx: ctx, source: opt.Source, guard: opt.Guard, pace: time.Second / time.Duration(opt.FPS)},
		keys:  newKeyMap(),
		prefs: prefs,
		saver: saver,
		dirty: true,
	}
	m.On, m.Desk.Say = m.cursorAt, m.say
	m.Set = page.New(&page.Screen{St: &st, IsMine: m.IsMine, Kept: m.KeptText}, now(), m.labLines, m.helpLines)
	m.page = m.Overview
	m.opt.Mouse = opt.Mouse || prefs.Mouse
	if opt.Replay != nil {
		m.replay = &replay{rec: opt.Replay, speed: 1, only: true}
		m.Off, m.feed.source, m.feed.guard = offInReplay, opt.Replay, opt.Replay
	}
	m.seeGuard(m.feed.status())
	first := m.feed.source.Snapshot()
	m.lay(first)
	m.Receive(first, nil, false, nil)
	switch {
	case opt.Tour:
		m.tour = &tour{}
	case opt.Store != nil && loadErr == nil:
		m.hints = !prefs.Hinted
		m.prefs.Hinted = true
	}
	if loadErr != nil {
		m.say(m.St.Warn, "what was chosen last time cannot be read: "+m.St.Whole(loadErr.Error()))
	}
	return m
}

// Init implements [tea.Model].
func (m *model) Init() tea.Cmd {
	var hinted tea.Cmd
	if m.hints {
		hinted = m.save()
	}
	return tea.Batch(m.feed.next(m.Latest, m.Events.Seq, 0), m.feed.tick(), m.wanted(), hinted)
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
	case replayMsg:
		cmd = m.replayed(msg)
	case playMsg:
		cmd = m.playOn(msg)
	case historyMsg:
		m.Lock.Watched.Before(msg.key, msg.events)
	case holdersMsg:
		m.Lock.Held(msg.key, msg.grants, msg.from)
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
	case clustersMsg:
		cmd = m.takeClusters(msg)
	case auditMsg:
		cmd = m.takeAudit(msg)
	case savedMsg:
		m.say(m.St.Warn, "your choice is not remembered: "+m.St.Whole(msg.err.Error()))
	case copiedMsg:
		m.copied(msg)
	default:
		m.dirty = drawn
	}
	m.goOn()
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
	return tea.Batch(sort, history, m.askHolders())
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
	if m.replay != nil {
		m.Rewind(m.Now())
	}
	m.seeGuard(msg.guard)
	m.Receive(msg.snap, msg.changed, msg.known, msg.events)
	return m.feed.next(msg.snap, m.Events.Seq, m.feed.pace)
}

// tick is a second that has passed.
func (m *model) tick(msg tickMsg) tea.Cmd {
	if msg.cluster != m.feed.cluster {
		return nil
	}
	m.seeGuard(msg.guard)
	m.Set.Tick(m.Now())
	m.LookAfter()
	m.ExpireResult()
	m.ForgetEnded()
	if m.notice != "" && m.Now().Sub(m.noticeAt) >= noticeTime {
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
	if d := m.Dialog; d != nil && msg.String() != "ctrl+c" && msg.String() != "esc" && !d.Listens(m.Now()) {
		d.Early = m.Now()
		return nil
	}
	if mode != page.ModeWorking && m.ResultKey(msg.String()) {
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
		switch mode {
		case page.ModeFilter:
			m.completes.join(e, msg.Text)
		case page.ModeCommand:
			m.line.join(e, msg.Text)
		}
		if e.Press(msg) {
			m.edited()
		}
	} else if mode == page.ModeDialog && msg.Text != "" {
		if f := m.Dialog.Focused(); f != nil {
			f.Choose(msg.Text)
			m.edited()
		}
	}
	return nil
}

func (m *model) paste(s string) {
	if m.tooSmall() {
		return
	}
	if d := m.Dialog; d != nil && !d.Listens(m.Now()) {
		d.Early = m.Now()
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
		m.completes.typed()
		m.page.(page.Filtered).Filter(m.shownNow())
	case page.ModeCommand:
		m.line.typed()
	case page.ModeDialog:
		m.Dialog.Pressed = false
	}
}

// moved shows the other cluster.
func (m *model) moved(msg clusterMsg) tea.Cmd {
	m.moving = false
	if msg.err != nil {
		m.say(m.St.Bad, m.St.Escape(msg.name, 40)+" cannot be opened: "+m.St.Whole(msg.err.Error()))
		return nil
	}
	c := msg.cluster
	if m.replay != nil {
		_ = m.replay.rec.Close()
		m.replay, m.Off = nil, ""
	}
	m.opt.Source, m.opt.Guard, m.opt.Record, m.opt.Audit = c.Source, c.Guard, c.Record, c.Audit
	m.Actions, m.opt.Delay = c.Actions, c.Delay
	m.feed.source, m.feed.guard = c.Source, c.Guard
	m.feed.cluster++
	m.trail, m.Dialog, m.line = nil, nil, nil
	m.Reset(m.Now())
	m.arrive(m.Overview)
	m.seeGuard(m.feed.status())
	m.say(m.St.Good, "this is "+m.St.Escape(msg.name, 40))
	first := c.Source.Snapshot()
	m.lay(first)
	m.Set.Receive(first, nil, false, nil)
	return tea.Batch(m.feed.next(m.Latest, m.Events.Seq, 0), m.feed.tick())
}
