package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"redlockctl/internal/app"
	"redlockctl/internal/operator"
	"redlockctl/internal/safetext"
	"redlockctl/redlock"
)

// Exit is how a command ended, for scripts to tell apart.
type Exit int

// The exit codes.
const (
	ExitDone      Exit = 0
	ExitFailed    Exit = 1 // anything that has no code of its own
	ExitUsage     Exit = 2 // wrong usage or configuration; nothing was contacted
	ExitContended Exit = 3 // another token holds the lock
	ExitNoQuorum  Exit = 4 // too few nodes serve
	ExitNotOwner  Exit = 5 // the token does not hold the lock, or its validity ended
	ExitRefused   Exit = 6 // read-only, not confirmed, or not as asked
	// ExitIncomplete is of a look that ended before all keys were read.
	ExitIncomplete Exit = 7
)

// usageError is a command line that cannot be meant.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

var (
	// errNotConfirmed is returned when a dangerous act was not confirmed.
	errNotConfirmed = errors.New("refused: not confirmed")
	// errInterrupted is returned when a signal ended a command before its end.
	errInterrupted = errors.New("interrupted")
	// errSilent marks an error whose message is on standard output already.
	errSilent = errors.New("")
)

// interruption is the cause of a context that a signal ended.
type interruption struct{ by os.Signal }

func (interruption) Error() string   { return errInterrupted.Error() }
func (interruption) Unwrap() []error { return []error{errInterrupted, context.Canceled} }

// exit is the number of the signal.
func (i interruption) exit() Exit {
	if s, ok := i.by.(syscall.Signal); ok {
		return Exit(s)
	}
	return Exit(syscall.SIGINT)
}

// silent is err without a message of its own.
type silent struct{ error }

func (e silent) Unwrap() error        { return e.error }
func (e silent) Is(target error) bool { return target == errSilent }

// serverExit is the exit code of a program that was run for somebody.
type serverExit int

func (e serverExit) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// exitOf is the exit code of an error: the one place that decides it.
func exitOf(err error) Exit {
	is := func(targets ...error) bool {
		for _, t := range targets {
			if errors.Is(err, t) {
				return true
			}
		}
		return false
	}
	var server serverExit
	var signalled interruption
	switch {
	case err == nil:
		return ExitDone
	case errors.As(err, &server):
		return Exit(server)
	case errors.As(err, new(usageError)), errors.As(err, new(app.ConfigError)), is(redlock.ErrInvalid):
		return ExitUsage
	case is(operator.ErrReadOnly, errNotConfirmed):
		return ExitRefused
	case errors.As(err, new(deniedError)):
		return ExitFailed
	case is(redlock.ErrContended):
		return ExitContended
	case is(redlock.ErrNoQuorum):
		return ExitNoQuorum
	case is(redlock.ErrNotHeld, redlock.ErrExpired, operator.ErrChanged):
		return ExitNotOwner
	case is(errIncomplete):
		return ExitIncomplete
	case is(operator.ErrRefused, operator.ErrUnsupported):
		return ExitRefused
	case errors.As(err, &signalled):
		return exitSignal + signalled.exit()
	case is(errInterrupted, context.Canceled):
		return exitSignal + Exit(syscall.SIGINT)
	}
	return ExitFailed
}

// errIncomplete is returned when a look ended before everything had been read.
var errIncomplete = errors.New("not everything could be read")

// exitSignal is added to the number of the signal that ended a command.
const exitSignal Exit = 128

// deniedError is a failure that comes of rights which the servers deny: they
// answer, and would be enough. Its exit code is 1, not that of a missing quorum,
// since nothing is wrong with the cluster.
type deniedError struct{ error }

func (e deniedError) Unwrap() error { return e.error }

// explained says what to do about rights that are missing, where they are what an
// act failed of. A fence that takes rights away is no such case: this program is
// another user than the one who is fenced.
func explained(err error) error {
	e, _ := resultsOf(err)
	if e == nil || errors.As(err, new(deniedError)) || !errors.Is(err, redlock.ErrNoQuorum) {
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
	return deniedError{fmt.Errorf("denied by %s: %s; the rights that are needed are printed by `redlockctl config acl --role operator`: %w",
		safetext.Escape(strings.Join(nodes, ", ")), safetext.Escape(why), err)}
}

// resultsOf are the nodes' results that an error of the lock core carries.
func resultsOf(err error) (*redlock.Error, []redlock.NodeResult) {
	var e *redlock.Error
	if errors.As(err, &e) {
		return e, e.Nodes
	}
	return nil, nil
}
