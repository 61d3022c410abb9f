package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"redlockctl/base/crash"
)

// endAtHangUp makes SIGHUP end the command as an interrupt does, but not under nohup. A terminal
// or an ssh session sends it when it ends, often twice: further ones do nothing.
func (a *commandLine) endAtHangUp() {
	if a.hangup != nil && !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(a.hangup, syscall.SIGHUP)
	}
}

// untilTerminalGone returns a context that ends too when the terminal of this process is gone, which
// then calls tell. It is for a process to which SIGHUP means something else while its terminal is
// there, or if it never had one, as under systemd. It does nothing under nohup.
func untilTerminalGone(ctx context.Context, tell func()) (context.Context, context.CancelFunc) {
	if signal.Ignored(syscall.SIGHUP) || !hasTerminal() {
		return ctx, func() {}
	}
	ctx, stop := context.WithCancel(ctx)
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	crash.Go(func() {
		defer signal.Stop(hangup)
		for {
			select {
			case <-ctx.Done():
				return
			case <-hangup:
			}
			time.Sleep(terminalGoes)
			if !hasTerminal() {
				tell()
				stop()
				return
			}
		}
	})
	return ctx, stop
}

// terminalGoes is how much later than the shell's SIGHUP the terminal may be gone.
const terminalGoes = 100 * time.Millisecond

// hasTerminal reports whether this process has a controlling terminal.
func hasTerminal() bool {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return false
	}
	_ = tty.Close()
	return true
}
