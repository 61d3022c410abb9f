package supervise

import (
	"errors"
	"os"
)

// HandedOn is empty: there is no supervisor here.
func HandedOn() []os.Signal { return nil }

type host struct{}

// newHost refuses: a lock that the server inherits, and signals to hand on, are what
// supervising rests on.
func newHost() (host, error) {
	return host{}, errors.New("a server cannot be supervised on Windows")
}

func (host) now() Moment { return Moment{} }
