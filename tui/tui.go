// Package tui is the terminal UI. It draws snapshots and reaches acts through
// the interfaces that it and its packages declare.
//
// One [tea.Model] routes messages (program.go); what it owns is little (model.go). What
// stands by itself is a package: pages, what a person does (action), where snapshots come
// from (source), keys and commands as data, the line that is typed (input), what is kept
// (prefs), the tour. The other files here are what keys and commands do with these, bound to
// them in keymap.go and commands.go, and the frame around the page (layout.go).
//
// Text from servers reaches the screen through package styles and in no other way.
package tui

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"redlockctl/internal/crash"
	"redlockctl/tui/action"
	"redlockctl/tui/page"
	"redlockctl/tui/prefs"
	"redlockctl/tui/source"
	"redlockctl/tui/styles"
	"redlockctl/tui/tour"
)

// Options of the UI.
type Options struct {
	Cluster            // its Source must not be nil, but for Replay
	Lab     action.Lab // nil: nothing to crash
	// Passing: the cluster is gone with the screen, and nothing that is chosen for it is kept.
	Passing bool
	Tour    bool                 // it begins with the tour of the demo
	ASCII   bool                 // ASCII characters only
	NoColor bool                 // attributes such as bold and reverse stay; Theme does not count
	Theme   styles.Theme         // default: what was chosen last, else styles.ThemeANSI
	Colors  styles.Palette       // single ones in place of the theme's
	Profile colorprofile.Profile // how many colours the terminal has; default, and at least: sixteen
	Mouse   bool                 // also where it was not chosen: clicks and the wheel are taken; the terminal's own selection needs shift then
	FPS     int                  // most pictures a second; 0: as many as there are
	In      io.Reader            // default: the terminal
	Out     io.Writer            // default: standard output

	Replay source.Recording // all that is shown is this, and there is no present; nil: there is

	Store    prefs.Store // nil: nothing is remembered
	Clusters Clusters    // nil: there is one
	// Clipboard puts text into the clipboard of this machine; nil: the terminal is
	// asked to, which is right over SSH.
	Clipboard func(ctx context.Context, text string) error
	// Resumed tells each time that the process goes on after something else stopped it: by then the
	// terminal is as a shell left it. Nil: nothing tells.
	Resumed <-chan os.Signal
	// Tell is told what became of the locks that were acquired on the screen, once the
	// terminal is as it was; nil: nobody is.
	Tell func(action.Parting)
}

const (
	// frameRate is how often what was drawn is sent: a key's answer must not wait
	// for the next picture, and hardly for this.
	frameRate = 120
	// firstPace is the least time between two pictures until the first locks are there:
	// whoever has just begun waits for them.
	firstPace = 10 * time.Millisecond
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
	err := runProgram(newProgram(m, opt))
	if ctx.Err() != nil && errors.Is(err, tea.ErrProgramKilled) {
		return nil
	}
	return err
}

// runProgram runs the program. Whatever panics meanwhile, in whichever goroutine: the terminal is as it was before the text
// of that is written.
func runProgram(p *tea.Program) (err error) {
	defer crash.Before(func() { _ = p.ReleaseTerminal() })()
	crash.Safe(func() { _, err = p.Run() })()
	return err
}

// goodbye is how long Run waits for acts whose context it has ended.
const goodbye = 3 * time.Second

// newProgram makes the program around a model. The terminal is not asked for
// its colours: the environment tells how many there are, and an answer
// that never comes must not hold up the first screen. Signals end the context, and that quits the program: the
// toolkit's own handler waits for a place in the queue that nobody reads any more by then, and the program for the
// handler. The context is not given to the toolkit, which then kills the program and closes the terminal while another
// goroutine still reads it.
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
		tea.WithoutCatchPanics(), // the toolkit writes the text of some to the screen that it is about to leave
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
