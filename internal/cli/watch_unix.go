//go:build unix

package cli

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// unread reports whether out is a pipe that nobody reads any more: while nothing
// happens there is nothing to write, and so no failure to tell.
func unread(out io.Writer) bool {
	f, ok := bareOut(out).(*os.File)
	if !ok {
		return false
	}
	fds := []unix.PollFd{{Fd: int32(f.Fd())}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0 && fds[0].Revents&(unix.POLLERR|unix.POLLNVAL) != 0
}
