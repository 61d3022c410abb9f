package app

import (
	"net"
	"slices"
	"strconv"
	"time"

	"redlockctl/internal/config"
	"redlockctl/internal/lab"
)

// LocalPorts is how many servers a configuration names, and the port of the first
// one, if all are on loopback with one port after the other; else 0.
func LocalPorts(cfg *config.Config) (n, first int) {
	if cfg == nil {
		return 0, 0
	}
	for i, node := range cfg.Nodes {
		host, text, err := net.SplitHostPort(node.Addr)
		port, perr := strconv.Atoi(text)
		if err != nil || perr != nil || host != "127.0.0.1" && host != "localhost" || i > 0 && port != first+i {
			return 0, 0
		}
		if i == 0 {
			first = port
		}
	}
	return len(cfg.Nodes), first
}

// NamesAll reports whether a configuration names each of these servers.
func NamesAll(cfg *config.Config, started []lab.Started) bool {
	_, first := LocalPorts(cfg)
	for i, s := range started {
		if s.Addr != net.JoinHostPort("127.0.0.1", strconv.Itoa(first+i)) {
			return false
		}
	}
	return first > 0
}

// Recalled is the directory of the guard that remembers former servers at the
// addresses of new ones, which serve, and for how long it will fence those;
// empty if there is none. Without a configuration (nil) there is no guard either.
func Recalled(cfg *config.Config, started []lab.Started) (dir string, delay time.Duration) {
	if cfg == nil {
		return "", 0
	}
	memory, err := Remembered(cfg)
	if err != nil {
		return "", 0
	}
	for _, m := range memory {
		if slices.ContainsFunc(started, func(s lab.Started) bool { return s.Opened && s.Addr == m.Addr }) {
			return cfg.Guard.StateDir, cfg.Guard.Delay
		}
	}
	return "", 0
}
