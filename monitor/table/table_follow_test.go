package table

import (
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Whatever happened, once the nodes have been read and confirm it, the table matches them, with
// the numbers that the definitions give; and it never shows an expired copy.
func TestTheTableFollowsTheNodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 7).Draw(t, "n")
		r := newRig(n, time.Minute)
		if rapid.Bool().Draw(t, "settled") {
			r.first()
		}
		node, key := rapid.IntRange(0, n-1), rapid.SampledFrom([]string{"x", "y", "z"})
		token := rapid.SampledFrom([]string{"a", "b", "ccc"})
		fresh := func() {
			r.Refresh(r.now)
			for l := range r.Locks().All() {
				for _, c := range l.Copies.All() {
					if c.Type != "" && !c.Expires.IsZero() && !c.Expires.After(r.now) {
						t.Fatalf("%s shows an expired copy", l.Key)
					}
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				ttl := rapid.SampledFrom([]time.Duration{0, time.Second, 3 * time.Second, 2 * time.Minute}).Draw(t, "ttl")
				r.set(key.Draw(t, "key"), token.Draw(t, "token"), ttl, node.Draw(t, "node"))
			},
			"acquire": func(t *rapid.T) {
				for i := range n {
					r.set("x", token.Draw(t, "token"), 3*time.Second, i)
				}
			},
			"list":    func(t *rapid.T) { r.servers[node.Draw(t, "node")][key.Draw(t, "key")] = held{typ: "list"} },
			"del":     func(t *rapid.T) { r.del(key.Draw(t, "key"), node.Draw(t, "node")) },
			"scan":    func(t *rapid.T) { r.scan(node.Draw(t, "node")) },
			"down":    func(t *rapid.T) { r.Unreachable(node.Draw(t, "node"), r.now) },
			"up":      func(t *rapid.T) { r.Reachable(node.Draw(t, "node"), rapid.Bool().Draw(t, "closed")) },
			"restart": func(t *rapid.T) { i := node.Draw(t, "node"); clear(r.servers[i]); r.Restarted(i, Incarnation{}, r.now) },
			"doubt":   func(t *rapid.T) { r.Doubt(node.Draw(t, "node")) },
			"pass":    func(t *rapid.T) { r.pass(time.Duration(rapid.IntRange(1, 4000).Draw(t, "ms")) * time.Millisecond) },
			"settle":  func(t *rapid.T) { r.Settle(r.now) },
			"":        func(*rapid.T) { fresh() },
		})
		for i := range n {
			r.Reachable(i, false)
		}
		r.scanAll()
		for reads := 0; reads == 0 || r.Unconfirmed() && reads < 4; reads++ { // a copy may expire between two reads
			r.scanAll()
		}
		fresh()
		keys := map[string]bool{}
		for i := range n {
			locks := 0
			for k, h := range r.servers[i] {
				if !h.expires.IsZero() && !h.expires.After(r.now) {
					continue
				}
				keys[k] = true
				if h.typ == "string" {
					locks++
				}
			}
			if r.nodes[i].present != locks {
				t.Fatalf("node %d has %d locks, not %d", i, locks, r.nodes[i].present)
			}
		}
		var got []string
		for l := range r.Locks().All() {
			if keys[l.Key.Raw()] || l.Held > 0 || !l.ReliedOn() {
				got = append(got, l.Key.Raw())
			}
			checkLock(t, r, *l)
		}
		if !slices.Equal(got, slices.Sorted(maps.Keys(keys))) {
			t.Fatalf("%v, not %v", got, keys)
		}
	})
}

// A change is read between the end of a full scan and the sweep after it: a copy that the
// scan did not find is dropped, and the lock with it. After a FLUSHALL, all keys that had
// just changed are read again at that moment.
func TestReadBetweenScanAndSweep(t *testing.T) {
	r := newRig(1, time.Minute)
	sent := r.now
	r.Table.Read(0, sent, sent, []Row{{Key: "job", Type: "string", TTL: -1, Len: 1, Prefix: "a"}})
	r.Table.Scanned(0, r.Table.nodes[0].epoch, sent, sent)
	r.Refresh(r.now)
	if r.Locks().Get("job") == nil {
		t.Fatal("not there to begin with")
	}
	began := sent.Add(time.Millisecond)
	r.Table.Scanned(0, r.Table.nodes[0].epoch, began, began)
	later := began.Add(time.Millisecond)
	r.Table.Read(0, later, later, []Row{{Key: "job", Type: "none"}})
	r.Refresh(later)
	if l := r.Locks().Get("job"); l != nil {
		t.Errorf("still there: %+v", l)
	}
}
