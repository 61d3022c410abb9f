package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"redlockctl/cli/exit"
	"redlockctl/cli/flags"
	"redlockctl/internal/audit"
	"redlockctl/internal/view"
	"redlockctl/monitor/filter"
	"redlockctl/server/safetext"
)

// auditJSON is the document of audit show.
type auditJSON struct {
	Path    safetext.Text   `json:"path"`
	Records []view.AuditDoc `json:"records"`
}

// verifyJSON is the document of audit verify.
type verifyJSON struct {
	Intact bool          `json:"intact"`
	Path   safetext.Text `json:"path"`
	audit.Report
}

// errNotIntact is returned when the chain of the audit log is broken.
var errNotIntact = errors.New("the audit log is not intact")

// auditFilter chooses lines of the log.
type auditFilter struct {
	since    time.Time
	until    time.Time
	resource string
	act      string
	cluster  string
	tokenSHA string
	terms    filter.Filter[*audit.Entry]
	now      time.Time // ages are relative to it
}

func (f auditFilter) match(e audit.Entry) bool {
	switch {
	case !f.since.IsZero() && e.Time.Before(f.since):
		return false
	case !f.until.IsZero() && e.Time.After(f.until):
		return false
	case f.resource != "" && e.Target != f.resource && safetext.Escape(e.Target) != f.resource:
		return false
	case f.act != "" && !strings.EqualFold(e.Act, f.act):
		return false
	case f.cluster != "" && e.Cluster != f.cluster:
		return false
	}
	return (f.tokenSHA == "" || e.TokenSHA == f.tokenSHA) && f.terms.Match(&e, f.now)
}

func (a *commandLine) auditShowCommand() *cobra.Command {
	var from, to, terms string
	var f auditFilter
	var last int
	var tok flags.Token
	var as flags.Listing
	cmd := as.Add(flags.Outputs(&cobra.Command{
		Use:   "show",
		Short: "What was done: when, by whom, with what outcome",
		Long: `Prints the audit log, the oldest line first. Each action has two lines of one id: the
intent, which was on disk before anything was sent, and the outcome, done or
failed. An intent alone was cut short: by a crash, or because it still goes on.

A token is never in the log, only its hash; with --token the lines of one that is
known are found. A filter chooses by its terms as the page of the console does: a part of
what is told, * globs, ~regular expressions, actor:PART, act:PART, target:PART,
phase:WORD (intent, done, failed), reason:PART, cluster:PART, age<1h; with | between values
one of them, with ! before a term the opposite. --columns chooses columns, --sort
sorts by one. "audit verify" checks the log for tampering.`,
		Example: `redlockctl audit show --since 1h
redlockctl audit show --filter "phase:failed actor:alice"
redlockctl audit show --act force-release -o jsonl`,
		Args: flags.NoArgs,
		RunE: a.run(func(context.Context, []string) error {
			var err error
			if f.terms, err = flags.Terms(&view.AuditLanguage, terms, nil); err != nil {
				return err
			}
			f.now = time.Now()
			if from != "" {
				if f.since, err = view.ParseMoment(from, f.now); err != nil {
					return exit.Usagef("--since %w", err)
				}
			}
			if to != "" {
				if f.until, err = view.ParseEnd(to, f.since, f.now); err != nil {
					return exit.Usagef("--until %w", err)
				}
			}
			token, err := tok.Read(a.In)
			if err != nil {
				return err
			}
			f.tokenSHA, f.cluster = audit.TokenSHA(token), a.cluster
			path, err := a.auditPath()
			if err != nil {
				return err
			}
			return a.showAudit(path, f, last, &as)
		}),
	}, "table", "wide", "json", "jsonl"), view.Heads(view.AuditColumns()))
	fl := cmd.Flags()
	fl.StringVar(&from, "since", "", `only what is not older: "1h30m ago", or a time such as "yesterday 03:12" or "2026-01-31 15:04"`)
	fl.StringVar(&to, "until", "", `only what is not later: "10m ago", or a time`)
	fl.StringVar(&f.resource, "resource", "", "only actions on exactly this lock or node; a part of its name: --filter target:PART")
	fl.StringVar(&f.act, "act", "", "only exactly this action: acquire, release, revoke, force-release, node cordon, run, …")
	fl.StringVar(&terms, "filter", "", "only what these terms choose: a part of what is told, actor:PART, act:PART, phase:failed, …")
	_ = cmd.RegisterFlagCompletionFunc("filter", a.completeAuditFilter)
	fl.IntVar(&last, "last", 0, "at most this number of lines, the latest (0: all)")
	tok.Add(cmd)
	return cmd
}

