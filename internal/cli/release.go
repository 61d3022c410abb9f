package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"redlockctl/internal/config"
	"redlockctl/internal/operator"
	"redlockctl/internal/safetext"
	"redlockctl/redlock"
)

// releaseJSON is the document of release and force-release. Gone is true when
// no node can hold a copy of the token any more.
type releaseJSON struct {
	Schema string        `json:"schema"`
	Name   safetext.Text `json:"name"`
	Gone   bool          `json:"gone"`
	Nodes  []resultJSON  `json:"nodes"`
}

func (a *app) releaseCommand() *cobra.Command {
	var tok tokenFlags
	cmd := &cobra.Command{
		Use:   "release NAME",
		Short: "Release a lock by its token",
		Long: `Deletes the copies of the token on all nodes. A node that is down does not fail
the release; its copy may live on until its TTL is over, and that is said.

Exit code 5 when no node holds the token.`,
		Example:           "redlockctl release job:1 --token-file job.token",
		Args:              oneName("lock"),
		ValidArgsFunction: a.completeLocks,
		RunE: a.run(func(ctx context.Context, args []string) error {
			token, err := tok.need(a.in)
			if err != nil {
				return err
			}
			return a.act(nil, func(_ *config.Config, h *hand) error {
				results, err := h.op.Release(ctx, args[0], token)
				return a.released("released", args[0], results, err)
			})
		}),
	}
	tok.add(cmd)
	return cmd
}

// released prints the outcome of a release, also of one that could not be
// logged.
func (a *app) released(did, name string, results []redlock.NodeResult, err error) error {
	if err == nil || errors.Is(err, operator.ErrUnlogged) {
		return errors.Join(err, a.printReleased(did, name, results))
	}
	return a.failed(name, results, err)
}

// printReleased says where the copies are gone, and where one may live on.
func (a *app) printReleased(did, name string, results []redlock.NodeResult) error {
	now := time.Now()
	var names, others []string
	left := 0
	for _, r := range results {
		switch {
		case r.Status == redlock.StatusOK || r.Status == redlock.StatusAbsent:
			names = append(names, r.Node)
			continue
		case r.Status == redlock.StatusHeld:
			others = append(others, r.Node+" holds another token, which stays")
			continue
		}
		left++
		switch {
		case !r.MayLiveUntil.IsZero():
			others = append(others, fmt.Sprintf("%s is %s: a copy may live on there for %s", r.Node, r.Status, span(r.MayLiveUntil.Sub(now))))
		default:
			others = append(others, fmt.Sprintf("%s is %s: a copy may live on there until its TTL is over", r.Node, r.Status))
		}
	}
	if a.output == "json" {
		return printJSON(a.out, releaseJSON{Schema: Schema, Name: text(name), Gone: left == 0, Nodes: resultDocs(results, now)})
	}
	where := "gone on"
	if did == "revoked" { // a tombstone is there
		where = "on"
	}
	fmt.Fprintf(a.out, "%s %s: %s %s\n", did, safetext.Escape(name), where, safetext.Escape(strings.Join(names, " ")))
	for _, o := range others {
		fmt.Fprintf(a.out, "  %s\n", safetext.Escape(o))
	}
	return nil
}
