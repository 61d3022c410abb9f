//go:build unix

package supervise

import (
	"cmp"
	"crypto/rand"
	"os"
	"syscall"

	"redlockctl/restartguard"
)

// HandedOn are the signals that a server gets when its supervisor does.
func HandedOn() []os.Signal {
	return []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2}
}

// host is the clock of this host. Where the boot cannot be told it is good for this process
// only: to the next supervisor its moments are of another boot, so that it waits the whole of D.
type host struct{ boot string }

func newHost() (host, error) { return host{cmp.Or(restartguard.BootID(), rand.Text())}, nil }

func (h host) now() Moment { return Moment{Boot: h.boot, At: restartguard.BootTime()} }
