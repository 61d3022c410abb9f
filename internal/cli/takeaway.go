package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"

	"redlockctl/internal/app"
	"redlockctl/internal/config"
	"redlockctl/internal/lockform"
	"redlockctl/internal/operator"
	"redlockctl/internal/safetext"
	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/redlock"
)

// takeAway is one of the two ways to take a lock from its holder.
type takeAway struct {
	verb, short, long, example string
	did                        string
	way                        operator.Way
	do                         func(op *operator.Operator) taking
}

// taking takes the copies of one key away.
type taking func(ctx context.Context, resource, token, reason string) ([]redlock.NodeResult, error)

func (a *commandLine) forceReleaseCommand() *cobra.Command {
	return a.takeAwayCommand(takeAway{
		verb:  "force-release",
		short: "Take locks from their holders, who are known to be dead",
		long: `Deletes the copies of the lock NAME on all nodes, whoever holds it. The holder is
not told: if it is alive, it goes on working, and the next client may work at the
same time. Use it for a holder that is known to be dead; "revoke" is safe for any.

A number without TTL is refused: it may count fencing tokens, and must then never go
back. A hash is taken for a Redisson lock, of which --token names the holder
("uuid:threadId"); its fair and read-write locks are refused.`,
		example: `redlockctl force-release job:1 --reason "host job-7 burnt down" --yes`,
		did:     "force-released",
		way:     operator.ForceRelease,
		do:      func(op *operator.Operator) taking { return op.ForceRelease },
	})
}

func (a *commandLine) revokeCommand() *cobra.Command {
	return a.takeAwayCommand(takeAway{
		verb:  "revoke",
		short: "Take locks from their holders when the TTL is over: no extension, nobody else before",
		long: `Puts a tombstone in the place of the token of the lock NAME on all nodes, with the
TTL that is left. The holder cannot extend any more, and nobody else gets the lock
before the TTL is over: a holder that is alive may finish in peace. Needs Redis 6.0.`,
		example: `redlockctl revoke job:1 --reason "runs for hours" --yes`,
		did:     "revoked",
		way:     operator.Revoke,
		do:      func(op *operator.Operator) taking { return op.Revoke },
	})
}

func (a *commandLine) takeAwayCommand(way takeAway) *cobra.Command {
	t := taker{commandLine: a, way: way}
	var tok tokenFlags
	cmd := outputs(&cobra.Command{
		Use:   way.verb + " NAME...",
		Short: way.short,
		Long: way.long + `

Where one lock is several keys that bear the same token, all of them go together;
those of node-redlock and its kin are found by a look at all locks. --only-key
takes the named key alone.

Without --yes the holder, the TTLs and the effect are shown, and the name must be
typed; where nobody can be asked, the act is refused with exit code 6. Each node
compares the token again when the act runs; with --token only copies of that
token are touched. Intent and outcome are written to the audit log.

Several names are done one by one, each by itself: one that fails holds up none
of the others. The exit code is that of those that failed, 1 where they failed in
different ways.`,
		Example:           way.example + "\nredlockctl " + way.verb + ` job:1 job:2 --reason "host job-7 burnt down" --yes -o jsonl`,
		Args:              names("lock"),
		ValidArgsFunction: a.completeSeveralLocks,
		RunE: a.run(func(ctx context.Context, args []string) error {
			var err error
			if t.token, err = tok.read(a.in); err != nil {
				return err
			}
			if t.token != "" && len(args) > 1 {
				return usageError{errors.New("a token is that of one lock: give one name with it")}
			}
			return a.act(nil, func(cfg *config.Config, op *operator.Operator) error {
				t.cfg, t.op = cfg, op
				if len(args) == 1 {
					return a.tell(t.take(ctx, args[0]))
				}
				return a.oneByOne(ctx, way.verb, args, t.yes, t.take)
			})
		}),
	}, "table", "json", "jsonl")
	cmd.Flags().StringVar(&t.reason, "reason", "", "why, for the audit log")
	cmd.Flags().BoolVar(&t.yes, "yes", false, "do it without being asked")
	cmd.Flags().BoolVar(&t.onlyKey, "only-key", false, "not the other keys of the same lock")
	_ = cmd.MarkFlagRequired("reason")
	tok.add(cmd)
	return cmd
}

