package cli

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"redlockctl/cli/printer"
	"redlockctl/internal/lab/labtest"
)

const house = ".."

// manuals are all pages that people read, by their path in the repository.
func manuals(t *testing.T) map[string]string {
	t.Helper()
	var paths []string
	for _, pattern := range []string{"*.md", "docs/*.md", "deploy/systemd/*.service", "deploy/systemd/*/*.conf", "deploy/prometheus/*"} {
		found, err := filepath.Glob(filepath.Join(house, pattern))
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, found...)
	}
	pages := map[string]string{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name, err := filepath.Rel(house, path)
		if err != nil {
			t.Fatal(err)
		}
		pages[name] = string(text)
	}
	if len(pages) < 10 {
		t.Fatalf("only %d pages", len(pages))
	}
	return pages
}

// example is a command as a page gives it.
type example struct {
	line  int
	words []string
	whole bool // all of it is there, its arguments too: not just named in a sentence
}

var (
	prompt  = regexp.MustCompile(`^\s*\$ `)
	inline  = regexp.MustCompile("`([^`]*)`")
	program = regexp.MustCompile(`(?:^|[\s=(|])(?:(?:\S*/)?redlockctl|go run \.) +(.*)`)
	// elsewhere: `go run .` in a line that goes into another module first.
	elsewhere = regexp.MustCompile(`\bcd bench\b`)
)

// examples finds the commands of this program in a page: in blocks of code, where
// lines with a prompt are the commands if there are any, and in `backquotes`.
func examples(page string, unit bool) (found []example) {
	lines := strings.Split(page, "\n")
	take := func(n int, text string, whole bool) {
		if elsewhere.MatchString(text) {
			return
		}
		if m := program.FindStringSubmatch(text); m != nil {
			if words := shellWords(m[1]); len(words) > 0 {
				found = append(found, example{n + 1, words, whole})
			}
		}
	}
	for i := 0; i < len(lines); i++ {
		if unit {
			if strings.Contains(lines[i], "Exec") {
				take(i, lines[i], true)
			}
			continue
		}
		fence := strings.HasPrefix(strings.TrimSpace(lines[i]), "```")
		if !fence && !strings.HasPrefix(lines[i], "    ") {
			for _, m := range inline.FindAllStringSubmatch(lines[i], -1) {
				if strings.HasPrefix(m[1], "redlockctl ") {
					take(i, m[1], false)
				}
			}
			continue
		}
		end := i + 1
		for end < len(lines) && (fence && !strings.HasPrefix(strings.TrimSpace(lines[end]), "```") || !fence && strings.HasPrefix(lines[end], "    ")) {
			end++
		}
		block := lines[i:end]
		prompted := slices.ContainsFunc(block, prompt.MatchString)
		for j, l := range block {
			if fence && j == 0 || prompted && !prompt.MatchString(l) {
				continue
			}
			l = prompt.ReplaceAllString(l, "")
			if l = strings.TrimSpace(l); prompted || commands(l) {
				take(i+j, l, true)
			}
		}
		i = end
		if !fence {
			i-- // the line after an indented block is a line as any other
		}
	}
	return found
}

// commands reports whether a line of a block without prompts is one to type, and not
// something that was printed.
func commands(line string) bool {
	for w := range strings.FieldsSeq(line) {
		if w == "redlockctl" || strings.HasSuffix(w, "/redlockctl") || strings.HasPrefix(line, "go run . ") || strings.HasPrefix(line, "Exec") {
			return !strings.HasPrefix(line, "redlockctl (") && !strings.Contains(line, " · ") // a version, a screen
		}
		if !strings.Contains(w, "=") && w != "sudo" && w != "env" {
			return false
		}
	}
	return false
}

// shellWords splits a command as a shell would, up to its end: a pipe, a
// redirection, a comment.
func shellWords(s string) (words []string) {
	var word strings.Builder
	in, quote := false, rune(0)
	flush := func() {
		if in {
			words = append(words, word.String())
		}
		word.Reset()
		in = false
	}
	for _, r := range s {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, in = r, true
		case r == ' ':
			flush()
		case !in && r == '#', r == '|', r == '>', r == ';', r == '&', r == ')':
			flush()
			return words
		default:
			in = true
			word.WriteRune(r)
		}
	}
	flush()
	return words
}

