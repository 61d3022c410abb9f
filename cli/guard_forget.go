package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"redlockctl/base/sleep"
	"redlockctl/cli/app"
	"redlockctl/cli/exit"
	"redlockctl/cli/flags"
	"redlockctl/internal/config"
	"redlockctl/internal/operator"
	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/restartguard/memory"
	"redlockctl/server/safetext"
)

// forgetWithin is the time in which a guard that runs has forgotten a D that it was told to.
const forgetWithin = 5 * time.Second

// guardForgetJSON is the document of guard forget.
type guardForgetJSON struct {
	Forgotten []view.KnownDelayDoc `json:"forgotten"`
	Done      bool                 `json:"done"` // false: the next guard that runs does it
}

func (a *commandLine) guardForgetCommand() *cobra.Command {
	var reason string
	var yes bool
	cmd := &cobra.Command{
		Use:   "forget NAME",
		Short: "Forget the D of another guard that is gone",
		Long: `A guard waits for the greatest D that any guard has announced, also when that guard is not
seen any more: it may be cut off, and locks may have been granted under its TTL. It ends
when that guard is seen with a smaller D, or by this command. NAME is the id of the other
guard, its first four or more characters, or its host: "guard status" lists them.

It is for the guard whose state directory is on this machine. Run it as its user, once for
each guard that remembers. It is refused while the other guard announces itself: end that
one first. A fence that is up keeps its time.

Without --yes it shows the effect and asks you to type the name; without a terminal the
action is refused with exit code 6. Intent and outcome are written to the audit log.`,
		Example: `redlockctl guard forget ops-3 --reason "host is gone, its max_ttl of 10m too" --yes`,
		Args:    flags.OneName("guard"),
		ValidArgsFunction: firstArgument(func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return a.rememberedGuards(), cobra.ShellCompDirectiveNoFileComp
		}, cobra.ShellCompDirectiveNoFileComp),
		RunE: a.run(func(ctx context.Context, args []string) error {
			return a.act(nil, func(cfg *config.Config, op *operator.Operator) error {
				return a.forgetDelay(ctx, cfg, op, args[0], reason, yes)
			})
		}),
	}
	flags.Outputs(cmd, "table", "json", "jsonl")
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the audit log")
	cmd.Flags().BoolVar(&yes, "yes", false, "do it without being asked")
	_ = cmd.MarkFlagRequired("reason")
	return cmd
}

func (a *commandLine) rememberedGuards() (names []string) {
	cfg, err := a.load()
	if err != nil || cfg.Guard.StateDir == "" {
		return nil
	}
	all, _ := memory.ReadDelays(cfg.Guard.StateDir)
	for _, k := range all {
		names = append(names, k.ID)
	}
	return names
}

func (a *commandLine) forgetDelay(ctx context.Context, cfg *config.Config, op *operator.Operator, name, reason string, yes bool) error {
	dir := cfg.Guard.StateDir
	if dir == "" {
		return exit.Usagef("no [guard] state_dir is configured: nothing is remembered")
	}
	all, err := memory.ReadDelays(dir)
	if err != nil {
		return err
	}
	gone := slices.DeleteFunc(slices.Clone(all), func(k memory.KnownDelay) bool { return !k.Is(name) })
	if len(gone) == 0 {
		var known []string
		for _, k := range all {
			known = append(known, k.Name())
		}
		have := ""
		if known != nil {
			have = " (have: " + strings.Join(known, ", ") + ")"
		}
		return exit.Usagef("no guard %q is remembered in %s%s", name, dir, have)
	}
	s, err := a.look(ctx, cfg, app.Aim{Nodes: true})
	if err != nil {
		return err
	}
	for _, g := range app.GuardsOf(cfg, s).All {
		if slices.ContainsFunc(gone, func(k memory.KnownDelay) bool { return k.ID == g.ID }) {
			return fmt.Errorf("%w: guard %s announces itself with D %s: end it, or give it a smaller D", operator.ErrRefused, monitor.GuardName(g), g.Delay)
		}
	}
	if !yes {
		err := a.confirm(ctx, name, func(w io.Writer) error {
			for _, k := range gone {
				fmt.Fprintln(w, wrapped(safetext.Printable(fmt.Sprintf("Forgets the D %s of guard %s, known since %s; the D of this configuration is %s.", k.Delay, k.Name(), view.Moment(k.Seen), cfg.Guard.Delay))))
			}
			fmt.Fprintln(w, wrapped("Risk: if clients still use the longer TTL of that guard, a node that restarts rejoins while such a lock is held: TWO HOLDERS."))
			return nil
		})
		if err != nil {
			return err
		}
	}
	if gone, err = op.ForgetDelay(dir, name, reason); err != nil {
		return err
	}
	doc := guardForgetJSON{Done: a.forgotten(ctx, cfg, gone)}
	for _, k := range gone {
		doc.Forgotten = append(doc.Forgotten, view.KnownDelayDoc{ID: k.ID, Host: safetext.New(k.Host), DelayMs: k.Delay.Milliseconds(), Since: k.Seen})
	}
	if printed, err := a.Document("guard forget", doc); printed {
		return err
	}
	for _, k := range gone {
		fmt.Fprintf(a.Out, "forgotten D %s of guard %s\n", k.Delay, safetext.Printable(k.Name()))
	}
	if !doc.Done {
		fmt.Fprintln(a.Out, "  no guard has done so yet: the one that uses this state directory does when it runs")
	}
	return nil
}

// forgotten waits until the guard of the state directory, if it runs, has forgotten guards.
func (a *commandLine) forgotten(ctx context.Context, cfg *config.Config, gone []memory.KnownDelay) bool {
	for until := time.Now().Add(forgetWithin); ; {
		all, err := memory.ReadDelays(cfg.Guard.StateDir)
		if err == nil && !slices.ContainsFunc(all, func(k memory.KnownDelay) bool {
			return slices.ContainsFunc(gone, func(g memory.KnownDelay) bool { return g.ID == k.ID })
		}) {
			return true
		}
		runs, err := app.GuardRuns(cfg)
		if err != nil || !runs || !time.Now().Before(until) || sleep.For(ctx, 50*time.Millisecond) != nil {
			return false
		}
	}
}
