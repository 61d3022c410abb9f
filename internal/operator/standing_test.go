package operator

import (
	"os"
	"strings"
	"testing"
	"time"

	"redlockctl/monitor"
	"redlockctl/redlock"
	"redlockctl/server/safetext"
)

// The meaning of a removal depends on who relies on the lock, not on the copies that are
// left.
func TestThePlanOfALockThatLostItsMajority(t *testing.T) {
	now := time.Now()
	end := now.Add(24 * time.Second)
	holds := monitor.Copy{State: monitor.CopyPresent, Type: "string", Token: safetext.New("a"), Len: 1, Expires: end}
	lost := monitor.Copy{State: monitor.CopyLost, Type: "string", Token: safetext.New("a"), Len: 1, Expires: end}
	for name, c := range map[string]struct {
		state monitor.LockState
		node  monitor.NodeState // of n1, which lost its copy
		free  monitor.NodeState // of n4 and n5
		risk  map[RemovalKind]string
	}{
		"its node stays fenced":      {monitor.LockLostMajority, monitor.NodeFenced, monitor.NodeServing, map[RemovalKind]string{ForceRelease: "Until then nobody else can get in: wait", Revoke: "its holder relies on it until "}},
		"its node serves":            {monitor.LockLostMajority, monitor.NodeServing, monitor.NodeServing, map[RemovalKind]string{ForceRelease: "Another client can get in already", Revoke: "its holder relies on it until "}},
		"nobody knows of a majority": {monitor.LockMayBeHeld, monitor.NodeFenced, monitor.NodeServing, map[RemovalKind]string{ForceRelease: "it may be held until ", Revoke: "it may be held until "}},
		"nodes are silent beside it": {monitor.LockLostMajority, monitor.NodeFenced, monitor.NodeSlow, map[RemovalKind]string{ForceRelease: "its holder relies on it until ", Revoke: "its holder relies on it until "}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &monitor.Snapshot{At: now, Cluster: monitor.Cluster{N: 5, Quorum: 3}}
			for i, state := range []monitor.NodeState{c.node, monitor.NodeServing, monitor.NodeServing, c.free, c.free} {
				s.Nodes = append(s.Nodes, monitor.Node{Name: "n" + string(rune('1'+i)), State: state, RejoinsAfter: end.Add(time.Second)})
			}
			l := monitor.Lock{Key: safetext.New("job"), State: c.state, Holder: holds.Token, Held: 2, Lost: 1, Tokens: 1, Copies: monitor.PackCopies(lost, holds, holds, monitor.Copy{}, monitor.Copy{})}.Until(end)
			for way, want := range c.risk {
				p, err := PlanOf(way, s, &l, "job", now)
				if err != nil || !strings.Contains(p.Risk, want) || strings.Contains(p.Risk+p.Effect, "nobody holds") {
					t.Errorf("%v: %q, %q: %v", way, p.Effect, p.Risk, err)
				}
			}
		})
	}
}

// Nobody is told to wait for the end of a lock that has none.
func TestThePlanOfALockWithoutAnEnd(t *testing.T) {
	now := time.Now()
	holds := monitor.Copy{State: monitor.CopyPresent, Type: "string", Token: safetext.New("a"), Len: 1}
	for _, state := range []monitor.NodeState{monitor.NodeDown, monitor.NodeFenced, monitor.NodeServing} {
		s := &monitor.Snapshot{At: now, Cluster: monitor.Cluster{N: 5, Quorum: 3}}
		for i := range 5 {
			s.Nodes = append(s.Nodes, monitor.Node{Name: "n" + string(rune('1'+i)), State: monitor.NodeServing})
		}
		s.Nodes[0].State = state
		lost := holds
		lost.State = monitor.CopyLost
		l := monitor.Lock{Key: safetext.New("job"), State: monitor.LockNoTTL, Holder: holds.Token, Held: 2, Lost: 1, Tokens: 1, Unending: true, Copies: monitor.PackCopies(lost, holds, holds, monitor.Copy{}, monitor.Copy{})}
		p, err := PlanOf(ForceRelease, s, &l, "job", now)
		if err != nil || !strings.Contains(p.Risk, "relies on it without end") || strings.Contains(strings.ToLower(p.Risk), "wait") || strings.Contains(p.Risk, "Until then") {
			t.Errorf("%s: %q: %v", state, p.Risk, err)
		}
	}
}

