package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"redlockctl/redlock"
)

// Servers is a [Cluster] of real servers.
type Servers []*Server

// StartServers starts n masters named n1, n2, … as processes of the redis-server at path,
// on free loopback ports, with args: with [BootFence] they start fenced. They end with
// this process; Close removes their files, which are in a temporary directory.
func StartServers(path string, n int, args ...string) (Servers, error) {
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
	var c Servers
	for i := range n {
		s, err := StartServer(path, "n"+strconv.Itoa(i+1), dir, args...)
		if err != nil {
			return nil, errors.Join(err, c.Close(), os.RemoveAll(dir))
		}
		c = append(c, s)
	}
	return c, nil
}

func (c Servers) Nodes() (nodes []*redlock.Node) {
	for _, s := range c {
		nodes = append(nodes, s.Node())
	}
	return nodes
}

func (c Servers) Crash(i int) error   { return c[i].Kill() }
func (c Servers) Restart(i int) error { return c[i].Start() }
func (c Servers) Up(i int) bool       { return c[i].Up() }
func (c Servers) Pause(i int) error   { return c[i].Pause() }
func (c Servers) Resume(i int) error  { return c[i].Resume() }

func (c Servers) incarnation(i int) int {
	c[i].mu.Lock()
	defer c[i].mu.Unlock()
	return c[i].starts
}

// Close ends them and removes their files.
func (c Servers) Close() error {
	var errs []error
	for _, s := range c {
		s.mu.Lock()
		s.closed = true
		errs = append(errs, s.kill())
		s.mu.Unlock()
		errs = append(errs, os.RemoveAll(filepath.Dir(s.dir)))
	}
	return errors.Join(errs...)
}

// NodesConfig returns the servers as nodes of a configuration file.
func (c Servers) NodesConfig() string {
	var text strings.Builder
	for _, s := range c {
		fmt.Fprintf(&text, "[[nodes]]\nname = %q\naddr = %q\n", s.name, s.addr)
	}
	return text.String()
}
