package child

import "syscall"

// Attr returns attributes with which the kernel kills the child when this process ends. A
// child that changes its user or gains rights (setuid) is not killed.
func Attr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
