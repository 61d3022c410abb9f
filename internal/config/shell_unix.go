//go:build unix

package config

import (
	"context"
	"os/exec"
)

// shell is a command that the shell runs.
func shell(ctx context.Context, command string) *exec.Cmd {
	return exec.CommandContext(ctx, "sh", "-c", command)
}
