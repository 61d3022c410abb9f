//go:build unix && !linux

package run

import "syscall"

// dieWithUs is not possible here.
func dieWithUs(*syscall.SysProcAttr) {}
