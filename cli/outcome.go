package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"redlockctl/cli/app"
	"redlockctl/cli/exit"
	"redlockctl/cli/printer"
	"redlockctl/cli/progress"
	"redlockctl/internal/config"
	"redlockctl/internal/operator"
	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/redlock"
	"redlockctl/server/safetext"
)

// releaseJSON is the document of release, revoke and force-release. Gone is true
// when no node can hold a copy of the token any more.
type releaseJSON struct {
	Name   safetext.Text    `json:"name"`
	Gone   bool             `json:"gone"`
	Nodes  []view.ResultDoc `json:"nodes"`
	Tokens []tokenJSON      `json:"tokens,omitempty"` // if several were removed
	Keys   []keyJSON        `json:"keys,omitempty"`   // further ones of the same lock
}

// tokenJSON is one of several tokens of a lock, and where its copies were.
type tokenJSON struct {
	Token safetext.Text   `json:"token"`
	Nodes []safetext.Text `json:"nodes"`
}

func tokenDocs(tokens []operator.TokenCopies) (docs []tokenJSON) {
	for _, t := range tokens {
		docs = append(docs, tokenJSON{Token: safetext.New(t.Token), Nodes: safetext.Texts(t.Nodes)})
	}
	return docs
}

// keyJSON is the result for a further key of a lock.
type keyJSON struct {
	Key   safetext.Text    `json:"key"`
	Gone  bool             `json:"gone"`
	Error *safetext.Text   `json:"error,omitempty"`
	Nodes []view.ResultDoc `json:"nodes,omitempty"`
}

// actsJSON is the document of an action on several locks or nodes: a document for each, in
// the order of the arguments.
type actsJSON struct {
	Act     string            `json:"act"`
	Done    int               `json:"done"`
	Failed  int               `json:"failed"`
	Results []json.RawMessage `json:"results"` // documents of kind release, node act or failure
}

// outcome is the result of an action on one lock or node.
type outcome struct {
	did, name string
	results   []redlock.NodeResult
	tokens    []operator.TokenCopies // set if there were several
	extend    []string               // nodes where the holder may still extend it, by its majority
	further   []operator.KeyOutcome
	node      *nodeActJSON // of a node that was cordoned, uncordoned or let rejoin
	plan      *planJSON    // of a dry run
	err       error
}

// succeeded reports whether the action was done, even if it could not be logged.
func (o outcome) succeeded() bool { return o.err == nil || errors.Is(o.err, operator.ErrUnlogged) }

// partly reports whether a failed action changed something: copies on some nodes, or
// further keys.
func (o outcome) partly() bool {
	return len(o.further) > 0 || slices.ContainsFunc(o.results, func(r redlock.NodeResult) bool { return r.Status == redlock.StatusOK })
}

// tell prints the result for one lock. For a failure that changed nothing it prints only
// the document; the returned error has the sentence.
func (a *commandLine) tell(o outcome) error { return errors.Join(o.err, a.show(o)) }

func (a *commandLine) show(o outcome) error {
	printed, err := a.Document(docOf(o))
	if !printed && (o.succeeded() || o.partly()) {
		o.print(a.Out, time.Now())
	}
	return err
}

func docOf(o outcome) (kind string, doc any) {
	now := time.Now()
	if !o.succeeded() {
		doc := failureDoc(o.name, o.results, o.err)
		doc.Keys, doc.Tokens = keyDocs(o.further, now), tokenDocs(o.tokens)
		doc.Extendable = safetext.Texts(o.extend)
		return "failure", doc
	}
	if o.plan != nil {
		return "plan", *o.plan
	}
	if o.node != nil {
		return "node act", *o.node
	}
	return "release", releaseJSON{
		Name: safetext.New(o.name), Gone: allGone(o.results), Nodes: view.DocsOfResults(o.results, now), Tokens: tokenDocs(o.tokens), Keys: keyDocs(o.further, now),
	}
}

func keyDocs(further []operator.KeyOutcome, now time.Time) (docs []keyJSON) {
	for _, f := range further {
		docs = append(docs, keyJSON{
			Key: safetext.New(f.Key), Gone: f.Err == nil && allGone(f.Results),
			Error: safetext.OptionalError(f.Err), Nodes: view.DocsOfResults(f.Results, now),
		})
	}
	return docs
}

// allGone reports whether no node can hold a copy any more.
func allGone(results []redlock.NodeResult) bool {
	for _, r := range results {
		switch r.Status {
		case redlock.StatusOK, redlock.StatusAbsent, redlock.StatusHeld:
		default:
			return false
		}
	}
	return true
}

