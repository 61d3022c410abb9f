package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"redlockctl/cli/app"
	"redlockctl/cli/flags"
	"redlockctl/internal/config"
	"redlockctl/internal/operator"
	"redlockctl/redlock"
	"redlockctl/server/safetext"
)

func (a *commandLine) acquireCommand() *cobra.Command {
	var ttl time.Duration
	var opt operator.AcquireOptions
	var keep, force bool
	cmd := flags.Outputs(&cobra.Command{
		Use:   "acquire NAME [NAME...]",
		Short: "Take a lock by hand",
		Long: `Takes the lock NAME and prints its token, how long it may be relied on, and what
each node said. Nothing extends it: it ends when its TTL expires, unless
extend is called before. The token is the proof of ownership: keep it for extend
and release.

With several names it takes all locks or none, always in the same order, so two
commands cannot deadlock.

With --keep it is extended until redlockctl is interrupted or its session ends (SIGHUP),
and released then; with --for 10m also when that time has passed. Progress goes to
standard error. Ctrl-Z does not stop it: nothing would extend the lock. Exit code 5 if
the lock was lost. "run" does the same around a command.

Exit code 3 when another token holds the lock, 4 when too few nodes serve.`,
		Example:           "redlockctl acquire job:1 --ttl 20s\nredlockctl acquire job:1 --wait 1m -o json\nredlockctl acquire deploy --keep --for 10m --reason \"rolling update\"",
		Args:              flags.SeveralNames("lock"),
		ValidArgsFunction: a.completeLocks,
		RunE: a.run(func(ctx context.Context, args []string) error {
			args, err := flags.Names(args, a.In)
			if err != nil {
				return err
			}
			if err := keepsFor(keep, opt.For); err != nil {
				return err
			}
			return a.act(func(cfg *config.Config, s *app.Spec) error {
				retryFor(s, opt.Wait)
				s.Force = force
				return nil
			}, func(cfg *config.Config, op *operator.Operator) error {
				return a.acquire(ctx, cfg, op, args, op.HandTTL(ctx, ttl), opt, keep)
			})
		}),
	}, "table", "json", "jsonl")
	cmd.Flags().DurationVar(&ttl, "ttl", 0, ttlUsage)
	cmd.Flags().BoolVar(&force, "force", false, forceUsage)
	cmd.Flags().BoolVar(&keep, "keep", false, "extend it until interrupted, and release it then")
	cmd.Flags().DurationVar(&opt.For, "for", 0, keepForUsage)
	cmd.Flags().StringVar(&opt.Reason, "reason", "", "why, for the audit log")
	cmd.Flags().BoolVar(&opt.Fencing, "fencing", false, "draw a fencing token too: a number that grows with each grant")
	cmd.Flags().DurationVar(&opt.Wait, "wait", 0, "how long to keep trying (0: [redlock] retries attempts)")
	return cmd
}

// acquire takes locks and prints their grants. With keep it extends them until ctx ends.
// Of several locks, those already taken are extended until all are taken.
func (a *commandLine) acquire(ctx context.Context, cfg *config.Config, op *operator.Operator, names []string, ttl time.Duration, opt operator.AcquireOptions, keep bool) (err error) {
	order := redlock.InOrder(names)
	last := order[len(order)-1]
	var locks []*redlock.Lock
	done := a.trying(opt.Wait)
	if !keep {
		order = order[:len(order)-1]
	}
	kept, err := op.KeepAll(ctx, order, ttl, opt, a.keepOptions)
	defer func() {
		for _, k := range kept {
			k.Stop()
		}
	}()
	for _, k := range kept {
		locks = append(locks, k.Lock())
	}
	if err == nil && !keep {
		var lock *redlock.Lock
		if lock, err = op.AcquireWith(ctx, last, ttl, opt); err != nil {
			err = errors.Join(err, operator.ReleaseAll(ctx, kept))
		}
		locks = append(locks, lock)
	}
	done()
	if err != nil {
		return a.failed(strings.Join(names, " "), a.unlockable(ctx, cfg, err))
	}
	for _, lock := range locks {
		if err := a.printGrant(ctx, "acquired", op, lock); err != nil {
			return fmt.Errorf("the token was lost, and \"%s\" stays locked until its TTL of %s expires: %w", safetext.Escape(lock.Resource()), lock.TTL(), err)
		}
	}
	if !keep {
		return nil
	}
	return operator.HoldAll(ctx, kept, func(ctx context.Context, k *operator.KeptLock) error { return a.keep(ctx, cfg, k) })
}
