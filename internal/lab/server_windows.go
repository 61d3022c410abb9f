package lab

import (
	"errors"
	"os"
	"syscall"
)

// ChildAttr is nil: there are no process groups here.
func ChildAttr() *syscall.SysProcAttr { return nil }

// Pause fails: processes cannot be stopped here.
func (s *Server) Pause() error { return errors.ErrUnsupported }

// Resume fails as Pause does.
func (s *Server) Resume() error { return errors.ErrUnsupported }

func mapShared(*os.File, int) ([]byte, error) { return nil, errors.ErrUnsupported }