func (o outcome) print(w io.Writer, now time.Time) {
	if o.plan != nil {
		o.plan.print(w)
		return
	}
	if o.node != nil {
		fmt.Fprintf(w, "%s %s\n", o.did, safetext.Escape(o.name))
		if running := o.node.GuardRunning; running != nil && !*running {
			fmt.Fprint(w, "  no guard watches it that would remember it: if the server restarts before a\n  guard has seen it cordoned, it starts as any other node, and rejoins after D\n")
		}
		if o.node.Then != "" {
			fmt.Fprintln(w, "  "+o.node.Then)
		}
		return
	}
	what := o.did
	if !o.succeeded() {
		what = "only partly " + o.did
	}
	printGone(w, what+" "+safetext.Escape(o.name), o.did, o.results, o.extend, now)
	for i, t := range o.tokens {
		if i == 0 {
			fmt.Fprintf(w, "  there were %d tokens, and all were removed:\n", len(o.tokens))
		}
		fmt.Fprintf(w, "    %s\n", t)
	}
	for _, f := range o.further {
		if f.Err == nil {
			printGone(w, "  "+safetext.Escape(f.Key)+", a key of the same lock", o.did, f.Results, f.Extendable, now)
		} else {
			fmt.Fprintf(w, "  %s, a key of the same lock: %s\n", safetext.Escape(f.Key), safetext.Printable(f.Err.Error()))
		}
	}
}

func printGone(w io.Writer, what, did string, results []redlock.NodeResult, extend []string, now time.Time) {
	var names, none, before, others []string
	for _, r := range results {
		switch {
		case r.Status == redlock.StatusOK || r.Status == redlock.StatusAbsent && did == "released":
			names = append(names, r.Node)
		case r.Status == redlock.StatusAbsent:
			none = append(none, r.Node)
		case r.Status == redlock.StatusHeld && did == "revoked" && redlock.IsTombstone(r.Token):
			before = append(before, r.Node)
		case r.Status == redlock.StatusHeld:
			others = append(others, r.Node+" holds another token, which stays")
		default:
			is, remains := "is "+r.Status.String(), "until its TTL expires"
			if r.Status == redlock.StatusUnanswered {
				is = "was sent the command, and had not answered yet"
			}
			if !r.MayLiveUntil.IsZero() {
				remains = "for " + view.Left(r.MayLiveUntil.Sub(now))
			}
			if slices.Contains(extend, r.Node) {
				remains = "and be extended"
			}
			others = append(others, r.Node+" "+is+": a copy may remain there "+remains)
		}
	}
	where := "gone on"
	if did == "revoked" { // a tombstone is there
		where = "on"
	}
	fmt.Fprintf(w, "%s: %s %s\n", what, where, safetext.Escape(strings.Join(names, " ")))
	if len(none) > 0 {
		fmt.Fprintf(w, "  no copy was on %s\n", safetext.Escape(strings.Join(none, " ")))
	}
	if len(before) > 0 {
		fmt.Fprintf(w, "  revoked before on %s\n", safetext.Escape(strings.Join(before, " ")))
	}
	for _, o := range others {
		fmt.Fprintf(w, "  %s\n", safetext.Escape(o))
	}
}

// oneByOne runs an action on each lock or node and reports each result.
// quiet says that no question is asked meanwhile, so a progress bar can be shown.
func (a *commandLine) oneByOne(ctx context.Context, act string, names []string, quiet bool, do func(context.Context, string) outcome) error {
	doc := actsJSON{Act: act, Results: []json.RawMessage{}}
	step := func(int) {}
	var b *progress.Bar
	if quiet {
		step, b = a.ProgressOf(act, len(names))
		defer b.End()
	}
	code := exit.Done
	for i, name := range names {
		if ctx.Err() != nil {
			a.Note("interrupted: %s not done", view.Plural(len(names)-i, "name is", "names are"))
			code = exit.Of(context.Cause(ctx))
			break
		}
		step(i)
		o := do(ctx, name)
		o.err = exit.Explained(o.err)
		switch {
		case o.err == nil:
			doc.Done++
		default:
			if doc.Failed++; code == exit.Done {
				code = exit.Of(o.err)
			} else if code != exit.Of(o.err) {
				code = exit.Failed
			}
		}
		var err error
		b.Aside(func() { err = a.tellOne(o, &doc) })
		if err != nil {
			return err
		}
	}
	if a.Output == "json" {
		if err := a.JSON("acts", doc); err != nil {
			return err
		}
	}
	if code != exit.Done {
		return exit.Silently(exit.Status(code))
	}
	return nil
}

func (a *commandLine) tellOne(o outcome, doc *actsJSON) error {
	if o.err != nil {
		defer a.Note("%s", safetext.Printable(o.err.Error()))
	}
	if a.Output != "json" {
		return a.show(o)
	}
	line, err := printer.Encoded(docOf(o))
	doc.Results = append(doc.Results, line)
	return err
}

// act runs f with the operator and the client of an action, made from the configuration
// and changed by prepare. It refuses a read-only run first.
func (a *commandLine) act(prepare func(*config.Config, *app.Spec) error, f func(*config.Config, *operator.Operator) error) error {
	return a.operate(false, prepare, f)
}

