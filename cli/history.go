package cli

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"redlockctl/cli/app"
	"redlockctl/cli/exit"
	"redlockctl/cli/flags"
	"redlockctl/cli/printer"
	"redlockctl/internal/audit"
	"redlockctl/internal/record"
	"redlockctl/internal/report"
	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/monitor/filter"
	"redlockctl/server/safetext"
)

// historyJSON is the document of history.
type historyJSON struct {
	Cluster safetext.Text `json:"cluster"`
	Since   time.Time     `json:"since"`
	Until   time.Time     `json:"until"`
	// First and Last are the bounds of the whole record.
	First time.Time `json:"recorded_since"`
	Last  time.Time `json:"recorded_until"`
	// LocksRecorded: locks were recorded at some moment of the span.
	LocksRecorded bool `json:"locks_recorded"`
	view.CoverageDoc
	Grants []view.GrantDoc     `json:"grants"` // of the lock that was named
	Events []view.PastEventDoc `json:"events"`
	// Left out: there are more than the limit.
	GrantsLeft int `json:"grants_left_out"`
	EventsLeft int `json:"events_left_out"`
}

// mostHistory is how many holders and events are listed.
const mostHistory = 1000

// historyOptions are the flags of history.
type historyOptions struct {
	since, until, node, file, filter string

	utc  bool
	most int
	as   flags.Listing
}

func (a *commandLine) historyCommand() *cobra.Command {
	var o historyOptions
	cmd := o.as.Add(flags.Outputs(&cobra.Command{
		Use:   "history [LOCK]",
		Short: "What happened to a lock, a node, or the cluster",
		Long: `Reads what the guard's daemon or the console has recorded; no master is contacted.

With a LOCK it lists each holder: from when to when, how often it extended the lock, how
its grant ended, the beginning of the token's SHA-256 (as in the audit log), and who it
was, if the token says so. OVERLAP: a grant began before the previous one ended, or would
have expired if it was force-released, so two clients may have relied on the lock. The
events of the lock follow.

With --node it lists the states and events of that node. Without either, it lists those
of the cluster: verdict, nodes, restarts, findings, what operators did.

A moment is written "03:12" (the last one), "yesterday 03:12", "2026-01-31 15:04", RFC 3339
or "2h ago". With a LOCK, --since and --until may be the same: who held it then. What is
recorded is kept for a week unless the configuration says otherwise.

A filter chooses events (that of watch and locks chooses locks) by its terms, all of which
must hold: a part of what is told, * globs, ~regular expressions, kind:PART, node:NAME,
lock:PART, age<1h; with | between values one of them (kind:restart|fenced), with ! before a
term the opposite. All holders of LOCK are listed.

--columns, --sort and -o csv apply to the holders if a LOCK is named, otherwise to the
events.`,
		Args:              flags.OptionalName("lock"),
		ValidArgsFunction: cobra.NoFileCompletions,
		Example: `redlockctl history orders:nightly --since "yesterday 03:00"
redlockctl history orders:nightly --since 03:12 --until 03:12
redlockctl history --since 03:00 --until 03:30 -o csv
redlockctl history --filter "kind:restart|fenced node:n2"`,
		RunE: a.run(func(_ context.Context, args []string) error {
			lock := ""
			if len(args) > 0 {
				lock = args[0]
				if o.node != "" {
					return exit.Usagef("a lock and --node: give one of them")
				}
			}
			return a.history(lock, o)
		}),
	}, "table", "wide", "json", "jsonl"), view.Heads(view.PastEventColumns(false)), view.Heads(view.GrantColumns(false)))
	f := cmd.Flags()
	o.add(f)
	f.StringVar(&o.node, "node", "", "of this node alone")
	f.StringVar(&o.filter, "filter", "", "only events that these terms choose: a part of what is told, kind:PART, node:NAME, lock:PART, …")
	_ = cmd.RegisterFlagCompletionFunc("filter", a.completePastFilter)
	f.IntVar(&o.most, "limit", mostHistory, "the latest holders and events at most; unless it is given, no event of a node, the cluster or an action is left out")
	return cmd
}

// asked returns the span that the flags name; of a lock it may be a moment.
func (o historyOptions) asked(lock string) (in record.Span, err error) {
	now := time.Now()
	if o.utc {
		now = now.UTC()
	}
	if in.Since, err = view.ParseMoment(o.since, now); err != nil {
		return in, exit.Usagef("--since %w", err)
	}
	if in.Until, err = view.ParseEnd(o.until, in.Since, now); err != nil {
		return in, exit.Usagef("--until %w", err)
	}
	switch moment := o.since == o.until || in.Since.Equal(in.Until); {
	case moment && lock == "":
		return in, exit.Usagef("--since and --until are one moment: redlockctl replay --at %q shows everything at that moment, and history LOCK who held a lock then", o.since)
	case moment:
		in.Until = in.Since.Add(oneMoment)
	}
	if !in.Since.Before(in.Until) {
		return in, exit.Usagef("--since %s is not before --until %s", view.Stamp(in.Since, o.utc), view.Stamp(in.Until, o.utc))
	}
	return in, nil
}

