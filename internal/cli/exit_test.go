package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"

	"redlockctl/internal/app"
	"redlockctl/internal/config"
	"redlockctl/internal/operator"
	"redlockctl/redlock"
)

func TestExitCodes(t *testing.T) {
	for _, test := range []struct {
		name string
		err  error
		want Exit
	}{
		{"no error is done", nil, 0},
		{"an error without a code of its own is a failure", fs.ErrPermission, 1},
		{"an interruption", errInterrupted, 130},
		{"an interruption by a signal", interruption{syscall.SIGTERM}, 143},
		{"an act that a signal ended", &redlock.Error{Kind: interruption{os.Interrupt}}, 130},
		{"a usage error", usageError{errors.New("x")}, 2},
		{"a bad configuration", app.ConfigError{Err: errors.New("x")}, 2},
		{"an argument that can never work", &redlock.Error{Kind: redlock.ErrInvalid}, 2},
		{"contended", &redlock.Error{Kind: redlock.ErrContended}, 3},
		{"no quorum", &redlock.Error{Kind: redlock.ErrNoQuorum}, 4},
		{"no quorum, said on standard output", silent{redlock.ErrNoQuorum}, 4},
		{"not the owner", &redlock.Error{Kind: redlock.ErrNotHeld}, 5},
		{"expired before it could be used", &redlock.Error{Kind: redlock.ErrExpired}, 5},
		{"the holder changed", operator.ErrChanged, 5},
		{"read-only", operator.ErrReadOnly, 6},
		{"refused", operator.ErrRefused, 6},
		{"not confirmed", errNotConfirmed, 6},
		{"not confirmed, since nothing was typed", fmt.Errorf("%w: %w", errNotConfirmed, errors.New("EOF")), 6},
		{"the end of one's own context", context.Canceled, 130},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := exitOf(test.err); got != test.want {
				t.Errorf("%d, want %d", got, test.want)
			}
			if test.err != nil {
				if got := exitOf(fmt.Errorf("while acting: %w", test.err)); got != test.want {
					t.Errorf("wrapped: %d, want %d", got, test.want)
				}
			}
		})
	}
}

func TestReport(t *testing.T) {
	for _, test := range []struct {
		name string
		err  error
		want string
	}{
		{"nothing without an error", nil, ""},
		{"nothing when it was said", silent{redlock.ErrNoQuorum}, ""},
		{"one line", errors.New("boom"), "redlockctl: boom\n"},
		{"a server's text is not obeyed", errors.New("ERR \x1b[2J\nredlockctl: all is well\u202e"),
			`redlockctl: ERR \x1b[2J\nredlockctl: all is well\u202e` + "\n"},
		{"what is escaped already stays", errors.New(`lock a\x1bb is held`), `redlockctl: lock a\x1bb is held` + "\n"},
		{"a line for each problem of a configuration", app.ConfigError{Err: &config.Error{Problems: []config.Problem{
			{File: "a.toml", Line: 3, Key: "k", Value: "1", Text: "is wrong"}, {File: "a.toml", Text: "is bare, write\n\t[[nodes]]"},
		}}}, "redlockctl: a.toml:3: k = 1: is wrong\nredlockctl: a.toml: is bare, write\n    [[nodes]]\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var w strings.Builder
			(&commandLine{errOut: &w}).report(test.err)
			if w.String() != test.want {
				t.Errorf("%q, want %q", w.String(), test.want)
			}
		})
	}
}
