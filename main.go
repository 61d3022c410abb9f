// Command redlockctl is an operations console for Redis locks held by the Redlock algorithm
// over N independent masters: a terminal UI, a CLI, and a guard that keeps a restarted
// master out of the quorum until every lock that it may have forgotten has expired.
package main

import (
	"os"

	"redlockctl/cli"
	"redlockctl/internal/run"
)

func main() {
	if run.IsReaper(os.Args) { // started by redlockctl run
		os.Exit(run.Reap(os.Args))
	}
	os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
