//go:build unix && !linux

package lab

import "syscall"

// childAttr puts a child in a process group of its own, so that a Ctrl-C at our
// terminal does not reach it. There is no way here to let it die with us.
func childAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
