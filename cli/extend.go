package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"redlockctl/cli/app"
	"redlockctl/cli/flags"
	"redlockctl/internal/config"
	"redlockctl/internal/operator"
	"redlockctl/redlock"
)

func (a *commandLine) extendCommand() *cobra.Command {
	var ttl, span time.Duration
	var keep, force bool
	var tok flags.Token
	cmd := flags.Outputs(&cobra.Command{
		Use:   "extend NAME",
		Short: "Extend a lock by its token: set its TTL again",
		Long: `Sets the TTL of the lock NAME on every node that still has a copy with the token. It
does not restore missing copies.

With --keep it extends the lock until redlockctl is interrupted or --for has passed;
then the lock expires, unless it is released. The first extension is in the audit log.

Exit code 5 if the token no longer has a quorum: the lock is lost.`,
		Example:           "redlockctl extend job:1 --token-file job.token --ttl 20s",
		Args:              flags.OneName("lock"),
		ValidArgsFunction: firstArgument(a.completeLocks, cobra.ShellCompDirectiveNoFileComp),
		RunE: a.run(func(ctx context.Context, args []string) error {
			if err := keepsFor(keep, span); err != nil {
				return err
			}
			token, err := tok.Need(a.In)
			if err != nil {
				return err
			}
			return a.act(func(_ *config.Config, s *app.Spec) error {
				s.Force = force
				return nil
			}, func(cfg *config.Config, op *operator.Operator) error {
				var lock *redlock.Lock
				var kept *operator.KeptLock
				done := a.Progress("extending")
				ttl := op.HandTTL(ctx, ttl)
				if !keep {
					lock, err = op.Extend(ctx, args[0], token, ttl)
				} else if kept, err = op.ExtendToKeep(ctx, args[0], token, ttl, span, a.keepOptions(args[0])); kept != nil {
					lock = kept.Lock()
					defer kept.Stop()
				}
				done()
				if lock == nil {
					return a.failed(args[0], a.unlockable(ctx, cfg, err))
				}
				// Print the outcome even if it could not be logged.
				if err := errors.Join(err, a.printGrant(ctx, "extended", op, lock)); err != nil || !keep {
					return err
				}
				return a.keep(ctx, cfg, kept)
			})
		}),
	}, "table", "json", "jsonl")
	cmd.Flags().DurationVar(&ttl, "ttl", 0, ttlUsage)
	cmd.Flags().BoolVar(&force, "force", false, forceUsage)
	cmd.Flags().BoolVar(&keep, "keep", false, "go on extending it until interrupted")
	cmd.Flags().DurationVar(&span, "for", 0, keepForUsage)
	tok.Add(cmd)
	return cmd
}
