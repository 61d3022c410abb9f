package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"redlockctl/internal/app"
	"redlockctl/internal/config"
	"redlockctl/internal/operator"
	"redlockctl/internal/safetext"
	"redlockctl/internal/view"
	"redlockctl/redlock"
)

// The exit codes of a command that could not be run, as shells have them.
const (
	exitNotExecutable Exit = 126
	exitNotFound      Exit = 127
)

// exitSignal is added to the number of the signal that ended a command.
const exitSignal Exit = 128

// notRun is why a command could not be run, with the exit code of a shell for
// that.
type notRun struct {
	error
	code Exit
}

func (e notRun) Unwrap() error { return serverExit(e.code) }

// lostError is returned when the command was ended because the lock was lost or
// could not be kept. Its causes are left out: the exit code is that of a loss,
// also where a quorum was missing for the extension.
type lostError struct {
	name string
	left time.Duration // of the validity when the command was dead
}

func (e lostError) Error() string {
	when := view.Milliseconds(e.left) + " before its validity ended"
	if e.left <= 0 {
		when = view.Milliseconds(-e.left) + " AFTER its validity had ended"
	}
	return fmt.Sprintf("run \"%s\": the lock was lost, and the command was ended %s", safetext.Escape(e.name), when)
}

func (lostError) Unwrap() error { return redlock.ErrNotHeld }

// defaultKillAfter is the time between SIGTERM and SIGKILL where none is given
// and the TTL has room for it.
const defaultKillAfter = 5 * time.Second

// killAfterFor is the time between SIGTERM and SIGKILL. More than half of the
// TTL is refused: extensions are due at a third of it, and one that fails needs
// time to be tried again before the command must be ended.
func killAfterFor(given time.Duration, set bool, ttl time.Duration) (time.Duration, error) {
	switch {
	case !set:
		return min(defaultKillAfter, ttl/4), nil
	case given < 0:
		return 0, usageError{fmt.Errorf("--kill-after %s is negative", given)}
	case given > ttl/2:
		return 0, usageError{fmt.Errorf("--kill-after %s does not fit into --ttl %s: it may be %s, half of it, since the command must be dead before the validity ends", given, ttl, ttl/2)}
	}
	return given, nil
}

func (a *commandLine) runCommand() *cobra.Command {
	var ttl, wait, killAfter time.Duration
	var extensions int
	var fencing bool
	cmd := &cobra.Command{
		Use:   "run NAME -- COMMAND [ARG...]",
		Short: "Hold a lock while a command runs",
		Long: `Takes the lock NAME, runs the command, extends the lock for as long as the
command runs, and releases it at the end, whatever that is. Where the lock cannot
be had the command is not run.

The command has the standard streams of redlockctl, and in its environment
REDLOCKCTL_LOCK_NAME, REDLOCKCTL_LOCK_TOKEN, REDLOCKCTL_LOCK_TTL_MS and, with
--fencing, REDLOCKCTL_FENCING_TOKEN. It runs in a process group of its own. HUP, INT, QUIT and TERM are passed on to the group,
USR1, USR2 and WINCH too; on a terminal it can be stopped and continued.

When the lock is lost, or cannot be extended and its validity is about to end,
the group gets SIGTERM and after --kill-after SIGKILL, so that it is dead before
the validity ends. Where the system can do that (Linux) the command dies with
redlockctl, should that be killed.

The audit log has the acquisition, the start of the command (its first word), how
it ended, and the release; what cannot be logged is not begun.

What is beyond its power: processes that leave the group, a redlockctl that is
stopped (SIGSTOP) while the command goes on, and a request that the command sent
before it was ended. Against those only a fencing token helps that the resource
checks.

Exit code of the command, or 128 and the number of the signal that ended it; else
3 when another token holds the lock, 4 when too few nodes serve, 5 when the lock
was lost and the command ended for that, 6 refused, 126 and 127 when the command
cannot be executed or found.`,
		Example: `redlockctl run backup:nightly --ttl 30s -- /usr/local/bin/backup --full
redlockctl run job:1 --wait 1m --kill-after 2s -- sh -c 'work; more-work'`,
		ValidArgsFunction: beforeCommand(a.completeLocks),
		Args: func(cmd *cobra.Command, args []string) error {
			dash := cmd.ArgsLenAtDash()
			switch {
			case dash < 0 && len(args) > 1:
				return fmt.Errorf("%s: write -- between the name of the lock and the command", cmd.CommandPath())
			case dash < 0:
				dash = len(args)
			}
			if err := oneName("lock")(cmd, args[:dash]); err != nil {
				return err
			}
			if len(args) == dash || args[dash] == "" {
				return fmt.Errorf("%s: the command is missing: %s NAME -- COMMAND", cmd.CommandPath(), cmd.CommandPath())
			}
			return nil
		},
	}
	cmd.RunE = a.run(func(ctx context.Context, args []string) error {
		switch {
		case wait < 0:
			return usageError{fmt.Errorf("--wait %s is negative", wait)}
		case extensions < 0:
			return usageError{fmt.Errorf("--max-extensions %d is negative", extensions)}
		}
		if err := a.tableOnly("what is printed is the command's"); err != nil {
			return err
		}
		return a.act(func(cfg *config.Config, s *app.Spec) error {
			var err error
			if killAfter, err = killAfterFor(killAfter, cmd.Flags().Changed("kill-after"), ttlFor(ttl, cfg)); err != nil {
				return err
			}
			if wait > 0 {
				s.Redlock.Retries = redlock.UntilContextEnds
			}
			return executable(args[1])
		}, func(cfg *config.Config, op *operator.Operator) error {
			r := &running{
				commandLine: a, op: op, name: args[0], argv: args[1:],
				ttl: ttlFor(ttl, cfg), wait: wait, extensions: extensions, fencing: fencing,
				env:    cfg.ChildEnv(os.Environ()),
				ending: ending{killAfter: killAfter, margin: endMargin(ttlFor(ttl, cfg))},
			}
			return r.run(ctx)
		})
	})
	f := cmd.Flags()
	f.DurationVar(&ttl, "ttl", 0, ttlUsage)
	f.DurationVar(&wait, "wait", 0, "keep trying for so long (0: as often as [redlock] retries says)")
	f.DurationVar(&killAfter, "kill-after", 0, "from SIGTERM to SIGKILL when the lock is lost (default 5s, or a quarter of the TTL where that is less)")
	f.BoolVar(&fencing, "fencing", false, "draw a fencing token too: a number that grows with each grant")
	f.IntVar(&extensions, "max-extensions", 0, "end the command when the lock was extended so often (0: no limit)")
	return cmd
}

