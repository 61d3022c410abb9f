package redlock

import (
	"testing"
	"time"

	"redlockctl/internal/lab/sessions"
)

// scripted is a node whose server says what a string says, whatever it is asked.
func scripted(tb testing.TB, text string) *Node {
	tb.Helper()
	n, err := NewNode("n1", sessions.Scripted(text))
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

// FuzzSession: whatever a server says from the first byte of the greeting on, a
// lock client's session ends, with an answer or an error, and so does one that
// listens to changes.
func FuzzSession(f *testing.F) {
	f.Add(sessions.Greeting + "+PONG\r\n+OK\r\n:1\r\n*2\r\n$1\r\n1\r\n$1\r\n2\r\n")
	f.Add(sessions.Greeting + "+PONG\r\n+OK\r\n>2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n:12\r\n$3\r\nabc\r\n")
	for _, text := range sessions.Sessions {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) { playSession(t, text) })
}

func playSession(t *testing.T, text string) {
	ctx := t.Context()
	link, err := redisWire{scripted(t, text), newPatience(time.Second), time.Second}.open(ctx)
	if err == nil {
		calls := []*call{
			{request: &request{op: opSet, key: "k", token: "t", ttl: time.Second}},
			{request: &request{op: opInspect, key: "k"}},
		}
		_ = link.send(calls)
		for _, c := range calls {
			if _, _, err := link.receive(func() *call { return c }); err != nil {
				break
			}
		}
		link.abort()
	}
	conn := newRedisTracking(scripted(t, text), time.Second)
	if _, err := conn.open(ctx); err == nil {
		_ = conn.ask("k")
		for range 8 {
			if _, err := conn.receive(); err != nil {
				break
			}
		}
	}
	conn.end()
}

// The sessions of a lock client with random answers of every type.
func TestRandomSessions(t *testing.T) {
	sessions.PlayRandom(t, 5_000, func(text string) { playSession(t, text) },
		"-ERR no\r\n+PONG\r\n$11\r\nrun_id:abc1\r\n+OK\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*4\r\n+string\r\n:100\r\n:1\r\n$1\r\nt\r\n",
		sessions.Greeting+"+PONG\r\n"+sessions.Greeting+"+OK\r\n>2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n:12\r\n$3\r\nabc\r\n>2\r\n$10\r\ninvalidate\r\n_\r\n")
}
