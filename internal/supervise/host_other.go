//go:build unix && !linux

package supervise

import (
	"crypto/rand"
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
