package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"redlockctl/internal/app"
	"redlockctl/internal/config"
	"redlockctl/internal/operator"
	"redlockctl/internal/safetext"
	"redlockctl/redlock"
)

func (a *commandLine) acquireCommand() *cobra.Command {
	var ttl time.Duration
	var opt operator.AcquireOptions
	var keep bool
	cmd := outputs(&cobra.Command{
		Use:   "acquire NAME [NAME...]",
		Short: "Take a lock by hand",
		Long: `Takes the lock NAME and prints its token, how long it may be relied on, and what
each node said. Nothing extends it: it is gone when its TTL is over, unless
extend is called before. The token is the proof of ownership: keep it for extend
and release.

With several names it takes all locks or none, in one order whatever the order of the
names, so that two who do so do not wait for each other for ever.

With --keep it is extended until redlockctl is interrupted, and released then; with
--for 10m also when that time is over. What becomes of it meanwhile is told on standard
error. Exit code 5 when it was lost. "run" does the same around a command.

Exit code 3 when another token holds the lock, 4 when too few nodes serve.`,
		Example:           "redlockctl acquire job:1 --ttl 20s\nredlockctl acquire job:1 --wait 1m -o json\nredlockctl acquire deploy --keep --for 10m --reason \"rolling update\"",
		Args:              severalNames("lock"),
		ValidArgsFunction: a.completeLocks,
		RunE: a.run(func(ctx context.Context, args []string) error {
			if opt.Wait < 0 {
				return usageError{fmt.Errorf("--wait %s is negative", opt.Wait)}
			}
			if err := keepsFor(keep, opt.For); err != nil {
				return err
			}
			return a.act(func(cfg *config.Config, s *app.Spec) error {
				retryFor(s, opt.Wait)
				return nil
			}, func(cfg *config.Config, op *operator.Operator) error {
				return a.acquire(ctx, op, args, ttlFor(ttl, cfg), opt, keep)
			})
		}),
	}, "table", "json", "jsonl")
	cmd.Flags().DurationVar(&ttl, "ttl", 0, ttlUsage)
	cmd.Flags().BoolVar(&keep, "keep", false, "extend it until interrupted, and release it then")
	cmd.Flags().DurationVar(&opt.For, "for", 0, keepForUsage)
	cmd.Flags().StringVar(&opt.Reason, "reason", "", "why, for the audit log")
	cmd.Flags().BoolVar(&opt.Fencing, "fencing", false, "draw a fencing token too: a number that grows with each grant")
	cmd.Flags().DurationVar(&opt.Wait, "wait", 0, "keep trying for so long (0: as often as [redlock] retries says)")
	return cmd
}

// acquire takes locks and prints their grants; to keep them it extends them until ctx
// ends. Several are extended until all are there.
func (a *commandLine) acquire(ctx context.Context, op *operator.Operator, names []string, ttl time.Duration, opt operator.AcquireOptions, keep bool) (err error) {
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
		return a.failed(strings.Join(names, " "), err)
	}
	for _, lock := range locks {
		if err := a.printGrant(ctx, "acquired", op, lock); err != nil {
			return fmt.Errorf("the token was lost, and \"%s\" stays locked until its TTL of %s is over: %w", safetext.Escape(lock.Resource()), lock.TTL(), err)
		}
	}
	if !keep {
		return nil
	}
	return a.keepAll(ctx, kept)
}

// keepAll is keep for locks that belong together: they end with the first that is lost,
// in the reverse of the order in which they were acquired.
func (a *commandLine) keepAll(ctx context.Context, kept []*operator.KeptLock) error {
	together, end := context.WithCancel(ctx)
	defer end()
	var after func(i int) error
	after = func(i int) error {
		if i == len(kept) {
			<-together.Done()
			return nil
		}
		own, stop := context.WithCancel(context.WithoutCancel(ctx))
		held := make(chan error, 1)
		go func() { held <- a.keep(own, kept[i]); end() }()
		inner := after(i + 1)
		stop()
		return errors.Join(inner, <-held)
	}
	if len(kept) == 1 {
		return a.keep(ctx, kept[0])
	}
	return after(0)
}
