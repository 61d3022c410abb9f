package app

import (
	"os"
	"os/signal"
	"syscall"
)

// resumed tells each time that this process goes on after it was stopped, as by kill -STOP.
func resumed() <-chan os.Signal {
	on := make(chan os.Signal, 1)
	signal.Notify(on, syscall.SIGCONT)
	return on
}
