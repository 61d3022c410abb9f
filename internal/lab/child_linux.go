package lab

import "syscall"

// ChildAttr puts a child in a process group of its own, so that a Ctrl-C at our
// terminal does not reach it, and lets it die with us, whatever becomes of us.
func ChildAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