// plan is [commandLine.act] with an operator that can only look: whatever f does, nothing is
// written, to no server and to no log.
func (a *commandLine) plan(prepare func(*config.Config, *app.Spec) error, f func(*config.Config, *operator.Operator) error) error {
	return a.operate(true, prepare, f)
}

func (a *commandLine) operate(dryRun bool, prepare func(*config.Config, *app.Spec) error, f func(*config.Config, *operator.Operator) error) error {
	cfg, err := a.load()
	if err != nil {
		return err
	}
	if err := mayAct(cfg); err != nil && !dryRun {
		return err
	}
	s, err := app.SpecOf(cfg)
	if err != nil {
		return err
	}
	s.ReadOnly = s.ReadOnly || dryRun
	if prepare != nil {
		if err := prepare(cfg, &s); err != nil {
			return err
		}
	}
	op, err := app.OpenOperator(s, operator.Options{Force: s.Force, Note: func(e monitor.Event) {
		if s.Force && e.Level == monitor.LevelAlarm {
			a.Note("%s", safetext.Printable(e.Text.Raw()))
		}
	}})
	if err != nil {
		return err
	}
	defer op.Close()
	return exit.Explained(f(cfg, op))
}

// unlockable adds to an error for lack of a quorum that nothing can be locked, and until when, if a short look at the
// nodes shows that.
func (a *commandLine) unlockable(ctx context.Context, cfg *config.Config, err error) error {
	if exit.Of(err) != exit.NoQuorum || ctx.Err() != nil {
		return err
	}
	s, unseen := app.Look(ctx, cfg, app.Aim{Nodes: true, Most: app.SettleTime})
	if unseen != nil || s.Cluster.Verdict != monitor.VerdictUnavailable {
		return err
	}
	c := a.ViewContext(s)
	c.Guard = app.GuardsOf(cfg, s).Doc(nil).Guard(s)
	return fmt.Errorf("%w; %s", err, view.NothingText(c))
}

// failureJSON is the document of a failed action on a lock. Error is contended, no quorum,
// partly revoked, not held, expired, refused, denied, invalid or failed.
type failureJSON struct {
	Name     safetext.Text    `json:"name"`
	Error    string           `json:"error"`
	ExitCode int              `json:"exit_code"`
	Message  safetext.Text    `json:"message"`
	Attempts int              `json:"attempts,omitempty"`
	Nodes    []view.ResultDoc `json:"nodes,omitempty"`
	Tokens   []tokenJSON      `json:"tokens,omitempty"`
	Keys     []keyJSON        `json:"keys,omitempty"` // further ones of the same lock
	// Extendable are the nodes that a removal did not reach and that may still make a majority for
	// the holder, who can extend the lock without end.
	Extendable []safetext.Text `json:"extendable_on,omitempty"`
}

// nodeActJSON is the document of node cordon, uncordon and rejoin.
type nodeActJSON struct {
	Node safetext.Text `json:"node"`
	Done string        `json:"done"` // cordoned, uncordoned, drained, serving or serves
	// Already: nothing had to be done.
	Already bool `json:"already,omitempty"`
	// Of cordon: a guard watches the node and remembers the cordon; nil: not known.
	GuardRunning *bool `json:"guard_running,omitempty"`
	// Then, of uncordon, is when it serves, or what it waits for; of rejoin, until when two
	// holders are possible.
	Then string `json:"then,omitempty"`
}

// failed returns the error of an action on a lock. With --output json it also prints a
// document, so that scripts need not parse sentences.
func (a *commandLine) failed(name string, err error) error {
	err = exit.Explained(err)
	_, perr := a.Document("failure", failureDoc(name, nil, err))
	return cmp.Or(perr, err)
}

// failureDoc returns the document of a failure. Without results it has those in the error.
func failureDoc(name string, results []redlock.NodeResult, err error) failureJSON {
	err = exit.Explained(err)
	e, carried := exit.Results(err)
	if results == nil {
		results = carried
	}
	doc := failureJSON{
		Name: safetext.New(name), Error: failureWord(err), ExitCode: int(exit.Of(err)),
		Message: safetext.New(err.Error()), Nodes: view.DocsOfResults(results, time.Now()),
	}
	if e != nil {
		doc.Attempts = e.Attempts
	}
	return doc
}

func failureWord(err error) string {
	if errors.As(err, new(exit.Denied)) {
		return "denied"
	}
	if errors.Is(err, operator.ErrPartly) {
		return "partly revoked"
	}
	switch exit.Of(err) {
	case exit.Contended:
		return "contended"
	case exit.NoQuorum:
		return "no quorum"
	case exit.NotOwner:
		if errors.Is(err, redlock.ErrExpired) {
			return "expired"
		}
		return "not held"
	case exit.Refused:
		return "refused"
	case exit.WrongUsage:
		return "invalid"
	}
	return "failed"
}
