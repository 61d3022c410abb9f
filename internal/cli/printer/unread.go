package printer

import (
	"os"

	"golang.org/x/sys/unix"
)

// Unread reports whether standard output is a pipe that nobody reads any more: while nothing
// happens there is nothing to write, and so no failure to tell.
func (p *Printer) Unread() bool {
	f, ok := p.Bare().(*os.File)
	if !ok {
		return false
	}
	fds := []unix.PollFd{{Fd: int32(f.Fd())}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0 && fds[0].Revents&(unix.POLLERR|unix.POLLNVAL) != 0
}
