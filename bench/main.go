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
	"fmt"
	"os"
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
