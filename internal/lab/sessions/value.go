package sessions

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"

	"redlockctl/server/resp"
)

// Twist returns v with one part changed, left out or repeated.
func (v Value) Twist(r *rand.Rand) Value {
	if len(v.Items) == 0 || r.IntN(3) == 0 {
		if v.Kind == '$' && r.IntN(2) == 0 { // INFO and the like
			lines := strings.SplitAfter(v.Text, "\n")
			i := r.IntN(len(lines))
			lines[i] = randomText(r)
			v.Text = strings.Join(lines, "")
			return v
		}
		return random(r, 1)
	}
	v.Items = slices.Clone(v.Items)
	i := r.IntN(len(v.Items))
	switch r.IntN(5) {
	case 0:
		v.Items = slices.Delete(v.Items, i, i+1)
	case 1:
		v.Items = slices.Insert(v.Items, i, random(r, 1))
	case 2:
		v.Kind = "*~>%"[r.IntN(4)]
	default:
		v.Items[i] = v.Items[i].Twist(r)
	}
	return v
}

// Value is a value of RESP2 or RESP3, of any type.
type Value struct {
	Kind  byte
	Text  string  // of a value without items: the line, or the text
	null  bool    // a length of -1
	Items []Value // of a map: keys and values alternate
}

// Read reads a value.
func Read(in *bufio.Reader) (Value, error) {
	kind, n, text, err := resp.ReadHead(in)
	if err != nil {
		return Value{}, err
	}
	v := Value{Kind: kind, Text: string(text), null: n == -1}
	switch kind {
	case '$', '=', '!':
		if v.null {
			break
		}
		b := make([]byte, n+2)
		if _, err := io.ReadFull(in, b); err != nil {
			return Value{}, err
		}
		v.Text = string(b[:n])
	case '%':
		n *= 2
		fallthrough
	case '*', '~', '>':
		for range n {
			item, err := Read(in)
			if err != nil {
				return Value{}, err
			}
			v.Items = append(v.Items, item)
		}
	}
	return v, nil
}

// Append appends the value as servers send it.
func (v Value) Append(b []byte) []byte {
	if v.Kind == '?' {
		return append(b, v.Text+"\r\n"...)
	}
	b = append(b, v.Kind)
	if v.null {
		return append(b, "-1\r\n"...)
	}
	switch v.Kind {
	case '$', '=', '!':
		return append(fmt.Appendf(b, "%d\r\n", len(v.Text)), v.Text+"\r\n"...)
	case '*', '~', '>', '%', '|':
		n := len(v.Items)
		if v.Kind == '%' || v.Kind == '|' {
			n /= 2 // sometimes a map with an odd item
		}
		b = fmt.Appendf(b, "%d\r\n", n)
		for _, item := range v.Items {
			b = item.Append(b)
		}
		return b
	}
	return append(b, v.Text+"\r\n"...)
}

// Random returns a value of any type.
func Random(r *rand.Rand) Value { return random(r, 0) }

// random returns a value that is nested in depth others.
func random(r *rand.Rand, depth int) Value {
	pick := func(all ...string) string { return all[r.IntN(len(all))] }
	switch kind := "+-:$=_#,(*~>%|!?"[r.IntN(16)]; kind {
	case '+':
		return Value{Kind: '+', Text: pick("OK", "PONG", "QUEUED", "", "string", "none", "list", "subscribe")}
	case '-', '!':
		return Value{Kind: kind, Text: pick("ERR unknown command", "NOPERM no", "NOAUTH", "LOADING", "BUSY", "NOSCRIPT", "WRONGTYPE", "EXECABORT", "MOVED 1 127.0.0.1:1",
			"ASK 1 :0", "NOREPLICAS", "READONLY", "MISCONF", "NOPROTO", "", "ERR max number of clients reached", "OOM", "WRONGPASS", "MASTERDOWN", "UNKILLABLE")}
	case ':':
		return Value{Kind: ':', Text: pick("0", "1", "-1", "-2", "2147483647", "9223372036854775807", "-9223372036854775808", "99999999999999999999", "", "x", "1.5")}
	case '$':
		return Value{Kind: '$', Text: randomText(r), null: r.IntN(6) == 0}
	case '=':
		return Value{Kind: '=', Text: pick("txt:run_id:a\r\n", "txt:", "t", "", "mkd:x"), null: r.IntN(6) == 0}
	case '_':
		return Value{Kind: '_', Text: pick("", "x")}
	case '#':
		return Value{Kind: '#', Text: pick("t", "f", "", "x")}
	case ',':
		return Value{Kind: ',', Text: pick("1.5", "inf", "-inf", "nan", "", "1e999", "x")}
	case '(':
		return Value{Kind: '(', Text: pick("1", "-3492890328409238509324850943850943825024385", "", "x")}
	case '?': // streamed, which no server sends
		return Value{Kind: '?', Text: pick("$?", "*?", "%?", "~?", ";0")}
	default:
		v := Value{Kind: kind, null: r.IntN(8) == 0}
		if v.null {
			return v
		}
		n := []int{0, 0, 1, 1, 2, 2, 3, 4, 5, 9}[r.IntN(10)]
		if depth > 3 {
			n = 0
		}
		for i := range n {
			if i == 0 && r.IntN(2) == 0 {
				v.Items = append(v.Items, Value{Kind: pick("$", "+")[0], Text: pick("invalidate", "subscribe", "unsubscribe", "message", "pmessage", "pong", "MOVING", "SMIGRATED")})
				continue
			}
			v.Items = append(v.Items, random(r, depth+1))
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

// Twisted returns a server's text with some values replaced, changed, left out or repeated.
func Twisted(r *rand.Rand, said string) (text string, values int) {
	in := bufio.NewReader(strings.NewReader(said))
	honest := r.IntN(6)
	var out []byte
	for {
		v, err := Read(in)
		if err != nil {
			break
		}
		honest--
		switch {
		case honest >= 0:
			out = v.Append(out)
			continue
		case r.IntN(2) == 0:
			v = Random(r)
		case r.IntN(4) == 0:
			push := Random(r)
			push.Kind = '>'
			out = push.Append(out)
		default:
			v = v.Twist(r)
		}
		values++
		out = v.Append(out)
	}
	for range 8 {
		values++
		out = Random(r).Append(out)
	}
	return string(out), values
}
