package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Another module takes the library from a checkout by the commands that README.md gives.
func TestLibraryFromACheckout(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(readme), "\n## In a Go program\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var commands []string
	for line := range strings.Lines(section) {
		if command, ok := strings.CutPrefix(line, "    "); ok {
			commands = append(commands, strings.TrimSpace(command))
		}
	}
	if !found || len(commands) == 0 {
		t.Fatal("README.md does not say how a Go program takes the library")
	}
	dir := t.TempDir()
	checkout, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(checkout, filepath.Join(dir, "redlockctl")); err != nil {
		t.Fatal(err)
	}
	app := filepath.Join(dir, "app")
	if err := os.Mkdir(app, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"go.mod":  "module example.com/app\n\ngo 1.26\n", // without a version, go loads what every dependency of a dependency needs
		"main.go": "package main\n\nimport _ \"redlockctl/redlock\"\n\nfunc main() {}\n",
	} {
		if err := os.WriteFile(filepath.Join(app, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, command := range append(commands, "go list -deps -test=false .") {
		cmd := exec.Command("sh", "-c", command)
		cmd.Dir = app
		if out, err := cmd.CombinedOutput(); err != nil || strings.HasPrefix(command, "go list") && !strings.Contains(string(out), "redlockctl/redlock/attempt") {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
	}
}
