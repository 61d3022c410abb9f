package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"redlockctl/cli/app"
	"redlockctl/cli/exit"
	"redlockctl/cli/flags"
	"redlockctl/internal/config"
	"redlockctl/internal/operator"
	"redlockctl/internal/view"
	"redlockctl/internal/who"
	"redlockctl/monitor"
	"redlockctl/redlock"
	"redlockctl/server/safetext"
)

// whoJSON is the document of who.
type whoJSON struct {
	Cluster safetext.Text `json:"cluster"`
	Name    safetext.Text `json:"name"`
	Copies  int           `json:"copies"`
	Nodes   int           `json:"nodes"`
	// Majority: the copies, of one token, are a majority.
	Majority bool          `json:"majority"`
	Token    safetext.Text `json:"token,omitzero"`
	// HeldUntil is until when a client relies on the lock, or may. State is set for a lock without a
	// majority of which that is so, and for one that is revoked.
	State     string       `json:"state,omitempty"`
	HeldUntil *time.Time   `json:"held_until,omitempty"`
	Revoked   *revokedJSON `json:"revoked,omitempty"`
	// Ended: the lock was seen, and is not there any more; the answer is of who had it, last seen with a
	// majority at LastHeld.
	Ended    bool      `json:"ended,omitempty"`
	LastHeld time.Time `json:"last_held,omitzero"`
	// Since is when a client was first seen that nobody watched: it got the lock after the watch.
	Since  time.Time      `json:"since,omitzero"`
	Before *whoBeforeJSON `json:"before,omitempty"`
	// Tombstones is how many nodes have a tombstone, of whichever token.
	Tombstones int           `json:"tombstones,omitempty"`
	Method     who.Method    `json:"method"` // "told", "inferred", "seen" or "not known"
	Owner      safetext.Text `json:"owner,omitzero"`
	// Application names connections that belong together: by name, by user and address, or by
	// address.
	Application string          `json:"application,omitempty"`
	P           float64         `json:"p,omitempty"`
	Events      int             `json:"events"`
	Liveness    who.Liveness    `json:"liveness,omitempty"`
	Extensions  int             `json:"extensions"`
	ExtendedMS  int64           `json:"last_extended_ms,omitempty"` // ago
	UsuallyMS   int64           `json:"usual_interval_ms,omitempty"`
	Connections []whoConnJSON   `json:"connections"`
	Candidates  []candidateJSON `json:"candidates"`
	// Uncounted are the nodes that do not count the commands of their connections, where often
	// nobody can be inferred.
	Uncounted []string         `json:"uncounted"`
	Unusable  []view.UnreadDoc `json:"unusable"`
}

// revokedJSON is a revocation as the audit log and the record of this machine have it.
type revokedJSON struct {
	At     time.Time      `json:"at"`
	Actor  *safetext.Text `json:"actor,omitempty"`
	Reason *safetext.Text `json:"reason,omitempty"`
	Owner  *safetext.Text `json:"owner,omitempty"` // from whom
	Until  time.Time      `json:"until,omitzero"`  // until when that client may rely on the lock; left out: without end, or not known
}

// whoBeforeJSON is the client that had the lock before that of the answer, or, if that has not ended, has
// copies of it too.
type whoBeforeJSON struct {
	Token       safetext.Text `json:"token"`
	Ended       bool          `json:"ended,omitempty"`
	LastHeld    time.Time     `json:"last_held,omitzero"`
	Method      who.Method    `json:"method"`
	Owner       safetext.Text `json:"owner,omitzero"`
	Application string        `json:"application,omitempty"`
	P           float64       `json:"p,omitempty"`
	Connections []whoConnJSON `json:"connections"`
}

type whoConnJSON struct {
	who.NodeConn
	AgeMS  int64 `json:"age_ms"`
	GoneMS int64 `json:"gone_ms,omitempty"` // time since it was closed; 0: open
}

type candidateJSON struct {
	Application string  `json:"application"`
	P           float64 `json:"p"`
}

