package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"redlockctl/internal/app"
	"redlockctl/internal/audit"
	"redlockctl/internal/record"
	"redlockctl/internal/safetext"
	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/monitor/glob"
)

// completeTime bounds how long a person waits for names after pressing tab.
const completeTime = time.Second

// mostCompleted bounds how many names are offered.
const mostCompleted = 500

func (a *commandLine) completeClusters(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	set, _, err := a.loadAll()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return set.Names(), cobra.ShellCompDirectiveNoFileComp
}

// completeLocks offers the locks that are there now, with what they are, but for those that
// are named already. It says nothing about what goes wrong: a shell that completes is no
// place for that.
func (a *commandLine) completeLocks(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	const none = cobra.ShellCompDirectiveNoFileComp
	cfg, err := a.load()
	if err != nil {
		return nil, none
	}
	ctx := cmd.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	s, err := app.Look(ctx, cfg, app.Aim{Match: glob.Prefix(begun), Most: completeTime, Locks: true})
	if err != nil {
		return nil, none
	}
	return slices.DeleteFunc(lockNames(s, begun, slices.Contains(a.args, "--")), func(c cobra.Completion) bool {
		name, _, _ := strings.Cut(c, "\t")
		return slices.Contains(args, name)
	}), none
}

// completeFilter offers the fields of a filter of locks and their values to the shell. Nodes are
// those of the configuration; locks are looked at only where their owner or library is asked for.
func (a *commandLine) completeFilter(cmd *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	ctx := cmd.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	return filterWords(monitor.FilterOffers(begun, func(field string) []string {
		cfg, err := a.load()
		if err != nil {
			return nil
		}
		if field == "node" {
			return app.NodeNames(cfg)
		}
		s, err := app.Look(ctx, cfg, app.Aim{Most: completeTime, Locks: true})
		if err != nil {
			return nil
		}
		return monitor.FilterValues(s.Locks.All(), s.Nodes)(field)
	}))
}

func (a *commandLine) completeAuditFilter(_ *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return filterWords(view.AuditLanguage.Offers(begun, func(field string) []string {
		path, err := a.auditPath()
		if err != nil {
			return nil
		}
		kept, err := audit.Latest(path, mostCompleted, func(audit.Entry) bool { return true })
		if err != nil {
			return nil
		}
		return view.AuditValues(kept)(field)
	}))
}

func (a *commandLine) completePastFilter(_ *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return filterWords(view.PastEventLanguage.Offers(begun, func(field string) []string {
		r, err := a.openRecord("")
		if err != nil {
			return nil
		}
		defer r.Close()
		now := time.Now()
		events, err := r.Happened("", record.Span{Since: now.Add(-24 * time.Hour), Until: now}, mostCompleted)
		if err != nil {
			return nil
		}
		return view.PastEventValues(app.PastEvents(events))(field)
	}))
}

// filterWords are filters as a shell is offered them: without those that it would read
// otherwise, and with no blank behind them, since more may follow.
func filterWords(offers []string) ([]cobra.Completion, cobra.ShellCompDirective) {
	offers = slices.DeleteFunc(offers, func(o string) bool { return strings.ContainsAny(o, "\t\n'`$;&(){}[]#") })
	return offers[:min(len(offers), mostCompleted)], cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// lockNames are the locks whose names begin so. Those that a shell cannot take in
// as one word that is shown as it is are left out: nobody completes them blindly.
// Those that begin with - are offered behind -- alone, before which they are flags.
func lockNames(s *monitor.Snapshot, begun string, dashed bool) []cobra.Completion {
	var names []cobra.Completion
	for l := range s.Locks.From(begun) {
		name := l.Key.Raw()
		if !strings.HasPrefix(name, begun) || len(names) == mostCompleted {
			break
		}
		if strings.HasPrefix(name, "-") && !dashed {
			continue
		}
		// Without what shows itself otherwise, or ends a word or a line.
		if !safetext.New(name).Clean() || strings.ContainsAny(name, " \t\n\"'`$;&|<>(){}[]*?!#~") {
			continue
		}
		about := l.State.String()
		if end := l.HeldUntil(); !end.IsZero() {
			about += ", ends in " + view.Left(end.Sub(s.At))
		}
		names = append(names, cobra.CompletionWithDesc(name, about))
	}
	return names
}

// completeNodes offers the configured nodes to the shell, but for those that are named
// already; none is contacted.
func (a *commandLine) completeNodes(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	cfg, err := a.load()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return slices.DeleteFunc(app.NodeNames(cfg), func(name string) bool { return slices.Contains(args, name) }), cobra.ShellCompDirectiveNoFileComp
}

// firstArgument is a completion for the first argument alone; behind it the shell does as it is told.
func firstArgument(complete cobra.CompletionFunc, behind cobra.ShellCompDirective) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, behind
		}
		return complete(cmd, args, begun)
	}
}
