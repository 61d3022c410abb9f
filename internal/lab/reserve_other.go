//go:build !linux

package lab

import "net"

// reserve reports whether nobody listens on a loopback port at this moment.
func reserve(port int) error {
	l, err := net.Listen("tcp", loopback(port))
	if err != nil {
		return err
	}
	return l.Close()
}
