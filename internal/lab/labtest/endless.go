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
		// Whatever is asked together with a SCAN is answered in its turn.
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
