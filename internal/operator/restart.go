package operator

import (
	"context"
	"fmt"
	"strings"

	"redlockctl/internal/audit"
)

// mostOutput is how many bytes of a command's output go to the log: the last ones.
const mostOutput = 4 << 10

// RunRestart runs the command that restarts a node's server and logs its output.
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
