package lab

import "golang.org/x/sys/unix"

// reserve binds a loopback port until this process ends, without listening. It fails if
// the port is already reserved or in use; a server that sets SO_REUSEADDR, as
// redis-server and Go do, can still listen on it.
func reserve(port int) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if err = unix.Bind(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}); err == nil {
		// Only after bind: a bind with SO_REUSEADDR ignores all other such sockets that
		// do not listen.
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	}
	if err != nil {
		_ = unix.Close(fd)
	}
	return err
}
