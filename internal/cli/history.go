package cli

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

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
	First  time.Time   `json:"recorded_since"`
	Last   time.Time   `json:"recorded_until"`
	Grants []grantLine `json:"grants,omitempty"` // of the lock that was named
	Events []eventLine `json:"events"`
}

func (historyJSON) kind() string { return "history" }

// grantLine is one holder's time with a lock.
type grantLine struct {
	Lock       safetext.Text  `json:"lock"`
	TokenSHA   string         `json:"token_sha256"` // its first 16 digits
	Owner      *safetext.Text `json:"owner,omitempty"`
	Library    string         `json:"library,omitempty"`
	Began      time.Time      `json:"began"`
	Partly     bool           `json:"partly,omitempty"` // it was there before it was recorded
	Until      time.Time      `json:"until,omitzero"`   // left out: no TTL
	Extensions int            `json:"extensions"`
	Extended   time.Time      `json:"last_extended,omitzero"`
	Ended      time.Time      `json:"ended,omitzero"` // left out: not seen to end
	How        string         `json:"how,omitempty"`
	Overlaps   bool           `json:"overlaps,omitempty"` // with the grant before it
}

func (grantLine) kind() string { return "recorded grant" }

// eventLine is something that happened: an event, a change of state, a finding.
type eventLine struct {
	At   time.Time      `json:"at"`
	Kind string         `json:"event"`
	Node *safetext.Text `json:"node,omitempty"`
	Lock *safetext.Text `json:"lock,omitempty"`
	Text safetext.Text  `json:"text"`
}

func (eventLine) kind() string { return "recorded event" }

// historyOptions are the flags of history.
type historyOptions struct {
	since, until, node, file string
	utc                      bool
	most                     int
}

func (a *commandLine) historyCommand() *cobra.Command {
	var o historyOptions
	cmd := outputs(&cobra.Command{
		Use:   "history [LOCK]",
		Short: "What happened: to a lock, a node, or the cluster",
		Long: `Reads what the guard's daemon or the console has recorded; no master is contacted.

With a LOCK, each holder that it had: from when to when, how often it was extended, how
it ended, and by the beginning of the token's SHA-256 which one it was (as in the audit
log); who it was, where the token tells. OVERLAP stands where one began before the one
before it had ended: two believed that they held it. Behind that, the events of the lock.

With --node, the states and events of that node; else those of the cluster: its verdict,
nodes, restarts, findings that were opened and cleared, what operators did.

A moment is written "03:12" (the last one), "yesterday 03:12", "2026-01-31 15:04", RFC 3339
or "2h ago". What is recorded is kept for a week unless the configuration says otherwise.`,
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
	}, "table", "json", "jsonl", "csv")
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

// span is the time that the flags name.
func (o historyOptions) span() (in record.Span, err error) {
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
		return in, usageError{fmt.Errorf("--since %s is not before --until %s", stamp(in.Since, o.utc), stamp(in.Until, o.utc))}
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
	in, err := o.span()
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
	switch a.output {
	case "json":
		return printJSON(a.out, doc)
	case "jsonl":
		for _, g := range doc.Grants {
			if err := printLine(a.out, g); err != nil {
				return err
			}
		}
		for _, e := range doc.Events {
			if err := printLine(a.out, e); err != nil {
				return err
			}
		}
		return nil
	case "csv":
		return a.historyCSV(doc, lock != "")
	}
	a.tellHistory(doc, lock, o)
	return nil
}

// historyOf collects what happened, oldest first.
func historyOf(r *record.Reader, lock, node string, in record.Span, most int) (doc historyJSON, err error) {
	doc = historyJSON{Cluster: text(r.Cluster.Name), Since: in.Since, Until: in.Until, First: r.Cluster.First, Last: r.Cluster.Last, Events: []eventLine{}}
	if lock != "" {
		grants, err := r.GrantsOf(lock, in, most)
		if err != nil {
			return doc, err
		}
		for _, g := range grants {
			doc.Grants = append(doc.Grants, grantLine{
				Lock: text(g.Lock), TokenSHA: g.Token, Owner: optional(g.Owner), Library: g.Library, Began: g.Began, Partly: g.Partly, Until: g.Until,
				Extensions: g.Extensions, Extended: g.Extended, Ended: g.Ended, How: g.How, Overlaps: g.Overlaps,
			})
		}
	}
	events, err := r.Events(node, lock, in, most)
	if err != nil {
		return doc, err
	}
	for _, e := range events {
		doc.Events = append(doc.Events, eventLine{At: e.At, Kind: e.Kind, Node: optional(e.Node), Lock: optional(e.Lock), Text: text(e.Text)})
	}
	if lock != "" {
		return doc, nil
	}
	states, err := r.States(in)
	if err != nil {
		return doc, err
	}
	for _, s := range states {
		if node != "" && s.Node != node || s.Node == "" && node != "" {
			continue
		}
		what := s.State
		if s.Text != "" {
			what += ": " + s.Text
		}
		kind := "state"
		if s.Node == "" {
			kind = "verdict"
		}
		doc.Events = append(doc.Events, eventLine{At: s.At, Kind: kind, Node: optional(s.Node), Text: text(what)})
	}
	slices.SortStableFunc(doc.Events, func(a, b eventLine) int { return a.At.Compare(b.At) })
	doc.Events = doc.Events[max(0, len(doc.Events)-most):]
	return doc, nil
}

// stamp is a moment of any day, with its zone.
func stamp(t time.Time, utc bool) string {
	if t.IsZero() {
		return ""
	}
	if utc {
		return t.UTC().Format("2006-01-02 15:04:05.000Z")
	}
	return t.Local().Format("2006-01-02 15:04:05.000-07:00")
}

// historyCSV writes the grants of a lock, or else the events.
func (a *commandLine) historyCSV(doc historyJSON, grants bool) error {
	w := csv.NewWriter(a.out)
	at := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.UTC().Format(time.RFC3339Nano)
	}
	said := func(t *safetext.Text) string {
		if t == nil {
			return ""
		}
		return t.String()
	}
	if grants {
		_ = w.Write([]string{"lock", "token_sha256", "owner", "library", "began", "ended", "how", "extensions", "last_extended", "until", "overlaps"})
		for _, g := range doc.Grants {
			_ = w.Write([]string{g.Lock.String(), g.TokenSHA, said(g.Owner), g.Library, at(g.Began), at(g.Ended), g.How, strconv.Itoa(g.Extensions), at(g.Extended), at(g.Until), strconv.FormatBool(g.Overlaps)})
		}
	} else {
		_ = w.Write([]string{"at", "event", "node", "lock", "text"})
		for _, e := range doc.Events {
			_ = w.Write([]string{at(e.At), e.Kind, said(e.Node), said(e.Lock), e.Text.String()})
		}
	}
	w.Flush()
	return w.Error()
}

