package labtest

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"redlockctl/internal/lab/sessions"
	"redlockctl/redlock"
	"redlockctl/server/resp"
)

// Lies counts the false answers of lying nodes, by the command or push that they replace.
type Lies struct {
	mu    sync.Mutex
	total int
	by    map[string]map[byte]int
}

// Total returns how many there were.
func (l *Lies) Total() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.total
}

// String returns a line for each command: how many answers, and of how many types.
func (l *Lies) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var b strings.Builder
	for _, to := range slices.Sorted(maps.Keys(l.by)) {
		n := 0
		for _, k := range l.by[to] {
			n += k
		}
		fmt.Fprintf(&b, "%-24s %8d answers of %2d types\n", to, n, len(l.by[to]))
	}
	return b.String()
}

func (l *Lies) told(to string, kind byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.by == nil {
		l.by = map[string]map[byte]int{}
	}
	if l.by[to] == nil {
		l.by[to] = map[byte]int{}
	}
	l.total++
	l.by[to][kind]++
}

// Lying returns a node that answers like the server at target, but sometimes replaces an answer or
// a push: by a value of any type of RESP2 and RESP3, or by the true one with a changed part. Some
// of its connections always lie, some seldom, some only after a while.
func Lying(tb testing.TB, name, target string, seed uint64, lies *Lies) *redlock.Node {
	tb.Helper()
	var mu sync.Mutex
	seeds := rand.New(rand.NewPCG(seed, 1))
	return fake(tb, name, func(client net.Conn) {
		mu.Lock()
		l := liar{rng: rand.New(rand.NewPCG(seeds.Uint64(), 2)), lies: lies}
		mu.Unlock()
		l.often = []float64{0.02, 0.1, 0.1, 0.5, 1}[l.rng.IntN(5)]
		l.honest = []int{0, 1, 2, 4, 8, 16}[l.rng.IntN(6)]
		server, err := net.Dial("tcp", target)
		if err != nil {
			return
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			l.answer(client, bufio.NewReader(server))
			_ = client.Close()
		}()
		l.ask(bufio.NewReader(client), server)
		_ = server.Close()
		<-ended
	})
}

// liar is one connection of a node that lies.
type liar struct {
	rng    *rand.Rand // used only by the goroutine that answers
	lies   *Lies
	often  float64
	honest int // true answers still to give

	mu    sync.Mutex
	asked []string
}

// ask forwards requests, and keeps the names of their commands.
func (l *liar) ask(client *bufio.Reader, server io.Writer) {
	for {
		_, n, _, err := resp.ReadHead(client)
		if err != nil || n < 1 {
			return
		}
		args := make([]string, n)
		for i := range args {
			_, n, _, err := resp.ReadHead(client)
			if err != nil || n < 0 {
				return
			}
			b := make([]byte, n+2)
			if _, err := io.ReadFull(client, b); err != nil {
				return
			}
			args[i] = string(b[:n])
		}
		name := strings.ToLower(args[0])
		switch name {
		case "client", "config", "pubsub", "acl", "info":
			if n > 1 {
				name += " " + strings.ToLower(args[1])
			}
		}
		l.mu.Lock()
		l.asked = append(l.asked, name)
		l.mu.Unlock()
		if _, err := server.Write(resp.AppendCommand(nil, args...)); err != nil {
			return
		}
	}
}

// answer forwards answers and pushes, or replaces them.
func (l *liar) answer(client io.Writer, server *bufio.Reader) {
	for {
		v, err := sessions.Read(server)
		if err != nil {
			return
		}
		to := l.standsFor(v)
		if l.honest--; l.honest >= 0 || l.rng.Float64() >= l.often {
			if _, err := client.Write(v.Append(nil)); err != nil {
				return
			}
			continue
		}
		var out []byte
		lie := v
		switch p := l.rng.IntN(100); {
		case p < 1: // nothing, or half of it
			out = v.Append(nil)
			out = out[:l.rng.IntN(len(out))]
			l.lies.told(to, '?')
			_, _ = client.Write(out)
			return
		case p < 50:
			lie = sessions.Random(l.rng)
		case p < 85:
			lie = v.Twist(l.rng)
		default: // unasked
			lie = sessions.Random(l.rng)
			if l.rng.IntN(2) == 0 {
				lie.Kind = '>'
			}
			out = v.Append(lie.Append(nil))
		}
		if out == nil {
			out = lie.Append(nil)
		}
		l.lies.told(to, lie.Kind)
		if _, err := client.Write(out); err != nil {
			return
		}
	}
}

// standsFor returns the command that v answers, or the kind of push.
func (l *liar) standsFor(v sessions.Value) string {
	if v.Kind == '>' && len(v.Items) > 0 && !strings.HasSuffix(v.Items[0].Text, "subscribe") {
		return "> " + v.Items[0].Text
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.asked) == 0 {
		return "unasked"
	}
	name := l.asked[0]
	l.asked = l.asked[1:]
	return name
}
