package cli

import (
	"context"
	"strings"
	"testing"
	"time"

	"redlockctl/cli/printer"
	"redlockctl/internal/lab/labtest"
)

// reader is an output that calls then when it contains want.
type reader struct {
	strings.Builder
	want string
	then func()
}

func (r *reader) Write(b []byte) (int, error) {
	n, err := r.Builder.Write(b)
	if strings.Contains(r.String(), r.want) {
		r.then()
	}
	return n, err
}

// On servers that do not count the commands of connections, who says at once that often
// nobody can be named, and which command names the holder; a person need not wait for the
// end. The answer does not say it again.
func TestWhoSaysAtOnceWhatItLacks(t *testing.T) {
	servers := labtest.Servers(t, 3)
	list, err := servers[0].Do(t.Context(), "CLIENT", "LIST")
	if err != nil {
		t.Fatal(err)
	}
	if text, _ := list.(string); strings.Contains(text, "tot-cmds=") {
		t.Skip("these servers count commands")
	}
	var addrs []string
	for _, s := range servers {
		get(t, s, "SET", "job:1", "token", "PX", 3_600_000)
		addrs = append(addrs, s.Addr())
	}
	const hint = "n1 n2 n3 do not count the commands of each connection (Valkey does since 8.1), so often nobody can be named; " +
		"for certain, and in seconds: redlockctl who job:1 --monitor --node n1 --reason TEXT"
	for _, limit := range []string{"1h", "1s"} {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		said := &reader{want: "--monitor --node", then: func() {
			if limit == "1h" {
				cancel()
			}
		}}
		var out strings.Builder
		dir := t.TempDir()
		a := newCommandLine(&printer.Printer{
			In: strings.NewReader(""), Out: &out, Err: said,
			Getenv: func(k string) string { return map[string]string{"HOME": dir, "XDG_STATE_HOME": dir}[k] },
		})
		a.main(ctx, []string{"--nodes", strings.Join(addrs, ","), "who", "job:1", "--for", limit})
		cancel()
		if text := said.String(); strings.Count(text, hint) != 1 || strings.Contains(out.String(), "--monitor") || (out.Len() > 0) != (limit == "1s") {
			t.Errorf("--for %s: %q\n%s", limit, text, out.String())
		}
	}
}
