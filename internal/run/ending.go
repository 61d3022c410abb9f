package run

import (
	"fmt"
	"syscall"
	"time"

	"redlockctl/redlock"
)

// defaultKillAfter is the default time between SIGTERM and SIGKILL, if the TTL is long
// enough.
const defaultKillAfter = 5 * time.Second

// KillAfter returns the time between SIGTERM and SIGKILL. It refuses more than half of the
// TTL: extensions are due after a third of it, and a failed one needs time for another try
// before the command must be stopped.
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

// ending decides when to stop a command, so that it is dead before the validity ends. It is
// a pure step machine.
type ending struct {
	killAfter time.Duration // from SIGTERM to SIGKILL
	margin    time.Duration // from SIGKILL to the end of validity

	termed, killed time.Time
}

// endMargin is the time reserved for a killed process to disappear.
func endMargin(ttl time.Duration) time.Duration { return min(ttl/10, 500*time.Millisecond) }

// begun reports whether the command was sent the first signal. From then on the command is
// always stopped, even if an extension succeeds later: it may already be shutting down.
func (e *ending) begun() bool { return !e.termed.IsZero() }

// stalled reports whether this process cannot have run when the first signal was due.
func (e *ending) stalled(now, until time.Time) bool {
	return now.Sub(until.Add(-e.margin-e.killAfter)) >= time.Second
}

// step returns the signal to send now, if any, and when to call it again at the latest.
func (e *ending) step(now time.Time, state redlock.KeeperState, until time.Time) (send syscall.Signal, wake time.Time) {
	latest := until.Add(-e.margin) // for SIGKILL
	switch {
	case e.begun():
	case !now.Before(latest):
		// This process was stopped, or the machine slept: no time is left for SIGTERM.
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
	return send, now.Add(time.Minute) // only wait for the end
}
