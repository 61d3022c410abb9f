package run

import "syscall"

// dieWithUs has a command killed when we are, whatever becomes of us. A command
// that changes its user or gains rights (setuid) escapes from that.
func dieWithUs(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
