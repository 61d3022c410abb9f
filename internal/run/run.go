// Package run runs a command while a lock is held, and ends it before the lock's
// validity does. When that is, decides a pure step machine (ending.go); how a process
// group and its terminal are handled, job.go; what ends it when this process is killed,
// reaper.go.
package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"redlockctl/base/crash"
	"redlockctl/internal/operator"
	"redlockctl/internal/view"
	"redlockctl/redlock"
	"redlockctl/server/safetext"
)

// Command is what runs under a lock.
type Command struct {
	Argv     []string
	Env      []string // before the lock's own variables
	In       io.Reader
	Out, Err io.Writer
	Terminal bool // it gets the terminal, if this program has it

	// Others are further locks that are kept. The command ends with the first lock of all
	// that is lost; at the end they are released behind that of [Run], the last first.
	Others []*operator.KeptLock
	Names  []string // of all locks, in the order in which the command is told of them; empty: one

	KillAfter time.Duration // from SIGTERM to SIGKILL, when the lock is lost
	Keep      redlock.KeepOptions
	// Tell is told what goes wrong beside the error that [Run] returns: why the command
	// is being ended, what could not be logged or released.
	Tell func(error)
}

// StartError is returned when the command could not be started.
type StartError struct{ Err error }

func (e StartError) Error() string { return e.Err.Error() }
func (e StartError) Unwrap() error { return e.Err }

// LostError is returned when the command was ended because the lock was lost or
// could not be kept. Its causes are left out: it is a loss, also where a quorum was
// missing for the extension.
type LostError struct {
	Name string
	Left time.Duration // of the validity when the command was dead
}

func (e LostError) Error() string {
	when := view.Milliseconds(e.Left) + " before its validity ended"
	if e.Left <= 0 {
		when = view.Milliseconds(-e.Left) + " AFTER its validity had ended"
	}
	return fmt.Sprintf("run \"%s\": the lock was lost, and the command was ended %s", safetext.Escape(e.Name), when)
}

func (LostError) Unwrap() error { return redlock.ErrNotHeld }

// signalled is added to the number of the signal that ended a command.
const signalled = 128

// running is one command that runs under a lock.
type running struct {
	Command
	op     *operator.Operator
	lock   *redlock.Lock
	keeper *redlock.Keeper
	ending ending

	interrupted bool   // by the terminal, which told nobody but the command
	why         string // the command was ended before its time
}

