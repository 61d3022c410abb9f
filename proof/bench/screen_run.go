package main

import "redlockctl/internal/lab"

// screenRun measures the console as a person has it: the real program, on a
// terminal of 120×40, on five real servers. A start is counted from the fork to the
// bytes of the first screen that names the verdict.
type screenRun struct {
	wanted
	report
	servers lab.Servers
	open    func() (*terminal, error)
	locks   int
}
