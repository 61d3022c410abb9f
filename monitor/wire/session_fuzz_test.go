package wire

import (
	"testing"
	"time"

	"redlockctl/internal/lab/sessions"
	"redlockctl/redlock"
)

// scripted is a node whose server sends a fixed text, whatever it receives.
func scripted(tb testing.TB, text string) *redlock.Node {
	tb.Helper()
	n, err := redlock.NewNode("n1", sessions.Scripted(text))
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

// FuzzSession: each session of a monitor ends, whatever a server sends from the first
// byte of the greeting on.
func FuzzSession(f *testing.F) {
	f.Add(sessions.Greeting + "+PONG\r\n*2\r\n$10\r\n1700000000\r\n$1\r\n0\r\n$11\r\nrun_id:abc1\r\n")
	f.Add(sessions.Greeting + "$11\r\nrun_id:abc1\r\n*2\r\n$1\r\n0\r\n*1\r\n$1\r\nk\r\n*4\r\n$6\r\nstring\r\n:1000\r\n:1\r\n$1\r\nx\r\n")
	f.Add(sessions.Greeting + "+PONG\r\n" + sessions.Greeting + "+OK\r\n>2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n+PONG\r\n")
	for _, text := range sessions.Sessions {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) { playSession(t, text) })
}

func playSession(t *testing.T, text string) {
	ctx := t.Context()
	if s, err := Dial(ctx, scripted(t, text).Within(ReadBudget(1)), NewPatience(time.Second)); err == nil {
		r := NewReader(s)
		if _, err := r.RunID(ctx); err == nil {
			if p, err := r.Sweep(ctx, nil, 0, "*", 10); err == nil && len(p.Keys) > 0 {
				keys := p.Keys[:min(len(p.Keys), BatchKeys)]
				_, _ = r.Sweep(ctx, keys, p.Next, "*", 10)
				_, _, _, _ = r.Read(ctx, keys)
			}
		}
		s.Close()
	}
	if feed, err := OpenFeed(ctx, scripted(t, text), nil, NewPatience(time.Second)); err == nil {
		for range 8 {
			if _, err := readPush(feed.in, func([]byte) bool { return true }); err != nil {
				break
			}
		}
		feed.Close()
	}
}

// The sessions of a monitor, with random answers of every type.
func TestRandomSessions(t *testing.T) {
	sessions.PlayRandom(t, 5_000, func(text string) { playSession(t, text) },
		sessions.Greeting+"$11\r\nrun_id:abc1\r\n*2\r\n$1\r\n0\r\n*1\r\n$1\r\nk\r\n*2\r\n:1000\r\n$1\r\nx\r\n*2\r\n$1\r\n0\r\n*0\r\n*4\r\n$4\r\nhash\r\n:1000\r\n:1\r\n$1\r\nx\r\n",
		sessions.Greeting+"$11\r\nrun_id:abc1\r\n*2\r\n$1\r\n7\r\n*2\r\n$1\r\nk\r\n$1\r\nl\r\n-NOSCRIPT no\r\n-NOPERM no\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*4\r\n+string\r\n:1\r\n:1\r\n$1\r\nx\r\n",
		sessions.Greeting+"+PONG\r\n"+sessions.Greeting+"+OK\r\n>2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n+PONG\r\n>2\r\n$10\r\ninvalidate\r\n_\r\n")
}
