package cli

import (
	"context"
	"errors"
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
it is uncordoned. Locks stay held by their copies on the other nodes; a lock that needs its
copy here cannot be extended and is lost at its end, and --dry-run names it.

Exit code 1 when --timeout ends first; the node stays cordoned then. It ends with exit code 1
at once when somebody else ends the cordon: the node may have new copies then.`,
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
		reason, _ := cmd.Flags().GetString("reason")
		yes, _ := cmd.Flags().GetBool("yes")
		return a.run(func(ctx context.Context, args []string) error { return a.drain(ctx, args[0], reason, yes, timeout) })(cmd, args)
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "give up after this time; 0 is never")
	return cmd
}

func (a *commandLine) drain(ctx context.Context, name, reason string, yes bool, timeout time.Duration) error {
	check := func(cfg *config.Config, _ *app.Spec) error { return app.CheckNodes(cfg, name) }
	return a.act(check, func(cfg *config.Config, op *operator.Operator) error {
		act := nodeDrain
		ended := func(_ string, err error) error { return err } // nothing is logged of a node that was cordoned before
		act.run = func(op *operator.Operator, ctx context.Context, node, reason string) error {
			log, err := op.BeginDrain(ctx, node, reason, nil)
			if err == nil {
				ended = log
			}
			return err
		}
		o := a.actOnNode(ctx, act, cfg, op, name, reason, yes)
		if o.err != nil {
			return o.err
		}
		out := a.Out
		a.Out = a.Err // the cordon is not the result
		err := a.tell(o)
		a.Out = out
		if err != nil {
			return ended("", err)
		}
		d, err := a.waitDrained(ctx, cfg, name, timeout)
		doc := nodeActJSON{Node: safetext.New(name), Done: "drained"}
		how := "drained, as a guard has seen"
		if !d.Guards {
			doc.Then = d.Unseen + ": after a restart it waits for D"
			how = "drained; " + doc.Then
		}
		err = ended(how, err)
		switch {
		case errors.Is(err, app.ErrNotDrained):
			return fmt.Errorf("node drain %s: %w; it stays cordoned: redlockctl node uncordon %s ends that", safetext.Escape(name), err, safetext.Escape(name))
		case err != nil:
			return fmt.Errorf("node drain %s: %w", safetext.Escape(name), err)
		case a.Output != "table":
			return a.JSON("node act", doc)
		}
		outcome{did: "drained", name: name, node: &doc}.print(a.Out, time.Now())
		if d.Guards {
			fmt.Fprintf(a.Out, "  restart it now; then redlockctl node uncordon %s\n", safetext.Escape(name))
		}
		return nil
	})
}

func (a *commandLine) waitDrained(ctx context.Context, cfg *config.Config, name string, timeout time.Duration) (app.Drained, error) {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	return app.Drain(ctx, cfg, name, func(text string) { a.Note("%s: %s", safetext.Escape(name), text) })
}
