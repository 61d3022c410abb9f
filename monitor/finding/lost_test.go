package finding

import (
	"slices"
	"strings"
	"testing"
	"time"

	"redlockctl/monitor"
	"redlockctl/server/safetext"
)

// The words about a lost majority are true: they follow from how the copies were lost, and from
// whether the nodes that lost one serve.
func TestWordsOfALostMajority(t *testing.T) {
	early := func(n *monitor.Node) {
		n.Early, n.EarlyUntil = true, findingEpoch.Add(time.Hour)
	}
	for name, c := range map[string]struct {
		cause     monitor.LossCause
		node      func(*monitor.Node)
		want, not string
	}{
		"fenced after a restart": {monitor.LostByRestart, func(n *monitor.Node) { n.State = monitor.NodeFenced }, "lost by a restart. Their holders|While the nodes that lost the copies stay fenced|Wait until", "serve:|Find out"},
		"unfenced restart":       {monitor.LostByRestart, func(*monitor.Node) {}, "by a restart.|n1 n2 n3 lost copies and serve|did not stay fenced", "While the nodes|deletion"},
		"wiped":                  {monitor.LostByWipe, func(*monitor.Node) {}, "by a wipe of data.|n1 n2 n3 lost copies and serve|did not stay fenced", "restart|deletion"},
		"deleted":                {monitor.LostByDeletion, func(*monitor.Node) {}, "by a deletion|n1 n2 n3 lost copies and serve|Find out who deleted the copies on n1 n2 n3", "restart|fenced|wipe|rejoin"},
		"announced":              {monitor.LostUnseen, func(*monitor.Node) {}, "as a guard saw|n1 n2 n3 lost copies and serve|Find out how n1 n2 n3 lost the copies", "While the nodes"},
		"deleted, let in early":  {monitor.LostByDeletion, early, "by a deletion|Find out who deleted the copies on n1 n2 n3", "Somebody let"},
		"let in early":           {monitor.LostByRestart, early, "by a restart.|n1 n2 n3 lost copies and serve|Somebody let n1 n2 n3 rejoin", "While the nodes|did not stay"},
	} {
		s := goodScene()
		l := lostLock()
		for i := range 3 {
			l.Copies = changed(l.Copies, i, func(copy *monitor.Copy) { copy.Cause = c.cause })
			c.node(&s.Nodes[i])
		}
		s.Locks = monitor.NewLocks(l)
		f := found{ID: "lost-majority", Remedy: "Wait until"}
		watch := lockWatch{}
		watch.look(s.Snapshot, time.Second)
		s.At = s.At.Add(time.Second)
		bad, _ := watch.look(s.Snapshot, time.Second)
		if k := (known{Snapshot: s.Snapshot, locks: bad}); !exposedLock(k, &f) && !lostMajority(k, &f) {
			t.Errorf("%s: no finding", name)
			continue
		}
		tells(t, name, (*monitor.Finding)(&f), c.want, c.not)
	}
}

// tells fails unless what a finding means and advises has each part of want and none of not; | stands between parts.
func tells(t *testing.T, name string, f *monitor.Finding, want, not string) {
	t.Helper()
	text := f.Consequence + " " + f.Remedy
	for _, part := range strings.Split(want, "|") {
		if !strings.Contains(text, part) {
			t.Errorf("%s: %q is not in: %s", name, part, text)
		}
	}
	for _, part := range strings.Split(not, "|") {
		if strings.Contains(text, part) {
			t.Errorf("%s: %q is in: %s", name, part, text)
		}
	}
}

// A lock that lost its majority is one also where its state names something else: that it has no TTL,
// or one above the maximum. Nobody is told then to remove the copies that are left.
func TestALostMajorityUnderAnotherState(t *testing.T) {
	for _, state := range []monitor.LockState{monitor.LockNoTTL, monitor.LockOverTTL} {
		for name, c := range map[string]struct {
			lost     int // of the nodes that have no copy
			fenced   bool
			severity monitor.Severity
		}{
			"another client can get in": {3, false, monitor.SeverityDanger},
			"fenced":                    {3, true, monitor.SeverityWarning},
			"never granted":             {0, false, 0},
		} {
			s := goodScene()
			l := lockOf("job:3", state, "a", "a", "", "", "")
			for i := 2; i < 2+c.lost; i++ {
				l.Copies = changed(l.Copies, i, func(copy *monitor.Copy) {
					*copy = monitor.Copy{State: monitor.CopyLost, Type: "string", Token: l.Holder, Len: 1, Expires: l.Copies.At(0).Expires, Cause: monitor.LostByWipe}
				})
				if c.fenced {
					s.Nodes[i].State = monitor.NodeFenced
				}
			}
			l.Lost = c.lost
			if state == monitor.LockOverTTL && c.lost > 0 {
				l = l.Until(l.Copies.At(0).Expires)
			}
			s.Locks = monitor.NewLocks(l)
			_, got := film(t, s, 6*time.Second, nil)
			found := map[string]monitor.Severity{}
			for _, f := range got {
				found[f.ID] = f.Severity
			}
			severity, lost := found["lost-majority"]
			if is, exposed := found["exposed-lock"]; exposed {
				severity, lost = is, true
			}
			if _, endless := found["endless-copy"]; lost != (c.lost > 0) || lost && severity != c.severity || endless != (state == monitor.LockNoTTL && !lost) {
				t.Errorf("%s, %s: %v", state, name, found)
			}
			if _, over := found["over-ttl"]; over != (state == monitor.LockOverTTL) {
				t.Errorf("%s, %s: %v", state, name, found)
			}
		}
	}
}

