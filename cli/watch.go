package cli

import (
	"context"
	"fmt"
	"io"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"redlockctl/cli/app"
	"redlockctl/cli/exit"
	"redlockctl/cli/flags"
	"redlockctl/cli/printer"
	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/monitor/finding"
	"redlockctl/monitor/observe"
	"redlockctl/server/safetext"
	"redlockctl/tui/styles"
)

// kindsHelp lists the kinds of events for the help.
func kindsHelp() string {
	locks, nodes, others := monitor.EventKinds()
	var b strings.Builder
	for _, of := range []struct {
		name  string
		kinds []string
	}{{"of locks", locks}, {"of nodes", nodes}, {"others", append(others, "missed")}} {
		lines := styles.Wrap(strings.Join(of.kinds, ", "), 74, 0)
		fmt.Fprintf(&b, "  %-10s%s\n", of.name, strings.Join(lines, "\n            "))
	}
	return b.String()
}

// watchStateJSON is the first line: the state at the beginning.
type watchStateJSON struct {
	At  time.Time `json:"at"`
	Seq uint64    `json:"seq"` // of the last event before; 0: there was none
	view.ClusterDoc
	Nodes    []watchNodeJSON   `json:"nodes"`
	Locks    map[string]int    `json:"locks"` // by state, and "total"
	Findings []view.FindingDoc `json:"findings"`
}

type watchNodeJSON struct {
	Name  safetext.Text `json:"name"`
	Addr  safetext.Text `json:"addr"`
	State string        `json:"state"`
	Locks int           `json:"locks"`
}

// watchMissedJSON says how many events were lost because the reader was too slow or too
// many came at once.
type watchMissedJSON struct {
	At    time.Time `json:"at"`
	Count uint64    `json:"count"`
}

func (a *commandLine) watchCommand() *cobra.Command {
	var filter string
	var span time.Duration
	var columns []string
	cmd := flags.Outputs(&cobra.Command{
		Use:   "watch",
		Short: "Events as they happen, a line for each, until interrupted",
		Long: `Prints the present state with the findings that are open, and then a line for each event of
locks, nodes, clocks and findings. Nothing is changed, and it costs the masters no more than the console.

--columns chooses columns; with -o csv they are fields of JSON, without the first line.

With --output jsonl (or json) each line is a JSON object with "schema", "kind",
"at" (RFC 3339), "seq", "level" (info, notice, alarm), "text", and "node" or
"key" where it concerns one. A restart and a wipe of data also have
"locks_lost_copy", "locks_bare_majority", "locks_lost_majority" and "held_until",
"locks_lost_revocation" (of revoked ones), "loaded_from_disk", "locks" (the first
names) and "rejoins" (when). "part" is true
for what such a line tells too: the table leaves that out, unless --filter chooses
locks. The kinds:

  state     the first line: cluster, nodes, locks by state, findings
` + kindsHelp() + `
"own clock" is that of this machine: it was set, or the machine stood still; "missed" says
with "count" how many events could not be kept for a reader that was too slow, and
"missed grants" how many locks were gone before they could be read.

The first extension of a lock is reported, then one every ten seconds with the number of
extensions, and at its end those since then. The audit log of this machine says who
force-released or revoked a lock; if that was done on another machine, the event is
"released". Split and no TTL are reported when they have lasted for a moment.

Further kinds may come. A filter chooses locks, by the terms of "redlockctl locks"
(that of history chooses events); what concerns no lock is shown in any case. It ends at SIGINT, SIGTERM or SIGHUP,
after --for, or when nobody reads any more; exit code 0 in each case.`,
		Example: "redlockctl watch\nredlockctl watch -o jsonl --filter job: | jq -r 'select(.level == \"alarm\").text'",
		Args:    flags.NoArgs,
		RunE: a.run(func(ctx context.Context, _ []string) error {
			f, err := flags.Filter(filter, nil)
			if err != nil {
				return err
			}
			chosen := view.EventColumns()
			if len(columns) > 0 {
				if chosen, err = view.Choose(chosen, columns); err != nil {
					return exit.Usagef("--columns: %w", err)
				}
			}
			cfg, err := a.load()
			if err != nil {
				return err
			}
			// A reader that is gone is the normal end of a pipe.
			signal.Ignore(syscall.SIGPIPE)
			defer signal.Reset(syscall.SIGPIPE)
			if span > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, span)
				defer cancel()
			}
			return app.Watch(ctx, cfg, app.Aim{}, func(mon *observe.Monitor) error {
				return a.watch(ctx, mon, f, chosen)
			})
		}),
	}, "table", "text", "json", "jsonl", "csv")
	f := cmd.Flags()
	f.StringVar(&filter, "filter", "", "only events of locks that these terms choose, and those of no lock: a part of the name, state:WORD, lib:PART, …")
	_ = cmd.RegisterFlagCompletionFunc("filter", a.completeFilter)
	flags.Columns(cmd, &columns, view.Heads(view.EventColumns()))
	f.DurationVar(&span, "for", 0, "end after this time (0: never)")
	return cmd
}

