package lab

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/internal/lab/embedded"
	"redlockctl/redlock"
)

// EmbeddedCluster is a [Cluster] of masters in this process.
type EmbeddedCluster struct {
	nodes   []*redlock.Node
	masters []*master
}

// Embedded starts n masters named n1, n2, … in this process, fenced by their boot fence (see
// [Unfence]); the cluster is an [*EmbeddedCluster]. Clients reach them by TCP; they support what a
// console and lock clients need of Redis 7.0, and obey the fence as a real server does. Each has
// its own wall clock, by which its copies expire; the clocks differ by a few milliseconds and a few
// ppm.
//
// They differ from a real server in this: SCAN returns everything at once,
// CLIENT TRACKING is denied, INFO and CONFIG are not allowed inside MULTI, and a
// clock that is set back does not prolong the TTLs.
func Embedded(n int) (Cluster, error) {
	if n < 1 {
		return nil, fmt.Errorf("a cluster of %d masters", n)
	}
	c := &EmbeddedCluster{}
	now := time.Now()
	for i := range n {
		m := &master{name: "n" + strconv.Itoa(i+1), clock: embedded.NewClock(i, now)}
		if err := m.startFirst(); err != nil {
			return nil, errors.Join(err, c.Close())
		}
		c.masters = append(c.masters, m)
		node, err := redlock.NewNode(m.name, &redis.Options{Addr: m.addr})
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		c.nodes = append(c.nodes, node)
	}
	return c, nil
}

// Nodes returns the masters as the lock core uses them.
func (c *EmbeddedCluster) Nodes() []*redlock.Node { return slices.Clone(c.nodes) }

// Crash resets all connections of master i at once; its port refuses, and its data is
// lost.
func (c *EmbeddedCluster) Crash(i int) error {
	c.masters[i].crash(false)
	return nil
}

// Restart starts master i at the same port, empty, with a new run_id, and fenced before
// it accepts the first connection.
func (c *EmbeddedCluster) Restart(i int) error { return c.masters[i].restart() }

// Up reports whether master i runs.
func (c *EmbeddedCluster) Up(i int) bool {
	m := c.masters[i]
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.inst != nil
}

func (c *EmbeddedCluster) incarnation(i int) int {
	m := c.masters[i]
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.starts
}

// Skew sets the wall clock of master i, from now on, to offset after (negative:
// before) that of this process; it keeps its rate. A step forward expires copies
// early, as on a real server.
func (c *EmbeddedCluster) Skew(i int, offset time.Duration) {
	c.masters[i].clock.Adjust(time.Now(), offset)
}

// Shift moves the wall clock of master i by this much; it keeps its rate.
func (c *EmbeddedCluster) Shift(i int, by time.Duration) error {
	now := time.Now()
	clock := c.masters[i].clock
	clock.Adjust(now, clock.At(now).Sub(now.Round(0))+by)
	return nil
}

// Pause stops master i from answering until Resume.
func (c *EmbeddedCluster) Pause(i int) error { return c.masters[i].stand(true) }

// Resume lets master i continue.
func (c *EmbeddedCluster) Resume(i int) error { return c.masters[i].stand(false) }

// Close ends all masters.
func (c *EmbeddedCluster) Close() error {
	for _, m := range c.masters {
		m.crash(true)
	}
	return nil
}

// master is one embedded master over all its incarnations.
type master struct {
	name  string
	addr  string
	clock *embedded.Clock

	mu     sync.Mutex
	inst   *embedded.Instance // nil while down
	starts int
	closed bool
}

// startFirst starts the first incarnation on a free port.
func (m *master) startFirst() error {
	for try := 1; ; try++ {
		port, err := FreePort()
		if err != nil {
			return fmt.Errorf("start %s: %w", m.name, err)
		}
		m.addr = loopback(port)
		// Another process may have taken the port.
		if err = m.restart(); err == nil || try == portTries {
			return err
		}
	}
}

func (m *master) restart() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.closed:
		return fmt.Errorf("start %s: %w", m.name, ErrClosed)
	case m.inst != nil:
		return fmt.Errorf("start %s: it runs already", m.name)
	}
	inst, err := embedded.Start(m.addr, m.clock)
	if err != nil {
		return fmt.Errorf("start %s: %w", m.name, err)
	}
	m.inst = inst
	m.starts++
	return nil
}

func (m *master) stand(still bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.inst == nil {
		return fmt.Errorf("%s is down", m.name)
	}
	m.inst.Hang(still)
	return nil
}

// crash ends the present incarnation, if the master runs.
func (m *master) crash(last bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.inst != nil {
		m.inst.End()
		m.inst = nil
	}
	m.closed = m.closed || last
}
