package config

import (
	"context"
	"os/exec"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/windows"
)

// shell is a command that cmd.exe runs, that of the system and no other. It has rules of
// its own for quotes: the command reaches it as it is written.
func shell(ctx context.Context, command string) *exec.Cmd {
	system, err := windows.GetSystemDirectory()
	path := filepath.Join(system, "cmd.exe")
	cmd := exec.CommandContext(ctx, path)
	cmd.SysProcAttr = &syscall.SysProcAttr{CmdLine: `"` + path + `" /D /S /C "` + command + `"`}
	if err != nil {
		cmd.Err = err
	}
	return cmd
}
