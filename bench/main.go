// Command bench measures redlockctl beside its rivals, on five real
// redis-servers of its own on loopback. It is a module of its own, so that no
// rival becomes a dependency of the program.
//
//	go run . lock [--quick] [--json FILE] [--only SCENARIO]
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
	if len(os.Args) < 2 || os.Args[1] != "lock" {
		fmt.Fprintln(os.Stderr, "usage: go run . lock [--quick] [--json FILE] [--only SCENARIO]")
		os.Exit(2)
	}
	fs := flag.NewFlagSet("lock", flag.ExitOnError)
	quick := fs.Bool("quick", false, "few short rounds: under two minutes")
	jsonPath := fs.String("json", "", "write the figures as JSON to this file too")
	only := fs.String("only", "", "one scenario: sequential, parallel, fault, contended or allocs")
	profile := fs.String("cpuprofile", "", "write a CPU profile of redlockctl's own slices to this file")
	server := fs.String("redis-server", "redis-server", "path of redis-server")
	_ = fs.Parse(os.Args[2:])
	if err := runLock(lockBench{quick: *quick, json: *jsonPath, only: *only, server: *server, profile: *profile}); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}
