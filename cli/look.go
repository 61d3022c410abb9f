package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"

	"redlockctl/cli/app"
	"redlockctl/cli/exit"
	"redlockctl/cli/flags"
	"redlockctl/cli/printer"
	"redlockctl/internal/config"
	"redlockctl/monitor"
	"redlockctl/monitor/observe"
	"redlockctl/server/safetext"
)

// look returns a snapshot of the cluster when everything requested has been read and
// findings that need time have settled, or what is known when the timeout expires. It
// shows its progress.
func (a *commandLine) look(ctx context.Context, cfg *config.Config, of app.Aim) (*monitor.Snapshot, error) {
	of.Reading = a.Reading
	return app.Look(ctx, cfg, of)
}

// incomplete lists on standard error the nodes that were not read to the end, and returns
// the error for that; nil if all were.
func (a *commandLine) incomplete(s *monitor.Snapshot) error {
	if s.Complete {
		return nil
	}
	var nodes []string
	for _, n := range s.Unread() {
		nodes = append(nodes, safetext.Printable(n.Node)+" "+safetext.Printable(n.Why))
	}
	a.Note("incomplete: locks and copies may be missing: %s", strings.Join(nodes, ", "))
	return exit.Silently(exit.ErrIncomplete)
}

// Bounds of --watch: the monitor makes no snapshots more often.
const (
	defaultWatch = 2 * time.Second
	leastWatch   = 100 * time.Millisecond
)

// live adds --watch and --timeout to a command that shows a snapshot.
type live struct {
	every time.Duration
	set   func() bool
	most  time.Duration // to look for; 0: as long as it takes
}

func (l *live) add(cmd *cobra.Command) *cobra.Command {
	f := cmd.Flags()
	f.DurationVar(&l.every, "watch", 0, "repeat every two seconds, or as --watch=INTERVAL says, until interrupted")
	f.Lookup("watch").NoOptDefVal = defaultWatch.String()
	l.set = func() bool { return f.Changed("watch") }
	f.DurationVar(&l.most, "timeout", 0, "after this time, show what is known, with exit code 7 if something is missing; default: until all keys have been read")
	return flags.Outputs(cmd, "table", "wide", "json", "jsonl")
}

func (l *live) check() error {
	if l.set() && l.every < leastWatch {
		return exit.Usagef("--watch=%s is too often: %s at least", l.every, leastWatch)
	}
	return nil
}

// snapshots calls show with a snapshot of the cluster; with --watch repeatedly, until ctx
// ends or the reader is gone. On a terminal each table replaces the previous one;
// elsewhere an empty line separates them. An incomplete snapshot says what is missing,
// and is an error without --watch.
func (a *commandLine) snapshots(ctx context.Context, cfg *config.Config, l *live, of app.Aim, show func(*monitor.Snapshot) error) error {
	if err := l.check(); err != nil {
		return err
	}
	of.Most, of.Reading = l.most, a.Reading
	if !l.set() {
		s, err := a.look(ctx, cfg, of)
		if err != nil {
			return err
		}
		if err := show(s); err != nil {
			_ = a.incomplete(s)
			return err
		}
		return a.incomplete(s)
	}
	return app.Watch(ctx, cfg, of, func(mon *observe.Monitor) error {
		if _, err := app.Decided(ctx, mon, of); err != nil {
			return nil // interrupted before anything was to be shown
		}
		return a.repeat(ctx, l.every, func() error { return show(mon.Snapshot()) })
	})
}

// repeat calls show now and after each interval, until ctx ends or the reader is gone.
func (a *commandLine) repeat(ctx context.Context, every time.Duration, show func() error) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for first := true; ; first = false {
		a.separate(first)
		err := show()
		switch {
		case printer.Gone(err):
			return nil
		case err != nil && !exit.IsSilent(err): // that there is no quorum is in the snapshot
			return err
		case a.Unwritten() != nil:
			return a.Unwritten()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (a *commandLine) separate(first bool) {
	switch {
	case a.Output == "json" || a.Output == "jsonl":
	case a.OutTTY && a.Getenv("TERM") != "dumb":
		fmt.Fprint(a.Out, ansi.CursorHomePosition+ansi.EraseScreenBelow)
	case !first:
		fmt.Fprintln(a.Out)
	}
}
