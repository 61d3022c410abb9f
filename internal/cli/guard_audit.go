package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"redlockctl/internal/audit"
	"redlockctl/restartguard"
)

const (
	// mostUnwritten bounds how many lines of a guard wait for the audit log.
	mostUnwritten = 1024
	// recordAgain is the pause before a line that could not be written is tried
	// again.
	recordAgain = time.Second
	// recordEnd bounds how long the end of a guard waits for its last lines.
	recordEnd = 3 * time.Second
)

// errForgotten is told when lines were dropped, since too many waited.
var errForgotten = errors.New("lines of the guard were dropped")

// recorder writes what a guard does into the audit log. The guard never waits for
// it: to close a node late is worse than an act without a record, and a node must
// not stay closed because a disk is full. So the line follows the act, and where
// the log cannot be written it is kept and tried again. It is safe for use by many
// goroutines.
type recorder struct {
	write func(audit.Record) error
	// trouble is called when the log cannot be written, and with nil when it can
	// again.
	trouble func(error)

	mu      sync.Mutex
	actor   string
	waiting []audit.Record
	dropped int
	reasons map[string]string // the last loss of a node, by cluster and name
	closed  bool
	more    chan struct{} // something waits, or it is over
	ended   chan struct{}
}

// newRecorder begins to write; it is to be closed.
func newRecorder(write func(audit.Record) error, trouble func(error)) *recorder {
	host, _ := os.Hostname()
	r := &recorder{
		write: write, trouble: trouble, actor: "guard@" + host,
		reasons: map[string]string{}, more: make(chan struct{}, 1), ended: make(chan struct{}),
	}
	go r.run()
	return r
}

// by says which guard it is whose lines are written: several may run on one host.
func (r *recorder) by(id string) {
	host, _ := os.Hostname()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.actor = "guard@" + host + "/" + id[:min(6, len(id))]
}

// saw takes an event of the guard of a cluster. It never blocks. What closes and
// opens nodes is recorded; what they are closed for is the reason.
func (r *recorder) saw(cluster string, e restartguard.Event) {
	act := ""
	switch e.Kind {
	case "restart", "wiped", "role", "clock", "evicted", "restored":
		r.mu.Lock()
		r.reasons[cluster+"\x00"+e.Node] = e.Text
		r.mu.Unlock()
		return
	case "closed", "waiting", "held", "exposed", "opened":
		act = "node " + e.Kind
	default:
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	key := cluster + "\x00" + e.Node
	if len(r.waiting) == mostUnwritten {
		r.waiting = r.waiting[1:]
		r.dropped++
	}
	r.waiting = append(r.waiting, audit.Record{
		Time: e.At.UTC(), ID: audit.NewID(), Phase: audit.Done, Actor: r.actor, Cluster: cluster,
		Act: act, Target: e.Node, Reason: r.reasons[key], Detail: e.Text,
	})
	if e.Kind == "opened" {
		delete(r.reasons, key)
	}
	r.wake()
}

func (r *recorder) wake() {
	select {
	case r.more <- struct{}{}:
	default:
	}
}

// run writes what waits, in order, until there is nothing left after the end.
func (r *recorder) run() {
	defer close(r.ended)
	sick := false
	for {
		r.mu.Lock()
		if len(r.waiting) == 0 {
			over := r.closed
			r.mu.Unlock()
			if over {
				return
			}
			<-r.more
			continue
		}
		next, dropped := r.waiting[0], r.dropped
		r.mu.Unlock()
		if dropped > 0 {
			next.Detail = strings.TrimPrefix(next.Detail+fmt.Sprintf("; %d lines before this one could not be written", dropped), "; ")
		}
		if err := r.write(next); err != nil {
			if !sick {
				sick = true
				r.trouble(err)
			}
			r.mu.Lock()
			over := r.closed
			r.mu.Unlock()
			if over {
				return
			}
			r.pause()
			continue
		}
		if sick {
			sick = false
			r.trouble(nil)
		}
		r.mu.Lock()
		// Others may have been dropped meanwhile, this one too.
		if len(r.waiting) > 0 && r.waiting[0].ID == next.ID {
			r.waiting = r.waiting[1:]
		}
		r.dropped -= dropped
		r.mu.Unlock()
	}
}

// pause waits before the next try, not beyond the end.
func (r *recorder) pause() {
	t := time.NewTimer(recordAgain)
	defer t.Stop()
	for {
		r.mu.Lock()
		over := r.closed
		r.mu.Unlock()
		if over {
			return
		}
		select {
		case <-t.C:
			return
		case <-r.more:
		}
	}
}

// close writes what can still be written, for a short time, and tells what could
// not.
func (r *recorder) close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.wake()
	t := time.NewTimer(recordEnd)
	defer t.Stop()
	select {
	case <-r.ended:
	case <-t.C:
	}
	r.mu.Lock()
	left := len(r.waiting) + r.dropped
	r.mu.Unlock()
	if left > 0 {
		r.trouble(fmt.Errorf("%w: %d", errForgotten, left))
	}
}

// lazyLog opens an audit log when there is something to write, and again after a
// failure.
type lazyLog struct {
	path string
	log  *audit.Log
}

func (l *lazyLog) write(r audit.Record) (err error) {
	if l.log == nil {
		if l.path == "" {
			return errors.New("[audit] path is missing, and neither XDG_STATE_HOME nor HOME gives a default")
		}
		if l.log, err = audit.Open(l.path); err != nil {
			l.log = nil
			return err
		}
	}
	return l.log.Write(r)
}

func (l *lazyLog) close() {
	if l.log != nil {
		_ = l.log.Close()
	}
}
