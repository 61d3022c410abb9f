package tui

import (
	"context"
	"io"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// redraw draws the whole screen anew after a resize. To scroll, the renderer sets
// margins as tall as the screen and leaves them; a frame that was on its way while
// the terminal changed its size leaves those of the size before, and the full
// frame that follows scrolls away inside them. Not for the first size, before which
// there is no frame: taking margins back also moves the cursor of the shell.
func redraw() tea.Msg {
	return tea.Sequence(tea.Raw(ansi.SetTopBottomMargins(0, 0)), tea.ClearScreen)()
}

// resumedMsg tells that this process goes on after something else stopped it.
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

// settled is how long the renderer of Bubble Tea has to end before it is begun again. It is told to end, and not
// waited for: where it is late, it stops the ticker of the next one, which then draws nothing any more
// (https://github.com/charmbracelet/bubbletea/issues/1778).
const settled = 100 * time.Millisecond

// nothing is a program that the terminal is left to: it is taken anew afterwards, in raw mode and with its other
// screen.
type nothing struct{}

func (nothing) Run() error          { time.Sleep(settled); return nil }
func (nothing) SetStdin(io.Reader)  {}
func (nothing) SetStdout(io.Writer) {}
func (nothing) SetStderr(io.Writer) {}
