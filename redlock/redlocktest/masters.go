// Package redlocktest has masters in the memory of this process, for tests of code that
// acquires locks with package redlock. They need no server, and a test can crash or stop
// a master or advance its clock.
//
//	masters := redlocktest.Start(t, 3)
//	client := masters.Client(t, redlock.Options{})
//	… the code that is tested, with client …
//	masters.Pass(time.Minute) // every TTL up to a minute has ended
//
// They answer lock clients as Redis 7.0 does, over TCP on loopback, but do not report
// changes (CLIENT TRACKING is denied): waiters try again after random pauses.
package redlocktest

import (
	"context"
	"fmt"
	"time"

	"redlockctl/internal/lab"
	"redlockctl/redlock"
)

// TB is the part of *testing.T and *testing.B that is needed.
type TB interface {
	Helper()
	Cleanup(func())
	Fatal(args ...any)
}

// Masters are independent masters. Their methods may be called by many goroutines.
// Methods that take the number of a master, from 0, panic if it does not exist.
type Masters struct {
	cluster *lab.EmbeddedCluster
}

// New starts n masters, named n1, n2, …, which serve at once. [Masters.Close] ends them.
func New(n int) (*Masters, error) {
	c, err := lab.Embedded(n)
	if err != nil {
		return nil, err
	}
	m := &Masters{c.(*lab.EmbeddedCluster)}
	if err := lab.Unfence(context.Background(), m.cluster); err != nil {
		_ = m.Close()
		return nil, err
	}
	return m, nil
}

// Start is [New] for a test; the masters end with it.
func Start(tb TB, n int) *Masters {
	tb.Helper()
	m, err := New(n)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = m.Close() })
	return m
}

// Nodes are the masters as [redlock.New] takes them.
func (m *Masters) Nodes() []*redlock.Node { return m.cluster.Nodes() }

// Client is a client over all masters, closed at the end of the test.
func (m *Masters) Client(tb TB, opt redlock.Options) *redlock.Client {
	tb.Helper()
	c, err := redlock.New(m.Nodes(), opt)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

// Pass advances the clocks of all masters by d: copies with a shorter TTL disappear.
// The clock of this process, which measures validity, does not change.
func (m *Masters) Pass(d time.Duration) {
	for i := range m.Nodes() {
		_ = m.cluster.Shift(i, d)
	}
}

// Crash ends a master as SIGKILL does: its connections are reset, its copies forgotten.
func (m *Masters) Crash(i int) error { return m.cluster.Crash(i) }

// Restart starts a crashed master without its copies. It starts fenced, as under a restart
// guard, and refuses locks until [Masters.Rejoin].
func (m *Masters) Restart(i int) error { return m.cluster.Restart(i) }

// Rejoin removes the fence of a master, as the guard does when every lock that the master
// may have forgotten has expired.
func (m *Masters) Rejoin(i int) error {
	c := redlock.ConnectOnce(m.Nodes()[i], rejoinTime)
	defer func() { _ = c.Close() }()
	if err := c.ConfigSet(context.Background(), "min-replicas-to-write", "0").Err(); err != nil {
		return fmt.Errorf("rejoin: %w", err)
	}
	return nil
}

const rejoinTime = 2 * time.Second

// Hang stops a master from answering until [Masters.Resume].
func (m *Masters) Hang(i int) error { return m.cluster.Pause(i) }

// Resume lets a hanging master continue.
func (m *Masters) Resume(i int) error { return m.cluster.Resume(i) }

// Close ends all masters.
func (m *Masters) Close() error { return m.cluster.Close() }
