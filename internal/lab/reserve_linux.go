package lab

import "golang.org/x/sys/unix"

// reserve binds a loopback port for as long as this process lives, without listening.
// A second one is refused, and so is one where somebody listens; a server that sets
// SO_REUSEADDR, as redis-server and Go do, can listen there.
func reserve(port int) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if err = unix.Bind(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}); err == nil {
		// Only now: whoever binds with it passes by all that has it and does not listen.
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	}
	if err != nil {
		_ = unix.Close(fd)
	}
	return err
}
