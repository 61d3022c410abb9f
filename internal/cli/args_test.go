package cli

import (
	"io"
	"strings"
	"testing"

	"redlockctl/internal/cli/flags"
	"redlockctl/internal/cli/printer"
)

// What needs Unix is refused on Windows before anything is done, and nothing else is.
func TestWhatRunsOnWindows(t *testing.T) {
	root := newCommandLine(&printer.Printer{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard, Getenv: func(string) string { return "" }}).rootCommand()
	for line, runs := range map[string]bool{
		"guard": false, "run": false, "lab up": false, "lab down": false,
		"status": true, "locks": true, "guard status": true, "acquire": true, "revoke": true, "demo": true, "history": true, "audit show": true,
	} {
		cmd, _, err := root.Find(strings.Fields(line))
		if err != nil {
			t.Fatal(err)
		}
		if err := flags.RunsOn(cmd, "windows"); (err == nil) != runs {
			t.Errorf("%s on Windows: %v", line, err)
		}
		if err := flags.RunsOn(cmd, "freebsd"); err != nil {
			t.Errorf("%s on FreeBSD: %v", line, err)
		}
	}
}
