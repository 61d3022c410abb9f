package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"redlockctl/cli/printer"
)

// Each command is run by a script, and is refused or fails in one.
func TestEveryCommandHasScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var runs, errors []string // what follows the program's name
	line := regexp.MustCompile(`(?m)^(exec|exits (\d+)|! exec|start \w+|until \S+ .*?) redlockctl (.*)$`)
	flags := regexp.MustCompile(`(^| )(--(config|cluster|output)[= ]\S+|-o \S+|--read-only|--ascii|--no-color)`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range line.FindAllStringSubmatch(string(text), -1) {
			words := strings.TrimSpace(flags.ReplaceAllString(m[3], "")) + " "
			if m[1] == "! exec" || m[2] != "" && m[2] != "0" {
				errors = append(errors, words)
			} else {
				runs = append(runs, words)
			}
		}
	}
	has := func(lines []string, path string) bool {
		for _, l := range lines {
			if strings.HasPrefix(l, path) {
				return true
			}
		}
		return false
	}
	a := newCommandLine(&printer.Printer{Getenv: func(string) string { return "" }})
	for _, cmd := range append(everyCommand(a.rootCommand()), a.manCommand()) {
		path := strings.TrimPrefix(cmd.CommandPath(), "redlockctl")
		path = strings.TrimSpace(path) + " "
		if path == " " || strings.HasPrefix(path, "completion ") || cmd.HasSubCommands() && !cmd.Flags().HasFlags() {
			continue
		}
		if !has(runs, path) {
			t.Errorf("no script runs redlockctl %s", path)
		}
		if !has(errors, path) {
			t.Errorf("no script has redlockctl %s fail", path)
		}
	}
}