// taker takes locks away as one command line asks for it.
type taker struct {
	*commandLine
	op            *operator.Operator
	cfg           *config.Config
	way           takeAway
	token, reason string
	yes, onlyKey  bool

	seen  *monitor.Snapshot // of all locks; nil: not looked yet
	whole bool              // nothing is missing in it
}

// take takes one lock away, and the further keys that it has.
func (t *taker) take(ctx context.Context, name string) outcome {
	o := outcome{did: t.way.did, name: name}
	copies, err := t.op.Inspect(ctx, name)
	token := t.token
	var more []boundKey
	if err == nil || len(copies) > 0 {
		if more, err = t.further(ctx, name, token, copies); err != nil {
			o.err = err
			return o
		}
	}
	if !t.yes {
		if token, o.err = t.confirmTakeAway(ctx, name, copies, err, more); o.err != nil {
			return o
		}
	}
	if plan, err := t.plan(name, token, copies); err == nil && token == "" && len(plan.Tokens) > 1 {
		o.tokens = plan.Tokens
	}
	do := t.way.do(t.op)
	done := t.progress(t.way.verb + " " + safetext.Escape(name))
	defer done()
	if o.results, o.err = do(ctx, name, token, t.reason); o.err != nil && !errors.Is(o.err, operator.ErrUnlogged) {
		return o
	}
	o.further, err = takeFurther(ctx, do, more, token, t.reason)
	o.err = errors.Join(o.err, err)
	return o
}

// boundKey is a further key of a lock, which bears the lock's token.
type boundKey struct{ key, token string }

// keyOutcome is what became of a further key.
type keyOutcome struct {
	key     string
	results []redlock.NodeResult
	err     error
}

// takeFurther takes the further keys of a lock away; of token only, unless that
// is empty. One that is gone by itself is no failure; of the others the first is
// returned, after all have been tried.
func takeFurther(ctx context.Context, do taking, more []boundKey, token, reason string) (taken []keyOutcome, failed error) {
	for _, m := range more {
		if token != "" && m.token != token {
			continue
		}
		results, err := do(ctx, m.key, m.token, reason)
		if errors.Is(err, redlock.ErrNotHeld) {
			continue
		}
		taken = append(taken, keyOutcome{m.key, results, err})
		if err != nil && failed == nil {
			failed = fmt.Errorf("\"%s\", a key of the same lock: %w", safetext.Escape(m.key), err)
		}
	}
	return taken, failed
}

// further are the other keys of the locks that copies are of, where a library
// binds keys by their token alone.
func (t *taker) further(ctx context.Context, name, token string, copies []redlock.NodeResult) (more []boundKey, err error) {
	var tokens []string
	for _, r := range copies {
		if r.Status != redlock.StatusHeld || token != "" && r.Token != token || slices.Contains(tokens, r.Token) {
			continue
		}
		f := lockform.Recognize(name, r.Type, r.Token, max(r.Len, int64(len(r.Token))), time.Now())
		if !t.onlyKey && f != nil && f.SharedToken {
			tokens = append(tokens, r.Token)
		}
	}
	for _, tok := range tokens {
		if t.seen == nil || !bears(t.seen, tok) {
			if t.seen, err = t.look(ctx, t.cfg, app.Aim{}); err != nil {
				return nil, err
			}
			if t.whole = t.seen.Complete; !t.whole {
				fmt.Fprintf(t.errOut, "redlockctl: not all keys could be read: a further key of the lock of %s may be left\n", safetext.Escape(name))
			}
		}
		more = append(more, boundKeys(t.seen, name, tok)...)
	}
	return more, nil
}

// bears tells if a picture has the token: one that was made before the token was
// drawn says nothing about its keys.
func bears(s *monitor.Snapshot, token string) bool {
	for l := range s.Locks.All() {
		if l.Holder.Raw() == token {
			return true
		}
	}
	return false
}