// executable finds out if the command can be run, before a lock is taken for it.
func executable(name string) error {
	_, err := exec.LookPath(name)
	if err == nil {
		return nil
	}
	return cannotRun(err)
}

// cannotRun is the end of run without its command.
func cannotRun(err error) error {
	code := exitNotExecutable
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		code = exitNotFound
	}
	return notRun{err, code}
}

// running is one command that runs under a lock.
type running struct {
	*commandLine
	op         *operator.Operator
	name       string
	argv       []string
	ttl, wait  time.Duration
	extensions int
	fencing    bool
	ending     ending
	env        []string // of the command, before the lock's own variables

	interrupted bool   // by the terminal, which told nobody but the command
	why         string // the command was ended before its time
}

func (r *running) run(ctx context.Context) error {
	lock, err := r.acquire(ctx)
	if err != nil {
		return err
	}
	keeper := lock.Keep(redlock.KeepOptions{MaxExtensions: r.extensions, Repaired: r.repaired(r.name)})
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
		err = r.logged(lock, func() error { return r.under(lock, keeper, signals) })
	}
	keeper.Stop()
	// Now the end of the context was meant for the command, and must not hinder
	// this.
	_, rerr := r.op.Release(context.WithoutCancel(ctx), r.name, lock.Token())
	r.warn(err, rerr)
	if r.interrupted {
		// The others of our job have not heard of it. A shell script ends with its
		// command only if it was interrupted itself, and the command died of that:
		// an exit code of 130 does not count.
		_ = r.op.Close()
		signal.Reset(syscall.SIGINT)
		_ = syscall.Kill(0, syscall.SIGINT)
	}
	return err
}

// logged runs the command between two lines of the audit log. The second one is
// written when nothing can be held up by it any more: a command whose lock is lost
// must be dead in time, whatever the disk does.
func (r *running) logged(lock *redlock.Lock, under func() error) error {
	ended, err := r.op.RunBegins(lock, r.argv[0])
	if err != nil {
		return err
	}
	err = under()
	how, failed := "the command ended: exit code 0", false
	var code serverExit
	switch {
	case errors.As(err, new(lostError)):
		how, failed = "lock lost: "+r.why+"; the command was ended", true
	case errors.As(err, &code):
		how = fmt.Sprintf("the command ended: exit code %d", int(code))
	case err != nil:
		how, failed = err.Error(), true
	}
	if lerr := ended(how, failed); lerr != nil {
		fmt.Fprintf(r.errOut, "redlockctl: run \"%s\": %s\n", safetext.Escape(r.name), safetext.Printable(lerr.Error()))
	}
	return err
}

