package restart

import "syscall"

func attr() *syscall.SysProcAttr { return nil }