// oneMoment is the length of a moment: the record counts in milliseconds.
const oneMoment = time.Millisecond

// spanText says which time a history is about.
func (o historyOptions) spanText(doc *historyJSON) string {
	if doc.Until.Sub(doc.Since) == oneMoment {
		return "at " + view.Stamp(doc.Since, o.utc)
	}
	return "from " + view.Stamp(doc.Since, o.utc) + " to " + view.Stamp(doc.Until, o.utc)
}

func (o *historyOptions) add(f *pflag.FlagSet) {
	f.StringVar(&o.since, "since", "24h ago", "from when on")
	f.StringVar(&o.until, "until", "now", "until when")
	f.StringVar(&o.file, "file", "", "a record that was copied from elsewhere, in place of the configuration's")
	f.BoolVar(&o.utc, "utc", false, "times in UTC, not in the local zone")
}

func (a *commandLine) history(lock string, o historyOptions) error {
	in, err := o.asked(lock)
	switch {
	case err != nil:
		return err
	case o.most < 1:
		return exit.Usagef("--limit %d is below 1", o.most)
	}
	f, err := flags.Terms(&view.PastEventLanguage, o.filter, nil)
	if err != nil {
		return err
	}
	r, err := a.openRecord(o.file)
	if err != nil {
		return err
	}
	defer r.Close()
	names, err := r.Nodes()
	if err != nil {
		return err
	}
	if err := f.Check(func(field string) []string { return map[string][]string{"node": names}[field] }); err != nil {
		return exit.Usage(err)
	}
	if lock != "" && a.Output == "csv" && !f.Empty() {
		return exit.Usagef("--filter chooses events, and -o csv with a LOCK lists its holders: leave one of them out")
	}
	doc, err := historyOf(r, lock, o.node, in, f, o.most)
	if err != nil {
		return err
	}
	if o.node != "" && len(doc.Events) == 0 {
		if !slices.Contains(names, o.node) {
			return exit.Usagef("--node: the record has no node %q (have: %s)", o.node, safetext.Escape(strings.Join(names, ", ")))
		}
	}
	c, err := r.Coverage(in)
	if err != nil {
		return err
	}
	doc.CoverageDoc, doc.LocksRecorded = app.PastCoverage(c), len(c.Locks) > 0
	switch a.Output {
	case "json":
		return a.JSON("history", doc)
	case "jsonl":
		for _, g := range doc.Grants {
			if err := a.Line("recorded grant", g); err != nil {
				return err
			}
		}
		for _, e := range doc.Events {
			if err := a.Line("recorded event", e); err != nil {
				return err
			}
		}
		return nil
	}
	return a.tellHistory(doc, lock, f.Hint(), o)
}

// historyOf collects the history, oldest first, with the events that match a filter.
func historyOf(r *record.Reader, lock, node string, in record.Span, f filter.Filter[*view.PastEventDoc], most int) (doc historyJSON, err error) {
	doc = historyJSON{Cluster: safetext.New(r.Cluster.Name), Since: in.Since, Until: in.Until, First: r.Cluster.First, Last: r.Cluster.Last, Grants: []view.GrantDoc{}}
	if lock != "" {
		grants, err := r.GrantsOf(lock, in, math.MaxInt32)
		if err != nil {
			return doc, err
		}
		doc.GrantsLeft = max(0, len(grants)-most)
		doc.Grants = app.PastGrants(grants[doc.GrantsLeft:])
	}
	var events []record.Event
	if lock != "" {
		events, err = r.Events("", lock, in, math.MaxInt32)
	} else {
		events, err = r.Happened(node, in)
	}
	now := time.Now()
	if !f.Empty() {
		events = slices.DeleteFunc(events, func(e record.Event) bool { return !f.Match(&app.PastEvents([]record.Event{e})[0], now) })
	} else if lock == "" {
		events = record.Fold(events) // a filter shows each
	}
	if most == mostHistory {
		events, doc.EventsLeft = record.Latest(events, most)
	} else {
		doc.EventsLeft = max(0, len(events)-most)
		events = events[doc.EventsLeft:]
	}
	doc.Events = app.PastEvents(events)
	return doc, err
}

