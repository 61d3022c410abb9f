package app

import (
	"context"
	"errors"
	"os"
	"runtime"
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

// How much garbage, in percent of the memory in use, may accumulate before it is collected,
// unless GOGC is set. A small process collects seldom, which takes a tenth off a first read.
// With a million locks nearly all memory is the table: at Go's default of 100 the process
// would use twice its size.
const (
	garbage      = 50
	smallGarbage = 200
	small        = 64 << 20 // bytes in use
)

// newMonitor makes a monitor in a process that collects its garbage early once it is large.
func newMonitor(nodes []*redlock.Node, opt observe.Options) (*observe.Monitor, error) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(smallGarbage)
		collectEarly()
	}
	return observe.New(nodes, opt)
}

// collectEarly looks after each collection whether the process is still small.
func collectEarly() {
	type sentinel struct{ _ *byte }
	runtime.AddCleanup(&sentinel{}, func(struct{}) {
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		if metrics.Read(live); live[0].Value.Uint64() < small {
			collectEarly()
			return
		}
		debug.SetGCPercent(garbage)
	}, struct{}{})
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
