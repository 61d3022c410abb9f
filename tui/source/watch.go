package source

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"redlockctl/base/sleep"
)

// watchDuty is the minimum ratio of the pause after a read to the time of the read.
const watchDuty = 10

// Watch reads something repeatedly while its page is shown.
type Watch[T any] struct {
	stop context.CancelFunc // nil: not running
	turn int                // grows with each start: results of earlier starts are ignored
}

// SeenMsg has the result of a read, and the command for the next one.
type SeenMsg[T any] struct {
	It   T
	Next tea.Cmd
	turn int
}

// While reads while on is true, until ctx ends; begin makes the read function, and pace
// is the minimum time between two reads.
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

// Shows reports whether a result belongs to the present run.
func (w *Watch[T]) Shows(s SeenMsg[T]) bool { return w.stop != nil && s.turn == w.turn }