// tellHistory prints the holders of a lock and the events as tables. hint is printed if
// the filter matches nothing.
func (a *commandLine) tellHistory(doc historyJSON, lock, hint string, o historyOptions) error {
	ctx := &view.Context{Glyphs: a.Glyphs(), Now: slices.MinFunc([]time.Time{doc.Until, doc.Last}, time.Time.Compare)}
	columns := o.as
	if lock != "" {
		columns = flags.Listing{} // they are of the grants
		if err := a.tellGrants(ctx, doc, lock, o); err != nil || a.Output == "csv" {
			return err
		}
	}
	events, err := flags.Sorted(&columns, view.PastEventColumns(o.utc), view.Rows(doc.Events))
	if err != nil {
		return err
	}
	span := o.spanText(&doc)
	covered := len(doc.Recorded) > 0 || len(events) > 0 // a record that has just begun has a length of zero
	switch {
	case len(events) > 0 || a.Output == "csv":
		if lock != "" {
			fmt.Fprintln(a.Out)
		}
		if err := printer.List(a.Printer, columns.Columns, ctx, view.PastEventColumns(o.utc), events, func(e *view.PastEventDoc) any { return e }); err != nil {
			return err
		}
	case lock == "" && !covered:
		fmt.Fprintf(a.Out, "nothing was recorded %s\n", span)
	case o.filter != "":
		of, elsewhere := "", ""
		if lock == "" && o.node == "" {
			of, elsewhere = " of the cluster, a node or an action", "; most events of locks are in history LOCK"
		}
		fmt.Fprintf(a.Out, "no event%s %s matches the filter%s\n", of, span, elsewhere)
		if hint != "" {
			a.Note("filter: %s", safetext.Printable(hint))
		}
	case lock == "":
		fmt.Fprintf(a.Out, "nothing happened %s\n", span)
	}
	if lock == "" && o.node == "" && covered && !doc.LocksRecorded {
		a.Note("%s", unrecordedLocks(doc, o))
	}
	if a.Output == "csv" {
		return nil
	}
	for _, left := range []struct {
		n    int
		what string
	}{{doc.GrantsLeft, "older holder"}, {doc.EventsLeft, "older event"}} {
		if left.n > 0 {
			fmt.Fprintf(a.Out, "%s left out: --limit %d shows all\n", view.Plural(left.n, left.what), left.n+o.most)
		}
	}
	if slices.ContainsFunc(doc.Events, func(e view.PastEventDoc) bool { return e.Count > 0 }) {
		fmt.Fprintln(a.Out, "many events of locks are one line: --filter kind:KIND shows each")
	}
	gaps := doc.CoverageDoc
	if o.node != "" || !doc.LocksRecorded {
		gaps.LockGaps = nil // of no interest, or said above
	}
	for _, line := range gaps.Lines(o.utc) {
		fmt.Fprintln(a.Out, line)
	}
	return nil
}

func (a *commandLine) tellGrants(ctx *view.Context, doc historyJSON, lock string, o historyOptions) error {
	grants, err := flags.Sorted(&o.as, view.GrantColumns(o.utc), view.Rows(doc.Grants))
	switch {
	case err != nil:
		return err
	case len(grants) > 0 || a.Output == "csv":
		return printer.List(a.Printer, o.as.Columns, ctx, view.GrantColumns(o.utc), grants, func(g *view.GrantDoc) any { return g })
	case !doc.LocksRecorded:
		fmt.Fprintln(a.Out, unrecordedLocks(doc, o))
	default:
		while := ""
		if len(doc.LockGaps) > 0 {
			while = ", while locks were recorded"
		}
		fmt.Fprintf(a.Out, "nobody was seen to hold %s %s%s\n", safetext.Escape(lock), o.spanText(&doc), while)
	}
	return nil
}

// unrecordedLocks says that no locks were recorded in that time, and how to record them.
func unrecordedLocks(doc historyJSON, o historyOptions) string {
	return fmt.Sprintf("locks were not recorded %s: %s", o.spanText(&doc), monitor.AdviceRecordLocks)
}

// mostKept is the largest number of kept locks that were lost in a report.
const mostKept = 100

func (a *commandLine) reportCommand() *cobra.Command {
	var o historyOptions
	cmd := flags.Outputs(&cobra.Command{
		Use:   "report",
		Short: "One page on what happened, for a post-mortem",
		Long: `Reads what was recorded and writes one page: which nodes did not serve and for how long,
verdicts, findings, restarts and fences, what operators did, overlaps (two clients relied
on one lock), the locks that were lost while this program kept them, those that lost their
majority, those that were held longest and granted most often, and counts by the patterns
of names. Moments are written as for history.

With -o html it is a page of its own that loads nothing, light or dark as the reader has it.`,
		Args:    flags.NoArgs,
		Example: `redlockctl report --since "yesterday 22:00" --until 04:00 -o html >night.html`,
		RunE: a.run(func(context.Context, []string) error {
			in, err := o.asked("")
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
			if log, err := a.auditPath(); err == nil && o.file == "" {
				page.Kept, _ = audit.Latest(log, mostKept, func(e audit.Entry) bool {
					return report.KeptAndLost(e) && e.Cluster == r.Cluster.Name && !e.Time.Before(in.Since) && e.Time.Before(in.Until)
				})
			}
			if a.Output == "html" {
				return page.HTML(a.Out)
			}
			return page.Text(a.Out)
		}),
	}, "table", "html")
	o.add(cmd.Flags())
	return cmd
}
