//go:build !linux

package child

import "syscall"

// Attr cannot have the child die with us here.
func Attr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
