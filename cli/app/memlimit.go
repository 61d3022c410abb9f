package app

import (
	"context"
	"errors"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"redlockctl/base/crash"
	"redlockctl/monitor/observe"
	"redlockctl/redlock"
)

// guardMemory is how much memory the guard's process may use beside watching the locks: far more
// than it needs, and enough for what accumulates between two checks.
const guardMemory = 192 << 20

// garbage is how much garbage, in percent of the memory in use, may accumulate before it is
// collected, unless GOGC is set. With a million locks nearly all memory is the table: at Go's
// default of 100 the process would use twice its size.
const garbage = 50

// newMonitor makes a monitor in a process that collects its garbage early.
func newMonitor(nodes []*redlock.Node, opt observe.Options) (*observe.Monitor, error) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbage)
	}
	return observe.New(nodes, opt)
}

// errTooMuchMemory is returned when a task was ended because the process took more
// memory than it may.
var errTooMuchMemory = errors.New("too much memory is in use")

// withinMemory runs task until ctx ends, or until the process uses more than most
// bytes.
func withinMemory(ctx context.Context, most int64, used func() int64, task func(context.Context)) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	done := make(chan struct{})
	crash.Go(func() { defer close(done); task(ctx) })
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return context.Cause(ctx)
		case <-tick.C:
			if used() <= most {
				continue
			}
			stop(errTooMuchMemory)
			<-done
			debug.FreeOSMemory()
			return errTooMuchMemory
		}
	}
}

func usedMemory() int64 {
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64() - sample[1].Value.Uint64())
}
