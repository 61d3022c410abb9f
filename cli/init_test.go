package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"redlockctl/cli/exit"
	"redlockctl/cli/printer"
	"redlockctl/internal/lab/labtest"
)

// typed is a terminal: one line for each time that it is read.
type typed []string

func (t *typed) Read(p []byte) (int, error) {
	if len(*t) == 0 {
		return 0, io.EOF
	}
	n := copy(p, (*t)[0]+"\n")
	*t = (*t)[1:]
	return n, nil
}

// On a terminal init asks what it cannot know, and writes only after a yes.
func TestInitAsks(t *testing.T) {
	servers := labtest.Servers(t, 3)
	for _, s := range servers {
		if _, err := s.Do(t.Context(), "SET", "orders:1", "MDEyMzQ1Njc4OTAxMjM0NQ==", "PX", "19000"); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Do(t.Context(), "HSET", "data", "a", "b"); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name    string
		answers typed
		exit    exit.Code
		want    string // in the configuration
	}{
		{"each default", typed{"", "", "", "y"}, exit.Done, "name = \"redlock\"\nmax_ttl = \"20s\"\nlock_patterns = [\"orders:*\"]\n"},
		{"own answers", typed{"billing", "1m", "a:* b:*", "yes"}, exit.Done, "name = \"billing\"\nmax_ttl = \"1m\"\nlock_patterns = [\"a:*\", \"b:*\"]\n"},
		{"no", typed{"", "", "", "n"}, exit.Refused, ""},
		{"nothing is a no", typed{"", "", "", ""}, exit.Refused, ""},
		{"a TTL below one that was seen", typed{"", "2s"}, exit.WrongUsage, ""},
		{"the end of the input", typed{""}, exit.Refused, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			out := filepath.Join(dir, "folder")
			var said strings.Builder
			a := newCommandLine(&printer.Printer{In: &c.answers, Out: io.Discard, Err: &said, InTTY: true, ErrTTY: true, Getenv: func(name string) string {
				return map[string]string{"HOME": dir}[name]
			}})
			nodes := fmt.Sprintf("%s,%s,%s", servers[0].Addr(), servers[1].Addr(), servers[2].Addr())
			if exit := a.main(t.Context(), []string{"init", "--nodes", nodes, "--watch", "0s", "--out", out}); exit != c.exit {
				t.Fatalf("exit code %d, want %d:\n%s", exit, c.exit, said.String())
			}
			text, err := os.ReadFile(filepath.Join(out, "config.toml"))
			if (err == nil) != (c.want != "") || !strings.Contains(string(text), c.want) {
				t.Errorf("%v, and asked this:\n%s\nit wrote\n%s", err, said.String(), text)
			}
		})
	}
}
