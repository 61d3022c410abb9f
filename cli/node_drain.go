package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"redlockctl/cli/app"
	"redlockctl/cli/flags"
	"redlockctl/internal/config"
	"redlockctl/internal/operator"
	"redlockctl/server/safetext"
)

var nodeDrain = nodeAct{
	verb: "drain", done: "cordoned", did: "cordoned",
	short: "Empty a master before a planned restart",
	long: `Cordons the node, and waits until it has no unexpired copy of a lock: a restart then
forgets nothing. It says how many copies are left and when the last one ends; a copy
without a TTL, or with one above max_ttl, is named. When a guard has seen that the node is
empty, a restart that starts fenced needs no D: the guards let the node rejoin as soon as
it is uncordoned. Locks stay held by the copies on the other nodes.

Exit code 1 when --timeout ends first; the node stays cordoned then.`,
	cordon: true,
	run:    (*operator.Operator).Drain,
}

// drainCommand cordons a node like node cordon, and then waits until it is empty.
func (a *commandLine) drainCommand() *cobra.Command {
	var timeout time.Duration
	cmd := a.nodeActCommand(nodeDrain)
	cordon := cmd.RunE
	cmd.Use, cmd.Args = "drain NAME", flags.OneName("node")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if dry, _ := cmd.Flags().GetBool("dry-run"); dry {
			return cordon(cmd, args)
		}
		out := a.Out
		a.Out = a.Err // the cordon is not the result
		err := cordon(cmd, args)
		if a.Out = out; err != nil {
			return err
		}
		return a.run(func(ctx context.Context, args []string) error {
			cfg, err := a.load()
			if err != nil {
				return err
			}
			return a.waitDrained(ctx, cfg, args[0], timeout)
		})(cmd, args)
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "give up after this time; 0 is never")
	return cmd
}

func (a *commandLine) waitDrained(ctx context.Context, cfg *config.Config, name string, timeout time.Duration) error {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	d, err := app.Drain(ctx, cfg, name, func(text string) { a.Note("%s: %s", safetext.Escape(name), text) })
	if err != nil {
		return fmt.Errorf("node drain %s: %w; it stays cordoned: redlockctl node uncordon %s ends that", safetext.Escape(name), err, safetext.Escape(name))
	}
	doc := nodeActJSON{Node: safetext.New(name), Done: "drained"}
	if !d.Guards {
		doc.Then = d.Unseen + ": after a restart it waits for D"
	}
	if a.Output != "table" {
		return a.JSON("node act", doc)
	}
	outcome{did: "drained", name: name, node: &doc}.print(a.Out, time.Now())
	if d.Guards {
		fmt.Fprintf(a.Out, "  restart it now; then redlockctl node uncordon %s\n", safetext.Escape(name))
	}
	return nil
}
