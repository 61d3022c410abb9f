package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"redlockctl/internal/lab"
)

// monitorParts are what can be run alone, in the order in which they run.
var monitorParts = []struct {
	name string
	run  func(*monitorRun) error
}{
	{"view", (*monitorRun).view}, {"oneshot", (*monitorRun).oneshot}, {"memory", (*monitorRun).memory}, {"rest", (*monitorRun).rest},
	{"changes", (*monitorRun).changes}, {"cost", (*monitorRun).cost}, {"price", (*monitorRun).price}, {"clock", (*monitorRun).clock},
	{"step", (*monitorRun).step}, {"burst", (*monitorRun).burst}, {"million", (*monitorRun).million},
}

// The time after which no further part begins. A part takes two minutes at most.
const (
	monitorMost      = 8 * time.Minute
	monitorMostQuick = 100 * time.Second
)

func monitorBench(args []string) error {
	var b monitorRun
	var names []string
	for _, p := range monitorParts {
		names = append(names, p.name)
	}
	fs := b.flags("monitor", strings.Join(names, ", "))
	fs.IntVar(&b.locks, "locks", 0, "locks on each server; default 100000")
	others := fs.Int("others", 0, "other keys on each server, with --locks")
	_ = fs.Parse(args)
	if b.only != "" && !slices.Contains(names, b.only) {
		return fmt.Errorf("--only %q: it is one of %s", b.only, strings.Join(names, ", "))
	}
	begun, most := time.Now(), monitorMost
	if b.quick {
		most = monitorMostQuick
	}
	if b.locks == 0 {
		b.locks = 20_000 * b.rounds(1, 5)
		*others = 10 * b.locks
	}
	var err error
	if b.servers, err = lab.StartServers(b.server, 5); err != nil {
		return err
	}
	defer b.servers.Close()
	fmt.Fprintf(os.Stderr, "filling five servers: %d locks among %d keys each\n", b.locks, b.locks+*others)
	if err := fill(b.servers, b.locks, *others); err != nil {
		return err
	}
	ended, err := b.startProfile()
	if err != nil {
		return err
	}
	defer ended()
	b.about("What the monitor takes", machine(b.servers, fact{"keys", fmt.Sprintf("%d locks on each of five servers, among %d keys", b.locks, b.locks+*others)})...)
	var failed error
	for _, part := range monitorParts {
		if !b.wants(part.name) {
			continue
		}
		if spent := time.Since(begun); spent > most && b.only == "" {
			fmt.Printf("| %s | | not measured: %s were spent on the others | | |\n", part.name, spent.Round(time.Second))
			continue
		}
		fmt.Fprintf(os.Stderr, "%s (%s)\n", part.name, time.Since(begun).Round(time.Second))
		if err := part.run(&b); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", part.name, err))
		}
	}
	return errors.Join(failed, b.writeJSON(b.json, b.lines))
}
