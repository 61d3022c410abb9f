package printer

import (
	"os"

	"golang.org/x/sys/unix"
)

// Unread reports whether standard output is a pipe without a reader. A command that has
// nothing to write notices it only this way.
func (p *Printer) Unread() bool {
	f, ok := p.Bare().(*os.File)
	if !ok {
		return false
	}
	fds := []unix.PollFd{{Fd: int32(f.Fd())}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0 && fds[0].Revents&(unix.POLLERR|unix.POLLNVAL) != 0
}
