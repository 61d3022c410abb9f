package lab

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"

	"redlockctl/redlock"
)

// processes is a [Cluster] of real servers.
type processes struct {
	dir     string
	nodes   []*redlock.Node
	servers []*Server

	mu     sync.Mutex
	starts []int
	closed bool
}

// Processes starts n masters named n1, n2, … as processes of the redis-server
// at path, on free loopback ports, fenced by their boot fence (see [Unfence]). Crash
// kills the process with SIGKILL. They end with this process, and their files,
// in a temporary directory, with Close.
func Processes(path string, n int) (Cluster, error) {
	if n < 1 {
		return nil, fmt.Errorf("a cluster of %d masters", n)
	}
	path, err := lookServer(path)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "redlockctl-lab-")
	if err != nil {
		return nil, err
	}
	c := &processes{dir: dir}
	for i := range n {
		s, err := StartServer(path, "n"+strconv.Itoa(i+1), dir, BootFence...)
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		c.servers = append(c.servers, s)
		c.nodes = append(c.nodes, s.Node())
		c.starts = append(c.starts, 1)
	}
	return c, nil
}

func (c *processes) Nodes() []*redlock.Node { return slices.Clone(c.nodes) }
func (c *processes) Crash(i int) error      { return c.servers[i].Kill() }
func (c *processes) Up(i int) bool          { return c.servers[i].Up() }

func (c *processes) Pause(i int) error  { return c.servers[i].Pause() }
func (c *processes) Resume(i int) error { return c.servers[i].Resume() }

func (c *processes) Restart(i int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return fmt.Errorf("start %s: %w", c.nodes[i].Name(), ErrClosed)
	}
	// Counted before it starts, so that nobody takes the new incarnation for the first.
	c.starts[i]++
	return c.servers[i].Start()
}

func (c *processes) incarnation(i int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.starts[i]
}

func (c *processes) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	var errs []error
	for _, s := range c.servers {
		errs = append(errs, s.Kill())
	}
	return errors.Join(append(errs, os.RemoveAll(c.dir))...)
}
