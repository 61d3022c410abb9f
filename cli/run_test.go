package cli

import (
	"io/fs"
	"os/exec"
	"testing"
	"time"

	"redlockctl/cli/exit"
	"redlockctl/internal/run"
)

func TestExitCodeOfACommand(t *testing.T) {
	for _, test := range []struct {
		name string
		err  error
		want exit.Code
	}{
		{"success", exitError(0, nil), 0},
		{"failure", exitError(3, nil), 3},
		{"not started", exitError(0, run.StartError{Err: exec.ErrNotFound}), 127},
		{"not found", cannotRun(&exec.Error{Name: "x", Err: exec.ErrNotFound}), 127},
		{"not there", cannotRun(&exec.Error{Name: "./x", Err: fs.ErrNotExist}), 127},
		{"not executable", cannotRun(&exec.Error{Name: "./x", Err: fs.ErrPermission}), 126},
		{"ended by us", run.LostError{Name: "a", Left: time.Second}, 5},
	} {
		if got := exit.Of(test.err); got != test.want {
			t.Errorf("%s: %d, want %d", test.name, got, test.want)
		}
	}
}
