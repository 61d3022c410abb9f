package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"redlockctl/internal/config"
)

func (a *app) extendCommand() *cobra.Command {
	var ttl time.Duration
	var tok tokenFlags
	cmd := &cobra.Command{
		Use:   "extend NAME",
		Short: "Set the TTL of a lock anew, by its token",
		Long: `Sets the TTL of the lock NAME anew on every node that still holds the token. A
copy that is missing is not made again.

Exit code 5 when the token does not hold a quorum any more: the lock is lost.`,
		Example:           "redlockctl extend job:1 --token-file job.token --ttl 20s",
		Args:              oneName("lock"),
		ValidArgsFunction: a.completeLocks,
		RunE: a.run(func(ctx context.Context, args []string) error {
			token, err := tok.need(a.in)
			if err != nil {
				return err
			}
			return a.act(nil, func(cfg *config.Config, h *hand) error {
				lock, err := h.op.Extend(ctx, args[0], token, ttlFor(ttl, cfg))
				if lock == nil {
					return a.failed(args[0], nil, err)
				}
				// An outcome that could not be logged is one all the same.
				return errors.Join(err, a.printGrant(ctx, "extended", h, lock))
			})
		}),
	}
	cmd.Flags().DurationVar(&ttl, "ttl", 0, ttlUsage)
	tok.add(cmd)
	return cmd
}