func (a *commandLine) tellHistory(doc historyJSON, lock string, o historyOptions) {
	if lock != "" {
		t := view.NewTable("BEGAN", "ENDED", "HELD", "HOW", "EXTENDED", "TOKEN SHA-256", "OWNER", "NOTE")
		for _, g := range doc.Grants {
			ended, held := "-", doc.Until.Sub(g.Began)
			if !g.Ended.IsZero() {
				ended, held = stamp(g.Ended, o.utc), g.Ended.Sub(g.Began)
			}
			owner, note, more := "-", view.Cell{}, ""
			if g.Owner != nil {
				owner = g.Owner.String()
			}
			if g.Partly {
				more = "≥ "
			}
			if g.Overlaps {
				note = view.Cell{Text: "OVERLAP", Tone: view.Bad}
			}
			t.Add(view.Cell{Text: stamp(g.Began, o.utc)}, view.Cell{Text: ended}, view.Cell{Text: more + view.Span(held)}, view.Cell{Text: g.How}, view.Cell{Text: strconv.Itoa(g.Extensions) + " ×"},
				view.Cell{Text: g.TokenSHA}, view.Cell{Text: a.clip(owner, 48)}, note)
		}
		if len(doc.Grants) == 0 {
			fmt.Fprintf(a.out, "nobody was seen to hold %s from %s to %s\n", safetext.Escape(lock), stamp(doc.Since, o.utc), stamp(doc.Until, o.utc))
		} else {
			printTable(a.out, t, a.color())
		}
		if len(doc.Events) > 0 {
			fmt.Fprintln(a.out)
		}
	}
	for _, e := range doc.Events {
		fmt.Fprintf(a.out, "%s  %-14s %s\n", stamp(e.At, o.utc), e.Kind, sentenceOf(e))
	}
	if len(doc.Events) == 0 && lock == "" {
		fmt.Fprintf(a.out, "nothing happened from %s to %s\n", stamp(doc.Since, o.utc), stamp(doc.Until, o.utc))
	}
	if doc.Since.Before(doc.First) || doc.Last.Add(time.Minute).Before(doc.Until) {
		fmt.Fprintf(a.errOut, "redlockctl: recorded from %s to %s\n", stamp(doc.First, o.utc), stamp(doc.Last, o.utc))
	}
}

// sentenceOf is an event with what it is about.
func sentenceOf(e eventLine) string {
	s := strings.TrimPrefix(e.Text.String(), "guard: ") // the kind says so
	switch {
	case e.Kind == "state":
		return e.Node.String() + " " + s
	case e.Lock != nil:
		return e.Lock.String() + ": " + s
	}
	return s
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
			in, err := o.span()
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
