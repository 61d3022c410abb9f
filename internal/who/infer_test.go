package who

import (
	"fmt"
	"math"
	"testing"
	"time"

	"redlockctl/server/safetext"
)

// bench is a node whose snapshots a test makes.
type bench struct {
	Tally
	node    int
	now     time.Time
	expires time.Time
	counts  bool
	conns   map[int64]*Conn
	used    map[int64]time.Time
	opened  int64
}

func newBench(counts bool, names ...string) *bench {
	b := &bench{now: time.Unix(1000, 500e6), counts: counts, conns: map[int64]*Conn{}, used: map[int64]time.Time{}}
	for _, name := range names {
		b.open(name)
	}
	b.expires = b.now.Add(10 * time.Second)
	b.look()
	return b
}

func (b *bench) open(name string) int64 {
	b.opened++
	b.conns[b.opened] = &Conn{ID: b.opened, Addr: safetext.New(fmt.Sprint("10.0.0.1:", 4000+b.opened)), Name: safetext.New(name), Cmd: "client|setname", Cmds: 9}
	return b.opened
}

func (b *bench) send(cmd string, ids ...int64) {
	for _, id := range ids {
		b.conns[id].Cmds++
		b.conns[id].Cmd = cmd
		b.used[id] = b.now
	}
}

// extend has these connections send something while the lock is extended.
func (b *bench) extend(ids ...int64) {
	b.expires = b.now.Add(10 * time.Second)
	b.send("evalsha", ids...)
}

func (b *bench) look() {
	b.now = b.now.Add(10 * time.Millisecond)
	s := &Snapshot{Node: b.node, At: b.now, Before: b.now, After: b.now, There: true, Token: "token", TTL: b.expires.Sub(b.now), Accepted: b.opened}
	for id, c := range b.conns {
		c := *c
		c.Idle = int(math.Floor(float64(b.now.UnixMilli())/1000) - math.Floor(float64(b.used[id].UnixMilli())/1000))
		if !b.counts {
			c.Cmds = -1
		}
		s.Conns = append(s.Conns, c)
	}
	b.Take(s)
	b.now = b.now.Add(990 * time.Millisecond)
}

// names returns the candidates with their p.
func (b *bench) names() (text string) {
	likely, _ := b.Holder("token")
	for _, c := range likely {
		text += fmt.Sprintf("%s %.3f ", c.Group, math.Floor(c.P*1000)/1000)
	}
	return text
}

// Two changes that only one application can have sent are needed; to be active at each
// change is not enough, however often.
func TestInference(t *testing.T) {
	for name, c := range map[string]struct {
		names  []string
		do     func(b *bench, k int)
		proved bool
		want   string
	}{
		"alone":       {[]string{"a", "b"}, func(b *bench, k int) { b.extend(1) }, true, "a 0.999 "},
		"two in step": {[]string{"a", "b", "c"}, func(b *bench, k int) { b.extend(1, 2) }, false, "a 0.476 b 0.476 "},
		"two in step, and once only one": {[]string{"a", "b"}, func(b *bench, k int) {
			if b.extend(1); k != 5 {
				b.send("evalsha", 2)
			}
		}, false, "a 0.995 "},
		"different ones are excluded by different changes":    {[]string{"a", "b", "c", "d"}, func(b *bench, k int) { b.extend(1, 2+int64(k%3)) }, false, "a 0.909 "},
		"a command that extends nothing":                      {[]string{"a", "b"}, func(b *bench, k int) { b.extend(1); b.send("get", 2) }, true, "a 0.999 "},
		"several commands, the last of which extends nothing": {[]string{"a", "b"}, func(b *bench, k int) { b.extend(1); b.send("evalsha", 2); b.send("get", 2) }, false, "a 0.476 b 0.476 "},
		"a pool":                        {[]string{"a", "a", "b"}, func(b *bench, k int) { b.extend(1 + int64(k%2)) }, true, "a 0.999 "},
		"a connection for each command": {[]string{"a", "b"}, func(b *bench, k int) { b.opened++; b.extend(1) }, false, ""},
		"one that opens connections at times": {[]string{"a", "b"}, func(b *bench, k int) {
			if b.extend(1); k%2 == 0 {
				b.opened++
			}
		}, true, "a 0.999 "},
		"connections that close": {[]string{"a", "b"}, func(b *bench, k int) {
			b.extend(1)
			delete(b.conns, b.open("b")-1)
		}, false, "a 0.476 b 0.476 "},
		"it reconnects": {[]string{"a", "b"}, func(b *bench, k int) {
			for id, conn := range b.conns {
				if conn.Name.Raw() == "a" {
					delete(b.conns, id)
				}
			}
			b.extend(b.open("a"))
		}, true, "a 0.999 "},
		"each connection has a name of its own": {[]string{"a1", "a2", "a3", "b"}, func(b *bench, k int) { b.extend(1+int64(k%3), 4) }, false, "b 0.909 "},
		"without a name":                        {[]string{"", "b"}, func(b *bench, k int) { b.extend(1) }, true, "10.0.0.1 0.999 "},
		"nameless beside named":                 {[]string{"", "b"}, func(b *bench, k int) { b.extend(1, 2) }, false, "10.0.0.1 0.476 b 0.476 "},
		"our own console":                       {[]string{"a", "redlockctl:console:ann@web:1"}, func(b *bench, k int) { b.extend(1, 2) }, true, "a 0.999 "},
		"our own run":                           {[]string{"a", "redlockctl:run:ann@web:1"}, func(b *bench, k int) { b.extend(1, 2) }, false, "a 0.476 redlockctl:run:ann@web:1 0.476 "},
	} {
		b := newBench(true, c.names...)
		for k := range 12 {
			c.do(b, k)
			b.look()
		}
		if got := b.names(); got != c.want || b.Proved("token") != c.proved {
			t.Errorf("%s: %q, proved %v", name, got, b.Proved("token"))
		}
	}
}

