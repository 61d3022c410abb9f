//go:build !linux

package child

import "syscall"

// Attr only sets the process group: this system cannot kill a child with its parent.
func Attr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
