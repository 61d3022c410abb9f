package restartguard

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/server/announce"
)

// parameter is the answer to CONFIG GET name.
func parameter(name, value string) *redis.MapStringStringCmd {
	c := redis.NewMapStringStringCmd(context.Background())
	c.SetVal(map[string]string{name: value})
	return c
}

// FuzzReplies: whatever a server's replies say, what is read of them can be shown and
// compared, and no node rejoins before D has passed since it was seen first.
func FuzzReplies(f *testing.F) {
	const server = "# Server\r\nredis_version:7.0.15\r\nrun_id:0123456789abcdef\r\n"
	const replication = "# Replication\r\nrole:master\r\nmaster_replid2:0000\r\nmin_slaves_good_slaves:0\r\n"
	const stats = "total_commands_processed:7\r\nevicted_keys:0\r\n"
	f.Add(server, replication, stats, "cmdstat_flushall:calls=1,usec=2\r\ncmdstat_config|set:calls=2,usec=3\r\n", "2147483647", "10", "redlockctl:guard:1", uint8(0))
	f.Add(server, replication, stats, "", "0", "10", "", uint8(1))
	f.Add(server, replication, stats, "", "2147483646", "0", "", uint8(2))
	f.Add(server, replication, stats, "cmdstat_flushdb:calls=99999999999999999999\r\n", "x", "", "", uint8(4))
	f.Add("run_id:\x1b[2J\r\n", "role:slave\r\n", "", "", "1", "1", "", uint8(8))
	f.Fuzz(func(t *testing.T, server, replication, stats, commands, replicas, lag, channel string, how uint8) {
		p := Policy{Delay: 10 * time.Second, Sweep: how&1 != 0, FirstContact: FirstContact(how >> 1 & 1)}
		now := time.Unix(1700000000, 0)
		o := Observation{About: Seen, Asked: now, Conn: 1}
		if o.read(server, replication, stats, commands, Method{Kind: MethodKind(how >> 2 & 1)}.codec().traits().sets) != nil {
			return
		}
		if !isWord(o.RunID) || !isWord(o.Role) || o.Former != "" && !isWord(o.Former) {
			t.Fatalf("%q, %q, %q cannot be shown", o.RunID, o.Role, o.Former)
		}
		if o.Wipes < 0 {
			t.Skip("a server that counts beyond 64 bits")
		}
		params, err := paramsOf(parameter(paramMinReplicas, replicas), parameter(paramMaxLag, lag))
		o.Params, o.Blind = params, err != nil
		o.Lacking = lacksReplicas(replication, o.Params, !o.Blind)
		for _, g := range announce.DecodeAll([]string{channel}) {
			o.Heard = max(o.Heard, g.Delay)
		}
		first := o.Params
		var s State
		for _, after := range []time.Duration{0, p.Delay / 2, p.Delay - 1} {
			o.Asked = now.Add(after)
			var todo []Action
			s, todo, _ = Step(p, s, o, o.Asked)
			for n := 0; len(todo) > 0 && n < maxActions; n++ {
				a := todo[0]
				if a.RunID != o.RunID {
					t.Fatalf("%+v is meant for another life", a)
				}
				done := Observation{RunID: o.RunID, Conn: 1, Asked: o.Asked, Before: o.Params, Params: o.Params}
				switch a.Kind {
				case Remove:
					if a.Value == FenceNone && first.fenced() {
						t.Fatalf("rejoins after %s", after)
					}
					done.About, o.Params.MinReplicas = Removing, a.Value
				case Raise:
					done.About, o.Params = Raising, Params{MinReplicas: a.Value, MaxLag: max(1, o.Params.MaxLag)}
				case Prove:
					done.About, done.Canary = Proving, CanaryFenced
				case Kill:
					done.About, done.Gone, done.Swept = Killing, true, true
				case Count:
					done.About, done.Counted, done.Counter = Counting, true, 1
				}
				done.Params = o.Params
				var more []Action
				s, more, _ = Step(p, s, done, o.Asked)
				todo = append(todo[1:], more...)
			}
		}
	})
}

// FuzzMemory: whatever stands in guard.json, also with a sum that is right, no node
// that waits waits for more than the longest D, and what was read is written and read
// as the same again.
func FuzzMemory(f *testing.F) {
	doc := document{Boot: "b", Saved: 5e9, Nodes: map[string]record{"n1": {
		Addr: "a:1", Fence: "min-replicas", Incarnation: Incarnation{RunID: "r"}, Fencing: Fencing{Delay: 2e9}, Starts: Starts{Incarnations: 2},
		ClockBase: ClockBase{Clock: Reading{Wall: 1}, ClockAt: 4e9}, Deadline: 6e9,
	}}}
	body, err := json.Marshal(doc)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(body), true, int64(2e9), int64(55e8))
	f.Add(`{"nodes":{"n1":{"deadline_ns":9223372036854775807,"delay_ns":-1,"clock_at_ns":-9223372036854775808}}}`, true, int64(1), int64(-1))
	f.Add(memoryHead+"0\n{}", false, int64(1), int64(1))
	f.Fuzz(func(t *testing.T, text string, sum bool, delay, boot int64) {
		raw := []byte(text)
		if sum {
			raw = []byte(memoryHead + sumOf(raw) + "\n" + text)
		}
		doc, err := parseDocument(raw)
		if err != nil {
			return
		}
		if !sum {
			t.Fatal("a file without its sum is believed")
		}
		now := time.Unix(1700000000, 0)
		d := time.Duration(uint64(delay) % uint64(24*time.Hour))
		b := time.Duration(uint64(boot) % uint64(10*365*24*time.Hour))
		for _, r := range doc.Nodes {
			for _, same := range []bool{true, false} {
				s := r.state(now, b, d, same)
				wait := s.Deadline.Sub(now)
				if s.Deadline.IsZero() != (r.Deadline == 0) {
					t.Fatalf("a deadline of %d is %s", r.Deadline, s.Deadline)
				}
				if !s.Deadline.IsZero() && (wait > max(d, r.Delay) || !same && wait < d) {
					t.Fatalf("waits %s, D is %s, was %s", wait, d, r.Delay)
				}
			}
		}
	})
}
