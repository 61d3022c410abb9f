//go:build unix

package supervise

import (
	"os"
	"syscall"
)

// HandedOn are the signals that a server gets when its supervisor does.
func HandedOn() []os.Signal {
	return []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2}
}
