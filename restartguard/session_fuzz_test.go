package restartguard

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

// FuzzSession: whatever a server says from the first byte of the greeting on, a
// guard's session ends, and what it saw takes the step machine through.
func FuzzSession(f *testing.F) {
	const (
		info   = "$11\r\nrun_id:abc1\r\n$11\r\nrole:master\r\n$12\r\nevicted_keys\r\n$1\r\n\r\n\r\n"
		params = "%1\r\n$21\r\nmin-replicas-to-write\r\n$1\r\n0\r\n%1\r\n$20\r\nmin-replicas-max-lag\r\n$2\r\n10\r\n"
	)
	f.Add(sessions.Greeting + "*2\r\n$10\r\n1700000000\r\n$1\r\n0\r\n:7\r\n+OK\r\n" + info + params)
	f.Add("-ERR unknown command 'HELLO'\r\n*2\r\n$10\r\n1700000000\r\n$1\r\n0\r\n:7\r\n+OK\r\n" + info)
	for _, text := range sessions.Sessions {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p := Policy{Delay: time.Second, Sweep: true, CountEvery: time.Second}
		var s State
		l := dial(scripted(t, text), paramFence{}, time.Second)
		defer l.close()
		l.counter = true
		for range 3 {
			o, err := l.look(t.Context())
			if err != nil {
				return
			}
			var todo []Action
			s, todo, _ = Step(p, s, o, time.Now())
			for n := 0; len(todo) > 0 && n < maxActions; n++ {
				o, err := l.perform(t.Context(), todo[0])
				if err != nil {
					return
				}
				var more []Action
				s, more, _ = Step(p, s, o, time.Now())
				todo = append(todo[1:], more...)
			}
		}
	})
}
