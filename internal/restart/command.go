package restart

import (
	"bytes"
	"context"
	"io"
	"net"
	"os/exec"
	"strings"

	"redlockctl/monitor"
)

// mostKept is how much of what a command prints is kept: its end.
const mostKept = 64 << 10

// Command is what restarts a node: argv with {name}, {addr} and {host} replaced. It is never ended half-way:
// it runs in a process group of its own, and an interrupt waits for it. What it prints goes to out as well.
func Command(argv, env []string, out io.Writer) func(context.Context, *monitor.Node) (string, error) {
	return func(_ context.Context, n *monitor.Node) (string, error) {
		words := Words(argv, n.Name, n.Addr)
		cmd := exec.Command(words[0], words[1:]...)
		var kept bytes.Buffer
		cmd.Env, cmd.SysProcAttr = env, attr()
		both := io.MultiWriter(out, &tail{&kept})
		cmd.Stdout, cmd.Stderr = both, both
		err := cmd.Run()
		return kept.String(), err
	}
}

// Words are the words of a command for a node.
func Words(argv []string, name, addr string) []string {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		host = addr
	}
	with := strings.NewReplacer("{name}", name, "{addr}", addr, "{host}", host)
	words := make([]string, len(argv))
	for i, word := range argv {
		words[i] = with.Replace(word)
	}
	return words
}

// tail keeps the end of what is written to it.
type tail struct{ *bytes.Buffer }

func (t *tail) Write(p []byte) (int, error) {
	_, _ = t.Buffer.Write(p)
	if more := t.Len() - mostKept; more > 0 {
		t.Next(more)
	}
	return len(p), nil
}
