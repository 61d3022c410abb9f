// Command bench measures redlockctl beside its rivals, on five real
// redis-servers of its own on loopback. It is a module of its own, so that no
// rival becomes a dependency of the program. Without arguments it lists the
// benchmarks.
//
// Rounds are interleaved, so that drift of the machine hits all alike; what is
// printed are medians over the rounds and ratios within a round. Absolute
// times are of this machine at this hour, the ratios are what to compare.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime/pprof"
)

func main() {
	benches := []struct {
		name, usage string
		run         func(args []string) error
	}{
		{"lock", "[--quick] [--markdown FILE] [--json FILE] [--only SCENARIO]", lockBench},
		{"monitor", "[--quick] [--markdown FILE] [--json FILE] [--only PART] [--locks N --others N]", runMonitor},
		{"screen", "[--quick] [--locks N]", screen},
		{"who", "[--for 90s] [--node DIR]", whoBench},
		{"record", "[--quick] [--grants N]", keepRecord},
		{"who-app", "", whoApp}, // a process of who
	}
	for _, b := range benches {
		if len(os.Args) > 1 && os.Args[1] == b.name {
			if err := b.run(os.Args[2:]); err != nil {
				fmt.Fprintln(os.Stderr, "bench:", err)
				os.Exit(1)
			}
			return
		}
	}
	fmt.Fprintln(os.Stderr, "usage:")
	for _, b := range benches {
		if b.usage != "" {
			fmt.Fprintln(os.Stderr, "  go run .", b.name, b.usage)
		}
	}
	os.Exit(2)
}

// wanted is what a benchmark is asked for by flags.
type wanted struct {
	quick          bool
	only           string // a scenario or part; empty: all
	server         string // the path of redis-server
	json, markdown string // files to write too
	profile        string // a file for a CPU profile
}

// flags are those that all benchmarks of servers have; quick says what it means.
func (w *wanted) flags(name, quick string) *flag.FlagSet {
	fs := flag.NewFlagSet(name, flag.ExitOnError)
	fs.BoolVar(&w.quick, "quick", false, quick)
	fs.StringVar(&w.server, "redis-server", "redis-server", "path of redis-server")
	fs.StringVar(&w.json, "json", "", "write the figures as JSON to this file too")
	fs.StringVar(&w.markdown, "markdown", "", "write the table as Markdown to this file too")
	return fs
}

// partFlags are those of a benchmark of several parts.
func (w *wanted) partFlags(fs *flag.FlagSet, only, profile string) {
	fs.StringVar(&w.only, "only", "", only)
	fs.StringVar(&w.profile, "cpuprofile", "", profile)
}

// startProfile begins the CPU profile, if one is wanted.
func (w *wanted) startProfile() (stop func(), err error) {
	if w.profile == "" {
		return func() {}, nil
	}
	f, err := os.Create(w.profile)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		_ = f.Close()
		return nil, err
	}
	return func() { pprof.StopCPUProfile(); _ = f.Close() }, nil
}
