package cli

import (
	"context"

	"github.com/spf13/cobra"

	"redlockctl/cli/flags"
	"redlockctl/internal/config"
	"redlockctl/internal/operator"
)

func (a *commandLine) releaseCommand() *cobra.Command {
	var tok flags.Token
	var dryRun bool
	cmd := flags.Outputs(&cobra.Command{
		Use:   "release NAME",
		Short: "Release a lock by its token",
		Long: `Deletes the copies of the token on all nodes. A node that is down does not fail the
release: its copy may remain until its TTL expires, and a message says so.

Exit code 5 when no node holds the token.`,
		Example:           "redlockctl release job:1 --token-file job.token",
		Args:              flags.OneName("lock"),
		ValidArgsFunction: firstArgument(a.completeLocks, cobra.ShellCompDirectiveNoFileComp),
		RunE: a.run(func(ctx context.Context, args []string) error {
			token, err := tok.Need(a.In)
			if err != nil {
				return err
			}
			if dryRun {
				return a.plan(nil, func(_ *config.Config, op *operator.Operator) error {
					return a.tell(planOfRelease(ctx, a, op, args[0], token))
				})
			}
			return a.act(nil, func(_ *config.Config, op *operator.Operator) error {
				done := a.Progress("releasing")
				results, err := op.Release(ctx, args[0], token)
				done()
				return a.tell(outcome{did: "released", name: args[0], results: results, err: err})
			})
		}),
	}, "table", "json", "jsonl")
	tok.Add(cmd)
	dryRunFlag(cmd, &dryRun)
	return cmd
}
