package app

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
)

// Watching stops when the process takes too much memory, and has ended when that is reported;
// within the bound it runs to the end of its context.
func TestWatchingIsGivenUpForWantOfMemory(t *testing.T) {
	var used atomic.Int64
	ended := false
	err := withinMemory(t.Context(), 100, used.Load, func(ctx context.Context) {
		used.Store(101)
		<-ctx.Done()
		ended = true
	})
	if !errors.Is(err, errTooMuchMemory) || !ended {
		t.Errorf("error %v, ended %t", err, ended)
	}
	ctx, stop := context.WithCancel(t.Context())
	err = withinMemory(ctx, 100, func() int64 { stop(); return 100 }, func(ctx context.Context) { <-ctx.Done() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if n := usedMemory(); n < 1<<20 || n > 1<<40 {
		t.Errorf("this process uses %d bytes", n)
	}
}
