package run

import (
	"fmt"
	"syscall"
	"time"

	"redlockctl/redlock"
)

// defaultKillAfter is the time between SIGTERM and SIGKILL where none is given
// and the TTL has room for it.
const defaultKillAfter = 5 * time.Second

// KillAfter is the time between SIGTERM and SIGKILL. More than half of the
// TTL is refused: extensions are due at a third of it, and one that fails needs
// time to be tried again before the command must be ended.
func KillAfter(given time.Duration, set bool, ttl time.Duration) (time.Duration, error) {
	switch {
	case !set:
		return min(defaultKillAfter, ttl/4), nil
	case given < 0:
		return 0, fmt.Errorf("%s is negative", given)
	case given > ttl/2:
		return 0, fmt.Errorf("%s does not fit into --ttl %s: it may be %s, half of it, since the command must be dead before the validity ends", given, ttl, ttl/2)
	}
	return given, nil
}

// ending is when a command is ended, as a pure step machine: at the latest so
// that it is dead before the validity ends.
type ending struct {
	killAfter time.Duration // from SIGTERM to SIGKILL
	margin    time.Duration // from SIGKILL to the end of validity

	termed, killed time.Time
}

// endMargin is the time that a killed process has to disappear.
func endMargin(ttl time.Duration) time.Duration { return min(ttl/10, 500*time.Millisecond) }

// begun reports whether the command has been sent the first signal. There is no way
// back from it, also when the lock is extended after all: the command may have
// heeded it.
func (e *ending) begun() bool { return !e.termed.IsZero() }

// step is which signal to send now, if any, and when to ask again at the
// latest.
func (e *ending) step(now time.Time, state redlock.KeeperState, until time.Time) (send syscall.Signal, wake time.Time) {
	latest := until.Add(-e.margin) // to send SIGKILL
	switch {
	case e.begun():
	case !now.Before(latest):
		// We were stopped, or asleep: there is no time left for anything else.
		e.termed, e.killed = now, now
		return syscall.SIGKILL, now
	default:
		if at := latest.Add(-e.killAfter); state != redlock.Lost && now.Before(at) {
			return 0, at
		}
		e.termed = now
		return syscall.SIGTERM, now
	}
	at := e.termed.Add(e.killAfter)
	if latest.Before(at) {
		at = latest
	}
	switch {
	case now.Before(at):
		return 0, at
	case e.killed.IsZero():
		e.killed = now
		send = syscall.SIGKILL
	}
	return send, now.Add(time.Minute) // there is nothing more to do but to wait
}