// acquire takes the lock, as acquire does.
func (r *running) acquire(ctx context.Context) (*redlock.Lock, error) {
	try := ctx
	if r.wait > 0 {
		var cancel context.CancelFunc
		try, cancel = context.WithTimeout(ctx, r.wait)
		defer cancel()
	}
	acquire := r.op.Acquire
	if r.fencing {
		acquire = r.op.AcquireFenced
	}
	done := r.progress("trying to get the lock")
	lock, err := acquire(try, r.name, r.ttl)
	done()
	if err != nil && r.wait > 0 && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		err = waited(r.wait, err)
	}
	return lock, err
}

// warn says what is not as it should be with a release, where the exit code
// belongs to the command.
func (r *running) warn(err, released error) {
	lost := errors.Is(released, redlock.ErrNotHeld)
	switch {
	case released == nil, lost && errors.As(err, new(lostError)): // so it was said
	case lost:
		fmt.Fprintf(r.errOut, "redlockctl: run \"%s\": the lock was lost before the command ended\n", safetext.Escape(r.name))
	default:
		fmt.Fprintf(r.errOut, "redlockctl: run \"%s\": %s\n", safetext.Escape(r.name), safetext.Printable(released.Error()))
	}
}

// under runs the command while the keeper holds the lock.
func (r *running) under(lock *redlock.Lock, keeper *redlock.Keeper, signals <-chan os.Signal) error {
	cmd := exec.Command(r.argv[0], r.argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = r.in, bareOut(r.out), r.commandLine.errOut
	cmd.Env = append(slices.Clone(r.env),
		"REDLOCKCTL_LOCK_NAME="+r.name,
		"REDLOCKCTL_LOCK_TOKEN="+lock.Token(),
		"REDLOCKCTL_LOCK_TTL_MS="+strconv.FormatInt(lock.TTL().Milliseconds(), 10),
	)
	if n := lock.FencingToken(); n > 0 {
		cmd.Env = append(cmd.Env, "REDLOCKCTL_FENCING_TOKEN="+strconv.FormatUint(n, 10))
	}
	c, err := startChild(cmd, r.inTTY && r.outTTY)
	if err != nil {
		return cannotRun(err)
	}
	defer c.close()

	lost := keeper.Context().Done()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		// First of all, after whatever has happened meanwhile: does the lock live?
		state, until := keeper.State(), keeper.Until()
		now := time.Now()
		send, wake := r.ending.step(now, state, until)
		if send != 0 {
			if send == syscall.SIGTERM || r.ending.termed.Equal(now) {
				r.tell(keeper.Err(), until.Sub(now))
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
			if keeper.State() != redlock.Lost {
				c.pass(s.(syscall.Signal))
			}
		case <-c.again:
			if keeper.State() != redlock.Lost {
				c.resume()
			}
		case s := <-c.stopped:
			c.halted(s)
		case <-c.ended:
			if !r.ending.begun() {
				r.interrupted = c.interrupted()
				return exitError(c.status)
			}
			c.end(syscall.SIGKILL) // what is left of its group
			return lostError{r.name, time.Until(keeper.Until())}
		}
	}
}

// lossFor is why a lock cannot be kept, for the audit log: the message for people
// may name the token of who holds it now.
func lossFor(err error) string {
	var e *redlock.Error
	switch {
	case err == nil:
		return "it could not be extended any more"
	case errors.As(err, &e) && e.Kind != nil:
		return e.Op + ": " + e.Kind.Error()
	}
	return err.Error()
}

// tell says why the command is being ended.
func (r *running) tell(err error, left time.Duration) {
	why := "it cannot be extended any more"
	if err != nil {
		why = safetext.Printable(err.Error())
	}
	if r.why == "" {
		r.why = lossFor(err)
	}
	when := view.Milliseconds(left) + " before the validity ends"
	if left <= 0 {
		when = view.Milliseconds(-left) + " after the validity has ended"
	}
	fmt.Fprintf(r.errOut, "redlockctl: run \"%s\": %s: ending the command, %s\n", safetext.Escape(r.name), why, when)
}

// exitError is the end of run with a command that ended by itself; nil for
// success.
func exitError(status syscall.WaitStatus) error {
	switch {
	case status.Signaled():
		return silent{serverExit(int(exitSignal) + int(status.Signal()))}
	case status.ExitStatus() != 0:
		return silent{serverExit(status.ExitStatus())}
	}
	return nil
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