func (a *commandLine) whoCommand() *cobra.Command {
	var opt who.Options
	var traffic bool
	var node, reason string
	cmd := flags.Outputs(&cobra.Command{
		Use:   "who NAME...",
		Short: "Who holds a lock, and how that is known",
		Long: `Says who holds each lock NAME: the application, its connections on each node, and
the command that finds its process. How that is known is said with it:

  told       the token says so, as those of redlockctl and some libraries do
  inferred   connections that sent nothing while the lock changed did not change it. An
             answer needs two changes that only one application can have sent;
             otherwise candidates are listed, with the p of each
  seen       with --monitor: a command with the lock's key and token was seen in the
             traffic of one node. That takes a third of the node's speed and shows
             all data: it needs --node and --reason, is in the audit log, ends at the
             first hit, after 10 s, or when the node has to keep 1 MiB for it, and is
             refused above 10,000 commands a second unless --force

Of a lock that is revoked it says when, by whom and from whom, by the audit log and the record.

Changes nothing. It reads CLIENT LIST up to 40 times a second on each node, which takes
1 % of its time, for as long as --for, and refuses nodes with more than 2,000 connections
unless --force. What defeats it: servers that do not count the commands of a connection
(Redis, and Valkey before 8.1), very busy nodes, proxies, NAT, short-lived connections,
and applications without a name that share an address.

Several locks are watched one after the other, each for --for at most; - reads their names
from standard input, one a line. The exit code is that of the failures, or 1 if they differ.`,
		Example: "redlockctl who job:1\nredlockctl who orders:7 --for 1m -o json\n" +
			"redlockctl locks --filter state:orphaned -q | redlockctl who - -o jsonl\n" +
			"redlockctl who job:1 --monitor --node n1 --reason 'holder of job:1 hangs, INC-7'",
		Args:              flags.SeveralNames("lock"),
		ValidArgsFunction: a.completeLocks,
		RunE: a.run(func(ctx context.Context, args []string) error {
			if opt.For <= 0 {
				return exit.Usagef("--for: must be positive")
			}
			switch {
			case traffic && node == "":
				return exit.Usagef("--monitor: of which --node?")
			case !traffic && (node != "" || reason != ""):
				return exit.Usagef("--node and --reason: go with --monitor")
			}
			args, err := flags.Names(args, a.In)
			if err != nil {
				return err
			}
			if len(args) > 1 && a.Output == "json" {
				return exit.Usagef("-o json is one document: of several locks, use -o jsonl")
			}
			if traffic {
				return a.act(nil, func(cfg *config.Config, op *operator.Operator) error {
					return a.whoOfEach(ctx, args, func(name string) error { return a.whoByTraffic(ctx, cfg, op, name, node, reason, opt.Force) })
				})
			}
			cfg, err := a.load()
			if err != nil {
				return err
			}
			return a.whoOfEach(ctx, args, func(name string) error { opt.Key = name; return a.whoByConnections(ctx, cfg, opt) })
		}),
	}, "table", "json", "jsonl")
	cmd.Flags().DurationVar(&opt.For, "for", operator.WhoFor, "how long to watch at most")
	cmd.Flags().BoolVar(&opt.Force, "force", false, "also on nodes with more than 2,000 connections; with --monitor on busy ones")
	cmd.Flags().BoolVar(&traffic, "monitor", false, "read the traffic of one node, which shows all data and costs it a third of its speed")
	cmd.Flags().StringVar(&node, "node", "", "with --monitor: of which node")
	cmd.Flags().StringVar(&reason, "reason", "", "with --monitor: why, for the audit log")
	_ = cmd.RegisterFlagCompletionFunc("node", a.completeNodes)
	return cmd
}

// whoOfEach answers for one lock after the other; a failure does not stop the rest. The error
// of one is returned, that of several has been printed.
func (a *commandLine) whoOfEach(ctx context.Context, names []string, answer func(name string) error) error {
	if len(names) == 1 {
		return answer(names[0])
	}
	code := exit.Done
	for _, name := range names {
		err := exit.Explained(answer(name))
		if ctx.Err() != nil {
			return err
		}
		if err == nil {
			continue
		}
		a.Note("%s", safetext.Printable(err.Error()))
		if code == exit.Done {
			code = exit.Of(err)
		} else if code != exit.Of(err) {
			code = exit.Failed
		}
	}
	if code != exit.Done {
		return exit.Silently(exit.Status(code))
	}
	return nil
}

func (a *commandLine) whoByConnections(ctx context.Context, cfg *config.Config, opt who.Options) error {
	s, err := app.SpecOf(cfg)
	if err != nil {
		return err
	}
	opt.Timeout = cfg.Monitor.Timeout
	hinted := false
	opt.Uncounted = func(nodes []string) { hinted = true; a.Note("%s", view.WhoUncounted(opt.Key, nodes)) }
	opt.Free = func() {
		a.Note("%s", safetext.Printable(fmt.Sprintf("\"%s\" is not locked now: watching for %s at most who takes it", safetext.Escape(opt.Key), view.Span(opt.For))))
	}
	done := a.ProgressFor("watching "+opt.Key, opt.For)
	found, err := who.Observe(ctx, s.Nodes, opt)
	done()
	switch {
	case errors.Is(err, who.ErrTooMany):
		return fmt.Errorf("%w (--force overrides this)", err)
	case err != nil:
		return err
	}
	hint := ""
	if !hinted {
		hint = view.WhoHint(found)
	}
	return a.printWho(ctx, cfg, found, hint)
}