// check says what is wrong with a command; "" is nothing.
func (e example) check() string {
	a := newCommandLine(&printer.Printer{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard, Getenv: func(string) string { return "" }})
	root := a.rootCommand()
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	words := slices.DeleteFunc(slices.Clone(e.words), func(w string) bool { return w == "$GUARD_OPTIONS" }) // systemd's, mostly empty
	for i := range words {
		if strings.HasPrefix(words[i], "${") { // systemd's
			words[i] = "30s"
		}
	}
	cmd, rest, err := root.Find(words)
	if err != nil {
		return err.Error()
	}
	cmd.InitDefaultHelpFlag()
	if !e.whole && len(rest) > 0 && strings.HasPrefix(rest[len(rest)-1], "--") {
		// A flag that is just named: its value is left out.
		if f := cmd.Flag(strings.TrimPrefix(rest[len(rest)-1], "--")); f != nil && f.NoOptDefVal == "" {
			rest = rest[:len(rest)-1]
		}
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return err.Error()
	}
	args := cmd.Flags().Args()
	switch {
	case cmd.HasSubCommands() && len(args) > 0:
		return "there is no command " + strings.Join(args, " ")
	case e.whole && cmd.Args != nil:
		if err := cmd.ValidateArgs(args); err != nil {
			return err.Error()
		}
	}
	return ""
}

// Each command in the documentation exists, with these flags and as many
// arguments.
func TestDocumentedCommandsExist(t *testing.T) {
	n := 0
	for name, page := range manuals(t) {
		if name == "CHANGELOG.md" {
			continue // what was true once
		}
		for _, e := range examples(page, strings.HasSuffix(name, ".service")) {
			n++
			if why := e.check(); why != "" {
				t.Errorf("%s:%d: redlockctl %s: %s", name, e.line, strings.Join(e.words, " "), why)
			}
		}
	}
	if n < 50 {
		t.Errorf("only %d commands were found in the documentation", n)
	}
}

// A check must be able to fail.
func TestDocumentedCommandsAreChecked(t *testing.T) {
	for _, page := range []string{
		"`redlockctl lokcs`",
		"```\nredlockctl locks --fliter x\n```",
		"    redlockctl acquire --ttl soon job:1",
		"```\n$ redlockctl extend a b\nno more\n```",
		"    redlockctl node opn n2",
		"    ExecStart=/usr/bin/redlockctl --config x gaurd",
	} {
		found := examples(page, false)
		if len(found) != 1 || found[0].check() == "" {
			t.Errorf("%q: nothing wrong was found in %v", page, found)
		}
	}
	if found := examples("```\n$ redlockctl locks\nredlockctl (devel) is what it prints\n```", false); len(found) != 1 {
		t.Errorf("%v: what is printed was taken for a command, or the other way", found)
	}
}

// What is piped into jq in the documentation says something, on real servers with
// a lock; what follows a stream is only parsed above.
func TestDocumentedQueriesAnswer(t *testing.T) {
	jq, err := exec.LookPath("jq")
	if err != nil {
		const what = "no jq: apt-get install jq"
		if os.Getenv("CI") != "" || os.Getenv("REDLOCKCTL_TEST_ALL") != "" {
			t.Fatal(what)
		}
		t.Skip(what)
	}
	servers := labtest.Servers(t, 3)
	dir := t.TempDir()
	path := filepath.Join(dir, "config.toml")
	if err := os.WriteFile(path, []byte("[cluster]\nmax_ttl = \"30s\"\n"+servers.NodesConfig()), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) string {
		var out, errOut bytes.Buffer
		a := newCommandLine(&printer.Printer{In: strings.NewReader(""), Out: &out, Err: &errOut, Getenv: func(name string) string {
			return map[string]string{"REDLOCKCTL_CONFIG": path, "XDG_STATE_HOME": dir, "HOME": dir}[name]
		}})
		if code := a.main(t.Context(), args); code != 0 {
			t.Errorf("redlockctl %s: exit code %d: %s", strings.Join(args, " "), code, errOut.String())
		}
		return out.String()
	}
	run("acquire", "job:1", "--ttl", "30s")
	n := 0
	for name, page := range manuals(t) {
		for line := range strings.Lines(page) {
			command, query, piped := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "$ "), " | jq ")
			args, ok := strings.CutPrefix(command, "redlockctl ")
			if !piped || !ok || strings.Contains(args, "jsonl") {
				continue
			}
			n++
			cmd := exec.Command(jq, append([]string{"-e"}, queryWords(query)...)...)
			cmd.Stdin = strings.NewReader(run(shellWords(args)...))
			// 4: it has chosen nothing, which is an answer.
			if out, err := cmd.CombinedOutput(); err != nil && cmd.ProcessState.ExitCode() != 4 {
				t.Errorf("%s: %s: %v: %s", name, strings.TrimSpace(line), err, out)
			}
		}
	}
	if n == 0 {
		t.Error("no query was found")
	}
}

// queryWords are the arguments of jq: options, and one expression in quotes.
func queryWords(s string) []string {
	options, expression, quoted := strings.Cut(s, "'")
	if !quoted {
		return strings.Fields(s)
	}
	expression, _, _ = strings.Cut(expression, "'")
	return append(strings.Fields(options), expression)
}

