package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"redlockctl/cli/app"
	"redlockctl/cli/exit"
	"redlockctl/cli/flags"
	"redlockctl/cli/printer"
	"redlockctl/internal/config"
	"redlockctl/internal/operator"
	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/redlock"
	"redlockctl/server/lockform"
	"redlockctl/server/safetext"
)

// removalCommand describes force-release or revoke.
type removalCommand struct {
	way                       operator.RemovalKind
	did, short, long, example string
}

func (a *commandLine) forceReleaseCommand() *cobra.Command {
	return a.removalCommand(removalCommand{
		short: "Delete locks whose holders are known to be dead",
		long: `Deletes the copies of the lock NAME on all nodes, whoever holds it. The holder is
not told: if it is alive, it goes on working, and the next client may work at the
same time. Use it for a holder that is known to be dead; "revoke" is safe for any.

A number without TTL is refused: it may count fencing tokens, and must then never go
back. A hash is taken for a Redisson lock, of which --token names the holder
("uuid:threadId"); its fair and read-write locks are refused.`,
		example: `redlockctl force-release job:1 --reason "host job-7 burnt down" --yes`,
		did:     "force-released",
		way:     operator.ForceRelease,
	})
}

func (a *commandLine) revokeCommand() *cobra.Command {
	return a.removalCommand(removalCommand{
		short: "Revoke locks: no more extensions; others wait until the TTL expires",
		long: `Puts a tombstone in the place of the token of the lock NAME on all nodes, with the
TTL that is left. The holder cannot extend any more, and nobody else gets the lock
before the TTL expires: a holder that is alive may finish in peace. Needs Redis 6.0.`,
		example: `redlockctl revoke job:1 --reason "runs for hours" --yes`,
		did:     "revoked",
		way:     operator.Revoke,
	})
}

func (a *commandLine) removalCommand(way removalCommand) *cobra.Command {
	t := remover{commandLine: a, removalCommand: way}
	verb := way.way.String()
	var tok flags.Token
	cmd := flags.Outputs(&cobra.Command{
		Use:   verb + " NAME...",
		Short: way.short,
		Long: way.long + `

If a lock consists of several keys with the same token, all of them are removed
together; keys of node-redlock and similar libraries are found by reading all locks.
--only-key removes only the named key.

Without --yes it shows the holder, the TTLs and the effect, and asks you to type the
name; without a terminal the action is refused with exit code 6. Each node compares the
token again when the action runs; with --token only copies of that token are touched.
Intent and outcome are written to the audit log.

Names are processed one at a time; a failure does not stop the rest. - reads them from
standard input, one a line. The exit code is that of the failures, or 1 if they differ.`,
		Example:           way.example + "\nredlockctl " + verb + ` job:1 job:2 --reason "host job-7 burnt down" --yes -o jsonl`,
		Args:              flags.SeveralNames("lock"),
		ValidArgsFunction: a.completeLocks,
		RunE: a.run(func(ctx context.Context, args []string) error {
			if tok.FromInput() && args[0] == "-" {
				return exit.Usagef("the token and the names cannot both come from standard input")
			}
			args, err := flags.Names(args, a.In)
			if err != nil {
				return err
			}
			if t.token, err = tok.Read(a.In); err != nil {
				return err
			}
			if t.token != "" && len(args) > 1 {
				return exit.Usagef("a token is that of one lock: give one name with it")
			}
			act := a.act
			if t.dryRun {
				act = a.plan
			}
			return act(nil, func(cfg *config.Config, op *operator.Operator) error {
				t.cfg, t.op = cfg, op
				t.planner = operator.Planner{Operator: op, Kind: t.way, OnlyKeys: t.onlyKey, Look: t.lookAtOne, LookAtAll: t.lookAtAll}
				if len(args) == 1 {
					return a.tell(t.remove(ctx, args[0]))
				}
				return a.oneByOne(ctx, verb, args, t.yes || t.dryRun, t.remove)
			})
		}),
	}, "table", "json", "jsonl")
	cmd.Flags().StringVar(&t.reason, "reason", "", "why, for the audit log")
	cmd.Flags().BoolVar(&t.yes, "yes", false, "do it without being asked")
	cmd.Flags().BoolVar(&t.onlyKey, "only-key", false, "not the other keys of the same lock")
	_ = cmd.MarkFlagRequired("reason")
	dryRunFlag(cmd, &t.dryRun)
	tok.Add(cmd)
	return cmd
}

// remover force-releases or revokes the locks of one command line.
type remover struct {
	*commandLine
	removalCommand
	op            *operator.Operator
	cfg           *config.Config
	token, reason string
	yes, onlyKey  bool
	dryRun        bool

	planner operator.Planner
}

