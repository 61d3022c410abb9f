package tui

import (
	"context"
	"io"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// redraw redraws the whole screen after a resize. To scroll, the renderer sets margins as
// tall as the screen and leaves them set. A frame that was being sent during the resize
// leaves margins of the old size, and the next full frame would scroll away inside them.
// Not for the first size: there is no frame yet, and resetting margins moves the cursor of
// the shell.
func redraw() tea.Msg {
	return tea.Sequence(tea.Raw(ansi.SetTopBottomMargins(0, 0)), tea.ClearScreen)()
}

// resumedMsg: this process was stopped by something else and continues.
type resumedMsg struct{}

// untilResumed waits for that.
func untilResumed(ctx context.Context, resumed <-chan os.Signal) tea.Cmd {
	return func() tea.Msg {
		select {
		case <-resumed:
			return resumedMsg{}
		case <-ctx.Done():
			return nil
		}
	}
}

// settled is how long to wait for Bubble Tea's renderer to end before it is started again.
// Bubble Tea does not wait for it: a late one stops the ticker of the next renderer, which
// then draws nothing (https://github.com/charmbracelet/bubbletea/issues/1778).
const settled = 100 * time.Millisecond

// nothing is an empty external command: after it, Bubble Tea sets up the terminal again, in
// raw mode and with the alternate screen.
type nothing struct{}

func (nothing) Run() error          { time.Sleep(settled); return nil }
func (nothing) SetStdin(io.Reader)  {}
func (nothing) SetStdout(io.Writer) {}
func (nothing) SetStderr(io.Writer) {}
