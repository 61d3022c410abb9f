package cli

import (
	"bytes"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"redlockctl/cli/printer"
)

// runBare runs the command line without a terminal, with a home of its own and no configuration.
func runBare(t *testing.T, args ...string) (out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	home := t.TempDir()
	a := newCommandLine(&printer.Printer{In: strings.NewReader(""), Out: &o, Err: &e, Getenv: func(name string) string {
		return map[string]string{"HOME": home}[name]
	}})
	a.main(t.Context(), args)
	return o.String(), e.String()
}

// A command lists --config on its page of help if and only if it reads the configuration.
func TestCommonFlagsAreShownWhereTheyWork(t *testing.T) {
	arguments := map[string]string{
		"acquire": "a", "extend": "a --token t", "release": "a --token t", "force-release": "a --reason r", "revoke": "a --reason r", "who": "a",
		"run": "a", "restart": "n1", "node cordon": "n1 --reason r", "node uncordon": "n1 --reason r", "node rejoin": "n1 --now --reason r", "node drain": "n1 --reason r",
		"node wait": "n1", "node boot-fence": "n1", "guard forget": "g --reason r", "replay": "--at 03:12", "demo": "--plain --for 1ns --nodes 1 --clients 0",
	}
	missing := filepath.Join(t.TempDir(), "missing.toml")
	for _, cmd := range everyCommand(newCommandLine(&printer.Printer{}).rootCommand()) {
		_, path, _ := strings.Cut(cmd.CommandPath(), " ")
		if path == "lab up" || strings.HasPrefix(path, "completion") || cmd.HasSubCommands() && !cmd.Flags().HasFlags() { // it starts servers; cobra prints it elsewhere
			continue
		}
		args := append(append(strings.Fields(path), strings.Fields(arguments[path])...), "--config", missing)
		if path == "run" || path == "restart" {
			args = append(args, "--", "true")
		}
		_, errOut := runBare(t, args...)
		page, _ := runBare(t, append(strings.Fields(path), "--help")...)
		if reads, lists := strings.Contains(errOut, "missing.toml"), strings.Contains(page, " --config "); reads != lists {
			t.Errorf("redlockctl %s: reads the configuration: %v; lists --config: %v; it says %q", path, reads, lists, errOut)
		}
	}
	for _, path := range []string{"demo", "lab up", "lab down", "version", "schema", "man", "completion bash"} {
		for _, args := range [][]string{append(strings.Fields(path), "--help"), append(append([]string{"__complete"}, strings.Fields(path)...), "--tls"), append([]string{"man"}, strings.Fields(path)...)} {
			if out, _ := runBare(t, args...); strings.Contains(strings.ReplaceAll(out, `\`, ""), "--tls-key") {
				t.Errorf("redlockctl %s offers --tls-key, which does nothing for %s", strings.Join(args, " "), path)
			}
		}
	}
	if out, _ := runBare(t, "__complete", "locks", "--tls"); !strings.Contains(out, "--tls-key") {
		t.Errorf("completion after redlockctl locks does not offer --tls-key: %s", out)
	}
}

// Each common flag is in a group, and the tables name commands and flags that exist.
func TestFlagGroupsNameWhatExists(t *testing.T) {
	root := newCommandLine(&printer.Printer{}).rootCommand()
	var paths []string
	for _, cmd := range everyCommand(root) {
		_, path, _ := strings.Cut(cmd.CommandPath(), " ")
		paths = append(paths, path)
	}
	root.PersistentFlags().VisitAll(func(f *pflag.Flag) {
		if groupOf(root, f) == 0 {
			t.Errorf("--%s is in no group", f.Name)
		}
	})
	for name, useless := range uselessFlags {
		if root.PersistentFlags().Lookup(name) == nil || !slices.ContainsFunc(paths, useless) {
			t.Errorf("--%s: no such flag, or no command that has no use for it", name)
		}
	}
}

// A page of help has the groups in order, no line too long, and is bold on a terminal only.
func TestHelpPage(t *testing.T) {
	page, _ := runBare(t, "locks", "--help")
	order := regexp.MustCompile(`(?m)^[A-Z].*:$`).FindAllString(page, -1)
	if want := []string{"Usage:", "Examples:", "Flags:", "Which masters:", "Login and TLS, with --nodes:", "Output:"}; !slices.Equal(order, want) {
		t.Errorf("the groups are %q, not %q", order, want)
	}
	_, shown, _ := strings.Cut(page, "\nFlags:\n")
	for line := range strings.Lines(shown) {
		if len([]rune(line)) > 101 {
			t.Errorf("a line has %d characters: %s", len([]rune(line)), line)
		}
	}
	if strings.Contains(page, "\x1b") {
		t.Error("escape codes where no terminal is")
	}
	var out bytes.Buffer
	a := newCommandLine(&printer.Printer{Out: &out, Err: &out, OutTTY: true, Getenv: func(string) string { return "" }})
	if a.main(t.Context(), []string{"locks", "--help"}); !strings.Contains(out.String(), "\x1b[1mOutput:\x1b[") {
		t.Errorf("no bold title on a terminal: %q", out.String())
	}
	out.Reset()
	if a.main(t.Context(), []string{"locks", "--help", "--no-color"}); strings.Contains(out.String(), "\x1b") {
		t.Error("escape codes with --no-color")
	}
}
