package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"redlockctl/base/crash"
	"redlockctl/cli/app"
	"redlockctl/cli/exit"
	"redlockctl/cli/flags"
	"redlockctl/cli/printer"
	"redlockctl/internal/view"
	"redlockctl/redlock"
	"redlockctl/server/safetext"
)

// clustersJSON is the document of clusters status.
type clustersJSON struct {
	Clusters []view.ClusterRowDoc `json:"clusters"`
}

// fleetTime is the default --timeout for all clusters, so that one does not delay many.
const fleetTime = 3 * time.Second

func (a *commandLine) clustersStatusCommand() *cobra.Command {
	var again live
	var as flags.Listing
	cmd := as.Names(as.Add(again.add(&cobra.Command{
		Use:   "status",
		Short: "A row for each cluster: verdict, serving, locks, worst finding, guards, D",
		Long: `Looks at all clusters of the configuration at the same time and prints a row for
each. A cluster that does not answer does not delay the others: after 3 seconds
(--timeout) what is known is printed, and ≥ marks a count that is not complete. With
-o wide it also says why the verdict is not safe. "redlockctl --cluster
NAME status" looks at one.

Exit code 4 when a cluster has no quorum, else 7 when not everything could be read in
time, else 0. With --watch it is 0. In the console the page is :clusters.`,
		Example: "redlockctl clusters status --sort verdict\nredlockctl clusters status -o json | jq -r '.clusters[] | select(.verdict != \"safe\") | .cluster'",
		Args:    flags.NoArgs,
		RunE: a.run(func(ctx context.Context, _ []string) error {
			if err := again.check(); err != nil {
				return err
			}
			set, _, err := a.loadAll()
			if err != nil {
				return err
			}
			for _, cfg := range set.Clusters {
				a.ASCII = a.ASCII || cfg.TUI.ASCII
			}
			if again.most == 0 {
				again.most = fleetTime
			}
			return a.fleet(ctx, app.NewFleet(set), &again, &as)
		}),
	}), view.Heads(view.ClusterColumns())))
	cmd.Flags().Lookup("timeout").Usage = "after this time, show what is known; default 3s"
	return cmd
}

func (a *commandLine) fleet(ctx context.Context, f *app.Fleet, again *live, as *flags.Listing) error {
	run, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	crash.Go(func() { defer close(ended); f.Run(run) })
	defer func() { stop(); <-ended }()
	if err := f.Decided(ctx, again.most); err != nil {
		return err
	}
	if !again.set() {
		return a.showClusters(f.Rows(), as)
	}
	return a.repeat(ctx, again.every, func() error { return a.showClusters(f.Rows(), as) })
}

// showClusters prints the clusters; standard error gets what is missing.
func (a *commandLine) showClusters(rows []view.ClusterRow, as *flags.Listing) error {
	sortedRows, err := flags.Sorted(as, view.ClusterColumns(), view.Rows(rows))
	if err != nil {
		return err
	}
	if as.Quiet {
		for _, r := range sortedRows {
			a.Names(r.Name)
		}
		return nil
	}
	printed, err := a.Document("clusters", clustersJSON{view.Docs(sortedRows, view.DocOfClusterRow)})
	if err == nil && !printed {
		ctx := &view.Context{Glyphs: a.Glyphs(), Now: time.Now()}
		err = printer.List(a.Printer, as.Columns, ctx, view.ClusterColumns(), sortedRows, func(r *view.ClusterRow) any { return view.DocOfClusterRow(r) })
	}
	if err != nil {
		return err
	}
	var unread []string
	down := false
	for _, r := range sortedRows {
		down = down || !r.Quorum()
		if r.Snap == nil || !r.Snap.Complete {
			unread = append(unread, safetext.Printable(r.Name))
		}
	}
	if unread != nil {
		a.Note("incomplete: locks may be missing: %s", strings.Join(unread, ", "))
	}
	switch {
	case down:
		return exit.Silently(redlock.ErrNoQuorum)
	case unread != nil:
		return exit.Silently(exit.ErrIncomplete)
	}
	return nil
}
