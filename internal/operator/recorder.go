package operator

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"redlockctl/base/crash"
	"redlockctl/internal/audit"
	"redlockctl/restartguard"
)

const (
	// mostUnwritten is how many lines of a guard may wait for the audit log.
	mostUnwritten = 1024
	// recordAgain is the pause before a failed write is retried.
	recordAgain = time.Second
	// recordEnd is how long the end of a guard waits for its last lines to be written.
	recordEnd = 3 * time.Second
)

// errForgotten is reported when lines were dropped because too many waited.
var errForgotten = errors.New("lines of the guard were dropped")

// GuardRecorder writes the actions of a guard to the audit log. The guard never waits for
// it: fencing a node late is worse than an action without a record, and a full disk must
// not keep a node fenced. So the line follows the action; if the log cannot be written,
// the line is kept and retried. It is safe for use by many goroutines.
type GuardRecorder struct {
	write   func(audit.Record) error
	trouble func(error)

	lines     chan audit.Record
	unwritten atomic.Int64 // lines that are not in the log, including dropped ones
	dropped   atomic.Int64 // dropped lines that the log does not mention yet
	closing   chan struct{}
	ended     chan struct{}

	mu      sync.Mutex
	actor   string
	reasons map[string]string // last loss of a node, by cluster and name
}

// RecordGuard starts a recorder for the log at path. It opens the log at the first line,
// and again after a failure. trouble is called with the error when the log cannot be
// written, and with nil when it can again.
func RecordGuard(path string, trouble func(error)) *GuardRecorder {
	var log *audit.Log
	return recordGuard(func(r audit.Record) (err error) {
		if log == nil {
			if path == "" {
				return errors.New("[audit] path is missing, and neither XDG_STATE_HOME nor HOME gives a default")
			}
			if log, err = audit.Open(path); err != nil {
				log = nil
				return err
			}
		}
		return log.Write(r)
	}, trouble)
}

func recordGuard(write func(audit.Record) error, trouble func(error)) *GuardRecorder {
	r := &GuardRecorder{
		write: write, trouble: trouble, reasons: map[string]string{},
		lines: make(chan audit.Record, mostUnwritten), closing: make(chan struct{}), ended: make(chan struct{}),
	}
	r.By("")
	crash.Go(r.run)
	return r
}

// By sets the id of the guard that the lines name: several guards may run on one host.
func (r *GuardRecorder) By(id string) {
	host, _ := os.Hostname()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.actor = "guard@" + host; id != "" {
		r.actor += "/" + id[:min(6, len(id))]
	}
}

// Take records an event of a cluster's guard, if it fences a node or lets it rejoin. The
// last loss of the node is the reason. It never blocks.
func (r *GuardRecorder) Take(cluster string, e restartguard.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	node := cluster + "\x00" + e.Node
	switch e.Kind {
	case "restart", "wiped", "role", "clock", "evicted", "restored":
		r.reasons[node] = e.Text
		return
	case "fenced", "waiting", "cordoned", "exposed", "rejoined":
	default:
		return
	}
	line := audit.Record{
		Time: e.At.UTC(), ID: audit.NewID(), Phase: audit.Done, Actor: r.actor, Cluster: cluster,
		Act: "node " + e.Kind, Target: e.Node, Reason: r.reasons[node], Detail: e.Text,
	}
	if e.Kind == "rejoined" {
		delete(r.reasons, node)
	}
	r.unwritten.Add(1)
	for {
		select {
		case r.lines <- line:
			return
		default:
		}
		select {
		case <-r.lines: // drop the oldest to make room
			r.dropped.Add(1)
		default:
		}
	}
}

// run writes the lines in order until the recorder is closed and none is left.
func (r *GuardRecorder) run() {
	defer close(r.ended)
	for {
		select {
		case line := <-r.lines:
			if !r.insist(line) {
				return
			}
		case <-r.closing:
			for len(r.lines) > 0 {
				if !r.insist(<-r.lines) {
					return
				}
			}
			return
		}
	}
}

// insist retries a line until it is written or the recorder is closed.
func (r *GuardRecorder) insist(line audit.Record) (written bool) {
	detail := line.Detail
	for tries := 0; ; tries++ {
		dropped := r.dropped.Load()
		if dropped > 0 {
			line.Detail = strings.TrimPrefix(fmt.Sprintf("%s; %d lines before this one could not be written", detail, dropped), "; ")
		}
		err := r.write(line)
		switch {
		case err == nil:
			r.dropped.Add(-dropped)
			r.unwritten.Add(-1 - dropped)
			if tries > 0 {
				r.trouble(nil)
			}
			return true
		case tries == 0:
			r.trouble(err)
		}
		select {
		case <-r.closing:
			return false
		case <-time.After(recordAgain):
		}
	}
}

// Close writes what it can in a short time and reports the rest. Events after it are
// ignored.
func (r *GuardRecorder) Close() {
	close(r.closing)
	select {
	case <-r.ended:
	case <-time.After(recordEnd):
	}
	if left := r.unwritten.Load(); left > 0 {
		r.trouble(fmt.Errorf("%w: %d", errForgotten, left))
	}
}