func (a *commandLine) whoByTraffic(ctx context.Context, cfg *config.Config, op *operator.Operator, name, node, reason string, force bool) error {
	var found *who.Answer
	done := a.Progress("reading the traffic of " + node)
	err := op.MonitorLock(ctx, node, name, reason, func(ctx context.Context, n *redlock.Node) (string, error) {
		var err error
		if found, err = who.Monitor(ctx, n, name, force, cfg.Monitor.Timeout); err != nil {
			return "", err
		}
		return "holder " + string(found.Method), nil
	})
	done()
	if err != nil {
		return err
	}
	return a.printWho(ctx, cfg, found, "")
}

// printWho prints an answer, with a hint if there is one. It is an error if nobody holds the lock or nobody can tell.
func (a *commandLine) printWho(ctx context.Context, cfg *config.Config, w *who.Answer, hint string) error {
	relied, at := app.ReliedOn(ctx, cfg, w, a.Reading)
	if at != nil {
		w = view.WhoAsOf(w, at)
	}
	var revoked app.Removal
	if w.Revoked {
		revoked = app.KeptBy(cfg).RemovalOf(operator.Revoke, w.Key, w.At)
	}
	doc := whoDoc(cfg.Cluster.Name, w, revoked)
	quorum := redlock.Quorum(w.N)
	if endKnown(w, relied) {
		doc.HeldUntil = view.DocOfLock(relied, at).HeldUntil
	}
	if relied != nil && w.Held < quorum {
		lock := view.DocOfLock(relied, at)
		doc.State, doc.HeldUntil = lock.State, lock.HeldUntil
		if w.Held == 0 {
			doc.Token = relied.Holder
		}
	}
	if at != nil {
		if l := at.LockNamed(w.Key); l != nil && (l.Nobody || l.Contested) {
			doc.Token = safetext.Text{} // none of several has a majority
		}
	}
	printed, err := a.Document("who", doc)
	if err != nil {
		return err
	}
	if !printed {
		a.showWho(w, hint, revoked, relied, at)
		var now *monitor.Lock
		if at != nil {
			now = at.LockNamed(w.Key)
		}
		if before := app.KeptBy(cfg).ForceReleased(w.Key, now, w.At); before != "" && w.Held > 0 && !w.Revoked {
			fmt.Fprintf(a.Out, "  before that, %s\n", safetext.Escape(before))
		}
	}
	switch {
	case w.N-len(w.Unusable) < quorum:
		return fmt.Errorf("\"%s\": %w: %d of %d nodes can be watched", safetext.Escape(w.Key), redlock.ErrNoQuorum, w.N-len(w.Unusable), w.N)
	case w.Held < quorum && relied == nil && at != nil && view.Answering(at) < quorum: // it may have a majority by now
		return fmt.Errorf("\"%s\": %w: only %d of %d nodes answered when they were asked again", safetext.Escape(w.Key), redlock.ErrNoQuorum, view.Answering(at), w.N)
	case w.Held == 0 && relied == nil:
		err := notLocked(cfg, w.Key, w.N-len(w.Unusable), w.N)
		switch {
		case !w.LastHeld.IsZero():
			err = fmt.Errorf("it was locked, and ended while it was watched: %w", err)
		case w.Ended:
			err = fmt.Errorf("copies of it were seen, and went while it was watched: %w", err)
		}
		return err
	}
	return nil
}

