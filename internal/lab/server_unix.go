//go:build unix

package lab

import (
	"os"
	"syscall"
)

// Pause stops the process (SIGSTOP): it stays connected and does not answer.
func (s *Server) Pause() error { return s.signal(syscall.SIGSTOP) }

// Resume continues a paused process.
func (s *Server) Resume() error { return s.signal(syscall.SIGCONT) }

// mapShared maps the beginning of a file, for as long as this process lives.
func mapShared(f *os.File, size int) ([]byte, error) {
	return syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
}
