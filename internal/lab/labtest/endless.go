package labtest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2/proto"

	"redlockctl/redlock"
)

// Endless returns a node that behaves like the server at target, except that SCAN
// returns new keys for ever. Script reads of these keys return locks, or nothing, as
// asked.
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
		asked, err := proto.Read(in)
		if err != nil {
			return err
		}
		args, err := proto.ReadStrings(asked)
		if err != nil || len(args) == 0 {
			return err
		}
		to, said := client, ""
		switch name := strings.ToLower(args[0]); {
		case name == "scan":
			page++
			keys := make([]string, endlessPage)
			for k := range keys {
				keys[k] = fmt.Sprintf("%s%08d:%04d", endlessName, page, k)
			}
			said = proto.Array(proto.String("7"), proto.Strings(keys...))
		// Requests that come together with a SCAN are answered in order.
		case strings.HasPrefix(name, "eval") && len(args) > 3 && strings.HasPrefix(args[3], endlessName):
			one := []string{proto.String("none"), proto.Int(-2), proto.Int(0), proto.String("")}
			if locks {
				one = []string{proto.String("string"), proto.Int(100000), proto.Int(22), proto.String("0123456789012345678901")}
			}
			said = proto.Array(slices.Repeat(one, len(args)-3)...)
		default:
			to, said = server, asked
		}
		if _, err := io.WriteString(to, said); err != nil {
			return err
		}
	}
}
