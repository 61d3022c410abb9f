package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"redlockctl/internal/app"
	"redlockctl/internal/record"
	"redlockctl/internal/report"
	"redlockctl/internal/safetext"
	"redlockctl/internal/view"
)

// historyJSON is the document of history.
type historyJSON struct {
	Cluster safetext.Text `json:"cluster"`
	Since   time.Time     `json:"since"`
	Until   time.Time     `json:"until"`
	// First and Last are what the record covers at all.
	First  time.Time           `json:"recorded_since"`
	Last   time.Time           `json:"recorded_until"`
	Grants []view.GrantDoc     `json:"grants,omitempty"` // of the lock that was named
	Events []view.PastEventDoc `json:"events"`
}

// historyOptions are the flags of history.
type historyOptions struct {
	since, until, node, file string
	utc                      bool
	most                     int
	as                       listing
}

func (a *commandLine) historyCommand() *cobra.Command {
	var o historyOptions
	cmd := o.as.add(outputs(&cobra.Command{
		Use:   "history [LOCK]",
		Short: "What happened: to a lock, a node, or the cluster",
		Long: `Reads what the guard's daemon or the console has recorded; no master is contacted.

With a LOCK, each holder that it had: from when to when, how often it was extended, how
it ended, and by the beginning of the token's SHA-256 which one it was (as in the audit
log); who it was, where the token tells. OVERLAP stands where one began before the one
before it had ended: two believed that they held it. Behind that, the events of the lock.

With --node, the states and events of that node; else those of the cluster: its verdict,
nodes, restarts, findings that began and were cleared, what operators did.

A moment is written "03:12" (the last one), "yesterday 03:12", "2026-01-31 15:04", RFC 3339
or "2h ago". --columns, --sort and -o csv are about the holders where a LOCK is named, else
about the events. What is recorded is kept for a week unless the configuration says otherwise.`,
		Args:              optionalName("lock"),
		ValidArgsFunction: cobra.NoFileCompletions,
		Example: `redlockctl history orders:nightly --since "yesterday 03:00"
redlockctl history --since 03:00 --until 03:30 -o csv`,
		RunE: a.run(func(_ context.Context, args []string) error {
			lock := ""
			if len(args) > 0 {
				lock = args[0]
				if o.node != "" {
					return usageError{errors.New("a lock and --node: give one of them")}
				}
			}
			return a.history(lock, o)
		}),
	}, "table", "wide", "json", "jsonl"))
	f := cmd.Flags()
	o.add(f)
	f.StringVar(&o.node, "node", "", "of this node alone")
	f.IntVar(&o.most, "limit", 1000, "the latest of each kind at most")
	return cmd
}

// openRecord opens the record of the configuration, or a file.
func (a *commandLine) openRecord(file string) (*record.Reader, error) {
	if file != "" {
		return record.OpenReader(file, a.cluster)
	}
	cfg, err := a.loadWithoutSecrets()
	if err != nil {
		return nil, err
	}
	path := cfg.RecordPath()
	if path == "" {
		return nil, fmt.Errorf("%w: [record] is switched off", record.ErrNoRecord)
	}
	r, err := record.OpenReader(path, cfg.Cluster.Name)
	if errors.Is(err, record.ErrNoRecord) {
		err = fmt.Errorf("%w; `redlockctl guard` and the console record what they see", err)
	}
	return r, err
}

// asked is the time that the flags name.
func (o historyOptions) asked() (in record.Span, err error) {
	now := time.Now()
	if o.utc {
		now = now.UTC()
	}
	if in.Since, err = view.ParseMoment(o.since, now); err != nil {
		return in, usageError{fmt.Errorf("--since %w", err)}
	}
	if in.Until, err = view.ParseMoment(o.until, now); err != nil {
		return in, usageError{fmt.Errorf("--until %w", err)}
	}
	if !in.Since.Before(in.Until) {
		return in, usageError{fmt.Errorf("--since %s is not before --until %s", view.Stamp(in.Since, o.utc), view.Stamp(in.Until, o.utc))}
	}
	return in, nil
}

// add adds the flags that say of when, and out of which record.
func (o *historyOptions) add(f *pflag.FlagSet) {
	f.StringVar(&o.since, "since", "24h ago", "from when on")
	f.StringVar(&o.until, "until", "now", "until when")
	f.StringVar(&o.file, "file", "", "a record that was copied from elsewhere, in place of the configuration's")
	f.BoolVar(&o.utc, "utc", false, "times in UTC, not in the local zone")
}

func (a *commandLine) history(lock string, o historyOptions) error {
	in, err := o.asked()
	switch {
	case err != nil:
		return err
	case o.most < 1:
		return usageError{fmt.Errorf("--limit %d is below 1", o.most)}
	}
	r, err := a.openRecord(o.file)
	if err != nil {
		return err
	}
	defer r.Close()
	doc, err := historyOf(r, lock, o.node, in, o.most)
	if err != nil {
		return err
	}
	if o.node != "" && len(doc.Events) == 0 {
		if names, err := r.Nodes(); err == nil && !slices.Contains(names, o.node) {
			return usageError{fmt.Errorf("--node: the record has no node %q (have: %s)", o.node, safetext.Escape(strings.Join(names, ", ")))}
		}
	}
	switch a.output {
	case "json":
		return printJSON(a.out, document{"history", doc})
	case "jsonl":
		for _, g := range doc.Grants {
			if err := printLine(a.out, document{"recorded grant", g}); err != nil {
				return err
			}
		}
		for _, e := range doc.Events {
			if err := printLine(a.out, document{"recorded event", e}); err != nil {
				return err
			}
		}
		return nil
	}
	saw, err := r.SawLocks(in)
	if err != nil {
		return err
	}
	return a.tellHistory(doc, lock, saw, o)
}

