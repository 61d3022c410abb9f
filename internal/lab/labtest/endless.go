package labtest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"

	"redlockctl/redlock"
)

// Endless is a node that does as the server at target, but for SCAN, which brings
// new keys for ever, and for reads of such keys by script, which are locks if so
// wanted, else gone.
func Endless(tb testing.TB, name, target string, locks bool) *redlock.Node {
	tb.Helper()
	return fake(tb, name, func(client net.Conn) {
		before(client, target, func(server net.Conn) error { return endless(client, server, locks) })
	})
}

const (
	endlessPage = 4000
	endlessName = "endless:"
)

func endless(client, server net.Conn, locks bool) error {
	in := bufio.NewReader(client)
	for page := 0; ; {
		args, err := request(in)
		if err != nil || len(args) == 0 {
			return err
		}
		var b strings.Builder
		to := client
		switch name := strings.ToLower(args[0]); {
		case name == "scan":
			page++
			fmt.Fprintf(&b, "*2\r\n$1\r\n7\r\n*%d\r\n", endlessPage)
			for k := range endlessPage {
				key := fmt.Sprintf("%s%08d:%04d", endlessName, page, k)
				fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(key), key)
			}
		// Whatever is asked together with a SCAN is answered in its turn.
		case strings.HasPrefix(name, "eval") && len(args) > 3 && strings.HasPrefix(args[3], endlessName):
			fmt.Fprintf(&b, "*%d\r\n", 4*(len(args)-3))
			for range args[3:] {
				if locks {
					b.WriteString("$6\r\nstring\r\n:100000\r\n:22\r\n$22\r\n0123456789012345678901\r\n")
				} else {
					b.WriteString("$4\r\nnone\r\n:-2\r\n:0\r\n$0\r\n\r\n")
				}
			}
		default:
			fmt.Fprintf(&b, "*%d\r\n", len(args))
			for _, a := range args {
				fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
			}
			to = server
		}
		if _, err := io.WriteString(to, b.String()); err != nil {
			return err
		}
	}
}

// request reads one request of a client.
func request(in *bufio.Reader) ([]string, error) {
	number := func(kind byte) (int, error) {
		line, err := in.ReadString('\n')
		if err != nil || len(line) < 4 || line[0] != kind {
			return 0, io.ErrUnexpectedEOF
		}
		return strconv.Atoi(strings.TrimSpace(line[1:]))
	}
	n, err := number('*')
	if err != nil {
		return nil, err
	}
	args := make([]string, n)
	for i := range args {
		size, err := number('$')
		if err != nil {
			return nil, err
		}
		b := make([]byte, size+2)
		if _, err := io.ReadFull(in, b); err != nil {
			return nil, err
		}
		args[i] = string(b[:size])
	}
	return args, nil
}
