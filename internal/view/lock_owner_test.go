package view

import (
	"strings"
	"testing"
	"time"

	"redlockctl/internal/who"
	"redlockctl/monitor"
	"redlockctl/monitor/monitortest"
	"redlockctl/server/lockform"
	"redlockctl/server/safetext"
)

// OWNER says how the owner is known, and never shows the token if there is a column for
// it.
func TestColumnOwner(t *testing.T) {
	l := monitortest.LockOf(monitortest.Epoch, "job:1", monitor.LockHeld, monitortest.TokenA, "9 9 9 9 9")
	told := l
	told.Form = &lockform.Form{Library: "DistributedLock", Owner: safetext.New("web-7 (pid 811)")}
	revoked := monitortest.LockOf(monitortest.Epoch, "job:1", monitor.LockRevoked, "redlockctl:revoked:x", "9 9 9 9 9")
	now := monitortest.Epoch
	at := now.Add(-12 * time.Second)
	inferred := &who.Answer{At: at, Method: who.Inferred, P: 0.99897, Group: &who.Group{Name: "billing"}, Liveness: who.Gone}
	unknown := &who.Answer{Method: who.Unknown}
	extends := &who.Answer{At: at, Method: who.Seen, Group: &who.Group{Host: "10.0.0.7"}, Liveness: who.Alive, Extends: 4, Extended: time.Second, Usually: 2 * time.Second, Conns: []who.NodeConn{{Node: "n1"}}}
	extended := func(ago time.Duration) *monitor.Lock {
		e := monitortest.LockOf(monitortest.Epoch, "job:1", monitor.LockHeld, monitortest.TokenA, "9 9 9 9 9")
		e.Extensions, e.Extended = 9, e.Copies.Packed().Origin.Moment(now.Add(-ago))
		return &e
	}
	snap := monitortest.Safe(now)
	for _, c := range []struct {
		name            string
		lock            *monitor.Lock
		answer          *who.Answer
		short, noHolder bool
		want            string
	}{
		{"nobody knows", &l, nil, true, false, "-"},
		{"revoked, and no room for HOLDER", &revoked, nil, true, true, "-"},
		{"nobody knows, and no room for HOLDER", &l, nil, true, true, "- 77c..1e"},
		{"asked in vain", &l, unknown, true, false, "-"},
		{"told by the token", &told, nil, true, false, "web-7 (pid 811), told"},
		{"told, and its liveness asked", &told, inferred, true, false, "web-7 (pid 811), told, gone 12s"},
		{"inferred", &l, inferred, false, false, "billing? p 0.998, gone 12s"},
		{"inferred, where it may be cut", &l, inferred, true, false, "billing? p 0.998, gone 12s"},
		{"inferred, and alive a while ago", &l, &who.Answer{At: now.Add(-7 * time.Second), Method: who.Inferred, P: 0.9999, Group: &who.Group{Name: "billing"}, Liveness: who.Alive}, true, false, "billing? p 0.999, alive 7s ago"},
		{"it has extended since", extended(1500 * time.Millisecond), extends, true, false, "10.0.0.7, seen, alive"},
		{"it has extended since, a while ago", extended(3 * time.Second), extends, true, false, "10.0.0.7, seen, alive 3s ago"},
		{"it has missed an extension since", extended(4 * time.Second), extends, true, false, "10.0.0.7, seen, extended 4s ago"},
		{"it has missed two since", extended(8 * time.Second), extends, true, false, "10.0.0.7, seen, silent 8s"},
		{"alive, long ago, and nothing is known of extensions", &l, &who.Answer{At: at, Method: who.Seen, Group: &who.Group{Host: "10.0.0.7"}, Liveness: who.Alive}, true, false, "10.0.0.7, seen, asked 12s ago"},
		{"seen", &l, &who.Answer{Method: who.Seen, Group: &who.Group{Host: "10.0.0.7"}}, true, false, "10.0.0.7, seen"},
	} {
		ctx := &Context{Glyphs: Plain(true), Snap: snap, Now: now, Short: c.short, NoHolder: c.noHolder, Known: func(string) *who.Answer { return c.answer }}
		if got := lockOwner(ctx, c.lock).Text; got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	ctx := &Context{Glyphs: Plain(true), Snap: &monitor.Snapshot{}}
	shown := func(l *monitor.Lock, wide bool) bool {
		return strings.Contains(strings.Join(Tabulate(ctx, LockColumns(nil), []*monitor.Lock{l}, wide).Head, " "), "OWNER")
	}
	if shown(&l, false) || !shown(&l, true) || !shown(&told, false) {
		t.Error("OWNER stands in a table where somebody is known, and always in a wide one")
	}
}

// If OWNER has too little room, it drops whether the holder is alive, then the end of the
// name; never how the name is known.
func TestShortOwner(t *testing.T) {
	for owner, c := range map[string]map[int]string{
		"billing? p 0.998, alive":    {40: "billing? p 0.998, alive", 23: "billing? p 0.998, alive", 22: "billing? p 0.998", 11: "b…? p 0.998"},
		"ann@web-7:4711, told":       {20: "ann@web-7:4711, told", 11: "ann@…, told"},
		"10.0.0.7, seen, silent 18s": {25: "10.0.0.7, seen", 11: "10.0…, seen"},
		"a, told, b, told, gone 12s": {25: "a, told, b, told"},
		"– 77c0…1e":                  {5: "– 77c0…1e"},
	} {
		for w, want := range c {
			if got := shortOwner(&Unicode, owner, w); got != want {
				t.Errorf("%q in %d cells: %q; want %q", owner, w, got, want)
			}
		}
	}
}

// The text of an action names its target, so the target is not shown before it too.
func TestAnActNamesItsTargetOnce(t *testing.T) {
	e := monitor.Event{Kind: "operator", Key: safetext.New("maint"), Text: safetext.New("operator: release maint (its time has ended)")}
	if got := EventText(&Unicode, &e, true).Text; got != e.Text.Raw() {
		t.Errorf("%q; want %q", got, e.Text.Raw())
	}
}

// The mark at the majority's end stays at one node while extensions change the order in
// which its copies end.
func TestTheMajorityEndsAtOneNode(t *testing.T) {
	for _, copies := range []string{"9.1 9.2 9.3 9.4 9.5", "9.5 9.4 9.3 9.2 9.1", "9.3 9.5 9.1 9.4 9.2", "9 9 9 9 9"} {
		l := monitortest.LockOf(monitortest.Epoch, "job:1", monitor.LockHeld, monitortest.TokenA, copies)
		ctx := &Context{Glyphs: Plain(true), Now: monitortest.Epoch, Snap: monitortest.Safe(monitortest.Epoch)}
		for i, bar := range LockBars(ctx, &l, Axis(ctx, &l), 40) {
			if marked := strings.Contains(bar.Note.Text, "the majority ends here"); marked != (i == 0) {
				t.Errorf("copies %s: %s, note %q", copies, bar.Node, bar.Note.Text)
			}
		}
	}
}

// The page of a lock says when its holder was last heard of, how often that is usual, and
// that it is silent, whether or not somebody asked who it is, and whoever it is. The lock was
// first seen between two extensions: the time until the next counts as half of one.
func TestTheLastExtensionIsOnTheLocksPage(t *testing.T) {
	now := monitortest.Epoch
	l := monitortest.LockOf(now, "job:1", monitor.LockHeld, monitortest.TokenA, "9 9 9 9 9").Timed(now.Add(-time.Minute), now.Add(9*time.Second))
	ctx := &Context{Glyphs: Plain(true), Snap: monitortest.Safe(now), Now: now}
	liveness := func() string {
		for _, f := range LockFacts(ctx, &l) {
			if f.Label == "Liveness" {
				return f.Text
			}
		}
		return ""
	}
	if got := liveness(); got != "" {
		t.Errorf("never extended: %q", got)
	}
	for _, c := range []struct {
		extensions uint32
		ago        time.Duration
		want       string
	}{
		{1, 3 * time.Second, "last extended 3s ago"},
		{10, 3 * time.Second, "alive 3s ago; last extended 3s ago, usually every 6s"},
		{10, 22 * time.Second, "silent 22s; last extended 22s ago, usually every 4s"},
	} {
		l.Extensions, l.Extended = c.extensions, l.Copies.Packed().Origin.Moment(now.Add(-c.ago))
		for _, answer := range []*who.Answer{nil, {At: now.Add(-40 * time.Second), Held: 5, N: 5, Method: who.Unknown}} {
			ctx.Known = func(string) *who.Answer { return answer }
			want := c.want
			if answer != nil && c.extensions == 1 {
				want = "alive 3s ago; last extended 3s ago"
			}
			if got := liveness(); got != want {
				t.Errorf("%d extensions, asked %v: %q, want %q", c.extensions, answer != nil, got, want)
			}
		}
	}
	ctx.Known, l.Extending = nil, 9*5000 // it was measured, and not estimated
	if want := "silent 22s; last extended 22s ago, usually every 5s"; liveness() != want {
		t.Errorf("%q, want %q", liveness(), want)
	}
	ctx.Snap.Complete = false
	if got := liveness(); got != "last seen extended 22s ago" {
		t.Errorf("where not all is seen: %q", got)
	}
}
