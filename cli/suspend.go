package cli

import (
	"os"
	"os/signal"
	"syscall"

	"redlockctl/base/crash"
)

// unsuspended makes Ctrl-Z call tell instead of stopping this process, until end is called.
func unsuspended(tell func()) (end func()) {
	asked, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(asked, syscall.SIGTSTP)
	crash.Go(func() {
		for {
			select {
			case <-asked:
				tell()
			case <-done:
				return
			}
		}
	})
	return func() {
		signal.Stop(asked)
		close(done)
	}
}
