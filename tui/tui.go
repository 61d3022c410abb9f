// Package tui is the terminal UI. It draws snapshots, and reaches actions through the
// interfaces that it and its packages declare.
//
// One small [tea.Model] (model.go) routes messages (program.go). Packages below have the
// rest: pages (page), dialogs and actions (action), where snapshots come from (source), keys
// and commands as data (keys, command), the text field (input), preferences (prefs), the
// tour (tour). The other files here implement keys and commands, which keymap.go and
// commands.go bind, and the frame around the page (layout.go).
//
// Text from servers reaches the screen only through package styles.
package tui

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"redlockctl/base/crash"
	"redlockctl/tui/action"
	"redlockctl/tui/page"
	"redlockctl/tui/prefs"
	"redlockctl/tui/source"
	"redlockctl/tui/styles"
	"redlockctl/tui/tour"
)

// Options of the UI.
type Options struct {
	Cluster            // its Source must not be nil, except with Replay
	Lab     action.Lab // nil: not a demo
	// Passing: the cluster ends with the screen, so no choices for it are remembered.
	Passing bool
	Tour    bool                 // start with the tour of the demo
	ASCII   bool                 // ASCII characters only
	NoColor bool                 // attributes such as bold and reverse remain; ignores Theme
	Theme   styles.Theme         // default: the last choice, or styles.ThemeANSI
	Colors  styles.Palette       // replaces single colours of the theme
	Profile colorprofile.Profile // the terminal's number of colours; at least 16, the default
	Mouse   bool                 // use the mouse even if it was not chosen; the terminal's own selection then needs shift
	FPS     int                  // most snapshots shown per second; 0: all
	In      io.Reader            // default: the terminal
	Out     io.Writer            // default: standard output

	Replay source.Recording // show only this record; nil: live

	Store    prefs.Store // nil: remember nothing
	Clusters Clusters    // nil: only one
	// Clipboard writes to this machine's clipboard, or to that of the terminal around tmux; nil:
	// only the terminal is asked to, which is right over SSH.
	Clipboard func(ctx context.Context, text string) error
	// Resumed receives when the process continues after something else stopped it: the
	// terminal is then in the state in which the shell left it. May be nil.
	Resumed <-chan os.Signal
	// Tell is called with what happened to the locks that were acquired on the screen, after
	// the terminal was restored. May be nil.
	Tell func(action.Parting)
}

const (
	// frameRate is how often frames are sent. It is high so that the response to a key does
	// not wait.
	frameRate = 120
	// firstPace is the least time between two snapshots until the first locks are shown.
	firstPace = 10 * time.Millisecond
)

// Run shows the UI until the user quits or ctx ends, restores the terminal, and returns
// nil. It handles no signals: the caller ends ctx. Running actions get a moment to end, so
// that their outcome is logged. Extensions stop.
func Run(ctx context.Context, opt Options) error {
	ctx, cancel := context.WithCancel(ctx)
	m := newModel(ctx, opt, time.Now)
	defer func() {
		cancel()
		m.Running.Close(goodbye)
		if p := m.StopKeeping(); opt.Tell != nil {
			opt.Tell(p)
		}
	}()
	err := runProgram(newProgram(m, opt))
	if ctx.Err() != nil && errors.Is(err, tea.ErrProgramKilled) {
		return nil
	}
	return err
}

// runProgram runs the program. If any goroutine panics, the terminal is restored before the
// panic is printed.
func runProgram(p *tea.Program) (err error) {
	defer crash.Before(func() { _ = p.ReleaseTerminal() })()
	crash.Safe(func() { _, err = p.Run() })()
	return err
}

// goodbye is how long Run waits for actions after it ended their context.
const goodbye = 3 * time.Second

// newProgram makes the program for a model. It does not query the terminal for its
// colours: the environment tells their number, and a missing answer would delay the first
// screen. Signals end the context, which quits the program; Bubble Tea's own handler can
// deadlock, because it sends to a queue that nobody reads at the end. Bubble Tea does not
// get the context, because it would close the terminal while another goroutine reads it.
func newProgram(m *model, opt Options, more ...tea.ProgramOption) *tea.Program {
	p := tea.NewProgram(safeModel{m}, append(programOptions(opt), more...)...)
	context.AfterFunc(m.Ctx, crash.Safe(func() {
		kill := time.AfterFunc(goodbye, p.Kill)
		p.Quit()
		kill.Stop()
	}))
	return p
}

func programOptions(opt Options) []tea.ProgramOption {
	profile := max(opt.Profile, colorprofile.ANSI)
	if opt.NoColor {
		profile = colorprofile.ASCII
	}
	opts := []tea.ProgramOption{
		tea.WithoutSignalHandler(),
		tea.WithoutCatchPanics(), // Bubble Tea prints some panics on the alternate screen, which then disappears
		tea.WithFPS(frameRate),
		tea.WithColorProfile(profile),
	}
	if opt.In != nil {
		opts = append(opts, tea.WithInput(opt.In))
	}
	if opt.Out != nil {
		opts = append(opts, tea.WithOutput(opt.Out))
	}
	return opts
}

func newModel(ctx context.Context, opt Options, now func() time.Time) *model {
	var pace time.Duration
	if opt.FPS > 0 {
		pace = time.Second / time.Duration(opt.FPS)
	}
	desk := &action.Desk{Ctx: ctx, Now: now, Actions: opt.Actions, Lab: opt.Lab, Mine: map[string]action.Grant{}}
	kept, loadErr := prefs.Load(opt.Store, &desk.Running)
	theme := opt.Theme
	switch {
	case opt.NoColor:
		theme = styles.ThemeNone
	case theme == "":
		theme = kept.Theme
	}
	st := styles.New(styles.Look{Theme: theme, Own: opt.Colors, ASCII: opt.ASCII, Sixteen: opt.Profile <= colorprofile.ANSI})
	m := &model{
		Desk:      desk,
		here:      opt.Cluster,
		clusters:  opt.Clusters,
		feed:      source.NewFeed(ctx, opt.Source, opt.Guard, pace),
		prefs:     kept,
		lasting:   opt.Store != nil && !opt.Passing,
		theme:     opt.Theme,
		noColor:   opt.NoColor,
		mouseOn:   opt.Mouse || kept.Mouse,
		clipboard: opt.Clipboard,
		resumed:   opt.Resumed,
		demo:      opt.Tour,
		dirty:     true,
	}
	m.On, m.Desk.Say = m.cursorAt, m.say
	m.Set = page.New(&page.Screen{St: &st, IsMine: m.IsMine, Kept: m.KeptText}, now(), m.labLines, m.helpLines)
	m.keys, m.commands = newKeyMap(m), m.commandsNow
	if opt.Replay != nil {
		m.replay, m.Off = source.NewPlayer(opt.Replay, true), offInReplay
		m.feed.Source, m.feed.Guard = opt.Replay, opt.Replay
	}
	m.seeGuard(m.feed.Status())
	first := m.feed.Source.Snapshot()
	m.Receive(first, nil, false, nil)
	m.lay()
	switch {
	case opt.Tour:
		m.tour = &tour.Tour{}
	case opt.Store != nil && loadErr == nil:
		m.hints = !kept.Hinted
	}
	if loadErr != nil {
		m.say(m.St.Warn, "default columns, order and theme: "+m.St.Whole(loadErr.Error()))
	}
	return m
}