// Nobody is told to force-release a lock that is held because one of its copies has no TTL, nor to wait for the
// end of one that has none.
func TestAdviceAboutACopyWithoutATTL(t *testing.T) {
	for name, tokens := range map[string][]string{"held": {"a", "a", "a", "a", "a"}, "no end": {"a", "a", "", "", ""}, "left over": {"a", "", "", "", ""}} {
		s := goodScene()
		l := lockOf("job:3", monitor.LockNoTTL, tokens...)
		for i := 1; i < 5 && name == "held"; i++ {
			l.Copies = changed(l.Copies, i, func(copy *monitor.Copy) { copy.Expires = findingEpoch.Add(20 * time.Second) })
		}
		l.Unending = name == "no end"
		s.Locks = monitor.NewLocks(l)
		_, got := film(t, s, 6*time.Second, nil)
		if len(got) != 1 || got[0].ID != "endless-copy" || strings.Contains(got[0].Remedy, "Do not force-release") != (name != "left over") || strings.Contains(got[0].Remedy, "has expired") != (name == "held") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// Another client has the vote of a node that is fenced by now, and may reach a quorum with it and the
// free nodes: the finding must not say that no other client gets in.
func TestALostMajorityBesideAVote(t *testing.T) {
	s, l := goodScene(), lostLock()
	for i, c := range []monitor.Copy{{State: monitor.CopyPresent, Token: l.Holder}, {State: monitor.CopyPresent, Token: l.Holder}, {}, {}, {State: monitor.CopyPresent, Token: safetext.New("b")}} {
		l.Copies = changed(l.Copies, i, func(was *monitor.Copy) { *was = c })
		if c.State == monitor.CopyPresent {
			l.Copies = changed(l.Copies, i, func(c *monitor.Copy) { c.Type, c.Len, c.Expires = "string", 1, l.HeldUntil() })
		}
	}
	s.Nodes[4].State, s.Nodes[4].RejoinsAfter = monitor.NodeFenced, l.HeldUntil().Add(time.Second)
	s.Locks = monitor.NewLocks(l)
	f := found{ID: "lost-majority", Remedy: "Wait until"}
	watch := lockWatch{}
	watch.look(s.Snapshot, time.Second)
	s.At = s.At.Add(time.Second)
	bad, _ := watch.look(s.Snapshot, time.Second)
	if !lostMajority(known{Snapshot: s.Snapshot, locks: bad}, &f) || strings.Contains(f.Consequence, "o other client gets in") || !strings.Contains(f.Consequence, "is not known") {
		t.Errorf("%+v", f)
	}
}

// A finding about locks closes soon after the last of them is gone, however often there were others
// before.
func TestAFindingAboutLocksGoesWithThem(t *testing.T) {
	s := goodScene()
	f, good, bad := New(s.opt), s.Locks, monitor.NewLocks(lostLock())
	open := func(at time.Duration, locks monitor.Locks) bool {
		s.At, s.Locks = findingEpoch.Add(at), locks
		f.Note([]string{"job:3"})
		return slices.ContainsFunc(f.Look(s.Snapshot, func(monitor.Event) {}), func(f monitor.Finding) bool { return f.ID == "exposed-lock" })
	}
	for i := range 6 {
		begun := time.Duration(i) * 20 * time.Second
		for at := time.Duration(0); at < 3*time.Second; at += 250 * time.Millisecond {
			open(begun+at, bad)
		}
		if !open(begun+3*time.Second, bad) {
			t.Fatalf("time %d: not found", i)
		}
		for at := 3250 * time.Millisecond; at < 6*time.Second; at += 250 * time.Millisecond {
			open(begun+at, good)
		}
		if open(begun+6*time.Second, good) {
			t.Errorf("time %d: still there 3 s after the lock was gone", i)
		}
	}
}

// Of several locks that lost a majority each end is told: of those that have one, and of one without.
func TestTheEndsOfSeveralLostMajorities(t *testing.T) {
	named := func(l monitor.Lock, key string) monitor.Lock {
		l.Key = safetext.New(key)
		return l
	}
	endless := func(key string) monitor.Lock {
		l := named(lostLock(), key).Until(time.Time{})
		l.State, l.Unending = monitor.LockNoTTL, true
		for i := range 3 {
			l.Copies = changed(l.Copies, i, func(c *monitor.Copy) { c.Expires = time.Time{} })
		}
		return l
	}
	contended := func(key string) monitor.Lock { // two copies are left, and another client has one
		l := named(lostLock(), key)
		for i := range 3 {
			l.Copies = changed(l.Copies, i+1, func(c *monitor.Copy) {
				*c = monitor.Copy{State: monitor.CopyPresent, Type: "string", Token: safetext.New([]string{"a", "a", "b"}[i]), Len: 1, Expires: l.HeldUntil()}
			})
		}
		l.Held, l.Lost = 2, 1
		return l
	}
	for name, c := range map[string]struct {
		locks     []monitor.Lock
		want, not string
	}{
		"one with an end":            {[]monitor.Lock{lostLock()}, "rely on the locks until they expire, and cannot", "without end"},
		"one without":                {[]monitor.Lock{endless("e")}, "rely on the locks without end: copies have no TTL. |or a guard did", "until|before that|by then|expire"},
		"one of each":                {[]monitor.Lock{endless("e"), lostLock()}, "rely on 1 lock until its end, and without end on e, where|or a guard did", "before that|by then"},
		"another one is not exposed": {[]monitor.Lock{lostLock(), contended("safe")}, "Another client can get in: n1 n2 n3", "without end|safe"},
	} {
		s := goodScene()
		s.Locks = monitor.NewLocks(c.locks...)
		_, got := film(t, s, 6*time.Second, nil)
		i := slices.IndexFunc(got, func(f monitor.Finding) bool { return f.ID == "exposed-lock" })
		if i < 0 {
			t.Errorf("%s: %v", name, names(got))
			continue
		}
		tells(t, name, &got[i], c.want, c.not)
	}
}

// A finding about locks is cleared under the name under which it was raised, also if it is about others by then.
func TestAFindingIsClearedAsItWasRaised(t *testing.T) {
	s := goodScene()
	named := func(key string) monitor.Lock {
		l := lostLock()
		l.Key = safetext.New(key)
		return l
	}
	events, _ := film(t, s, 12*time.Second, func(s *scene, at time.Duration) {
		switch {
		case at < 3*time.Second:
			s.Locks = monitor.NewLocks(named("b"))
		case at < 5*time.Second:
			s.Locks = monitor.NewLocks(named("a"), named("b"))
		case at < 7*time.Second:
			s.Locks = monitor.NewLocks(named("a"))
		default:
			s.Locks = monitor.NewLocks()
		}
	})
	var opened, closed []monitor.Event
	for _, e := range events {
		if !strings.HasSuffix(e.Text.Raw(), "exposed-lock]") {
			continue
		} else if e.Kind == "finding opened" {
			opened = append(opened, e)
		} else {
			closed = append(closed, e)
		}
	}
	if len(opened) != 1 || len(closed) != 1 || opened[0].Key.Raw() != "b" || closed[0].Key != opened[0].Key || closed[0].Text.Raw() != "cleared: "+opened[0].Text.Raw() {
		t.Errorf("%v, %v", opened, closed)
	}
}

// Of two locks that lost their majority, another client can get one: that one is the danger, for as long as it is
// held, and the other is none afterwards.
func TestADangerIsOfItsLockAlone(t *testing.T) {
	fenced := lostLock()
	fenced.Key = safetext.New("fenced")
	for i, token := range []string{"a", "a", "b"} { // another client has a copy, and no other node serves
		fenced.Copies = changed(fenced.Copies, i+1, func(c *monitor.Copy) {
			*c = monitor.Copy{State: monitor.CopyPresent, Type: "string", Token: safetext.New(token), Len: 1, Expires: fenced.HeldUntil()}
		})
	}
	fenced.Held, fenced.Lost = 2, 1
	events, got := film(t, goodScene(), 6*time.Second, func(s *scene, at time.Duration) {
		s.Locks = monitor.NewLocks(fenced)
		if at < 3*time.Second {
			s.Locks = monitor.NewLocks(fenced, lostLock())
		}
	})
	if want := []string{"warning lost-majority"}; !slices.Equal(names(got), want) || got[0].Key.Raw() != "fenced" {
		t.Errorf("%q, not %q", names(got), want)
	}
	closed := slices.IndexFunc(events, func(e monitor.Event) bool { return e.Kind == "finding closed" })
	if closed < 0 || events[closed].Key.Raw() != "job:3" || events[closed].At.Sub(findingEpoch) > 4*time.Second || !strings.HasSuffix(events[closed].Text.Raw(), "[danger exposed-lock]") {
		t.Errorf("%v", events)
	}
}
