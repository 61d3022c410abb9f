package monitor

import (
	"testing"
	"time"

	"redlockctl/internal/sessions"
	"redlockctl/redlock"
)

// scripted is a node whose server says what a string says, whatever it is asked.
func scripted(tb testing.TB, text string) *redlock.Node {
	tb.Helper()
	n, err := redlock.NewNode("n1", sessions.Scripted(text))
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

// FuzzSession: whatever a server says from the first byte of the greeting on, each
// of a monitor's sessions with it ends.
func FuzzSession(f *testing.F) {
	f.Add(sessions.Greeting + "+PONG\r\n*2\r\n$10\r\n1700000000\r\n$1\r\n0\r\n$11\r\nrun_id:abc1\r\n")
	f.Add(sessions.Greeting + "$11\r\nrun_id:abc1\r\n*2\r\n$1\r\n0\r\n*1\r\n$1\r\nk\r\n*4\r\n$6\r\nstring\r\n:1000\r\n:1\r\n$1\r\nx\r\n")
	f.Add(sessions.Greeting + "+PONG\r\n" + sessions.Greeting + "+OK\r\n>2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n+PONG\r\n")
	for _, text := range sessions.Sessions {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		ctx := t.Context()
		if s, err := dial(ctx, scripted(t, text).Within(readBudget(1)), time.Second); err == nil {
			r := newReader(s)
			if _, err := r.runID(ctx); err == nil {
				if p, err := r.sweep(ctx, nil, 0, "*", 10); err == nil && len(p.keys) > 0 {
					keys := p.keys[:min(len(p.keys), batchKeys)]
					_, _ = r.sweep(ctx, keys, p.next, "*", 10)
					_, _, _, _ = r.read(ctx, keys)
				}
			}
			s.close()
		}
		if feed, err := openFeed(ctx, scripted(t, text), nil, time.Second); err == nil {
			for range 8 {
				if _, err := feed.next(func([]byte) bool { return true }); err != nil {
					break
				}
			}
			feed.close()
		}
	})
}
