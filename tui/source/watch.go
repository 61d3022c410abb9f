package source

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"redlockctl/base/sleep"
)

// watchDuty is how many times longer than a look the pause after it is, at least.
const watchDuty = 10

// Watch looks at something again and again while its page is shown.
type Watch[T any] struct {
	stop context.CancelFunc // nil: it does not
	turn int                // grows with each beginning: what an old one still brings is not shown
}

// SeenMsg is what a look saw, and the next one.
type SeenMsg[T any] struct {
	It   T
	Next tea.Cmd
	turn int
}

// While looks from when it is on until it is not, or ctx ends; begin makes the look, and pace
// is the time between two, at least.
func (w *Watch[T]) While(ctx context.Context, on bool, pace time.Duration, begin func(context.Context) func() T) tea.Cmd {
	switch {
	case on == (w.stop != nil):
		return nil
	case !on:
		w.stop()
		w.stop = nil
		return nil
	}
	ctx, w.stop = context.WithCancel(ctx)
	w.turn++
	turn := w.turn
	return func() tea.Msg {
		look, pause := begin(ctx), time.Duration(0)
		var next tea.Cmd
		next = func() tea.Msg {
			if sleep.For(ctx, pause) != nil {
				return nil
			}
			began := time.Now()
			it := look()
			pause = max(pace, watchDuty*time.Since(began))
			return SeenMsg[T]{it, next, turn}
		}
		return next()
	}
}

// Shows reports whether what was seen is of now.
func (w *Watch[T]) Shows(s SeenMsg[T]) bool { return w.stop != nil && s.turn == w.turn }
