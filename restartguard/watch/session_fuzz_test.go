package watch

import (
	"bufio"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"redlockctl/internal/lab/sessions"
	"redlockctl/redlock"
	"redlockctl/restartguard"
	"redlockctl/restartguard/wire"
	"redlockctl/server/fences"
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
	f.Fuzz(func(t *testing.T, text string) { playSession(t, text) })
}

func playSession(t *testing.T, text string) {
	p := restartguard.Policy{Delay: time.Second, Sweep: true, CountEvery: time.Second}
	var s restartguard.State
	l := wire.Dial(scripted(t, text), fences.Method{}, time.Second)
	defer l.Close()
	l.Counter = true
	for range 3 {
		o, err := l.Look(t.Context())
		if err != nil {
			return
		}
		var todo []restartguard.Action
		s, todo, _ = restartguard.Step(p, s, o, time.Now())
		for n := 0; len(todo) > 0 && n < restartguard.MaxActions; n++ {
			o, err := l.Perform(t.Context(), todo[0])
			if err != nil {
				return
			}
			var more []restartguard.Action
			s, more, _ = restartguard.Step(p, s, o, time.Now())
			todo = append(todo[1:], more...)
		}
	}
}

// A session of a guard, and its announcement, with random answers of every type.
func TestRandomSessions(t *testing.T) {
	const params = "%1\r\n$21\r\nmin-replicas-to-write\r\n$1\r\n0\r\n%1\r\n$20\r\nmin-replicas-max-lag\r\n$2\r\n10\r\n"
	info := func(text string) string { return fmt.Sprintf("=%d\r\ntxt:%s\r\n", len(text)+4, text) }
	look := "*2\r\n$10\r\n1700000000\r\n$1\r\n0\r\n" + ":7\r\n+OK\r\n" + info("run_id:abc1\r\nredis_version:7.0.15\r\n") + info("role:master\r\n") + info("evicted_keys:0\r\n") + info("") + "_\r\n" + params
	set := params + "+OK\r\n+OK\r\n" + params + "-NOREPLICAS no\r\n" + params
	sessions.PlayRandom(t, 5_000, func(text string) { playSession(t, text) }, sessions.Greeting+look+set+look, sessions.Greeting+look+look+look)
	sessions.PlayRandom(t, 5_000, func(text string) { playAnnouncement(t, text) },
		sessions.Greeting+"+PONG\r\n>3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n>3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nx\r\n+PONG\r\n",
		"-ERR unknown command\r\n+PONG\r\n*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n*2\r\n$4\r\npong\r\n$0\r\n\r\n*3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:0\r\n")
}

// playAnnouncement announces a guard on a server that says a text.
func playAnnouncement(t *testing.T, text string) {
	if conn, err := redlock.OpenConn(t.Context(), scripted(t, text), time.Second); err == nil {
		a := announcer{timeout: time.Second, channels: func() []string { return []string{"a"} }, nameMoved: func(netip.AddrPort) bool { return false }, report: func(error) {}}
		_, _ = a.announced(t.Context(), conn)
	}
	// What comes behind the greeting alone, read on after each answer that is valid.
	s := subscription{conn: nowhere{}, in: bufio.NewReader(strings.NewReader(text)), timeout: time.Second}
	for {
		if _, err := s.next(); err != nil && !wire.Answered(err) {
			return
		}
	}
}

// nowhere is a connection of which only the deadlines are used.
type nowhere struct{ net.Conn }

func (nowhere) SetReadDeadline(time.Time) error { return nil }

// FuzzAnnouncement: whatever a server says to an announcement, from the first byte of the greeting on, it ends.
func FuzzAnnouncement(f *testing.F) {
	f.Add(sessions.Greeting + "+PONG\r\n>3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n")
	f.Add(sessions.Greeting + "+PONG\r\n*0\r\n")
	for _, text := range sessions.Sessions {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) { playAnnouncement(t, text) })
}