// boundKeys are the keys but for name that a picture shows as one lock with it.
func boundKeys(s *monitor.Snapshot, name, token string) (more []boundKey) {
	for l := range s.Locks.All() {
		if l.Form == nil || !l.Form.SharedToken || l.Holder.Raw() != token {
			continue
		}
		for _, k := range l.Keys {
			if k.Raw() != name {
				more = append(more, boundKey{k.Raw(), token})
			}
		}
	}
	return more
}

// plan is what taking a lock away means by what a look found.
func (t *taker) plan(name, token string, copies []redlock.NodeResult) (operator.Plan, error) {
	return operator.MakePlan(t.way.way, operator.Asked{
		Keys: []string{name}, Copies: copies, Token: token, Quorum: redlock.Quorum(len(copies)), MaxTTL: t.cfg.Cluster.MaxTTL,
	})
}

// confirmTakeAway shows what a look found and has the name typed. It returns the
// token that was shown, so that nothing else is touched; the empty one when there
// were several.
func (t *taker) confirmTakeAway(ctx context.Context, name string, copies []redlock.NodeResult, lookErr error, more []boundKey) (string, error) {
	token := t.token
	err := t.confirm(ctx, name, func(w io.Writer) error {
		if lookErr != nil && len(copies) == 0 {
			return lookErr
		}
		plan, err := t.plan(name, token, copies)
		if err != nil {
			return err
		}
		tab := view.NewTable("NODE", "STATUS", "TTL", "TOKEN")
		for _, r := range copies {
			ttl := ""
			if r.Status == redlock.StatusHeld {
				if ttl = view.Left(r.TTL); r.TTL < 0 {
					ttl = "no TTL"
				}
			}
			status := view.Cell{Text: r.Status.String()}
			if r.Type != "" && r.Type != "string" {
				status = plain(r.Type)
			}
			tab.Add(plain(r.Node), status, view.Cell{Text: ttl}, view.Cell{Text: t.clip(safetext.Escape(r.Token), 48)})
		}
		if token == "" && len(plan.Tokens) == 1 {
			token = plan.Tokens[0].Token
		}
		printTable(w, tab, t.errTTY && t.color())
		fmt.Fprintln(w)
		for _, said := range append([]string{"effect: " + plan.Effect, "risk: " + plan.Risk}, plan.Known...) {
			fmt.Fprintln(w, ansi.Wordwrap(said, 88, ""))
		}
		if len(plan.Tokens) > 1 {
			fmt.Fprintf(w, "THERE ARE %d TOKENS, so several clients may believe that they hold it. It is done to\nthe copies of all of them; with --token to those of one:\n", len(plan.Tokens))
			for _, one := range plan.Tokens {
				fmt.Fprintf(w, "  %s\n", one)
			}
		}
		if len(more) > 0 {
			fmt.Fprintf(w, "The token is on %s too, which go with it (--only-key: not):\n", view.Plural(len(more), "further key", "further keys"))
			for _, m := range more {
				fmt.Fprintf(w, "  %s\n", safetext.Escape(m.key))
			}
		}
		return nil
	})
	return token, err
}

// names accepts one argument or more, none empty or twice there.
func names(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		for i, arg := range args {
			if arg != "" && slices.Contains(args[:i], arg) {
				return fmt.Errorf("%s: %q is there twice", cmd.CommandPath(), arg)
			}
			if err := oneName(what)(cmd, args[i:i+1]); err != nil {
				return err
			}
		}
		if len(args) == 0 {
			return oneName(what)(cmd, nil)
		}
		return nil
	}
}

// completeSeveralLocks offers locks for each argument, but those that are there
// already.
func (a *commandLine) completeSeveralLocks(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	offered, how := a.completeLocks(cmd, nil, begun)
	return slices.DeleteFunc(offered, func(c cobra.Completion) bool {
		name, _, _ := strings.Cut(c, "\t")
		return slices.Contains(args, name)
	}), how
}
