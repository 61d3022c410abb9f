package cli

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"
)

// subcommands returns the commands of the CLI, by full name.
func subcommands(t *testing.T, of ...string) (names []string) {
	t.Helper()
	var out bytes.Buffer
	if code := Main(append(append([]string{"__complete"}, of...), ""), nil, &out, &bytes.Buffer{}); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	for line := range strings.Lines(out.String()) {
		name, help, ok := strings.Cut(strings.TrimSpace(line), "\t")
		if !ok || name == "" || help == "" || len(of) > 0 && slices.Contains([]string{"run", "completion", "help"}, of[0]) {
			continue
		}
		names = append(names, strings.Join(append(slices.Clone(of), name), " "))
	}
	return names
}

// The screen's commands have the same names as in the CLI. Those that only a screen has
// are listed here.
func TestCommandsAreThoseOfTheCLI(t *testing.T) {
	known := map[string]bool{}
	for _, name := range subcommands(t) {
		known[name] = true
		if slices.Contains([]string{"node", "clusters", "guard", "lab", "audit", "config"}, name) {
			for _, sub := range subcommands(t, name) {
				known[sub] = true
			}
		}
	}
	if !known["node cordon"] || !known["force-release"] || len(known) < 30 {
		t.Fatalf("the commands were not found: %v", known)
	}
	onlyHere := []string{
		"overview", "events", "findings", "lab", // pages
		"filter", "sort", "columns", "wide", "theme", "ascii", "cluster", // flags there
		"mark", "mouse", "freeze", "follow", "copy", "copy-page", "redraw", "quit",
		"crash", "stop", "continue", "skew", "flush",
	}
	names, err := os.ReadFile("../tui/testdata/commands.txt") // a test of tui compares it
	if err != nil {
		t.Fatal(err)
	}
	here := map[string]bool{}
	for name := range strings.Lines(string(names)) {
		name = strings.TrimSuffix(name, "\n")
		here[name] = true
		if !known[name] && !slices.Contains(onlyHere, name) {
			t.Errorf("there is no command redlockctl %s", name)
		}
		if known[name] && slices.Contains(onlyHere, name) && name != "lab" {
			t.Errorf("redlockctl %s is a command too", name)
		}
	}
	for _, name := range []string{
		"status", "locks", "nodes", "watch", "doctor", "who", "replay", "guard status", "clusters status",
		"acquire", "extend", "release", "revoke", "force-release", "node cordon", "node drain", "node uncordon", "node rejoin", "help",
	} {
		if !here[name] {
			t.Errorf("the screen has no command %s", name)
		}
	}
}
