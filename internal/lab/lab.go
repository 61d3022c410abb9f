// Package lab runs masters for trying out and for testing: embedded ones in
// this process ([Embedded]), real redis-server processes that end with this
// process ([StartServers]), and real ones that outlive it ([Up] and [Down]). All
// listen on 127.0.0.1 only, keep nothing on disk, and start fenced by the
// boot fence: a master that crashed and comes back refuses writes until a
// guard, or [Unfence] in the first incarnation of a cluster, removes the fence.
package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"redlockctl/internal/lab/embedded"
	"redlockctl/redlock"
)

// Cluster is a set of masters that can be crashed. It is safe for use by many
// goroutines.
type Cluster interface {
	Nodes() []*redlock.Node
	// Crash ends master i at once, as SIGKILL does, and forgets its data.
	// Crashing a master that is down does nothing.
	Crash(i int) error
	// Restart brings master i back at the same address, empty and with its boot
	// fence. It fails if the master runs.
	Restart(i int) error
	// Up reports whether master i runs.
	Up(i int) bool
	// Close ends all masters. They cannot be restarted.
	Close() error
	// Pause stops master i, as SIGSTOP does: it keeps its data and connections and
	// answers nothing until Resume. It fails if the master is down.
	Pause(i int) error
	Resume(i int) error
	// incarnation is how often master i was started.
	incarnation(i int) int
}

// Shifter is a [Cluster] whose masters have clocks that can be moved, such as an
// embedded one.
type Shifter interface {
	// Shift moves the wall clock of master i by this much; it keeps its rate.
	Shift(i int, by time.Duration) error
}

// ErrNotFirstIncarnation is returned by [Unfence] when a master has been restarted: the
// votes of its earlier incarnation are lost, and only a guard that has waited may
// remove the fence.
var ErrNotFirstIncarnation = errors.New("not in its first incarnation")

// ErrClosed is returned by a cluster after its Close.
var ErrClosed = errors.New("the lab is closed")

// MostNodes is how many masters a lab or a demo may have: more cannot be watched.
const MostNodes = 15

// unfenceTimeout bounds each command to a master of our own on loopback.
const unfenceTimeout = 2 * time.Second

// Unfence removes the boot fence of all nodes: right only in the first incarnation of a
// new cluster, which has no votes to lose. It fails with [ErrNotFirstIncarnation] if a
// master has been restarted, and removes the fence of no later incarnation.
func Unfence(ctx context.Context, c Cluster) error {
	for i, node := range c.Nodes() {
		if err := unfenceFirst(ctx, c, i, node); err != nil {
			return fmt.Errorf("remove the fence of %s: %w", node.Name(), err)
		}
	}
	return nil
}

func unfenceFirst(ctx context.Context, c Cluster, i int, node *redlock.Node) error {
	// The one connection of this client is made by the PING. If the master is
	// still in its first incarnation after that, the connection belongs to this incarnation, and
	// so does everything sent through it.
	client := redlock.ConnectOnce(node, unfenceTimeout)
	defer client.Close()
	if err := client.Ping(ctx).Err(); err != nil {
		return err
	}
	if c.incarnation(i) != 1 {
		return ErrNotFirstIncarnation
	}
	return client.ConfigSet(ctx, embedded.ParamFence, "0").Err()
}

// ErrNoServer is returned when no redis-server is found.
var ErrNoServer = errors.New("no redis-server")

// lookServer finds the redis-server with the path or name bin.
func lookServer(bin string) (string, error) {
	path, err := exec.LookPath(bin)
	if err != nil {
		return "", fmt.Errorf("%w at %q: on Debian and Ubuntu, sudo apt-get install redis-server (%w)", ErrNoServer, bin, err)
	}
	return filepath.Abs(path)
}

// loopback is host:port of a server of the lab.
func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// flushTimeout bounds a FLUSHALL of a node that may hang.
const flushTimeout = 2 * time.Second

// Flush removes all keys of a node.
func Flush(n *redlock.Node) error {
	c := redlock.Connect(n, 1, flushTimeout)
	defer c.Close()
	return c.FlushAll(context.Background()).Err()
}
