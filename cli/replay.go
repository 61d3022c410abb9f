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
	"redlockctl/cli/printer"
	"redlockctl/internal/config"
	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/server/safetext"
	"redlockctl/tui"
)

// replayJSON is the document of replay: what status, locks and doctor say, at a moment of
// the record.
type replayJSON struct {
	At time.Time `json:"at"`
	By string    `json:"recorded_by,omitempty"` // left out: nobody recorded then
	view.CoverageDoc
	view.ClusterDoc
	Nodes    []pastNodeJSON    `json:"nodes"`
	Locks    []view.LockDoc    `json:"locks"`
	Findings []view.FindingDoc `json:"findings"`
}

// pastNodeJSON is what a record knows of a node.
type pastNodeJSON struct {
	Name       safetext.Text  `json:"name"`
	Addr       safetext.Text  `json:"addr"`
	State      string         `json:"state"`
	StateForMs *int64         `json:"state_for_ms,omitempty"`
	Error      *safetext.Text `json:"error,omitempty"`
	RejoinMs   *int64         `json:"rejoin_ms,omitempty"` // until its guard lets it rejoin
	view.ExposedDoc
}

func (a *commandLine) replayCommand() *cobra.Command {
	var at, file string
	cmd := flags.Outputs(&cobra.Command{
		Use:   "replay",
		Short: "The console at a moment of the past, from the record",
		Long: `Reads what the guard's daemon or the console has recorded, and shows a moment of it on the
pages of the console: the verdict, the nodes, the locks that were held and by whom, the
findings. No master is contacted, and no action is possible.

[ and ] go one event back and forward (on the page of a lock: one of that lock), { and } one
minute, space plays and + and - change how fast, . goes to the end. :replay MOMENT goes to
another moment. What was not recorded is shown as not known.

A moment is written "03:12" (the last one), "yesterday 03:12", "2026-01-31 15:04", RFC 3339
or "2h ago". With --file nothing but that file is read: no configuration is needed. Without a
terminal, or with -o json, it prints that moment.`,
		Args: flags.NoArgs,
		Example: `redlockctl replay --at 03:12
redlockctl replay --at "yesterday 03:12" --file orders.db -o json`,
		RunE: a.run(func(ctx context.Context, _ []string) error {
			when, err := view.ParseMoment(at, time.Now())
			if err != nil {
				return exit.Usagef("--at %w", err)
			}
			r, err := a.openRecord(file)
			if err != nil {
				return err
			}
			p, err := app.NewPlayer(r, when)
			if err != nil {
				return errors.Join(err, r.Close())
			}
			defer p.Close()
			doc, err := replayDoc(p)
			if err != nil {
				return err
			}
			if printed, err := a.Document("replay", doc); err != nil || printed {
				return err
			}
			if a.InTTY && a.OutTTY && !a.plainTerminal() {
				return a.screen(ctx, tui.Options{Replay: p, NoColor: !a.Color(), FPS: config.DefaultFPS})
			}
			return a.printMoment(p, doc.Lines(false))
		}),
	}, "table", "json", "jsonl")
	cmd.Flags().StringVar(&at, "at", "now", "the moment; if it is not in the record, the first or last one that is")
	cmd.Flags().StringVar(&file, "file", "", "a record that was copied from elsewhere, in place of the configuration's")
	return cmd
}

func replayDoc(p *app.Player) (replayJSON, error) {
	s := p.Snapshot()
	gaps, err := p.Gaps()
	doc := replayJSON{CoverageDoc: gaps, At: s.At, By: p.By(), ClusterDoc: view.DocOfCluster(s), Nodes: []pastNodeJSON{}, Locks: []view.LockDoc{}, Findings: view.DocsOfFindings(view.Rows(s.Findings), s.At)}
	for i := range s.Nodes {
		n := view.DocOfNode(s.Nodes[i], s.At)
		one := pastNodeJSON{Name: n.Name, Addr: n.Addr, State: n.State, StateForMs: n.StateForMs, Error: n.Error, ExposedDoc: n.ExposedDoc}
		for _, f := range p.Status() {
			if f.Node == s.Nodes[i].Name {
				one.RejoinMs = view.MSUntil(f.Until, s.At)
			}
		}
		doc.Nodes = append(doc.Nodes, one)
	}
	for l := range s.Locks.All() {
		doc.Locks = append(doc.Locks, view.DocOfLock(l, s))
	}
	return doc, err
}

func (a *commandLine) printMoment(p *app.Player, gaps []string) error {
	s, by := p.Snapshot(), "not recorded then"
	if who := p.By(); who != "" {
		by = "recorded by " + safetext.Escape(who)
	}
	fmt.Fprintf(a.Out, "REPLAY of %s, %s ago, %s\n", view.Stamp(s.At, false), view.Age(time.Since(s.At)), by)
	for _, line := range gaps {
		fmt.Fprintln(a.Out, line)
	}
	guard := view.NewGuard("", p.Status())
	guard.See(s)
	if err := a.printStatus(s, guard); err != nil {
		return err
	}
	fmt.Fprintln(a.Out)
	if locks := matching(s, monitor.Filter{}); len(locks) == 0 {
		fmt.Fprintln(a.Out, view.NoLocks(s))
	} else if err := printer.List(a.Printer, []string{"name", "state", "copies", "nodes", "ends", "margin", "seen-for", "owner", "holder"}, a.ViewContext(s), view.LockColumns(s.Nodes), locks, nil); err != nil {
		return err
	}
	a.printFindings(s, view.Rows(s.Findings))
	return nil
}