func (a *commandLine) showWho(w *who.Answer, hint string, revoked app.Removal, relied *monitor.Lock, at *monitor.Snapshot) {
	unusable := causes{}
	for node, why := range w.Unusable {
		unusable.add(node, why.String())
	}
	for cause, nodes := range unusable.all() {
		a.Note("%s: %s", nodes, cause)
	}
	if relied != nil && w.Held == 0 {
		ctx := a.ViewContext(at)
		left, by := "no copy is left", "granted to"
		if len(w.Unusable) > 0 {
			left = "no copy is on the nodes that can be watched"
		}
		if relied.MayBeHeld() {
			by = "last known of"
		}
		fmt.Fprintf(a.Out, "%s: %s; %s %s\n  %s\n", safetext.Escape(w.Key), left, by, view.LockHolder(ctx, relied).Text, view.LockEnd(ctx, relied))
		return
	}
	if w.Held == 0 && w.LastHeld.IsZero() {
		return
	}
	headline := view.WhoHeadline(w)
	if !revoked.At.IsZero() {
		headline = "revoked at " + view.Moment(revoked.At)
		if revoked.By.Actor != "" {
			headline += safetext.Escape(revoked.By.By())
		}
	}
	fmt.Fprintf(a.Out, "%s: %s\n", safetext.Escape(w.Key), headline)
	if g := revoked.Grant; g != nil {
		fmt.Fprintf(a.Out, "  %s had it and may work %s\n", safetext.Escape(g.Who()), view.MayWork(g))
	}
	if hint != "" {
		fmt.Fprintf(a.Out, "  %s\n", hint)
	}
	switch {
	case relied != nil && w.Held < redlock.Quorum(w.N):
		fmt.Fprintf(a.Out, "  it has %d of %d copies: %s\n", max(w.Held, relied.Held), w.N, view.LockEnd(a.ViewContext(at), relied))
	case w.Revoked && w.MonitorOn == "" && w.Held < redlock.Blocking(w.N):
		fmt.Fprintf(a.Out, "  a tombstone is on %d of %d nodes: %s\n", w.Tombstones, w.N, view.WhoElse(w, at))
	case w.Ended:
		fmt.Fprintf(a.Out, "  %s\n", view.WhoHad(w))
	case w.Held < redlock.Quorum(w.N):
		fmt.Fprintf(a.Out, "  it has %d of %d copies: no majority\n", w.Held, w.N)
	case endKnown(w, relied):
		fmt.Fprintf(a.Out, "  it has %d of %d copies, a majority; %s\n", relied.Held, w.N, view.LockEnd(a.ViewContext(at), relied))
	case !w.Revoked:
		fmt.Fprintf(a.Out, "  it has %d of %d copies, a majority\n", w.Held, w.N)
	}
	if before := view.WhoBefore(w); before != "" {
		fmt.Fprintf(a.Out, "  %s\n", before)
	}
	if at != nil {
		if l := at.LockNamed(w.Key); l != nil {
			for _, other := range view.WhoElseRelies(a.ViewContext(at), l) {
				fmt.Fprintf(a.Out, "  %s\n", other)
			}
		}
	}
	if life := view.WhoLiveness(w); life != "" {
		fmt.Fprintf(a.Out, "  %s\n", life)
	}
	if len(w.Conns) > 0 {
		fmt.Fprintln(a.Out)
		a.Table(view.WhoConns(w))
	}
}

// endKnown reports whether relied, what a look after the answer saw of the lock, is the majority of the
// answer, and tells its end.
func endKnown(w *who.Answer, relied *monitor.Lock) bool {
	return !w.Revoked && relied != nil && relied.Holder == w.Token && relied.Held >= redlock.Quorum(w.N)
}

func whoDoc(cluster string, w *who.Answer, revoked app.Removal) whoJSON {
	d := whoJSON{
		Cluster: safetext.New(cluster), Name: safetext.New(w.Key), Copies: w.Held, Nodes: w.N, Majority: w.Held >= redlock.Quorum(w.N) && !w.Revoked && !w.Ended, Token: w.Token,
		Method: w.Method, Owner: w.Owner, P: w.P, Events: w.Events, Liveness: w.Liveness, Extensions: w.Extends,
		Tombstones: w.Tombstones, ExtendedMS: w.Extended.Milliseconds(), UsuallyMS: w.Usually.Milliseconds(),
		LastHeld: w.LastHeld, Since: w.Since, Connections: whoConnsDoc(w), Candidates: []candidateJSON{}, Uncounted: append([]string{}, w.Uncounted...), Unusable: []view.UnreadDoc{},
	}
	if w.Group != nil {
		d.Application = w.Group.String()
	}
	if w.Revoked {
		d.State = monitor.LockRevoked.String()
	}
	if !revoked.At.IsZero() {
		d.Revoked = &revokedJSON{At: revoked.At, Actor: safetext.Optional(revoked.By.Actor), Reason: safetext.Optional(revoked.By.Reason)}
		if g := revoked.Grant; g != nil {
			d.Revoked.Owner, d.Revoked.Until = g.Owner, g.Until
		}
	}
	if w.Ended {
		d.Copies, d.Ended = 0, true
	}
	if b := w.Before; b != nil {
		d.Before = &whoBeforeJSON{Token: b.Token, Ended: b.Ended, LastHeld: b.LastHeld, Method: b.Method, Owner: b.Owner, P: b.P, Connections: whoConnsDoc(b)}
		if b.Group != nil {
			d.Before.Application = b.Group.String()
		}
	}
	for _, l := range w.Likely {
		d.Candidates = append(d.Candidates, candidateJSON{l.Group.String(), l.P})
	}
	for node, why := range w.Unusable {
		d.Unusable = append(d.Unusable, view.UnreadDoc{Node: safetext.New(node), Why: why})
	}
	return d
}

func whoConnsDoc(w *who.Answer) []whoConnJSON {
	docs := []whoConnJSON{}
	for _, c := range w.Conns {
		docs = append(docs, whoConnJSON{c, int64(c.Age) * 1000, c.Gone.Milliseconds()})
	}
	return docs
}
