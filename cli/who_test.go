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
// end.
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
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	said := &reader{want: "--monitor --node", then: cancel}
	var out strings.Builder
	dir := t.TempDir()
	a := newCommandLine(&printer.Printer{
		In: strings.NewReader(""), Out: &out, Err: said,
		Getenv: func(k string) string { return map[string]string{"HOME": dir, "XDG_STATE_HOME": dir}[k] },
	})
	a.main(ctx, []string{"--nodes", strings.Join(addrs, ","), "who", "job:1", "--for", "1h"})
	const lacks, command = "not count the commands of each connection", "; for certain, and in seconds: redlockctl who job:1 --monitor --node "
	if text := said.String(); !strings.Contains(text, lacks) || !strings.Contains(text, command) || !strings.Contains(text, " --reason TEXT") || out.Len() > 0 {
		t.Errorf("%q\n%s", text, out.String())
	}
}
