// Package redlocktest has masters in the memory of this process, for tests of code that
// takes locks by package redlock: no server has to be there, and a master can be crashed,
// stopped or cut short of time at will.
//
//	masters := redlocktest.Start(t, 3)
//	client := masters.Client(t, redlock.Options{})
//	… the code that is tested, with client …
//	masters.Pass(time.Minute) // every TTL up to a minute is over
//
// They answer what lock clients send as Redis 7.0 does, over TCP on loopback, but tell of
// no changes (CLIENT TRACKING is denied): who waits for a lock tries again and again.
package redlocktest

import (
	"context"
	"fmt"
	"time"

	"redlockctl/internal/lab"
	"redlockctl/redlock"
)

// TB is what a test gives; *testing.T and *testing.B are one.
type TB interface {
	Helper()
	Cleanup(func())
	Fatal(args ...any)
}

// Masters are independent masters. Their methods may be called by many goroutines. A
// method that takes the number of a master, from 0, panics if there is none.
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

// Start is [New] for a test, with the end of which they end.
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

// Pass has d pass on the clocks of all masters: each copy whose TTL is not longer is
// gone. The clock of this process, by which validity is counted, does not move.
func (m *Masters) Pass(d time.Duration) {
	for i := range m.Nodes() {
		_ = m.cluster.Shift(i, d)
	}
}

// Crash ends a master as SIGKILL does: its connections are reset, its copies forgotten.
func (m *Masters) Crash(i int) error { return m.cluster.Crash(i) }

// Restart starts a master that was crashed, empty. It starts fenced, as one that a restart
// guard watches, and refuses locks until [Masters.Rejoin].
func (m *Masters) Restart(i int) error { return m.cluster.Restart(i) }

// Rejoin removes the fence of a master, as the guard does when no lock that the master may
// have forgotten can be believed in any more.
func (m *Masters) Rejoin(i int) error {
	c := m.Nodes()[i].OneConnection(rejoinTime)
	defer func() { _ = c.Close() }()
	if err := c.ConfigSet(context.Background(), "min-replicas-to-write", "0").Err(); err != nil {
		return fmt.Errorf("rejoin: %w", err)
	}
	return nil
}

const rejoinTime = 2 * time.Second

// Hang has a master answer nothing until [Masters.Resume].
func (m *Masters) Hang(i int) error { return m.cluster.Pause(i) }

// Resume has a master that hangs go on.
func (m *Masters) Resume(i int) error { return m.cluster.Resume(i) }

// Close ends all masters.
func (m *Masters) Close() error { return m.cluster.Close() }
