//go:build !linux

package cli

import "syscall"

// dieWithUs is not possible here.
func dieWithUs(*syscall.SysProcAttr) {}