// Each command stands on the page of commands, with its first sentence.
func TestEveryCommandIsDocumented(t *testing.T) {
	page := manuals(t)["docs/commands.md"]
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			if sub.Hidden || sub.Name() == "help" || sub.Name() == "completion" {
				continue
			}
			row := regexp.MustCompile("(?m)^\\| `" + sub.CommandPath() + "[ `].*? \\| (.*) \\|$").FindStringSubmatch(page)
			switch {
			case sub.HasSubCommands() && !sub.Flags().HasFlags():
			case row == nil:
				t.Errorf("docs/commands.md has no row that begins with `%s", sub.CommandPath())
			case row[1] != sub.Short && !strings.HasPrefix(row[1], sub.Short+"; "):
				t.Errorf("docs/commands.md: the row of %s begins otherwise than its help: %s", sub.CommandPath(), sub.Short)
			}
			if sub.GroupID != "" {
				_, section, _ := strings.Cut(page, "\n## "+sub.GroupID+"\n")
				if section, _, _ = strings.Cut(section, "\n## "); !strings.Contains(section, "| `"+sub.CommandPath()) {
					t.Errorf("docs/commands.md: %s is not in the section %q, its group on the page of help", sub.CommandPath(), sub.GroupID)
				}
			}
			visit(sub)
		}
	}
	visit(newCommandLine(&printer.Printer{}).rootCommand())
}

// Links and pictures are there.
func TestDocumentationLinksLeadSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#\s]+)(#[^)\s]*)?\)|src="([^"]+)"`)
	for name, page := range manuals(t) {
		for _, m := range link.FindAllStringSubmatch(page, -1) {
			target := m[1] + m[3]
			if strings.Contains(target, "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(house, filepath.Dir(name), target)); err != nil {
				t.Errorf("%s leads to %s, which is not there", name, target)
			}
		}
	}
}

// The settings in blocks of TOML are ones that the commented example knows.
func TestDocumentedSettingsExist(t *testing.T) {
	known, err := os.ReadFile(filepath.Join(house, "config.toml"))
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?ms)^```toml\n(.*?)^```")
	setting := regexp.MustCompile(`(?m)^#? ?([a-z_]+) = `)
	n := 0
	for name, page := range manuals(t) {
		for _, b := range block.FindAllStringSubmatch(page, -1) {
			for _, s := range setting.FindAllStringSubmatch(b[1], -1) {
				n++
				if !regexp.MustCompile(`(?m)^(# ?)?` + s[1] + ` = `).Match(known) {
					t.Errorf("%s: there is no setting %s", name, s[1])
				}
			}
		}
	}
	if n == 0 {
		t.Error("no block of TOML was found")
	}
}

// systemd accepts the guard's unit, if systemd is installed.
func TestGuardUnit(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(house, "deploy/systemd/redlockctl-guard@.service"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"Type=notify", "Restart=always", "StartLimitIntervalSec=0", "StateDirectoryMode=0700", "ExecReload=/bin/kill -HUP $MAINPID"} {
		if !strings.Contains(string(text), "\n"+line+"\n") {
			t.Errorf("%s is missing", line)
		}
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("no systemd-analyze to verify the unit file with")
	}
	// It looks for the program: give it one that is there.
	unit := strings.ReplaceAll(string(text), "/usr/local/bin/redlockctl", "/bin/sh")
	path := filepath.Join(t.TempDir(), "redlockctl-guard@orders.service")
	if err := os.WriteFile(path, []byte(unit), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(analyze, "verify", "--man=no", path).CombinedOutput(); err != nil || strings.Contains(string(out), "redlockctl-guard") {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}

// systemd takes the drop-in that delays a start, and does not give up before D.
func TestWaitDropIn(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(house, "deploy/systemd/redis-server.service.d/redlockctl-wait.conf"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"ExecStartPre=+/usr/bin/redlockctl node wait n1 --before-start", "TimeoutStartSec=10min", "Restart=always", "StartLimitIntervalSec=0"} {
		if !strings.Contains(string(text), "\n"+line+"\n") {
			t.Errorf("%s is missing", line)
		}
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("no systemd-analyze to verify the drop-in with")
	}
	dir := t.TempDir()
	unit := filepath.Join(dir, "redis-server.service")
	if err := os.Mkdir(unit+".d", 0o700); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{
		unit: "[Service]\nType=notify\nExecStart=/bin/true\n",
		// It looks for the program: give it one that is there.
		unit + ".d/redlockctl-wait.conf": strings.ReplaceAll(string(text), "/usr/bin/redlockctl", "/bin/sh"),
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command(analyze, "verify", "--man=no", unit).CombinedOutput(); err != nil || strings.Contains(string(out), "redlockctl-wait") {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}
