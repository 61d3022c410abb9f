package child

import "syscall"

// Attr has the child die with us, whatever becomes of us. One that changes its user or
// gains rights (setuid) escapes from that.
func Attr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
