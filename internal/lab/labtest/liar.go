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

	"redlockctl/internal/resp"
	"redlockctl/redlock"
)

// Lies counts the answers that liars have made up, by the command or push that they stand for.
type Lies struct {
	mu    sync.Mutex
	total int
	by    map[string]map[byte]int
}

// Total is how many there were.
func (l *Lies) Total() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.total
}

// String has a line for each command: how many answers, and of how many types.
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

// Lying is a node that answers as the server at target does, but now and then says something else in the
// place of an answer or a push: a value of any type of RESP2 and RESP3, or the true one with a part of it changed. Some
// of its connections lie always, some seldom, some only after a while.
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
	rng    *rand.Rand // of the goroutine that answers
	lies   *Lies
	often  float64
	honest int // answers that are still true

	mu    sync.Mutex
	asked []string
}

// ask hands requests on, and keeps the names of their commands.
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

// answer hands answers and pushes on, or others.
func (l *liar) answer(client io.Writer, server *bufio.Reader) {
	for {
		v, err := readSaid(server)
		if err != nil {
			return
		}
		to := l.standsFor(v)
		if l.honest--; l.honest >= 0 || l.rng.Float64() >= l.often {
			if _, err := client.Write(v.append(nil)); err != nil {
				return
			}
			continue
		}
		var out []byte
		lie := v
		switch p := l.rng.IntN(100); {
		case p < 1: // nothing, or half of it
			out = v.append(nil)
			out = out[:l.rng.IntN(len(out))]
			l.lies.told(to, '?')
			_, _ = client.Write(out)
			return
		case p < 50:
			lie = randomValue(l.rng, 0)
		case p < 85:
			lie = l.twist(v)
		default: // unasked
			lie = randomValue(l.rng, 0)
			if l.rng.IntN(2) == 0 {
				lie.kind = '>'
			}
			out = v.append(lie.append(nil))
		}
		if out == nil {
			out = lie.append(nil)
		}
		l.lies.told(to, lie.kind)
		if _, err := client.Write(out); err != nil {
			return
		}
	}
}

