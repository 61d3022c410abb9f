package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"redlockctl/cli/app"
	"redlockctl/internal/audit"
	"redlockctl/internal/record"
	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/monitor/glob"
	"redlockctl/monitor/observe"
	"redlockctl/server/safetext"
)

// completeTime bounds how long tab completion takes. After completeSoon it makes do with
// the locks that have been read.
const (
	completeTime = time.Second
	completeSoon = 120 * time.Millisecond
)

// someLocks waits for all locks, but not for long where some are known.
func someLocks(ctx context.Context, mon *observe.Monitor) *monitor.Snapshot {
	ctx, cancel := context.WithTimeout(ctx, completeTime)
	defer cancel()
	soon, stop := context.WithTimeout(ctx, completeSoon)
	defer stop()
	if mon.Assessed(soon) == nil {
		return mon.Snapshot()
	}
	for {
		s := mon.Snapshot()
		if s.Locks.Len() > 0 {
			return s
		}
		select {
		case <-mon.Changed(s.Version):
		case <-ctx.Done():
			return s
		}
	}
}

// mostCompleted bounds the number of completions.
const mostCompleted = 500

func (a *commandLine) completeClusters(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	set, _, err := a.loadAll()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return set.Names(), cobra.ShellCompDirectiveNoFileComp
}

// completeLocks completes the names of present locks, with their state, except those that
// are already on the line. It reports no errors: they would disturb the shell.
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
	var s *monitor.Snapshot
	err = app.Watch(ctx, cfg, app.Aim{Match: glob.Prefix(begun), Locks: true}, func(mon *observe.Monitor) error {
		s = someLocks(ctx, mon)
		return nil
	})
	if err != nil {
		return nil, none
	}
	return slices.DeleteFunc(lockNames(s, begun, slices.Contains(a.args, "--")), func(c cobra.Completion) bool {
		name, _, _ := strings.Cut(c, "\t")
		return slices.Contains(args, name)
	}), none
}

// completeFilter completes the fields and values of a lock filter. Names of nodes come from
// the configuration; locks are read only to complete an owner or a library.
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
		events, err := r.Happened("", record.Span{Since: now.Add(-24 * time.Hour), Until: now})
		if err != nil {
			return nil
		}
		return view.PastEventValues(app.PastEvents(events))(field)
	}))
}

// filterWords returns filters for shell completion: without those that need quoting, and
// without a space after them, because more may follow.
func filterWords(offers []string) ([]cobra.Completion, cobra.ShellCompDirective) {
	offers = slices.DeleteFunc(offers, func(o string) bool { return strings.ContainsAny(o, "\t\n'`$;&(){}[]#") })
	return offers[:min(len(offers), mostCompleted)], cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// lockNames returns the names of locks with a prefix, without those that a shell would
// have to quote or that are not shown unchanged. A name that begins with - is offered
// only after --, because otherwise it would be a flag.
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
		// Skip names that are shown escaped or need quoting.
		if !safetext.New(name).Clean() || strings.ContainsAny(name, " \t\n\"'`$;&|<>(){}[]*?!#~") {
			continue
		}
		about := l.State.String()
		if !s.Complete || s.Settled.IsZero() { // not all of its copies may have been read
			names = append(names, name)
			continue
		}
		if end := l.HeldUntil(); !end.IsZero() {
			about += ", ends in " + view.Left(end.Sub(s.At))
		}
		names = append(names, cobra.CompletionWithDesc(name, about))
	}
	return names
}

// completeNodes completes the names of configured nodes, except those that are already on
// the line. It contacts none of them.
func (a *commandLine) completeNodes(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	cfg, err := a.load()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return slices.DeleteFunc(app.NodeNames(cfg), func(name string) bool { return slices.Contains(args, name) }), cobra.ShellCompDirectiveNoFileComp
}

// firstArgument completes only the first argument; after it, the shell uses the given
// directive.
func firstArgument(complete cobra.CompletionFunc, behind cobra.ShellCompDirective) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, behind
		}
		return complete(cmd, args, begun)
	}
}
