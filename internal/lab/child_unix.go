//go:build unix && !linux

package lab

import "syscall"

// ChildAttr puts a child in a process group of its own, so that a Ctrl-C at our
// terminal does not reach it. There is no way here to let it die with us.
func ChildAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
