package tui

import (
	"context"
	"errors"
	"redlockctl/tui/page"
	"redlockctl/tui/styles"
	"time"

	tea "charm.land/bubbletea/v2"

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
		m.running.close(goodbye)
		if left := m.letGo(); len(left) > 0 && opt.Tell != nil {
			opt.Tell(left)
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
// its colours: sixteen and the attributes are known everywhere, and an answer
// that never comes must not hold up the first screen. Signals end the context,
// and that ends the program: the toolkit's own handler waits for a place in the
// queue that nobody reads any more by then, and the program for the handler.
func newProgram(m *model, more ...tea.ProgramOption) *tea.Program {
	profile := colorprofile.ANSI
	if m.opt.NoColor {
		profile = colorprofile.ASCII
	}
	opts := []tea.ProgramOption{
		tea.WithContext(m.ctx),
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
	st := styles.New(opt.ASCII, theme)
	m := &model{
		desk:  &desk{ctx: ctx, now: now, actions: opt.Actions, lab: opt.Lab, mine: map[string]grant{}},
		opt:   opt,
		feed:  feed{ctx: ctx, source: opt.Source, guard: opt.Guard, pace: time.Second / time.Duration(opt.FPS)},
		keys:  newKeyMap(),
		prefs: prefs,
		saver: saver,
		dirty: true,
	}
	m.on, m.desk.say = m.cursorAt, m.say
	m.Set = page.New(&page.Screen{St: &st, IsMine: m.isMine}, now(), m.labLines, m.helpLines)
	m.page = m.Overview
	m.opt.Mouse = opt.Mouse || prefs.Mouse
	m.LockView.Choose(prefs.Columns, prefs.Wide)
	m.Locks.Order = page.OrderOf(prefs.Sort)
	m.seeGuard(m.feed.status())
	m.Receive(opt.Source.Snapshot(), nil, false, nil)
	if m.Locks.Order != page.OrderNeeds {
		m.say(m.St.Info, "the locks are sorted by "+m.Locks.Order.String()+", as you left them: s changes it")
	}
	if loadErr != nil {
		m.say(m.St.Warn, "what was chosen last time cannot be read: "+m.St.Whole(loadErr.Error()))
	}
	return m
}
