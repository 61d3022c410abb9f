package restart

import "syscall"

// attr puts a command into its own process group, so that Ctrl-C does not reach it.
func attr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
