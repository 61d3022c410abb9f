// Package metrics exports what monitor and guard know to Prometheus, and answers health checks.
//
// A scrape reads the latest snapshot and the guard's status; it sends nothing to a node. What
// happens between two scrapes (incarnations of a server, its exposure) is counted once a second
// while [Metrics.Serve] runs. Names and labels are in catalogue.go.
package metrics

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"redlockctl/monitor"
	"redlockctl/redlock"
	"redlockctl/restartguard"
	"redlockctl/server/announce"
	"redlockctl/server/safetext"
)

const (
	namespace = "redlockctl_"
	// mostConns is how many connections are kept at a time; it is less where the
	// process may have few descriptors, of which the guard needs the others.
	mostConns = 64
)

// Monitor has the latest snapshot; *observe.Monitor implements it.
type Monitor interface {
	Snapshot() *monitor.Snapshot
}

// Guard has the status of a guard; *restartguard.Guard implements it.
type Guard interface {
	Status() []restartguard.NodeStatus
	Outlook() restartguard.Outlook
	Healthy() error
	Sees() error
	Met() bool
	// ID, Delay and Others return its id, its own D, and the other announced guards.
	ID() string
	Delay() time.Duration
	Others() []announce.Guard
}

// Export has the counters of the event exporter; *otlp.Exporter implements it.
type Export interface {
	// Counts returns how many events were sent, how many were dropped before that, and
	// how many were refused.
	Counts() (sent, missed, refused uint64)
}

// Recorder has the state of the record; *record.Recorder implements it.
type Recorder interface {
	// Err returns why nothing is recorded here, Problem the same unless another process
	// records; nil: it is recorded.
	Err() error
	Problem() error
	// Lag returns for how long nothing was written, and whether anything was.
	Lag() (lag time.Duration, wrote bool)
}

// Cluster is a cluster whose metrics are exported.
type Cluster struct {
	Name    string
	Monitor Monitor  // nil: locks and clocks are not watched
	Guard   Guard    // nil: no guard in this process
	Export  Export   // nil: events are not exported
	Record  Recorder // nil: nothing is to be recorded
	Down    error    // why the guard that should run here does not
}

// Build is the version of the program.
type Build struct{ Version, Go, Revision string }

// Metrics are the metrics of one process. They are safe for concurrent use. Start, Show and Hide
// of a nil *Metrics do nothing.
type Metrics struct {
	at        net.Listener // from [Open]
	host      string       // host of its address, as given
	webConfig string
	protected bool // by TLS or a password

	registry *prometheus.Registry
	acquires *prometheus.HistogramVec

	mu    sync.Mutex
	shown []*shown // in the order in which they were added
}

// shown is a cluster and its counters.
type shown struct {
	Cluster
	lives map[string]*incarnations // by node name
}

// Show adds a cluster, or replaces the one with its name and keeps its counters.
func (m *Metrics) Show(c Cluster) {
	if m == nil {
		return
	}
	m.mu.Lock()
	if i := slices.IndexFunc(m.shown, func(s *shown) bool { return s.Name == c.Name }); i >= 0 {
		m.shown[i].Cluster = c
	} else {
		m.shown = append(m.shown, &shown{c, map[string]*incarnations{}})
	}
	m.mu.Unlock()
	m.look()
}

// Hide removes the cluster with this name.
func (m *Metrics) Hide(name string) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.shown = slices.DeleteFunc(m.shown, func(s *shown) bool { return s.Name == name })
}

// Acquired counts an acquisition by this process.
func (m *Metrics) Acquired(cluster string, took time.Duration, err error) {
	outcome := "failed"
	switch {
	case err == nil:
		outcome = "acquired"
	case errors.Is(err, redlock.ErrContended):
		outcome = "contended"
	case errors.Is(err, redlock.ErrNoQuorum):
		outcome = "no_quorum"
	case errors.Is(err, redlock.ErrExpired):
		outcome = "expired"
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		outcome = "cancelled"
	}
	m.acquires.WithLabelValues(label(cluster), outcome).Observe(took.Seconds())
}

// label makes any text valid as a label: UTF-8 without control characters.
func label(s string) string { return safetext.Escape(s) }

// incarnations counts events on a node between two scrapes.
type incarnations struct {
	runID    string
	exposed  time.Duration // of that incarnation
	restarts uint64
	total    time.Duration // exposed, of all incarnations
}

func (m *Metrics) look() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.shown {
		if c.Guard == nil {
			continue
		}
		for _, s := range c.Guard.Status() {
			l := c.lives[s.Node]
			if l == nil {
				l = &incarnations{}
				c.lives[s.Node] = l
			}
			l.saw(s.RunID, s.Exposed)
		}
	}
}

func (l *incarnations) saw(runID string, exposed time.Duration) {
	if runID != "" && runID != l.runID {
		if l.runID != "" {
			l.restarts++
		}
		l.runID, l.exposed = runID, 0
	}
	if exposed < l.exposed { // another loss of the same incarnation
		l.exposed = 0
	}
	l.total += exposed - l.exposed
	l.exposed = exposed
}

// healthy returns why the process does not work; nil if it does. A stuck guard should be
// restarted; a blind one needs its password or rights. One working guard of several is
// enough: a restart of the process would stop it.
func (m *Metrics) healthy(cluster string) error {
	if sick, of := m.wrong(cluster, Cluster.healthy); len(sick) == of {
		return errors.Join(sick...)
	}
	return nil
}

// remarks returns what fails although the process works: the record.
func (m *Metrics) remarks(cluster string) error {
	failed, _ := m.wrong(cluster, func(c Cluster) error {
		if c.Record == nil || c.Record.Problem() == nil {
			return nil
		}
		return fmt.Errorf("nothing is recorded: %w", c.Record.Problem())
	})
	return errors.Join(failed...)
}

// ready returns what is not known yet; nil if all is known.
func (m *Metrics) ready(cluster string) error {
	missing, _ := m.wrong(cluster, Cluster.ready)
	return errors.Join(missing...)
}

// wrong returns the errors of the clusters, with their names if there are several, and the number
// of clusters.
func (m *Metrics) wrong(cluster string, with func(Cluster) error) (errs []error, of int) {
	clusters := m.clusters(cluster)
	for _, c := range clusters {
		err := with(c)
		if err != nil && len(clusters) > 1 {
			err = fmt.Errorf("%s: %w", c.Name, err)
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errs, len(clusters)
}

func (c Cluster) healthy() error {
	if c.Down != nil || c.Guard == nil {
		return c.Down
	}
	return cmp.Or(c.Guard.Healthy(), c.Guard.Sees())
}

func (c Cluster) ready() error {
	switch {
	case c.Down != nil:
		return c.Down
	case c.Guard != nil && !c.Guard.Met():
		return errors.New("the guard has not met all nodes yet")
	case c.Monitor == nil:
		return nil
	}
	s := c.Monitor.Snapshot()
	if s.Complete {
		return nil
	}
	why := make([]string, 0, len(s.Nodes))
	for _, n := range s.Unread() {
		why = append(why, n.Node+" "+n.Why)
	}
	return errors.New("not all keys have been read yet: " + strings.Join(why, ", "))
}

// clusters returns all clusters, or the one with a name.
func (m *Metrics) clusters(name string) (all []Cluster) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.shown {
		if name == "" || s.Name == name {
			all = append(all, s.Cluster)
		}
	}
	return all
}