func (a *commandLine) watch(ctx context.Context, mon *observe.Monitor, f monitor.Filter, columns []view.Column[*monitor.Event]) error {
	if err := f.Check(mon.Snapshot().Nodes); err != nil {
		return exit.Usage(err)
	}
	first, err := app.Settled(ctx, mon)
	if err != nil {
		return nil // interrupted before anything was to be said
	}
	w := &watcher{out: a.Out, json: a.Output == "json" || a.Output == "jsonl", filter: f, columns: columns, ctx: a.ViewContext(first)}
	if a.Output == "csv" {
		w.csv = view.NewCSV(a.Out, columns, func(e *monitor.Event) any { return view.DocOfEvent(e) })
	}
	w.begin(first)
	gone := time.NewTicker(time.Second)
	defer gone.Stop()
	for w.err == nil && ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-gone.C:
			if a.Unread() {
				return nil
			}
		case <-mon.Changed(w.last.Version):
			s := mon.Snapshot()
			events, missed := mon.EventsSince(w.seq)
			w.take(s, events, missed)
		}
	}
	if printer.Gone(w.err) {
		return nil
	}
	return w.err
}

// watcher writes each event of the snapshots once. Its writes may block; the monitor does
// not wait for it.
type watcher struct {
	out     io.Writer
	json    bool
	csv     *view.CSVWriter[*monitor.Event] // nil without -o csv
	columns []view.Column[*monitor.Event]
	ctx     *view.Context
	filter  monitor.Filter
	last    *monitor.Snapshot
	seq     uint64
	err     error // of the last write: the reader is gone
}

func (w *watcher) begin(s *monitor.Snapshot) {
	w.last = s
	if n := len(s.Events); n > 0 {
		w.seq = s.Events[n-1].Seq
	}
	if w.csv != nil {
		w.err = w.csv.Flush()
		w.opened(s)
		return
	}
	if !w.json {
		c := s.Cluster
		w.print("%s  watching cluster %s: %s, %d of %d nodes serve, locks: %s, findings: %d\n", s.At.Format("15:04:05"),
			safetext.Escape(c.Name), c.Verdict, c.Serving, c.N, view.LocksText(s), len(s.Findings))
		w.opened(s)
		return
	}
	nodes := view.Docs(s.Nodes, func(n monitor.Node) watchNodeJSON {
		return watchNodeJSON{safetext.New(n.Name), safetext.New(n.Addr), n.State.String(), n.Locks}
	})
	w.line("state", watchStateJSON{s.At, w.seq, view.DocOfCluster(s), nodes, view.LockCounts(s), view.DocsOfFindings(view.Rows(s.Findings), s.At)})
}

// opened writes the findings that were open before.
func (w *watcher) opened(s *monitor.Snapshot) {
	for i := range s.Findings {
		e := finding.Opened(&s.Findings[i])
		w.event(&e)
	}
}

// take writes the new events of s, and before them how many were lost.
func (w *watcher) take(s *monitor.Snapshot, events []monitor.Event, missed uint64) {
	before := w.last
	w.last = s
	if missed > 0 {
		w.seq += missed
		w.missed(missed, s.At)
	}
	for _, e := range events {
		if w.err != nil {
			return
		}
		w.seq = e.Seq
		if w.wants(e, before, s) {
			w.event(&e)
		}
	}
}

// wants reports whether the filter matches the event's lock as it is, as it was just
// before, or, if it was never seen, by its name.
func (w *watcher) wants(e monitor.Event, before, s *monitor.Snapshot) bool {
	if e.Key.Empty() || w.filter.Empty() {
		return true
	}
	f := w.filter.At(s.At)
	l := s.Locks.Get(e.Key.Raw())
	if l == nil {
		l = before.Locks.Get(e.Key.Raw())
	}
	if l == nil {
		gone := monitor.Lock{Key: e.Key, Copies: monitor.PackCopies(make([]monitor.Copy, len(s.Nodes))...)}.Timed(e.At, time.Time{})
		l = &gone
	}
	return f.Match(l, s.Nodes)
}

func (w *watcher) event(e *monitor.Event) {
	switch {
	case w.json:
		w.line("", view.DocOfEvent(e))
	case w.csv != nil:
		w.csv.Add(e)
		w.err = w.csv.Flush()
	case e.Part && w.filter.Empty(): // the line of its cause says it
	default:
		w.print("%s\n", view.Line(w.ctx, w.columns, e))
	}
}

func (w *watcher) missed(n uint64, at time.Time) {
	if w.json {
		w.line("missed", watchMissedJSON{at, n})
		return
	}
	text := view.Plural(int(n), "event was", "events were") + " not kept: too many at once"
	w.event(&monitor.Event{At: at, Level: monitor.LevelNotice, Kind: "missed", Text: safetext.New(text)})
}

func (w *watcher) print(format string, args ...any) {
	if w.err == nil {
		_, w.err = fmt.Fprintf(w.out, format, args...)
	}
}

func (w *watcher) line(kind string, doc any) {
	if w.err == nil {
		w.err = printer.Line(w.out, kind, doc)
	}
}
