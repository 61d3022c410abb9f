//go:build unix && !linux

package supervise

import (
	"crypto/rand"
	"syscall"
	"time"
)

// host is a clock that is good for this process only: to the next supervisor its
// moments are of another boot, so that it waits the whole of D.
type host struct {
	boot  string
	start time.Time
}

func newHost() (host, error) { return host{rand.Text(), time.Now()}, nil }

func (h host) now() Moment { return Moment{Boot: h.boot, At: time.Since(h.start)} }

// childAttr puts the server into a process group of its own, so that a Ctrl-C at
// the terminal reaches it once, through us. There is no way here to let it end
// with us; the lock that it inherits tells that it lives.
func childAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