// Run runs the command while it extends the lock, and releases the lock at the end,
// whatever that is. code is the command's exit code, or 128 and the number of the
// signal that ended it.
func Run(ctx context.Context, op *operator.Operator, lock *redlock.Lock, c Command) (code int, err error) {
	keeper, err := lock.Keep(c.Keep)
	if err != nil {
		_, left := op.Release(context.WithoutCancel(ctx), lock.Resource(), lock.Token())
		return 0, errors.Join(err, left, operator.ReleaseAll(ctx, c.Others))
	}
	r := &running{
		Command: c, op: op, lock: lock, keeper: keeper,
		ending: ending{killAfter: c.KillAfter, margin: endMargin(lock.TTL())},
	}
	// From here on a signal is for the command. Those that we were told to ignore,
	// as by nohup, stay ignored, by us and by the command.
	signals := make(chan os.Signal, 32)
	for _, s := range passedOn {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	defer signal.Stop(signals)
	// What came before that has ended the context.
	if err = ctx.Err(); err == nil {
		code, err = r.logged(signals)
	}
	r.keeper.Stop()
	// Now the end of the context was meant for the command, and must not hinder
	// this.
	_, released := op.Release(context.WithoutCancel(ctx), lock.Resource(), lock.Token())
	released = cmp.Or(released, operator.ReleaseAll(ctx, c.Others))
	switch lost := errors.Is(released, redlock.ErrNotHeld); {
	case released == nil, lost && errors.As(err, new(LostError)): // so it was said
	case lost:
		r.Tell(errors.New("the lock was lost before the command ended"))
	default:
		r.Tell(released)
	}
	if r.interrupted {
		// The others of our job have not heard of it. A shell script ends with its
		// command only if it was interrupted itself, and the command died of that:
		// an exit code of 130 does not count.
		_ = op.Close()
		interruptJob()
	}
	return code, err
}

// logged runs the command between two lines of the audit log. The second one is
// written when nothing can be held up by it any more: a command whose lock is lost
// must be dead in time, whatever the disk does.
func (r *running) logged(signals <-chan os.Signal) (code int, err error) {
	ended, err := r.op.RunBegins(r.lock, r.Argv[0])
	if err != nil {
		return 0, err
	}
	code, err = r.underLock(signals)
	how := fmt.Sprintf("the command ended: exit code %d", code)
	switch {
	case errors.As(err, new(LostError)):
		how = "lock lost: " + r.why + "; the command was ended"
	case err != nil:
		how = err.Error()
	}
	if unlogged := ended(how, err != nil); unlogged != nil {
		r.Tell(unlogged)
	}
	return code, err
}

// underLock runs the command while the keeper holds the lock.
func (r *running) underLock(signals <-chan os.Signal) (code int, err error) {
	cmd := exec.Command(r.Argv[0], r.Argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = r.In, r.Out, r.Err
	cmd.Env = append(slices.Clone(r.Env), r.environment()...)
	c, err := startJob(cmd, r.Terminal)
	if err != nil {
		return 0, StartError{err}
	}
	defer c.close()

	lost := r.lost()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		// First of all, after whatever has happened meanwhile: does the lock live?
		_, state, until, why := r.worst()
		now := time.Now()
		send, wake := r.ending.step(now, state, until)
		if send != 0 {
			if send == syscall.SIGTERM || r.ending.termed.Equal(now) {
				r.tellEnding(why, until.Sub(now))
			}
			c.end(send)
			continue
		}
		timer.Reset(wake.Sub(now))
		select {
		case <-timer.C:
		case <-lost:
			lost = nil
		case s := <-signals:
			// A loss comes first: if we were stopped meanwhile, the command must not be
			// continued without its lock.
			if _, state, _, _ := r.worst(); state != redlock.Lost {
				c.pass(s.(syscall.Signal))
			}
		case <-c.again:
			if _, state, _, _ := r.worst(); state != redlock.Lost {
				c.resume()
			}
		case s := <-c.stopped:
			c.halted(s)
		case <-c.ended:
			switch {
			case r.ending.begun():
			case c.broken != nil:
				c.end(syscall.SIGKILL)
				return 0, c.broken
			default:
				c.leave()
				r.interrupted = c.interrupted()
				return exitCode(c.status), nil
			}
			c.end(syscall.SIGKILL) // what it has left behind
			c.close()
			name, _, until, _ := r.worst()
			return 0, LostError{name, time.Until(until)}
		}
	}
}

// environment tells the command of its locks: of the first named without, of the others
// with a number.
func (r *running) environment() (env []string) {
	locks := map[string]*redlock.Lock{r.lock.Resource(): r.lock}
	for _, k := range r.Others {
		locks[k.Resource()] = k.Lock()
	}
	names := r.Names
	if len(names) == 0 {
		names = []string{r.lock.Resource()}
	}
	for i, name := range names {
		l, behind := locks[name], ""
		if i > 0 {
			behind = "_" + strconv.Itoa(i+1)
		}
		env = append(env, "REDLOCKCTL_LOCK_NAME"+behind+"="+name, "REDLOCKCTL_LOCK_TOKEN"+behind+"="+l.Token())
		if n := l.FencingToken(); n > 0 {
			env = append(env, "REDLOCKCTL_FENCING_TOKEN"+behind+"="+strconv.FormatUint(n, 10))
		}
	}
	return append(env, "REDLOCKCTL_LOCK_TTL_MS="+strconv.FormatInt(r.lock.TTL().Milliseconds(), 10))
}

// worst is how the lock stands that stands worst of all: one that is lost, else the one
// whose validity ends first.
func (r *running) worst() (name string, state redlock.KeeperState, until time.Time, why error) {
	name, state, until, why = r.lock.Resource(), r.keeper.State(), r.keeper.Until(), r.keeper.Err()
	for _, k := range r.Others {
		s, u := k.State(), k.Until()
		if state != redlock.Lost && (s == redlock.Lost || u.Before(until)) {
			name, state, until, why = k.Resource(), s, u, k.Err()
		}
	}
	return name, state, until, why
}

// lost is closed when one of the locks is lost.
func (r *running) lost() <-chan struct{} {
	if len(r.Others) == 0 {
		return r.keeper.Context().Done()
	}
	lost := make(chan struct{})
	end := sync.OnceFunc(func() { close(lost) })
	context.AfterFunc(r.keeper.Context(), end)
	for _, k := range r.Others {
		crash.Go(func() {
			defer end()
			for range k.Changes() { // closed behind the last
			}
		})
	}
	return lost
}

// tellEnding says why the command is being ended. For the audit log the reason is
// shorter: the message for people may name the token of who holds the lock now.
func (r *running) tellEnding(err error, left time.Duration) {
	why, logged := errors.New("it cannot be extended any more"), "it could not be extended any more"
	if err != nil {
		why, logged = err, err.Error()
	}
	if e := (*redlock.Error)(nil); errors.As(err, &e) && e.Kind != nil {
		logged = e.Op + ": " + e.Kind.Error()
	}
	if r.why == "" {
		r.why = logged
	}
	when := view.Milliseconds(left) + " before the validity ends"
	if left <= 0 {
		when = view.Milliseconds(-left) + " after the validity has ended"
	}
	r.Tell(fmt.Errorf("%w: ending the command, %s", why, when))
}

// exitCode is that of a command that ended by itself.
func exitCode(status syscall.WaitStatus) int {
	if status.Signaled() {
		return signalled + int(status.Signal())
	}
	return status.ExitStatus()
}