// Each client that relies on a lock is named, whichever of their tokens are removed.
func TestThePlanOfALockThatTwoRelyOn(t *testing.T) {
	now := time.Now()
	put := func(token string, left time.Duration) monitor.Copy {
		return monitor.Copy{State: monitor.CopyPresent, Type: "string", Token: safetext.New(token), Len: 1, Expires: now.Add(left)}
	}
	s := &monitor.Snapshot{At: now, Cluster: monitor.Cluster{N: 5, Quorum: 3}}
	for i := range 5 {
		s.Nodes = append(s.Nodes, monitor.Node{Name: "n" + string(rune('1'+i)), State: monitor.NodeServing})
	}
	l := monitor.Lock{Key: safetext.New("job"), State: monitor.LockSplit, Holder: safetext.New("bbbbbbbb"), Held: 3, Tokens: 2, Copies: monitor.PackCopies(put("bbbbbbbb", 30*time.Second), put("aaaaaaaa", 40*time.Second), put("aaaaaaaa", 40*time.Second), put("bbbbbbbb", 30*time.Second), put("bbbbbbbb", 30*time.Second))}.Timed(now, now.Add(30*time.Second))
	l.Earlier = &monitor.Reliance{Token: safetext.New("aaaaaaaa"), Until: now.Add(40 * time.Second)}
	for _, way := range []RemovalKind{ForceRelease, Revoke} {
		for _, tokens := range [][]string{{"aaaaaaaa"}, {"bbbbbbbb"}, nil} {
			p, err := PlanOf(way, s, &l, "job", now, tokens...)
			if err != nil || !strings.Contains(p.Risk, "the holder of aa... may rely on it until ") || !strings.Contains(p.Risk, "the holder of bb... relies on it until ") || strings.Contains(p.Risk, "nobody") {
				t.Errorf("%v %v: %q: %v", way, tokens, p.Risk, err)
			}
		}
	}
}

// A node that refuses writes keeps its copies and gives another client no vote.
func TestThePlanOfCopiesOnNodesThatRefuseWrites(t *testing.T) {
	now := time.Now().Truncate(time.Millisecond) // on the wall clock alone, as what is shown
	put := func(expires time.Time) monitor.Copy {
		return monitor.Copy{State: monitor.CopyPresent, Type: "string", Token: safetext.New("aaaaaaaa"), Len: 1, Expires: expires}
	}
	at := now.Add(20 * time.Second)
	for name, c := range map[string]struct {
		states string // of the nodes: serving, fenced, cordoned, down
		copies []monitor.Copy
		effect string
	}{
		"all of them":          {"fcsss", []monitor.Copy{put(at), put(time.Time{}), {}, {}, {}}, "nothing can be removed now: on n1, fenced: goes at " + at.Format("15:04:05") + "; on n2, cordoned: has no TTL, stays until it is deleted after the node serves"},
		"one of them":          {"fssss", []monitor.Copy{put(at), put(at), {}, {}, {}}, "all copies deleted now: the name is free at once; not removed: on n1, fenced: goes at "},
		"a majority":           {"cccss", []monitor.Copy{put(at), put(at), put(at), put(at), put(at)}, "copies are removed on a minority only; not removed: on n1, cordoned; on n2, cordoned; on n3, cordoned"},
		"and too few are left": {"sfffs", []monitor.Copy{put(at), {}, {}, {}, {}}, "all copies deleted now: others can get in as soon as enough nodes serve"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &monitor.Snapshot{At: now, Cluster: monitor.Cluster{N: 5, Quorum: 3}}
			for i, b := range c.states {
				state := map[rune]monitor.NodeState{'s': monitor.NodeServing, 'f': monitor.NodeFenced, 'c': monitor.NodeCordoned}[b]
				n := monitor.Node{Name: "n" + string(rune('1'+i)), State: state}
				if b != 's' {
					n.MinReplicasToWrite = 2147483647
				}
				s.Nodes = append(s.Nodes, n)
			}
			l := monitor.Lock{Key: safetext.New("job"), State: monitor.LockOrphaned, Holder: safetext.New("aaaaaaaa"), Held: 1, Tokens: 1, Copies: monitor.PackCopies(c.copies...)}
			if p, err := PlanOf(ForceRelease, s, &l, "job", now); err != nil || !strings.HasPrefix(p.Effect, c.effect) {
				t.Errorf("%q: %v", p.Effect, err)
			}
		})
	}
}

// A holder that extends a lock while it is revoked relies on it for longer than was seen before: the log
// has one end, the latest.
func TestARevokeSaysTheLatestEnd(t *testing.T) {
	o, c := start(t, nil)
	c.look = look("t1", "t1", "t1")
	c.onCall = func(call string) {
		if call == "revoke" { // the extension reached two nodes before it
			c.look = look("redlockctl:revoked:x", "redlockctl:revoked:x", "redlockctl:revoked:x")
			c.look[0].TTL, c.look[1].TTL = 20*time.Second, 20*time.Second
		}
	}
	c.release = func(string) ([]redlock.NodeResult, error) {
		ok := look("t1", "t1", "t1")
		for i := range ok {
			ok[i] = redlock.NodeResult{Node: ok[i].Node, Status: redlock.StatusOK}
		}
		return ok, nil
	}
	now := time.Now()
	if _, err := o.Revoke(t.Context(), "job", "", "runs for hours"); err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(c.log)
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(log), "its holder may rely on it until ")
	if len(parts) != 2 {
		t.Fatalf("%d statements in %s", len(parts)-1, log)
	}
	end, err := time.Parse(time.RFC3339, parts[1][:len("2026-01-31T15:04:05.000Z")])
	if err != nil || end.Before(now.Add(18*time.Second)) || end.After(now.Add(22*time.Second)) {
		t.Errorf("until %s, at %s: %v", end, now, err)
	}
}
