// Package child starts processes in a process group of their own, so that a Ctrl-C on our
// terminal does not reach them. On Linux they are killed when this process ends.
package child

import (
	"os/exec"
	"runtime"

	"redlockctl/base/crash"
)

// Start starts a command and calls wait, which waits for its end. The command gets [Attr]
// if it has no attributes. ended is closed when wait has returned.
func Start(cmd *exec.Cmd, wait func()) (ended <-chan struct{}, err error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = Attr()
	}
	started, done := make(chan error), make(chan struct{})
	crash.Go(func() {
		defer close(done)
		// Linux kills the child when the thread that started it ends: keep this thread
		// until the child has ended.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			wait()
		}
	})
	return done, <-started
}