func (a *commandLine) showAudit(path string, f auditFilter, last int, as *flags.Listing) error {
	kept, err := audit.Latest(path, last, f.match)
	if err != nil {
		return err
	}
	if kept, err = flags.Sorted(as, view.AuditColumns(), kept); err != nil {
		return err
	}
	switch {
	case a.Output == "jsonl":
		for _, e := range kept {
			if err := a.Line("audit line", view.DocOfAudit(e)); err != nil {
				return err
			}
		}
		return nil
	case a.Output == "json":
		return a.JSON("audit", auditJSON{Path: safetext.New(path), Records: view.Docs(kept, view.DocOfAudit)})
	case len(kept) == 0 && a.Output != "csv":
		said := "no line of the log matches"
		if f.since.IsZero() && f.until.IsZero() && f.resource+f.act+f.cluster+f.tokenSHA == "" && f.terms.Empty() {
			said = "nothing is logged"
		}
		fmt.Fprintln(a.Out, said)
		if hint := f.terms.Hint(); hint != "" {
			a.Note("filter: %s", safetext.Printable(hint))
		}
		return nil
	}
	return a.listAudit(as.Columns, kept)
}

func (a *commandLine) auditVerifyCommand() *cobra.Command {
	var opt audit.VerifyOptions
	cmd := &cobra.Command{
		Use:   "verify [FILE...]",
		Short: "Check the audit log for tampering",
		Long: `Each line of the log has the SHA-256 of the line before, and the last hash is in a
file beside it (".head"). This reveals lines that were changed, inserted, moved or
removed, and a missing end. Exit code 0 if the chain is intact, 1 if it is broken; the
lines are named.

Anyone who can write both files can forge a new chain. Note the printed hash somewhere
else and pass it to a later run with --contains: that proves that everything up to that
line is unchanged. An incomplete line after a crash does not break the chain.

If the log was rotated, name all files, the oldest first, or use --rotated if the older
ones are gone.`,
		Example: `redlockctl audit verify
redlockctl audit verify audit.jsonl.1 audit.jsonl
redlockctl audit verify --contains 5f70bf18a0860070`,
		Args: cobra.ArbitraryArgs,
		RunE: a.run(func(_ context.Context, files []string) error {
			if len(files) == 0 {
				path, err := a.auditPath()
				if err != nil {
					return err
				}
				files = []string{path}
			}
			done := a.Progress("reading the audit log")
			r, err := audit.Verify(files, opt)
			done()
			if errors.Is(err, audit.ErrHash) {
				return exit.Usagef("--contains: %w", err)
			} else if err != nil {
				return err
			}
			return a.printVerified(files[len(files)-1], r)
		}),
	}
	cmd.Flags().StringVar(&opt.Known, "contains", "", "hash of a line, or the first 16 digits of it, that must be in the chain")
	cmd.Flags().BoolVar(&opt.Rotated, "rotated", false, "the lines before the first file were rotated away")
	return cmd
}

func (a *commandLine) printVerified(path string, r audit.Report) error {
	if a.Output == "json" {
		if err := a.JSON("audit verify", verifyJSON{r.Intact(), safetext.New(path), r}); err != nil {
			return err
		}
	} else {
		word, tone := "intact", view.Good
		if !r.Intact() {
			word, tone = "BROKEN", view.Bad
		}
		fmt.Fprintf(a.Out, "%s: %s\n", safetext.Escape(path), a.Paint(word, tone))
		if r.Links > 0 {
			fmt.Fprintf(a.Out, "%s in the chain, numbers %d to %d\n", view.Plural(r.Links, "line"), r.First, r.Last)
			fmt.Fprintf(a.Out, "number %d has the hash %s\n", r.Last, r.Head)
		}
		for _, b := range r.Broken {
			fmt.Fprintf(a.Out, "  %s\n", safetext.Escape(b.String()))
		}
		for _, m := range r.Remarks {
			a.Note("note: %s", safetext.Printable(m.String()))
		}
	}
	if !r.Intact() {
		first := r.Broken[0]
		if n := len(r.Broken); n > 1 {
			return fmt.Errorf("%w, at %d places; the first: %s", errNotIntact, n, first)
		}
		return fmt.Errorf("%w: %s", errNotIntact, first)
	}
	return nil
}
