package restart

import "syscall"

// attr keeps the interrupt of a terminal from a command.
func attr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
