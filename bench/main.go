// Command bench measures redlockctl beside its rivals, on five real
// redis-servers of its own on loopback. It is a module of its own, so that no
// rival becomes a dependency of the program.
//
//	go run . lock [--quick] [--markdown FILE] [--json FILE] [--only SCENARIO]
//	go run . monitor [--quick] [--markdown FILE] [--json FILE] [--only PART] [--locks N --others N]
//	go run . screen [--quick] [--locks N]
//	go run . who [--for 90s] [--node DIR]
//	go run . record [--quick] [--grants N]
//
// Rounds are interleaved, so that drift of the machine hits all alike; what is
// printed are medians over the rounds and ratios within a round. Absolute
// times are of this machine at this hour, the ratios are what to compare.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "monitor" {
		watch(os.Args[2:])
		return
	}
	if len(os.Args) > 1 && os.Args[1] == "screen" {
		screen(os.Args[2:])
		return
	}
	if len(os.Args) > 1 && os.Args[1] == "record" {
		keepRecord(os.Args[2:])
		return
	}
	if len(os.Args) > 1 && os.Args[1] == "who" {
		whoBench(os.Args[2:])
		return
	}
	if len(os.Args) > 1 && os.Args[1] == "who-app" {
		whoApp(os.Args[2:])
		return
	}
	if len(os.Args) < 2 || os.Args[1] != "lock" {
		fmt.Fprintln(os.Stderr, "usage: go run . lock [--quick] [--markdown FILE] [--json FILE] [--only SCENARIO]")
		fmt.Fprintln(os.Stderr, "       go run . monitor [--quick] [--markdown FILE] [--json FILE] [--only PART] [--locks N --others N]")
		fmt.Fprintln(os.Stderr, "       go run . screen [--quick] [--locks N]")
		fmt.Fprintln(os.Stderr, "       go run . who [--for 90s] [--node DIR]")
		fmt.Fprintln(os.Stderr, "       go run . record [--quick] [--grants N]")
		os.Exit(2)
	}
	fs := flag.NewFlagSet("lock", flag.ExitOnError)
	quick := fs.Bool("quick", false, "few short rounds: under two minutes")
	jsonPath := fs.String("json", "", "write the figures as JSON to this file too")
	markdown := fs.String("markdown", "", "write the table as Markdown to this file too")
	only := fs.String("only", "", "one scenario: sequential, parallel, contended or fault")
	profile := fs.String("cpuprofile", "", "write a CPU profile of redlockctl's own slices to this file")
	server := fs.String("redis-server", "redis-server", "path of redis-server")
	_ = fs.Parse(os.Args[2:])
	if err := runLock(lockBench{quick: *quick, json: *jsonPath, markdown: *markdown, only: *only, server: *server, profile: *profile}); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func watch(args []string) {
	fs := flag.NewFlagSet("monitor", flag.ExitOnError)
	quick := fs.Bool("quick", false, "a fifth of the locks, few short rounds")
	only := fs.String("only", "", "one part: "+monitorPartNames())
	jsonPath := fs.String("json", "", "write the figures as JSON to this file too")
	markdown := fs.String("markdown", "", "write the table as Markdown to this file too")
	locks := fs.Int("locks", 0, "locks on each server; default 100000")
	others := fs.Int("others", 0, "other keys on each server, with --locks")
	profile := fs.String("cpuprofile", "", "write a CPU profile to this file")
	server := fs.String("redis-server", "redis-server", "path of redis-server")
	_ = fs.Parse(args)
	if err := runMonitor(monitorBench{
		quick: *quick, only: *only, server: *server, locks: *locks, others: *others, profile: *profile, json: *jsonPath, markdown: *markdown,
	}); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}
