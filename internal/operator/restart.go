package operator

import (
	"context"
	"fmt"
	"strings"

	"redlockctl/internal/audit"
)

// mostOutput is how much of what a command has printed the log has: its end.
const mostOutput = 4 << 10

// RunRestart runs what restarts a node's server. What it has printed is in the log.
func (o *Operator) RunRestart(ctx context.Context, node, reason string, run func(context.Context) (output string, err error)) error {
	if err := o.mayAct(reason); err != nil {
		return err
	}
	a, err := o.begin(audit.Record{Act: "node restart", Target: node, Reason: reason})
	if err != nil {
		return err
	}
	output, err := run(ctx)
	if len(output) > mostOutput {
		output = "…" + output[len(output)-mostOutput:]
	}
	if err != nil {
		err = fmt.Errorf("the command failed: %w", err)
	}
	return a.end(strings.ToValidUTF8(strings.TrimSpace(output), "?"), err)
}
