// Package child starts processes in a process group of their own, so that a Ctrl-C at our
// terminal does not reach them, and lets them die with this process where the system can.
package child

import (
	"os/exec"
	"runtime"

	"redlockctl/base/crash"
)

// Start starts a command, with [Attr] where it has no attributes, and wait, which waits
// for its end. ended is closed when wait has returned.
func Start(cmd *exec.Cmd, wait func()) (ended <-chan struct{}, err error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = Attr()
	}
	started, done := make(chan error), make(chan struct{})
	crash.Go(func() {
		defer close(done)
		// Where the kernel ends the child with its parent, the parent is the thread that
		// started it: this one, which stays as long as the child.
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
