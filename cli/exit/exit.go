// Package exit has the exit codes and decides which error has which.
package exit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"

	"redlockctl/cli/adopt"
	"redlockctl/cli/app"
	"redlockctl/internal/config"
	"redlockctl/internal/operator"
	"redlockctl/redlock"
	"redlockctl/server/safetext"
)

// Code is an exit code.
type Code int

// The exit codes.
const (
	Done       Code = 0
	Failed     Code = 1 // any other failure
	WrongUsage Code = 2 // wrong usage or configuration; nothing was contacted
	Contended  Code = 3 // another token holds the lock
	NoQuorum   Code = 4 // too few nodes serve
	NotOwner   Code = 5 // the token does not hold the lock, or its validity ended
	Refused    Code = 6 // read-only, not confirmed, or not as asked
	// Incomplete: not all keys were read before the timeout.
	Incomplete Code = 7
)

// Help explains the exit codes.
const Help = "0 done, 1 failed, 2 wrong usage or configuration, 3 contended,\n4 no quorum, 5 not the owner, or lost, 6 refused (read-only, not confirmed),\n7 incomplete (not everything could be read)."

// usageError is an invalid command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// Usage marks err as the error of an invalid command line.
func Usage(err error) error { return usageError{err} }

// Usagef formats an error for [Usage].
func Usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

var (
	// ErrNotConfirmed is returned when a dangerous action was not confirmed.
	ErrNotConfirmed = errors.New("refused: not confirmed")
	// ErrInterrupted is returned when a signal ended a command before its end.
	ErrInterrupted = errors.New("interrupted")
)

// Interruption is the cause of a context that a signal ended.
type Interruption struct{ By os.Signal }

// Error says what the log has of it: SIGHUP comes when a terminal or an ssh session ends.
func (i Interruption) Error() string {
	if i.By == syscall.SIGHUP {
		return ErrInterrupted.Error() + ": its session ended"
	}
	return ErrInterrupted.Error()
}

func (Interruption) Unwrap() []error { return []error{ErrInterrupted, context.Canceled} }

func (i Interruption) exit() Code {
	if s, ok := i.By.(syscall.Signal); ok {
		return Code(s)
	}
	return Code(syscall.SIGINT)
}

// silent is err without a message of its own.
type silent struct{ error }

// Silently returns err without a message, because standard output already says it.
func Silently(err error) error { return silent{err} }

// IsSilent reports whether an error has no message of its own.
func IsSilent(err error) bool { return errors.As(err, new(silent)) }

func (e silent) Unwrap() error { return e.error }

// Status is an error with a given exit code, such as that of a program that was run.
type Status int

func (e Status) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// Of returns the exit code of an error. Nothing else decides it.
func Of(err error) Code {
	is := func(targets ...error) bool {
		return slices.ContainsFunc(targets, func(t error) bool { return errors.Is(err, t) })
	}
	var server Status
	var signalled Interruption
	switch {
	case err == nil:
		return Done
	case errors.As(err, &server):
		return Code(server)
	case errors.As(err, new(usageError)), errors.As(err, new(app.ConfigError)), is(redlock.ErrInvalid):
		return WrongUsage
	case is(operator.ErrReadOnly, ErrNotConfirmed):
		return Refused
	case errors.As(err, new(Denied)):
		return Failed
	case is(redlock.ErrContended):
		return Contended
	case is(redlock.ErrNoQuorum):
		return NoQuorum
	case is(redlock.ErrNotHeld, redlock.ErrExpired, operator.ErrChanged):
		return NotOwner
	case is(ErrIncomplete):
		return Incomplete
	case is(operator.ErrRefused, operator.ErrUnsupported):
		return Refused
	case errors.As(err, &signalled):
		return exitSignal + signalled.exit()
	case is(ErrInterrupted, context.Canceled):
		return exitSignal + Code(syscall.SIGINT)
	}
	return Failed
}

// ErrIncomplete is returned when the timeout expired before everything was read.
var ErrIncomplete = errors.New("not everything could be read")

// exitSignal is added to the number of the signal that ended a command.
const exitSignal Code = 128

// Denied is a failure because the servers deny rights. Enough of them answer, so the
// exit code is 1 and not that of a missing quorum.
type Denied struct{ Err error }

func (e Denied) Error() string { return e.Err.Error() }
func (e Denied) Unwrap() error { return e.Err }

// Explained adds what to do if missing rights made the action fail. A fence that removes
// rights does not matter here: it applies to another user than this program's.
func Explained(err error) error {
	e, _ := Results(err)
	if e == nil || errors.As(err, new(Denied)) || !errors.Is(err, redlock.ErrNoQuorum) {
		return err
	}
	answer := 0
	var nodes []string
	why := ""
	for _, r := range e.Nodes {
		switch r.Status {
		case redlock.StatusOK, redlock.StatusHeld, redlock.StatusAbsent:
			answer++
		case redlock.StatusDenied:
			answer++
			nodes = append(nodes, r.Node)
			if r.Err != nil {
				why = r.Err.Error()
			}
		}
	}
	if len(nodes) == 0 || answer < redlock.Quorum(len(e.Nodes)) {
		return err
	}
	return Denied{fmt.Errorf("denied by %s: %s; %s: %w", safetext.Escape(strings.Join(nodes, ", ")), safetext.Escape(why), Rights, err)}
}

// Rights says what to do where the servers deny rights.
const Rights = "the rights that are needed are printed by `redlockctl config acl --role operator`"

// Results returns the nodes' results in an error of package redlock.
func Results(err error) (*redlock.Error, []redlock.NodeResult) {
	var e *redlock.Error
	if errors.As(err, &e) {
		return e, e.Nodes
	}
	return nil, nil
}

// Report writes an error, a line for each problem.
func Report(to io.Writer, err error) {
	if err == nil || IsSilent(err) {
		return
	}
	if problems := (adopt.Problems)(nil); errors.As(err, &problems) {
		for _, one := range problems {
			fmt.Fprintf(to, "redlockctl: %s\n", safetext.Printable(one.Error()))
		}
		return
	}
	var several *config.Error
	if !errors.As(err, &several) {
		fmt.Fprintf(to, "redlockctl: %s\n", safetext.Printable(err.Error()))
		return
	}
	for _, one := range several.Problems {
		// The advice of a problem may have an example of several lines.
		for i, line := range strings.Split(one.String(), "\n") {
			if i == 0 {
				fmt.Fprintf(to, "redlockctl: %s\n", safetext.Printable(line))
			} else {
				fmt.Fprintf(to, "    %s\n", safetext.Printable(strings.TrimLeft(line, "\t")))
			}
		}
	}
}
