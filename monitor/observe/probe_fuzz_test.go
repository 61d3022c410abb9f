package observe

import (
	"fmt"
	"testing"
	"time"

	"redlockctl/internal/lab/sessions"
	"redlockctl/monitor"
	"redlockctl/monitor/wire"
	"redlockctl/redlock"
	"redlockctl/server/resp"
)

// FuzzProbe: a probe ends, whatever a server sends from the first byte of the greeting
// on.
func FuzzProbe(f *testing.F) {
	f.Add(sessions.Greeting + "+PONG\r\n*2\r\n$10\r\n1700000000\r\n$1\r\n0\r\n$11\r\nrun_id:abc1\r\n")
	f.Add(sessions.Greeting + "$11\r\nrun_id:abc1\r\n*2\r\n$1\r\n0\r\n*1\r\n$1\r\nk\r\n*4\r\n$6\r\nstring\r\n:1000\r\n:1\r\n$1\r\nx\r\n")
	f.Add(sessions.Greeting + "+PONG\r\n" + sessions.Greeting + "+OK\r\n>2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n+PONG\r\n")
	for _, text := range sessions.Sessions {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) { playProbe(t, text) })
}

func playProbe(t *testing.T, text string) {
	ctx := t.Context()
	node, err := redlock.NewNode("n1", sessions.Scripted(text))
	if err != nil {
		t.Fatal(err)
	}
	if s, err := wire.Dial(ctx, node.Within(resp.NewBudget(probeReply, probeExchange)), wire.NewPatience(time.Second)); err == nil {
		p := prober{Session: s}
		for range 2 {
			if _, err := p.look(ctx, true); err != nil {
				break
			}
		}
		s.Close()
	}
}

// Probes with random answers of every type.
func TestRandomProbes(t *testing.T) {
	said := sessions.Greeting + "+PONG\r\n*2\r\n$10\r\n1700000000\r\n$1\r\n0\r\n"
	for range infoSections {
		said += "$58\r\nrun_id:abc1\r\nrole:master\r\ndb0:keys=1,expires=1,avg_ttl=1\r\n\r\n"
	}
	for _, p := range fenceParameters {
		said += fmt.Sprintf("%%1\r\n$%d\r\n%s\r\n$1\r\n0\r\n", len(p), p)
	}
	for range len(otherParameters) + len(monitor.FactParameters) {
		said += "%0\r\n"
	}
	said += "*1\r\n$19\r\nredlockctl:guard:1:\r\n"
	sessions.PlayRandom(t, 5_000, func(text string) { playProbe(t, text) }, said, said+said[len(sessions.Greeting):])
}
