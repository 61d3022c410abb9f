package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"redlockctl/internal/config"
	"redlockctl/internal/operator"
	"redlockctl/internal/safetext"
	"redlockctl/redlock"
)

// takeAway is one of the two ways to take a lock from its holder.
type takeAway struct {
	use, short, long, example string
	did                       string
	effect                    string // for the person who is asked
	do                        func(op *operator.Operator) func(ctx context.Context, resource, token, reason string) ([]redlock.NodeResult, error)
}

func (a *app) forceReleaseCommand() *cobra.Command {
	return a.takeAwayCommand(takeAway{
		use:   "force-release NAME",
		short: "Take a lock from its holder, who is known to be dead",
		long: `Deletes the copies of the lock NAME on all nodes, whoever holds it. The holder is
not told: if it is alive, it goes on working, and the next client may work at the
same time. Use it for a holder that is known to be dead; "revoke" is safe for any.

A hash is taken for a Redisson lock, of which --token names the holder
("uuid:threadId"); its fair and read-write locks are refused. Of a rueidislock
lock all keys go together.`,
		example: `redlockctl force-release job:1 --reason "host job-7 burnt down" --yes`,
		did:     "force-released",
		effect: "This deletes the copies now. A holder that is alive is not told, and works on\n" +
			"while the next client takes the lock. Safer: revoke.\n",
		do: func(op *operator.Operator) func(context.Context, string, string, string) ([]redlock.NodeResult, error) {
			return op.ForceRelease
		},
	})
}

func (a *app) revokeCommand() *cobra.Command {
	return a.takeAwayCommand(takeAway{
		use:   "revoke NAME",
		short: "Take a lock from its holder when its TTL is over: no extension, nobody else before",
		long: `Puts a tombstone in the place of the token of the lock NAME on all nodes, with the
TTL that is left. The holder cannot extend any more, and nobody else gets the lock
before the TTL is over: a holder that is alive may finish in peace. Needs Redis 6.0.`,
		example: `redlockctl revoke job:1 --reason "runs for hours" --yes`,
		did:     "revoked",
		effect: "The holder cannot extend any more. Nobody gets the lock before the TTLs above are\n" +
			"over; a copy without TTL ends with the cluster's max TTL.\n",
		do: func(op *operator.Operator) func(context.Context, string, string, string) ([]redlock.NodeResult, error) {
			return op.Revoke
		},
	})
}

func (a *app) takeAwayCommand(way takeAway) *cobra.Command {
	var reason string
	var yes bool
	var tok tokenFlags
	cmd := &cobra.Command{
		Use:   way.use,
		Short: way.short,
		Long: way.long + `

Without --yes the holder, the TTLs and the effect are shown, and the name must be
typed; where nobody can be asked, the act is refused with exit code 6. Each node
compares the token again when the act runs; with --token only copies of that
token are touched. Intent and outcome are written to the audit log.`,
		Example:           way.example,
		Args:              oneName("lock"),
		ValidArgsFunction: a.completeLocks,
		RunE: a.run(func(ctx context.Context, args []string) error {
			name := args[0]
			token, err := tok.read(a.in)
			if err != nil {
				return err
			}
			return a.act(nil, func(_ *config.Config, h *hand) error {
				if !yes {
					shown, err := a.confirmTakeAway(ctx, h, way, name, token)
					if err != nil {
						return err
					}
					token = shown
				}
				results, err := way.do(h.op)(ctx, name, token, reason)
				return a.released(way.did, name, results, err)
			})
		}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the audit log")
	cmd.Flags().BoolVar(&yes, "yes", false, "do it without being asked")
	_ = cmd.MarkFlagRequired("reason")
	tok.add(cmd)
	return cmd
}

// confirmTakeAway shows the copies and has the name typed. It returns the token
// that was shown, so that nothing else is touched; the empty one when there
// were several.
func (a *app) confirmTakeAway(ctx context.Context, h *hand, way takeAway, name, token string) (string, error) {
	what, _, _ := strings.Cut(way.use, " ")
	err := a.confirm(ctx, name, func(w io.Writer) error {
		copies, err := h.client.Inspect(ctx, name)
		if err != nil && len(copies) == 0 {
			return err
		}
		tokens := map[string]int{}
		t := &table{head: []string{"NODE", "STATUS", "TTL", "TOKEN"}}
		for _, r := range copies {
			ttl := ""
			if r.Status == redlock.StatusHeld {
				tokens[r.Token]++
				if ttl = left(r.TTL); r.TTL < 0 {
					ttl = "no TTL"
				}
			}
			status := cell{text: r.Status.String()}
			if r.Type != "" && r.Type != "string" {
				if status = plain(r.Type); r.Type == "hash" && token != "" {
					tokens[token]++ // compared when it is taken
				}
			}
			t.add(plain(r.Node), status, cell{text: ttl}, cell{text: a.clip(safetext.Escape(r.Token), 48)})
		}
		if len(tokens) == 0 {
			return fmt.Errorf("%s %s: %w: no node that answers holds a copy", what, name, redlock.ErrNotHeld)
		}
		if token == "" && len(tokens) == 1 {
			for token = range tokens {
			}
		}
		t.write(w, a.errTTY && a.color())
		fmt.Fprint(w, "\n"+way.effect)
		if token == "" {
			fmt.Fprintf(w, "There are %d tokens: it is done to the copies of all of them.\n", len(tokens))
		} else if tokens[token] == 0 {
			return fmt.Errorf("%s %s: %w: no copy has the token given", what, name, redlock.ErrNotHeld)
		}
		return nil
	})
	if errors.Is(err, redlock.ErrNotHeld) {
		return "", a.failed(name, nil, err)
	}
	return token, err
}
