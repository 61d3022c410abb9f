package exit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"testing"

	"redlockctl/cli/app"
	"redlockctl/internal/operator"
	"redlockctl/redlock"
)

func TestExitCodes(t *testing.T) {
	for _, test := range []struct {
		name string
		err  error
		want Code
	}{
		{"no error is done", nil, 0},
		{"an error without a code of its own is a failure", fs.ErrPermission, 1},
		{"an interruption", ErrInterrupted, 130},
		{"an interruption by a signal", Interruption{syscall.SIGTERM}, 143},
		{"an act that a signal ended", &redlock.Error{Kind: Interruption{os.Interrupt}}, 130},
		{"a usage error", Usagef("x"), 2},
		{"a bad configuration", app.ConfigError{Err: errors.New("x")}, 2},
		{"an argument that can never work", &redlock.Error{Kind: redlock.ErrInvalid}, 2},
		{"contended", &redlock.Error{Kind: redlock.ErrContended}, 3},
		{"no quorum", &redlock.Error{Kind: redlock.ErrNoQuorum}, 4},
		{"no quorum, said on standard output", Silently(redlock.ErrNoQuorum), 4},
		{"not the owner", &redlock.Error{Kind: redlock.ErrNotHeld}, 5},
		{"expired before it could be used", &redlock.Error{Kind: redlock.ErrExpired}, 5},
		{"the holder changed", operator.ErrChanged, 5},
		{"read-only", operator.ErrReadOnly, 6},
		{"refused", operator.ErrRefused, 6},
		{"not confirmed", ErrNotConfirmed, 6},
		{"not confirmed, since nothing was typed", fmt.Errorf("%w: %w", ErrNotConfirmed, errors.New("EOF")), 6},
		{"the end of one's own context", context.Canceled, 130},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := Of(test.err); got != test.want {
				t.Errorf("%d, want %d", got, test.want)
			}
			if test.err != nil {
				if got := Of(fmt.Errorf("while acting: %w", test.err)); got != test.want {
					t.Errorf("wrapped: %d, want %d", got, test.want)
				}
			}
		})
	}
}