func (t *remover) remove(ctx context.Context, name string) outcome {
	o := outcome{did: t.did, name: name}
	var tokens []string
	if t.token != "" {
		tokens = []string{t.token}
	}
	plan, err := t.planner.Plan(ctx, name, tokens)
	if t.dryRun {
		if o.err = err; err == nil {
			o = planOfRemoval(t.way.String(), name, plan, func(w io.Writer) { t.tellPlan(ctx, w, name, plan) })
		}
		return o
	}
	if !t.yes {
		if o.err = t.confirmRemoval(ctx, name, plan, err); o.err != nil {
			return o
		}
	}
	removal := plan.Removal(t.reason)
	removal.OnlyKeys = t.onlyKey
	if err != nil { // each node compares the token again
		removal.Tokens = tokens
	} else if len(plan.Tokens) > 1 {
		o.tokens = plan.Tokens
	}
	done := t.Progress(t.way.String() + " " + safetext.Escape(name))
	defer done()
	out := t.op.Remove(ctx, removal)
	o.results, o.extend, o.err = out[0].Results, out[0].Extendable, out.Err()
	o.further = slices.DeleteFunc(out[1:], func(k operator.KeyOutcome) bool { return errors.Is(k.Err, redlock.ErrNotHeld) })
	return o
}

func (t *remover) lookAtOne(ctx context.Context, name string) (*monitor.Snapshot, error) {
	return t.look(ctx, t.cfg, app.Aim{Keys: lockform.PossibleSiblings(name), Locks: true})
}

func (t *remover) lookAtAll(ctx context.Context, name string) (*monitor.Snapshot, error) {
	seen, err := t.look(ctx, t.cfg, app.Aim{})
	if err == nil && !seen.Complete {
		t.Note("not all keys could be read: a further key of the lock of %s may be left", safetext.Escape(name))
	}
	return seen, err
}

// tellHolder says who holds the lock and whether that process has connections, if the
// token identifies it.
func (t *remover) tellHolder(ctx context.Context, w io.Writer, name string, plan operator.Plan) {
	if len(plan.Tokens) != 1 {
		return
	}
	token := plan.Tokens[0].Token
	if f := lockform.Recognize(name, "string", token, int64(len(token)), time.Now()); f == nil || f.Owner.Empty() {
		return
	}
	if a := t.op.WhoNow(ctx, name); a != nil {
		fmt.Fprintln(w, wrapped(strings.TrimSuffix(view.WhoHeadline(a)+"; "+view.WhoLiveness(a), "; ")))
	}
}

// confirmRemoval shows the plan, or why there is none, and asks to type the name.
func (t *remover) confirmRemoval(ctx context.Context, name string, plan operator.Plan, planErr error) error {
	return t.confirm(ctx, name, func(w io.Writer) error {
		if planErr != nil {
			return planErr
		}
		t.tellPlan(ctx, w, name, plan)
		return nil
	})
}

// tellPlan prints what a removal does.
func (t *remover) tellPlan(ctx context.Context, w io.Writer, name string, plan operator.Plan) {
	t.tellCopies(w, plan)
	fmt.Fprintln(w)
	t.tellHolder(ctx, w, name, plan)
	for _, said := range append([]string{"effect: " + plan.Effect, "risk: " + plan.Risk}, plan.Known...) {
		fmt.Fprintln(w, wrapped(said))
	}
	if len(plan.Tokens) > 1 {
		fmt.Fprintf(w, "THERE ARE %d TOKENS, so several clients may rely on it. It is done to\nthe copies of all of them; with --token to those of one:\n", len(plan.Tokens))
		for _, one := range plan.Tokens {
			fmt.Fprintf(w, "  %s\n", one)
		}
	}
	if more := plan.Keys[1:]; len(more) > 0 {
		fmt.Fprintf(w, "The token is on %s too, which go with it (--only-key: not):\n", view.Plural(len(more), "further key", "further keys"))
		for _, key := range more {
			fmt.Fprintf(w, "  %s\n", safetext.Escape(key))
		}
	}
}

// tellCopies prints the copies of a lock, node by node.
func (a *commandLine) tellCopies(w io.Writer, plan operator.Plan) {
	tab := view.NewTable("NODE", "STATUS", "TTL", "TOKEN")
	for _, r := range plan.Copies {
		ttl := ""
		if r.Status == redlock.StatusHeld {
			if ttl = view.Left(r.TTL); r.TTL < 0 {
				ttl = "no TTL"
			}
		}
		status := view.Cell{Text: r.Status.String()}
		if r.Type != "" && r.Type != "string" {
			status = printer.Plain(r.Type)
		}
		tab.Add(printer.Plain(r.Node), status, view.Cell{Text: ttl}, view.Cell{Text: a.Clip(safetext.Escape(r.Token), 48)})
	}
	printer.Table(w, tab, w == a.Err && a.ErrTTY && a.Color())
}
