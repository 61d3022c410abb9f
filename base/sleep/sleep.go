// Package sleep waits for a duration that a context or a channel can cut short.
package sleep

import (
	"context"
	"time"
)

// For waits for d, or until ctx ends; then it returns the context's cause.
func For(ctx context.Context, d time.Duration) error { return Woken(ctx, d, nil) }

// Woken is like [For], and also returns when wake receives.
func Woken(ctx context.Context, d time.Duration, wake <-chan struct{}) error {
	select {
	case <-ctx.Done():
	case <-wake:
	case <-time.After(d):
	}
	return context.Cause(ctx)
}
