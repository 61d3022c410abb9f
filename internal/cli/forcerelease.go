package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"redlockctl/internal/config"
	"redlockctl/internal/safetext"
	"redlockctl/redlock"
)

func (a *app) forceReleaseCommand() *cobra.Command {
	var reason string
	var yes bool
	var tok tokenFlags
	cmd := &cobra.Command{
		Use:   "force-release NAME",
		Short: "Take a lock from its holder, who is known to be dead",
		Long: `Deletes the copies of the lock NAME on all nodes, whoever holds it. The holder is
not told: if it is alive, it goes on working, and the next client may work at the
same time. Use it for a holder that is known to be dead.

Without --yes the holder, the TTLs and the effect are shown, and the name must be
typed; where nobody can be asked, the act is refused with exit code 6. Each node
compares the token again when the act runs; with --token only copies of that
token are deleted. Intent and outcome are written to the audit log.`,
		Example: `redlockctl force-release job:1 --reason "host job-7 burnt down" --yes`,
		Args:    oneName("lock"),
		RunE: a.run(func(ctx context.Context, args []string) error {
			name := args[0]
			token, err := tok.read(a.in)
			if err != nil {
				return err
			}
			return a.act(nil, func(_ *config.Config, h *hand) error {
				if !yes {
					shown, err := a.confirmForce(ctx, h, name, token)
					if err != nil {
						return err
					}
					token = shown
				}
				results, err := h.op.ForceRelease(ctx, name, token, reason)
				return a.released("force-released", name, results, err)
			})
		}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the audit log")
	cmd.Flags().BoolVar(&yes, "yes", false, "do it without being asked")
	_ = cmd.MarkFlagRequired("reason")
	tok.add(cmd)
	return cmd
}

// confirmForce shows the copies and has the name typed. It returns the token
// that was shown, so that nothing else is deleted; the empty one when there
// were several.
func (a *app) confirmForce(ctx context.Context, h *hand, name, token string) (string, error) {
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
				status = plain(r.Type)
			}
			t.add(plain(r.Node), status, cell{text: ttl}, cell{text: a.clip(safetext.Escape(r.Token), 48)})
		}
		if len(tokens) == 0 {
			return fmt.Errorf("force-release %s: %w: no node that answers holds a copy", name, redlock.ErrNotHeld)
		}
		if token == "" && len(tokens) == 1 {
			for token = range tokens {
			}
		}
		t.write(w, a.errTTY && a.color())
		fmt.Fprintf(w, "\nThis deletes the copies now. A holder that is alive is not told, and works on\nwhile the next client takes the lock.\n")
		if token == "" {
			fmt.Fprintf(w, "There are %d tokens: the copies of all of them are deleted.\n", len(tokens))
		} else if tokens[token] == 0 {
			return fmt.Errorf("force-release %s: %w: no copy has the token given", name, redlock.ErrNotHeld)
		}
		return nil
	})
	if errors.Is(err, redlock.ErrNotHeld) {
		return "", a.failed(name, nil, err)
	}
	return token, err
}
