package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"time"

	"github.com/spf13/cobra"

	"redlockctl/cli/app"
	"redlockctl/cli/exit"
	"redlockctl/cli/flags"
	"redlockctl/internal/config"
	"redlockctl/internal/operator"
	"redlockctl/internal/run"
	"redlockctl/redlock"
	"redlockctl/server/safetext"
)

// The exit codes of shells for a command that could not be run.
const (
	exitNotExecutable exit.Code = 126
	exitNotFound      exit.Code = 127
)

// notRun is the error of a command that could not be run, with a shell's exit code.
type notRun struct {
	error
	code exit.Code
}

func (e notRun) Unwrap() error { return exit.Status(e.code) }

func (a *commandLine) runCommand() *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run NAME [NAME...] -- COMMAND [ARG...]",
		Short: "Hold one or several locks while a command runs",
		Long: `Takes the lock NAME, runs the command, extends the lock for as long as the
command runs, and releases it at the end, whatever that is. Where the lock cannot
be had the command is not run.

With several names it takes all locks or none, in one order whatever the order of the
names, so that two runs do not wait for each other for ever, and releases them in
reverse. The command is ended when the first of them is lost.

The command has the standard streams of redlockctl, and in its environment
REDLOCKCTL_LOCK_NAME, REDLOCKCTL_LOCK_TOKEN, REDLOCKCTL_LOCK_TTL_MS and, with
--fencing, REDLOCKCTL_FENCING_TOKEN; of a second lock these end with _2. It runs in
a process group of its own. HUP, INT, QUIT and TERM are passed on to the group, USR1,
USR2 and WINCH too; on a terminal it can be stopped and continued.

When the lock is lost, or cannot be extended and its validity is about to end,
the group gets SIGTERM and after --kill-after SIGKILL, so that it is dead before
the validity ends. When redlockctl itself ends before the command, by SIGKILL too,
the group gets SIGKILL at once: a second process, run-reaper, waits for that. On Linux
both end also what has left the group, by setsid or as a daemon.

The audit log has the acquisition, the start of the command (its first word), how
it ended, and the release; what cannot be logged is not begun.

What is beyond its power:
- work that another process does for the command: in a container engine, by
  systemd-run or at, on another host
- processes of another user (sudo), and outside Linux those that leave the group
- what the command leaves running when it ends by itself: let it wait for that
- redlockctl stopped by SIGSTOP while the command goes on, and redlockctl and
  run-reaper killed at the same moment
- a request that the command sent before it was ended
Against those only a fencing token helps that the resource checks.

Exit code of the command, or 128 and the number of the signal that ended it; else
3 when another token holds the lock, 4 when too few nodes serve, 5 when the lock
was lost and the command ended for that, 6 refused, 126 and 127 when the command
cannot be executed or found.`,
		Example: `redlockctl run backup:nightly --ttl 30s -- /usr/local/bin/backup --full
redlockctl run job:1 --wait 1m --kill-after 2s -- sh -c 'work; more-work'
redlockctl run account:7 account:9 -- transfer`,
		ValidArgsFunction: firstArgument(a.completeLocks, cobra.ShellCompDirectiveDefault),
		Args: func(cmd *cobra.Command, args []string) error {
			dash := cmd.ArgsLenAtDash()
			switch {
			case dash < 0 && len(args) > 1:
				return fmt.Errorf("%s: write -- between the names of the locks and the command", cmd.CommandPath())
			case dash < 0:
				dash = len(args)
			}
			if err := flags.SeveralNames("lock")(cmd, args[:dash]); err != nil {
				return err
			}
			if len(args) == dash || args[dash] == "" {
				return fmt.Errorf("%s: the command is missing: %s NAME -- COMMAND", cmd.CommandPath(), cmd.CommandPath())
			}
			return nil
		},
	}
	cmd.RunE = a.run(func(ctx context.Context, args []string) error {
		o.killSet = cmd.Flags().Changed("kill-after")
		dash := cmd.ArgsLenAtDash()
		return a.runUnderLock(ctx, o, args[:dash], args[dash:])
	})
	f := cmd.Flags()
	f.DurationVar(&o.ttl, "ttl", 0, ttlUsage)
	f.BoolVar(&o.force, "force", false, forceUsage)
	f.DurationVar(&o.Wait, "wait", 0, "how long to keep trying (0: [redlock] retries attempts)")
	f.DurationVar(&o.killAfter, "kill-after", 0, "from SIGTERM to SIGKILL when the lock is lost (default 5s, or a quarter of the TTL if that is shorter)")
	f.BoolVar(&o.Fencing, "fencing", false, "draw a fencing token too: a number that grows with each grant")
	f.IntVar(&o.extensions, "max-extensions", 0, "end the command after this number of extensions (0: no limit)")
	return cmd
}

// runOptions are the flags of run.
type runOptions struct {
	operator.AcquireOptions
	ttl, killAfter time.Duration
	killSet, force bool
	extensions     int
}

func (a *commandLine) runUnderLock(ctx context.Context, o runOptions, names, argv []string) error {
	if err := a.tableOnly("what is printed is the command's"); err != nil {
		return err
	}
	order := redlock.InOrder(names)
	name := order[len(order)-1]
	c := run.Command{
		Argv: argv, In: a.In, Out: a.Bare(), Err: a.Err, Terminal: a.InTTY && a.OutTTY, Keep: a.keepOptions(name), Names: names,
		Tell: func(err error) {
			a.Note("run \"%s\": %s", safetext.Escape(name), safetext.Printable(err.Error()))
		},
	}
	c.Keep.MaxExtensions = o.extensions
	return a.act(func(cfg *config.Config, s *app.Spec) (err error) {
		o.ttl = operator.HandTTL(o.ttl, cfg.Cluster.MaxTTL)
		if c.KillAfter, err = run.KillAfter(o.killAfter, o.killSet, o.ttl); err != nil {
			return exit.Usagef("--kill-after %w", err)
		}
		c.Env = cfg.ChildEnv(os.Environ())
		retryFor(s, o.Wait)
		s.Force = o.force
		return executable(argv[0])
	}, func(cfg *config.Config, op *operator.Operator) error {
		done := a.trying(o.Wait)
		var err error
		if c.Others, err = op.KeepAll(ctx, order[:len(order)-1], o.ttl, o.AcquireOptions, func(name string) redlock.KeepOptions {
			keep := a.keepOptions(name)
			keep.MaxExtensions = o.extensions
			return keep
		}); err != nil {
			done()
			return a.unlockable(ctx, cfg, err)
		}
		lock, err := op.AcquireWith(ctx, name, o.ttl, o.AcquireOptions)
		done()
		if err != nil {
			return a.unlockable(ctx, cfg, errors.Join(err, operator.ReleaseAll(ctx, c.Others)))
		}
		return exitError(run.Run(ctx, op, lock, c))
	})
}

// executable checks that the command can be run, before a lock is taken for it.
func executable(name string) error {
	_, err := exec.LookPath(name)
	if err == nil {
		return nil
	}
	return cannotRun(err)
}

func cannotRun(err error) error {
	code := exitNotExecutable
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		code = exitNotFound
	}
	return notRun{err, code}
}

func exitError(code int, err error) error {
	var unstarted run.StartError
	switch {
	case errors.As(err, &unstarted):
		return cannotRun(unstarted.Err)
	case err == nil && code != 0:
		return exit.Silently(exit.Status(code))
	}
	return err
}