// historyOf collects what happened, oldest first.
func historyOf(r *record.Reader, lock, node string, in record.Span, most int) (doc historyJSON, err error) {
	doc = historyJSON{Cluster: safetext.New(r.Cluster.Name), Since: in.Since, Until: in.Until, First: r.Cluster.First, Last: r.Cluster.Last, Events: []view.PastEventDoc{}}
	if lock != "" {
		grants, err := r.GrantsOf(lock, in, most)
		if err != nil {
			return doc, err
		}
		doc.Grants = app.PastGrants(grants)
	}
	var events []record.Event
	if lock != "" {
		events, err = r.Events("", lock, in, most)
	} else {
		events, err = r.Happened(node, in, most)
	}
	for _, e := range events {
		doc.Events = append(doc.Events, view.PastEventDoc{At: e.At, Kind: e.Kind, Node: safetext.Optional(e.Node), Lock: safetext.Optional(e.Lock), Text: safetext.New(e.Text)})
	}
	return doc, err
}

// tellHistory prints the holders of a lock, and what happened, as tables; saw: somebody
// recorded locks.
func (a *commandLine) tellHistory(doc historyJSON, lock string, saw bool, o historyOptions) error {
	ctx := &view.Context{Glyphs: view.Plain(a.ascii), Now: earlier(doc.Until, doc.Last)}
	grants, err := sorted(&o.as, view.GrantColumns(o.utc), pointers(doc.Grants))
	if lock == "" {
		grants, err = nil, nil
	}
	if err != nil {
		return err
	}
	columns := o.as
	if lock != "" {
		columns = listing{} // they are of the grants
	}
	events, err := sorted(&columns, view.PastEventColumns(o.utc), pointers(doc.Events))
	if err != nil {
		return err
	}
	switch {
	case lock != "" && (len(grants) > 0 || a.output == "csv"):
		if err := printList(a, &o.as, ctx, view.GrantColumns(o.utc), grants, func(g *view.GrantDoc) any { return g }); err != nil || a.output == "csv" {
			return err
		}
	case lock != "" && !saw:
		fmt.Fprintf(a.out, "locks were not recorded from %s to %s: the console records them, and `redlockctl guard --watch-locks`\n", view.Stamp(doc.Since, o.utc), view.Stamp(doc.Until, o.utc))
	case lock != "":
		fmt.Fprintf(a.out, "nobody was seen to hold %s from %s to %s\n", safetext.Escape(lock), view.Stamp(doc.Since, o.utc), view.Stamp(doc.Until, o.utc))
	}
	switch {
	case len(events) > 0 || a.output == "csv":
		if lock != "" {
			fmt.Fprintln(a.out)
		}
		if err := printList(a, &columns, ctx, view.PastEventColumns(o.utc), events, func(e *view.PastEventDoc) any { return e }); err != nil {
			return err
		}
	case lock == "" && (!doc.Since.Before(doc.Last) || !doc.First.Before(doc.Until)):
		fmt.Fprintf(a.out, "nothing was recorded from %s to %s\n", view.Stamp(doc.Since, o.utc), view.Stamp(doc.Until, o.utc))
	case lock == "":
		fmt.Fprintf(a.out, "nothing happened from %s to %s\n", view.Stamp(doc.Since, o.utc), view.Stamp(doc.Until, o.utc))
	}
	if a.output != "csv" && (doc.Since.Before(doc.First) || doc.Last.Add(time.Minute).Before(doc.Until)) {
		fmt.Fprintf(a.errOut, "redlockctl: recorded from %s to %s\n", view.Stamp(doc.First, o.utc), view.Stamp(doc.Last, o.utc))
	}
	return nil
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func (a *commandLine) reportCommand() *cobra.Command {
	var o historyOptions
	cmd := outputs(&cobra.Command{
		Use:   "report",
		Short: "One page on what happened, for a post-mortem",
		Long: `Reads what was recorded and writes one page: which nodes did not serve and for how long,
verdicts, findings, restarts and fences, what operators did, the locks that were held
longest and granted most often, and counts by the patterns of names.

With -o html it is a page of its own that loads nothing, light or dark as the reader has it.`,
		Args:    noArgs,
		Example: `redlockctl report --since "yesterday 22:00" --until 04:00 -o html >night.html`,
		RunE: a.run(func(context.Context, []string) error {
			in, err := o.asked()
			if err != nil {
				return err
			}
			r, err := a.openRecord(o.file)
			if err != nil {
				return err
			}
			defer r.Close()
			page, err := report.Make(r, in, o.utc)
			if err != nil {
				return err
			}
			if a.output == "html" {
				return page.HTML(a.out)
			}
			return page.Text(a.out)
		}),
	}, "table", "html")
	o.add(cmd.Flags())
	return cmd
}