// Without counts of commands, who was idle since the second before a change is excluded.
func TestInferenceByIdleTimes(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(b *bench, k int)
		want string
	}{
		"alone":       {func(b *bench, k int) { b.extend(1) }, "a 0.999 "},
		"two in step": {func(b *bench, k int) { b.extend(1, 2) }, "a 0.476 b 0.476 "},
		"another was active in the same second": {func(b *bench, k int) {
			b.send("get", 2)
			b.look()
			b.now = b.now.Add(-985 * time.Millisecond)
			b.extend(1)
		}, "a 0.476 b 0.476 "},
	} {
		b := newBench(false, "a", "b")
		for k := range 12 {
			c.do(b, k)
			b.look()
		}
		if got := b.names(); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// A watch ends early only if several candidates are active all the time.
func TestHopeless(t *testing.T) {
	for _, busy := range [][]int64{{1}, {1, 2}} {
		b := newBench(false, "a", "b")
		for range 15 {
			b.extend(busy...)
			b.look()
		}
		if b.Hopeless("token", b.now) != (len(busy) > 1) || b.Hopeless("token", b.began.Add(time.Second)) {
			t.Errorf("busy %v: %v", busy, b.Hopeless("token", b.now))
		}
	}
}

// Changes that several nodes show at once are one.
func TestChanges(t *testing.T) {
	b := newBench(true, "a")
	all := func() {
		for b.node = range 3 {
			b.look()
			b.now = b.now.Add(-950 * time.Millisecond)
		}
		b.now = b.now.Add(time.Second)
	}
	all()
	for range 5 {
		b.extend(1)
		all()
	}
	if n := len(b.Extensions("token")); n != 5 {
		t.Errorf("%d extensions", n)
	}
	if _, n := b.Holder("token"); n != 5 {
		t.Errorf("%d changes", n)
	}
}

// A request for a known holder does not wait for another one after the known one has lost
// the lock; a request without one does.
func TestAKnownHolderHasLostTheLock(t *testing.T) {
	for _, known := range []*Answer{nil, {Key: "job:1", Token: safetext.New("t"), Group: &Group{Name: "billing"}}} {
		c := newCase(nil, "job:1")
		c.nodes, c.names = make([]nodeState, 3), []string{"n1", "n2", "n3"}
		c.remember(known, time.Now())
		for node := range c.nodes {
			if c.done(time.Now()) {
				t.Fatalf("done before all %d nodes were heard", len(c.nodes))
			}
			c.take(report{Snapshot: Snapshot{Node: node, At: time.Now()}})
		}
		if c.done(time.Now()) != (known != nil) {
			t.Errorf("known %v: done is %v", known != nil, known == nil)
		}
	}
}

// Of a lock that changes hands while it is watched, the answer names who had it before too; of one that
// is revoked then, who had that.
func TestALockThatChangesHands(t *testing.T) {
	const tombstone = "redlockctl:revoked:a"
	for _, tokens := range [][]string{{"a", "b"}, {"z", "a", "b"}, {"a", "b", ""}, {"a", tombstone}, {"a", "b", "a"}} {
		c := newCase(nil, "job:1")
		c.nodes, c.names = make([]nodeState, 3), []string{"n1", "n2", "n3"}
		began := time.Now()
		for i, token := range tokens {
			for node := range c.nodes {
				c.take(report{Snapshot: Snapshot{Node: node, At: began.Add(time.Duration(i) * time.Second), There: token != "", Token: token}})
			}
		}
		last := tokens[len(tokens)-1]
		want, before, at := last, "a", 0
		switch {
		case last == "": // the last report with b; that of the third node still had b when two of a third had nothing
			want = "b"
		case last == "a":
			before, at = "b", 1
		case len(tokens) == 3:
			at = 1
		}
		a := c.answer(began.Add(time.Minute))
		if a.Token.Raw() != want || a.Ended != (last == "") || a.Revoked != (last == tombstone) || a.Before == nil || a.Before.Token.Raw() != before || !a.Before.Ended {
			t.Errorf("%q: %+v, before %+v", tokens, a, a.Before)
		} else if got := a.Before.LastHeld.Sub(began).Round(time.Second); got < time.Duration(at)*time.Second || got > time.Duration(at+1)*time.Second {
			t.Errorf("%q: before until %s", tokens, got)
		}
	}
}

// A tombstone is an answer once all nodes were heard, also on a minority: nobody holds it.
func TestATombstoneIsAnAnswer(t *testing.T) {
	c := newCase(nil, "job:1")
	c.nodes, c.names = make([]nodeState, 3), []string{"n1", "n2", "n3"}
	for node := range c.nodes {
		if c.done(time.Now()) {
			t.Fatalf("done before node %d was heard", node)
		}
		c.take(report{Snapshot: Snapshot{Node: node, At: time.Now(), There: node == 0, Token: "redlockctl:revoked:a"}})
	}
	if a := c.answer(time.Now()); !c.done(time.Now()) || !a.Revoked || a.Held != 1 || a.Method != Unknown {
		t.Errorf("%+v", a)
	}
}

// A lock that ends while it is watched, and stays away, is an answer: nobody extended it.
// So is a minority whose token tells its owner. A short absence and a nameless minority are not.
func TestALockThatEndsWhileItIsWatched(t *testing.T) {
	told := "0123456789abcdefghijklmnAP8:ann@ops1:4204"
	for name, w := range map[string]struct {
		token  string
		copies int
		wait   time.Duration
		done   bool
	}{
		"gone":                      {"t", 0, fewFor, true},
		"gone just now":             {"t", 0, fewFor / 2, false},
		"a minority, told":          {told, 1, fewFor, true},
		"a minority of nobody":      {"t", 1, fewFor, false},
		"a minority, told just now": {told, 1, fewFor / 2, false},
	} {
		c := newCase(nil, "job:1")
		c.nodes, c.names = make([]nodeState, 3), []string{"n1", "n2", "n3"}
		now := time.Now()
		for _, copies := range []int{2, w.copies} {
			for node := range c.nodes {
				s := Snapshot{Node: node, At: now}
				if node < copies {
					s.There, s.Token = true, w.token
				}
				c.take(report{Snapshot: s})
			}
			if copies == w.copies && c.done(now) {
				t.Errorf("%s: done at once", name)
			}
		}
		if done := c.done(now.Add(w.wait)); done != w.done {
			t.Errorf("%s: done is %v", name, done)
		}
		a := c.answer(now.Add(w.wait))
		if a.Ended != (w.copies == 0) || a.Token.Raw() != w.token || !a.LastHeld.Equal(now) {
			t.Errorf("%s: ended is %v; %s held it at %s", name, a.Ended, a.Token, a.LastHeld)
		}
	}
}
