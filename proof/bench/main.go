// Command bench measures redlockctl beside its rivals, on five real
// redis-servers of its own on loopback. It is a module of its own, so that no
// rival becomes a dependency of the program. Without arguments it lists the
// benchmarks. What they print is Markdown.
//
// Rounds are interleaved, so that drift of the machine hits all alike; what is
// printed are medians over the rounds and ratios within a round. Absolute
// times are of this machine at this hour, the ratios are what to compare.
package main

import (
	"fmt"
	"os"

	"github.com/redis/go-redis/v9/logging"
)

func main() {
	logging.Disable() // go-redis writes each failed dial to stderr
	benches := []struct {
		name, what string
		run        func(args []string) error
	}{
		{"lock", "locks, beside other libraries", lockBench},
		{"monitor", "how fast the monitor sees, and what it costs", monitorBench},
		{"screen", "the console on a terminal", screenBench},
		{"who", "how often redlockctl who is right", whoBench},
		{"who-corpus", "how often redlockctl who is right where it is misled", whoCorpus},
		{"record", "the flight recorder", recordBench},
		{"who-app", "", whoApp},     // a process of who
		{"clients", "", runClients}, // and of monitor
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
	fmt.Fprintln(os.Stderr, "usage: go run . BENCHMARK [--quick] [other flags: --help]")
	for _, b := range benches {
		if b.what != "" {
			fmt.Fprintf(os.Stderr, "  %-8s %s\n", b.name, b.what)
		}
	}
	os.Exit(2)
}