// standsFor is the command that is answered by v, or which push it is.
func (l *liar) standsFor(v said) string {
	if v.kind == '>' && len(v.items) > 0 && !strings.HasSuffix(v.items[0].text, "subscribe") {
		return "> " + v.items[0].text
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

// twist is v with one part of it changed, left out or said twice.
func (l *liar) twist(v said) said {
	if len(v.items) == 0 || l.rng.IntN(3) == 0 {
		if v.kind == '$' && l.rng.IntN(2) == 0 { // INFO and the like
			lines := strings.SplitAfter(v.text, "\n")
			i := l.rng.IntN(len(lines))
			lines[i] = randomText(l.rng)
			v.text = strings.Join(lines, "")
			return v
		}
		return randomValue(l.rng, 1)
	}
	v.items = slices.Clone(v.items)
	i := l.rng.IntN(len(v.items))
	switch l.rng.IntN(5) {
	case 0:
		v.items = slices.Delete(v.items, i, i+1)
	case 1:
		v.items = slices.Insert(v.items, i, randomValue(l.rng, 1))
	case 2:
		v.kind = "*~>%"[l.rng.IntN(4)]
	default:
		v.items[i] = l.twist(v.items[i])
	}
	return v
}

// said is a value of RESP2 or RESP3, of any type.
type said struct {
	kind  byte
	text  string // of what has no items: the line, or the text
	null  bool   // a length of -1
	items []said // of a map keys and values in turn
}

func readSaid(in *bufio.Reader) (said, error) {
	kind, n, text, err := resp.ReadHead(in)
	if err != nil {
		return said{}, err
	}
	v := said{kind: kind, text: string(text), null: n == -1}
	switch kind {
	case '$', '=', '!':
		if v.null {
			break
		}
		b := make([]byte, n+2)
		if _, err := io.ReadFull(in, b); err != nil {
			return said{}, err
		}
		v.text = string(b[:n])
	case '%':
		n *= 2
		fallthrough
	case '*', '~', '>':
		for range n {
			item, err := readSaid(in)
			if err != nil {
				return said{}, err
			}
			v.items = append(v.items, item)
		}
	}
	return v, nil
}

func (v said) append(b []byte) []byte {
	if v.kind == '?' {
		return append(b, v.text+"\r\n"...)
	}
	b = append(b, v.kind)
	if v.null {
		return append(b, "-1\r\n"...)
	}
	switch v.kind {
	case '$', '=', '!':
		return append(fmt.Appendf(b, "%d\r\n", len(v.text)), v.text+"\r\n"...)
	case '*', '~', '>', '%', '|':
		n := len(v.items)
		if v.kind == '%' || v.kind == '|' {
			n /= 2 // an odd one comes unasked
		}
		b = fmt.Appendf(b, "%d\r\n", n)
		for _, item := range v.items {
			b = item.append(b)
		}
		return b
	}
	return append(b, v.text+"\r\n"...)
}

// randomValue is a value of any type, nested in depth others.
func randomValue(r *rand.Rand, depth int) said {
	pick := func(all ...string) string { return all[r.IntN(len(all))] }
	switch kind := "+-:$=_#,(*~>%|!?"[r.IntN(16)]; kind {
	case '+':
		return said{kind: '+', text: pick("OK", "PONG", "QUEUED", "", "string", "none", "list", "subscribe")}
	case '-', '!':
		return said{kind: kind, text: pick("ERR unknown command", "NOPERM no", "NOAUTH", "LOADING", "BUSY", "NOSCRIPT", "WRONGTYPE", "EXECABORT", "MOVED 1 127.0.0.1:1",
			"ASK 1 :0", "NOREPLICAS", "READONLY", "MISCONF", "NOPROTO", "", "ERR max number of clients reached", "OOM", "WRONGPASS", "MASTERDOWN", "UNKILLABLE")}
	case ':':
		return said{kind: ':', text: pick("0", "1", "-1", "-2", "2147483647", "9223372036854775807", "-9223372036854775808", "99999999999999999999", "", "x", "1.5")}
	case '$':
		return said{kind: '$', text: randomText(r), null: r.IntN(6) == 0}
	case '=':
		return said{kind: '=', text: pick("txt:run_id:a\r\n", "txt:", "t", "", "mkd:x"), null: r.IntN(6) == 0}
	case '_':
		return said{kind: '_', text: pick("", "x")}
	case '#':
		return said{kind: '#', text: pick("t", "f", "", "x")}
	case ',':
		return said{kind: ',', text: pick("1.5", "inf", "-inf", "nan", "", "1e999", "x")}
	case '(':
		return said{kind: '(', text: pick("1", "-3492890328409238509324850943850943825024385", "", "x")}
	case '?': // streamed, which no server sends
		return said{kind: '?', text: pick("$?", "*?", "%?", "~?", ";0")}
	default:
		v := said{kind: kind, null: r.IntN(8) == 0}
		if v.null {
			return v
		}
		n := []int{0, 0, 1, 1, 2, 2, 3, 4, 5, 9}[r.IntN(10)]
		if depth > 3 {
			n = 0
		}
		for i := range n {
			if i == 0 && r.IntN(2) == 0 {
				v.items = append(v.items, said{kind: pick("$", "+")[0], text: pick("invalidate", "subscribe", "unsubscribe", "message", "pmessage", "pong", "MOVING", "SMIGRATED")})
				continue
			}
			v.items = append(v.items, randomValue(r, depth+1))
		}
		return v
	}
}

func randomText(r *rand.Rand) string {
	all := []string{
		"", "0", "1", "-1", "run_id:x", "run_id:\x1b[2J\r\n", "role:slave\r\n", "\r\n", ":", "redis_version:", "min-replicas-to-write", "2147483647", "99999999999999999999",
		"cmdstat_flushall:calls=99999999999999999999,usec=1\r\n", "db0:keys=-1,expires=x\r\n", "uptime_in_seconds:-5\r\n", "redlockctl:guard:1:id=a&d=9223372036854775807", "redlockctl:guard:1:",
		"id=1 addr= name=redlockctl:guard\n", "\x00\xff", "job:1", "1700000000", strings.Repeat("x", 300), "string", "-9223372036854775808", "maxmemory:x\r\n", "instantaneous_ops_per_sec:-1\r\n",
	}
	return all[r.IntN(len(all))]
}
