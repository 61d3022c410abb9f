// Package sleep waits for a time, or less.
package sleep

import (
	"context"
	"time"
)

// For waits for d, or until ctx ends, whose cause it then returns.
func For(ctx context.Context, d time.Duration) error { return Woken(ctx, d, nil) }

// Woken is [For] until something comes from wake.
func Woken(ctx context.Context, d time.Duration, wake <-chan struct{}) error {
	select {
	case <-ctx.Done():
	case <-wake:
	case <-time.After(d):
	}
	return context.Cause(ctx)
}
