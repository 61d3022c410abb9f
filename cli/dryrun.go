package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"redlockctl/cli/app"
	"redlockctl/internal/config"
	"redlockctl/internal/operator"
	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/redlock"
	"redlockctl/server/safetext"
)

// planJSON is the document of an action with --dry-run.
type planJSON struct {
	Act  string        `json:"act"`
	Name safetext.Text `json:"name"` // of the lock or the node
	// Already: nothing has to be done.
	Already bool              `json:"already,omitempty"`
	Effect  []safetext.Text   `json:"effect"`
	Risk    *safetext.Text    `json:"risk,omitempty"`
	Copies  []view.ResultDoc  `json:"copies,omitempty"` // of the lock, as they are now
	Tokens  []tokenJSON       `json:"tokens,omitempty"` // whose copies are removed
	Keys    []safetext.Text   `json:"keys,omitempty"`   // further ones of the same lock, which go with it
	say     func(w io.Writer) // the same for people
}

// dryRunFlag adds --dry-run. With it no reason is needed: nothing is logged.
func dryRunFlag(cmd *cobra.Command, to *bool) {
	cmd.Flags().BoolVar(to, "dry-run", false, "show what would be done, and change nothing")
}

// relaxReason makes --reason optional for a dry run.
func relaxReason(cmd *cobra.Command) {
	if dry, err := cmd.Flags().GetBool("dry-run"); err == nil && dry {
		if f := cmd.Flags().Lookup("reason"); f != nil {
			delete(f.Annotations, cobra.BashCompOneRequiredFlag)
		}
	}
}

func (p *planJSON) print(w io.Writer) {
	fmt.Fprintf(w, "%s %s: dry run, nothing was changed\n", p.Act, p.Name.String())
	p.say(w)
}

// planOfRemoval returns the plan of a removal as an outcome.
func planOfRemoval(act, name string, plan operator.Plan, say func(io.Writer)) outcome {
	doc := &planJSON{Act: act, Name: safetext.New(name), Effect: safetext.Texts([]string{plan.Effect}), Risk: safetext.Optional(plan.Risk), Copies: view.DocsOfResults(plan.Copies, time.Now()), Tokens: tokenDocs(plan.Tokens), say: say}
	if len(plan.Keys) > 1 {
		doc.Keys = safetext.Texts(plan.Keys[1:])
	}
	return outcome{name: name, plan: doc}
}

// planOfRelease plans a release: it deletes the copies with the token.
func planOfRelease(ctx context.Context, a *commandLine, op *operator.Operator, name, token string) outcome {
	o := outcome{name: name}
	copies, err := op.Inspect(ctx, name)
	with := operator.TokenCopies{Token: token}
	for _, c := range copies {
		if c.Status == redlock.StatusHeld && c.Len == int64(len(token)) && strings.HasPrefix(token, c.Token) { // only its beginning is read
			with.Nodes = append(with.Nodes, c.Node)
		}
	}
	switch {
	case with.Nodes != nil:
	case err != nil:
		o.err = err
		return o
	default:
		o.err = fmt.Errorf("release %q: %w", safetext.Escape(name), redlock.ErrNotHeld)
		return o
	}
	plan := operator.Plan{Keys: []string{name}, Copies: copies, Tokens: []operator.TokenCopies{with}, Effect: "the copies with this token are deleted"}
	return planOfRemoval("release", name, plan, func(w io.Writer) {
		a.tellCopies(w, plan)
		fmt.Fprintf(w, "effect: %s, on %s\n", plan.Effect, safetext.Escape(strings.Join(with.Nodes, ", ")))
	})
}

// planNode plans what is to be done with a node.
func (a *commandLine) planNode(ctx context.Context, act nodeAct, cfg *config.Config, op *operator.Operator, name string) outcome {
	o := outcome{name: name}
	s, err := a.look(ctx, cfg, app.Aim{})
	if err != nil {
		o.err = err
		return o
	}
	n := s.Node(name)
	doc := &planJSON{Act: "node " + act.verb, Name: safetext.New(name), Effect: []safetext.Text{}, Already: op.Already(ctx, name, act.cordon)}
	if doc.Already {
		doc.say = func(w io.Writer) { fmt.Fprintf(w, "already %s: nothing to do\n", act.done) }
	} else {
		for _, f := range a.nodeFacts(act, cfg, s, n) {
			if f.Label == "Risk" {
				doc.Risk = safetext.Optional(f.Text)
			} else if f.Text != "" {
				doc.Effect = append(doc.Effect, safetext.New(f.Text))
			}
		}
		doc.say = func(w io.Writer) { a.tellNode(w, act, cfg, s, n) }
	}
	o.plan = doc
	return o
}

// nodeFacts says what an action on a node means.
func (a *commandLine) nodeFacts(act nodeAct, cfg *config.Config, s *monitor.Snapshot, n *monitor.Node) []view.Fact {
	switch {
	case act.verb == "uncordon":
		return view.UncordonFacts(n, s.At)
	case act.cordon:
		return view.CordonFacts(s, n.Name)
	}
	guard := app.GuardsOf(cfg, s).Doc(nil).Guard(s)
	return view.RejoinFacts(&guard, n.Name, s.At)
}

// tellNode prints the state of a node, and what an action on it means.
func (a *commandLine) tellNode(w io.Writer, act nodeAct, cfg *config.Config, s *monitor.Snapshot, n *monitor.Node) {
	fmt.Fprintf(w, "%s %s: now %s, %s\n", safetext.Escape(n.Name), safetext.Escape(n.Addr), n.State, view.Plural(n.Locks, "copy of a lock", "copies of locks"))
	for _, f := range a.nodeFacts(act, cfg, s, n) {
		if f.Label != "" {
			f.Text = strings.ToLower(f.Label) + ": " + f.Text
		}
		fmt.Fprintln(w, wrapped(f.Text))
	}
}
