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

// mostKept limits how much of a command's output is kept, in bytes: its end.
const mostKept = 64 << 10

// Command runs argv with {name}, {addr} and {host} replaced, to restart a node. The command
// is never stopped half-way: it has its own process group, and an interrupt waits for it.
// Its output also goes to out, if that can be written.
func Command(argv, env []string, out io.Writer) func(context.Context, *monitor.Node) (string, error) {
	return func(_ context.Context, n *monitor.Node) (string, error) {
		words := Words(argv, n.Name, n.Addr)
		cmd := exec.Command(words[0], words[1:]...)
		var kept bytes.Buffer
		cmd.Env, cmd.SysProcAttr = env, attr()
		both := io.MultiWriter(&tail{&kept}, shown{out})
		cmd.Stdout, cmd.Stderr = both, both
		err := cmd.Run()
		return kept.String(), err
	}
}

// shown is where a command's output is shown. That nobody can see it any more, as after a dropped session, is no
// failure of the command.
type shown struct{ io.Writer }

func (s shown) Write(p []byte) (int, error) {
	_, _ = s.Writer.Write(p)
	return len(p), nil
}

// Words returns the words of the command for a node.
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

// tail keeps the end of its output.
type tail struct{ *bytes.Buffer }

func (t *tail) Write(p []byte) (int, error) {
	_, _ = t.Buffer.Write(p)
	if more := t.Len() - mostKept; more > 0 {
		t.Next(more)
	}
	return len(p), nil
}
