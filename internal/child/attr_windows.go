package child

import "syscall"

// Attr is nil: there are no process groups here.
func Attr() *syscall.SysProcAttr { return nil }
