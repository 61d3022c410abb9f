package cli

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"redlockctl/cli/exit"
	"redlockctl/cli/printer"
	"redlockctl/internal/lab"
	"redlockctl/internal/lab/labtest"
)

// person runs the command line as somebody at a terminal does who types text.
func person(t *testing.T, servers lab.Servers, typed string, args ...string) (code exit.Code, out, asked string) {
	t.Helper()
	return at(t.Context(), t, servers, strings.NewReader(typed), args...)
}

// at runs the command line at a terminal with the input in.
func at(ctx context.Context, t *testing.T, servers lab.Servers, in io.Reader, args ...string) (code exit.Code, out, asked string) {
	t.Helper()
	dir := t.TempDir()
	cfg := "[cluster]\nmax_ttl = \"30s\"\n[redlock]\nnode_timeout = \"1s\"\n" + servers.NodesConfig()
	path := filepath.Join(dir, "config.toml")
	if err := os.WriteFile(path, []byte(cfg), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"HOME": dir, "XDG_STATE_HOME": filepath.Join(dir, "state"), "REDLOCKCTL_CONFIG": path}
	var w, e strings.Builder
	a := newCommandLine(&printer.Printer{
		In: in, Out: &w, Err: &e, InTTY: true, ErrTTY: true,
		Getenv: func(k string) string { return env[k] },
	})
	code = a.main(ctx, args)
	return code, w.String(), e.String()
}

func get(t *testing.T, s *lab.Server, args ...any) any {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	v, err := s.Do(ctx, args...)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestForceReleaseDialog(t *testing.T) {
	servers := labtest.Servers(t, 3)
	const name, token = "job:\x1b[2J", "tok\u202een"
	for _, s := range servers {
		get(t, s, "SET", name, token, "PX", "20000")
	}

	code, _, asked := person(t, servers, "yes\n", "force-release", name, "--reason", "dead")
	if code != exit.Refused {
		t.Errorf("exit code %d for another word than the name, want %d", code, exit.Refused)
	}
	for _, want := range []string{"n1", "n2", "n3", "s  tok", `tok\u202een`, `job:\x1b[2J`, "TOKEN", "not told"} {
		if !strings.Contains(asked, want) {
			t.Errorf("%q is not shown in\n%s", want, asked)
		}
	}
	if strings.ContainsAny(asked, "\x1b\u202e") {
		t.Errorf("a raw control character in %q", asked)
	}
	if got := get(t, servers[0], "EXISTS", name); got != int64(1) {
		t.Fatal("deleted without confirmation")
	}

	code, out, asked := person(t, servers, `job:\x1b[2J`+"\n", "force-release", name, "--reason", "dead")
	if code != exit.Done || !strings.Contains(out, "gone on n1 n2 n3") {
		t.Errorf("exit code %d, %q\n%s", code, out, asked)
	}
	if got := get(t, servers[0], "EXISTS", name); got != int64(0) {
		t.Error("not deleted")
	}
	if code, _, asked := person(t, servers, "gone\n", "force-release", "gone", "--reason", "dead"); code != exit.NotOwner {
		t.Errorf("exit code %d for a lock that is not there, want %d\n%s", code, exit.NotOwner, asked)
	}
}

// Before a force-release of a lock on which two clients rely, the dialog says so.
func TestForceReleaseDialogNamesAllTokens(t *testing.T) {
	servers := labtest.Servers(t, 3)
	for i, s := range servers {
		get(t, s, "SET", "job:1", []string{"one", "tw\u202eo", "one"}[i], "PX", "20000")
	}
	code, out, asked := person(t, servers, "job:1\n", "force-release", "job:1", "--reason", "dead")
	before, _, _ := strings.Cut(asked, "job:1: ")
	for _, want := range []string{"THERE ARE 2 TOKENS", "\n  one on n1 n3\n", "\n  tw\\u202eo on n2\n"} {
		if !strings.Contains(before, want) {
			t.Errorf("%q is not shown in\n%s", want, asked)
		}
	}
	if code != exit.Done || !strings.Contains(out, "there were 2 tokens") {
		t.Errorf("exit code %d\n%s", code, out)
	}
}

// What is deleted is what was shown: another holder that came in between stays.
func TestForceReleaseDialogComparesAgain(t *testing.T) {
	servers := labtest.Servers(t, 3)
	for _, s := range servers {
		get(t, s, "SET", "job:1", "first", "PX", "20000")
	}
	// The answer is typed only after the holder has changed.
	in := readerFunc(func(p []byte) (int, error) {
		for _, s := range servers {
			get(t, s, "SET", "job:1", "second", "PX", "20000")
		}
		return copy(p, "job:1\n"), nil
	})
	if code, _, asked := at(t.Context(), t, servers, in, "force-release", "job:1", "--reason", "dead"); code != exit.NotOwner {
		t.Errorf("exit code %d, want %d\n%s", code, exit.NotOwner, asked)
	}
	if got := get(t, servers[0], "GET", "job:1"); got != "second" {
		t.Errorf("the new holder's copy is %v", got)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestNodeDialogs(t *testing.T) {
	servers := labtest.Servers(t, 3)
	code, _, asked := person(t, servers, "n1\n", "node", "cordon", "n2", "--reason", "r")
	if code != exit.Refused || !strings.Contains(asked, "n2") || !strings.Contains(asked, "then 2 of 3 nodes serve, the quorum is 2") {
		t.Errorf("exit code %d\n%s", code, asked)
	}
	if code, out, asked := person(t, servers, "n2\n", "node", "cordon", "n2", "--reason", "r"); code != exit.Done || !strings.HasPrefix(out, "cordoned n2\n") {
		t.Errorf("exit code %d, %q\n%s", code, out, asked)
	}
	code, _, asked = person(t, servers, "no\n", "node", "uncordon", "n2", "--reason", "r")
	if code != exit.Refused || !strings.Contains(asked, "it ends the cordon, and nothing else") || strings.Contains(asked, "TWO HOLDERS") {
		t.Errorf("exit code %d\n%s", code, asked)
	}
	code, _, asked = person(t, servers, "no\n", "node", "cordon", "n3", "--reason", "r")
	if code != exit.Refused || !strings.Contains(asked, "NOTHING can be locked") {
		t.Errorf("exit code %d\n%s", code, asked)
	}
	code, _, asked = person(t, servers, "n2\n", "node", "rejoin", "n2", "--now", "--reason", "r")
	if code != exit.Done || !strings.Contains(asked, "TWO HOLDERS") || !strings.Contains(asked, "now cordoned") {
		t.Errorf("exit code %d\n%s", code, asked)
	}
}

func TestASignalEndsAWait(t *testing.T) {
	servers := labtest.Servers(t, 3)
	for _, s := range servers {
		get(t, s, "SET", "job:1", "another", "PX", "20000")
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(300*time.Millisecond, cancel)
	code, out, asked := at(ctx, t, servers, strings.NewReader(""), "acquire", "job:1", "--wait", "1h")
	if code != 130 || out != "" || !strings.HasPrefix(asked, "redlockctl: interrupted: ") {
		t.Errorf("exit code %d, %q\n%s", code, out, asked)
	}
}
