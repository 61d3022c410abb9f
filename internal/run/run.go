// Package run runs a command while a lock is held, and stops it before the lock expires.
// ending.go decides when (a pure step machine), job.go handles the process group and its
// terminal, and reaper.go ends the command if this process is killed.
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

// Command is a command to run under a lock.
type Command struct {
	Argv     []string
	Env      []string // the lock's own variables are added to it
	In       io.Reader
	Out, Err io.Writer
	Terminal bool // give it the terminal, if this program has it

	// Others are further locks to keep. The command is stopped when the first of all locks
	// is lost. At the end they are released after the lock of [Run], in reverse order.
	Others []*operator.KeptLock
	Names  []string // of all locks, in the order of the command's variables; empty: one lock

	KillAfter time.Duration // from SIGTERM to SIGKILL, after the lock is lost
	Keep      redlock.KeepOptions
	// Tell is called for problems beside the error that [Run] returns: why the command is
	// being stopped, what could not be logged or released.
	Tell func(error)
}

// StartError is returned if the command could not be started.
type StartError struct{ Err error }

func (e StartError) Error() string { return e.Err.Error() }
func (e StartError) Unwrap() error { return e.Err }

// LostError is returned if the command was stopped because the lock was lost or could not
// be kept. It does not wrap the causes: it is a loss, even if the cause was a missing
// quorum.
type LostError struct {
	Name string
	Left time.Duration // validity left when the command was dead
	Now  string        // what is there instead; empty: not known
}

func (e LostError) Error() string {
	when := view.Milliseconds(e.Left) + " before its validity ended"
	if e.Left <= 0 {
		when = view.Milliseconds(-e.Left) + " AFTER its validity had ended"
	}
	if e.Now != "" {
		when += "; " + e.Now
	}
	return fmt.Sprintf("run \"%s\": the lock was lost, and the command was ended %s", safetext.Escape(e.Name), when)
}

func (LostError) Unwrap() error { return redlock.ErrNotHeld }

// signalled plus the signal's number is the exit code of a command that a signal ended.
const signalled = 128

// running is one run of a command under a lock.
type running struct {
	Command
	op     *operator.Operator
	lock   *redlock.Lock
	keeper *redlock.Keeper
	ending ending

	interrupted bool   // by the terminal, which signalled only the command
	why         string // why the command was stopped early
}

// Run runs the command while it extends the lock. It always releases the lock at the end.
// code is the command's exit code, or 128 plus the number of the signal that ended it.
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
	// From now on signals are for the command. Signals that were ignored at our start, as
	// by nohup, stay ignored for both.
	signals := make(chan os.Signal, 32)
	for _, s := range passedOn {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	defer signal.Stop(signals)
	// A signal that came earlier has cancelled the context.
	if err = ctx.Err(); err == nil {
		code, err = r.logged(signals)
	}
	r.keeper.Stop()
	// If the context ends from now on, that was meant for the command and must not prevent
	// the release.
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
		// The other processes of our job did not get the interrupt. A shell script ends
		// with its command only if the script itself was interrupted and the command died
		// of the signal; an exit code of 130 is not enough.
		_ = op.Close()
		interruptJob()
	}
	return code, err
}

// logged runs the command between two entries of the audit log. The second entry is written
// when the command has ended, so that a slow disk cannot keep the command alive after its
// lock is lost.
func (r *running) logged(signals <-chan os.Signal) (code int, err error) {
	ended, err := r.op.RunBegins(r.lock, r.Argv[0])
	if err != nil {
		return 0, err
	}
	code, err = r.underLock(signals)
	how := fmt.Sprintf("the command ended: exit code %d", code)
	var lost LostError
	switch {
	case errors.As(err, &lost):
		lost.Now = r.lookFor(lost.Name)
		how, err = "lock lost: "+r.why+"; the command was ended", lost
	case err != nil:
		how = err.Error()
	}
	if unlogged := ended(how, err != nil); unlogged != nil {
		r.Tell(unlogged)
	}
	return code, err
}

// lookFor says what is there in place of a lock that was lost.
func (r *running) lookFor(name string) string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	copies, err := r.op.Inspect(ctx, name)
	if err != nil {
		return ""
	}
	_, _, _, why := r.worst()
	token := r.lock.Token()
	for _, k := range r.Others {
		if k.Resource() == name {
			token = k.Lock().Token()
		}
	}
	return instead(copies, token, errors.Is(why, redlock.ErrExpired))
}

// instead says what copies mean for a lock that was lost; empty: they do not tell. expired:
// it was not lost before its validity ended.
func instead(copies []redlock.NodeResult, token string, expired bool) string {
	gone, revoked, others, quorum := 0, 0, map[string]int{}, redlock.Quorum(len(copies))
	for _, c := range copies {
		switch {
		case c.Status == redlock.StatusAbsent:
			gone++
		case c.Status != redlock.StatusHeld, c.Token == token:
		case redlock.IsTombstone(c.Token):
			revoked++
		default:
			if others[c.Token]++; others[c.Token] >= quorum {
				return "another client holds it"
			}
		}
	}
	switch {
	case revoked >= redlock.Blocking(len(copies)):
		return "an operator revoked it: others wait until its TTL expires (redlockctl audit show, history)"
	case gone >= quorum && expired:
		return "it expired"
	case gone >= quorum:
		return fmt.Sprintf("%d of %d nodes have no copy: it was removed, or lost there", gone, len(copies))
	}
	return ""
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
		// Check the lock first, whatever has happened meanwhile.
		_, state, until, why := r.worst()
		now := time.Now()
		send, wake := r.ending.step(now, state, until)
		if send != 0 {
			if send == syscall.SIGTERM || r.ending.termed.Equal(now) {
				r.tellEnding(why, now, until)
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
			// Check for a loss first: we may have been stopped meanwhile, and the command
			// must not continue without its lock.
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
			c.end(syscall.SIGKILL) // processes that it left behind
			c.close()
			name, _, until, _ := r.worst()
			return 0, LostError{Name: name, Left: time.Until(until)}
		}
	}
}

// environment returns the variables that describe the locks: without a number for the
// first, with a number for each further lock.
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

// worst returns the state of a lost lock, or of the lock whose validity ends first.
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
			for range k.Changes() { // closed after the last change
			}
		})
	}
	return lost
}

// stalledText says why a command was stopped too late.
const stalledText = "this process was stopped, or the machine suspended or overloaded"

// tellEnding reports why the command is being stopped. The audit log gets a shorter reason:
// the message for people may contain the token of the new holder.
func (r *running) tellEnding(err error, now, until time.Time) {
	why, logged := errors.New("it cannot be extended any more"), "it could not be extended any more"
	if err != nil {
		why, logged = err, err.Error()
	}
	if e := (*redlock.Error)(nil); errors.As(err, &e) && e.Kind != nil {
		logged = e.Op + ": " + e.Kind.Error()
	}
	left := until.Sub(now)
	when := view.Milliseconds(left) + " before the validity ends"
	if left <= 0 {
		when = view.Milliseconds(-left) + " after the validity has ended"
		if r.ending.stalled(now, until) {
			when += "; " + stalledText
			logged += "; " + stalledText
		}
	}
	if r.why == "" {
		r.why = logged
	}
	r.Tell(fmt.Errorf("%w: ending the command, %s", why, when))
}

// exitCode returns the exit code of a command that ended by itself.
func exitCode(status syscall.WaitStatus) int {
	if status.Signaled() {
		return signalled + int(status.Signal())
	}
	return status.ExitStatus()
}
