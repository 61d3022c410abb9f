package memory

import (
	"encoding/json"
	"testing"
	"time"

	"redlockctl/restartguard"
)

// FuzzMemory: whatever stands in guard.json, also with a sum that is right, no node
// that waits waits for more than the longest D, and what was read is written and read
// as the same again.
func FuzzMemory(f *testing.F) {
	doc := document{Boot: "b", Saved: 5e9, Nodes: map[string]restartguard.Record{"n1": {
		Addr: "a:1", Fence: "min-replicas", Incarnation: restartguard.Incarnation{RunID: "r"}, Fencing: restartguard.Fencing{Delay: 2e9}, Starts: restartguard.Starts{Incarnations: 2},
		ClockBase: restartguard.ClockBase{Clock: restartguard.Reading{Wall: 1}, ClockAt: 4e9}, Deadline: 6e9,
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
				s := r.State(now, b, d, same)
				wait := s.Basis.Deadline.Sub(now)
				if s.Basis.Deadline.IsZero() != (r.Deadline == 0) {
					t.Fatalf("a deadline of %d is %s", r.Deadline, s.Basis.Deadline)
				}
				if !s.Basis.Deadline.IsZero() && (wait > max(d, r.Delay) || !same && wait < d) {
					t.Fatalf("waits %s, D is %s, was %s", wait, d, r.Delay)
				}
			}
		}
	})
}
