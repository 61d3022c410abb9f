package redlock

import (
	"context"
	"strings"

	"github.com/redis/go-redis/v9"
)

// mostName is how long the name of a connection gets, in bytes.
const mostName = 128

// Named is the same node whose connections bear a name, which CLIENT LIST shows
// to operators. Blanks and what is not printable ASCII, which a server refuses,
// become "-"; 128 bytes are kept. The name travels in the greeting (HELLO … SETNAME):
// it costs no round trip and needs no right. A server before 6.0 does not get it.
func (n *Node) Named(name string) *Node {
	m := *n
	m.conn = printableASCII(name, mostName)
	return &m
}

// greeting puts the name of a connection into its HELLO. The client library's own
// way is a CLIENT SETNAME, whose refusal ends the connection.
type greeting struct{ name string }

func (g greeting) DialHook(next redis.DialHook) redis.DialHook { return next }

func (g greeting) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (g greeting) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		hello, ok := cmd.(*redis.MapStringInterfaceCmd)
		if !ok || cmd.Name() != "hello" {
			return next(ctx, cmd)
		}
		args := hello.Args()
		named := redis.NewMapStringInterfaceCmd(ctx, append(args[:len(args):len(args)], "setname", g.name)...)
		err := next(ctx, named)
		hello.SetVal(named.Val())
		hello.SetErr(err)
		return err
	}
}

// printableASCII is s with "-" for each byte that is no printable ASCII, or a blank,
// and no longer than most.
func printableASCII(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' {
			return '-'
		}
		return r
	}, s)
	return s[:min(len(s), most)]
}
