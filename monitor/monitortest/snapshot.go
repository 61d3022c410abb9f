// Package monitortest has snapshots for tests of code that shows a cluster.
package monitortest

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"redlockctl/monitor"
	"redlockctl/redlock"
	"redlockctl/server/announce"
	"redlockctl/server/lockform"
	"redlockctl/server/safetext"
	"redlockctl/server/safetext/safetexttest"
)

// Times of day in tests are those of UTC, whatever the machine's zone is.
func init() { _ = os.Setenv("TZ", "UTC") }

// Epoch is the time of the snapshots.
var Epoch = time.Date(2026, 11, 21, 12, 3, 10, 0, time.UTC)

// Tokens as several libraries draw them.
const (
	TokenA = "77c0aa3f-0d61-4b0c-9a1c-5a5c3b7b2d1e"
	TokenB = "5d2aQ8kz0v1yTb3mXw7rLA=="
	TokenC = "a91f00b5c2d84e7fa91f00b5c2d84ec2"
)

// LockOf makes a lock from the seconds that each copy has left: "12 12 - ? 5b", where -
// is absent, ? unknown, i without TTL, and a letter another token.
func LockOf(now time.Time, key string, state monitor.LockState, token, copies string) monitor.Lock {
	l := monitor.Lock{Key: safetext.New(key), State: state, Holder: safetext.New(token), Tokens: 1}
	var ends []time.Time
	var list []monitor.Copy
	for f := range strings.FieldsSeq(copies) {
		c := monitor.Copy{State: monitor.CopyPresent, Type: "string", Token: l.Holder, Len: int64(len(token))}
		switch f {
		case "-":
			c = monitor.Copy{State: monitor.CopyAbsent}
		case "?":
			c = monitor.Copy{State: monitor.CopyUnknown}
		case "i":
			l.Held++
		default:
			own := !strings.HasSuffix(f, "b")
			var sec float64
			if _, err := fmt.Sscanf(strings.TrimSuffix(f, "b"), "%g", &sec); err != nil {
				panic(err)
			}
			c.Expires = now.Add(time.Duration(sec * float64(time.Second)))
			if own {
				l.Held++
				ends = append(ends, c.Expires)
			} else {
				other := TokenC
				if token == other {
					other = TokenA
				}
				c.Token, c.Len = safetext.New(other), int64(len(other))
				l.Tokens = 2
			}
		}
		list = append(list, c)
	}
	l.Copies = monitor.PackCopies(list...)
	var end time.Time
	q := redlock.Quorum(l.Copies.Len())
	if l.Held >= q && len(ends) >= q {
		slices.SortFunc(ends, func(a, b time.Time) int { return b.Compare(a) })
		end = ends[q-1]
	}
	return l.Timed(now.Add(-2*time.Minute), end)
}

// Change changes the copies of l on these nodes; without nodes, on all.
func Change(l *monitor.Lock, f func(c *monitor.Copy), nodes ...int) {
	var list []monitor.Copy
	for i, c := range l.Copies.All() {
		if nodes == nil || slices.Contains(nodes, i) {
			f(&c)
		}
		list = append(list, c)
	}
	l.Copies = monitor.PackCopies(list...)
}

// Nodes returns five nodes; n2 is fenced and n4 is down.
func Nodes(now time.Time) []monitor.Node {
	ms := func(f float64) time.Duration { return time.Duration(f * float64(time.Millisecond)) }
	rtts := func(fs ...float64) (out []time.Duration) {
		for _, f := range fs {
			out = append(out, ms(f))
		}
		return out
	}
	node := func(name string, state monitor.NodeState, up time.Duration, locks int) monitor.Node {
		return monitor.Node{
			Name: name, Addr: "127.0.0.1:700" + name[1:], State: state, Since: now.Add(-up), Uptime: up, Locks: locks,
			RunID: "8f2c19aa6d0e4b7c8f2c19aa6d0e4b7c8f2c19aa", Version: "7.0.15", Role: "master", Eviction: "noeviction", Clients: 12, Keys: 25_000, Read: 1,
			RTT: ms(0.3), RTTs: rtts(0.3, 0.3, 0.4, 0.3, 0.3, 0.9, 0.3, 0.3),
			Offset: monitor.Estimate{Valid: true, Offset: ms(0.2), Bound: ms(0.1)},
			Drift:  monitor.Drift{Valid: true, PPM: 4, Bound: 0.6},
		}
	}
	day := 24 * time.Hour
	n := []monitor.Node{
		node("n1", monitor.NodeServing, 3*day+4*time.Hour, 1204),
		node("n2", monitor.NodeFenced, 12*time.Second, 0),
		node("n3", monitor.NodeServing, 9*day+time.Hour, 1198),
		node("n4", monitor.NodeDown, 0, 0),
		node("n5", monitor.NodeServing, 3*day+4*time.Hour, 1201),
	}
	n[1].Drift.Valid, n[1].StartedAfter = false, now.Add(-15*time.Second)
	n[1].Offset.Offset = ms(-1.1)
	n[1].Restarts = 1
	n[2].Drift.PPM = -2
	n[3].Since = now.Add(-40 * time.Second)
	n[3].Err = safetext.New("dial tcp 127.0.0.1:7004: connect: connection refused")
	return n
}

// Degraded is a cluster in trouble: locks in every state.
func Degraded(now time.Time) *monitor.Snapshot {
	lock := func(key string, state monitor.LockState, token, copies string) monitor.Lock {
		return LockOf(now, key, state, token, copies)
	}
	hash := lock("session:cache", monitor.LockNotALock, "", "- - - ? -")
	Change(&hash, func(c *monitor.Copy) { *c = monitor.Copy{State: monitor.CopyPresent, Type: "hash", Len: 3} }, 0)
	s := &monitor.Snapshot{
		At: now, Version: 1, Complete: true, Settled: now.Add(-time.Hour),
		Cluster: monitor.Cluster{Name: "prod-locks", N: 5, Quorum: 3, MaxTTL: 30 * time.Second, TTLBound: 30 * time.Second, Serving: 3,
			Verdict: monitor.VerdictDanger, Reason: "a lock that never ends; n2 fenced, n4 down", Absent: "n2 fenced, n4 down", CanLose: 0},
		Nodes: Nodes(now),
		Locks: monitor.NewLocks(
			lock("invoices:2026-11", monitor.LockOrphaned, TokenA, "- - - ? 8.4"),
			lock("import", monitor.LockSplit, TokenC, "4.4 - 4.3 ? 4.1b"),
			lock("orders:42", monitor.LockBareMajority, "web-7_811_"+TokenA, "9.8 - 9.7 ? 9.6"),
			lock("orders:43", monitor.LockHeld, TokenB, "12.9 - 12.8 ? 12.7"),
			lock("orders:44", monitor.LockExpiring, TokenB, "0.8 - 0.7 ? 0.6"),
			lock("report", monitor.LockOverTTL, TokenC, "7200 - 7200 ? 7200"),
			lock("stuck", monitor.LockNoTTL, TokenA, "i - i ? i"),
			lock("new", monitor.LockPartial, TokenB, "30 - - ? -"),
			hash,
		),
	}
	owned := *s.Locks.Get("orders:42")
	owned.Form = &lockform.Form{Library: "DistributedLock", Owner: safetext.New("web-7 (pid 811)"), TakingAway: "its thread works on until it asks again"}
	split := *s.Locks.Get("import")
	split.Form = &lockform.Form{Library: "redsync"}
	more := []monitor.Lock{owned, split}
	for i := range 30 {
		more = append(more, lock(fmt.Sprintf("job:%03d", i), monitor.LockHeld, TokenB, "20.5 - 20.4 ? 20.3"))
	}
	Put(s, more...)
	s.Findings = fakeFindings(now)
	event := func(ago time.Duration, level monitor.Level, kind, node, key, text string) {
		s.Events = append(s.Events, monitor.Event{Seq: uint64(len(s.Events) + 1), At: now.Add(-ago), Level: level, Kind: kind, Node: node, Key: safetext.New(key), Text: safetext.New(text)})
	}
	event(19*time.Second, monitor.LevelAlarm, "down", "n4", "", "n4 unreachable: connection refused")
	event(12*time.Second, monitor.LevelNotice, "restart", "n2", "", "n2 restarted: 1,180 locks lost a copy, 14 have a bare majority now · rejoins 12:03:28")
	event(12*time.Second, monitor.LevelNotice, "fenced", "n2", "", "n2 started fenced")
	for i := range 20 {
		event(time.Duration(20-i)*100*time.Millisecond, monitor.LevelInfo, "acquired", "", fmt.Sprintf("job:%03d", i), fmt.Sprintf("job:%03d acquired, 3 of 5", i))
	}
	return s
}

// List returns copies of the locks of a set.
func List(set monitor.Locks) (locks []monitor.Lock) {
	for l := range set.All() {
		locks = append(locks, *l)
	}
	return locks
}

// Put adds locks to a snapshot.
func Put(s *monitor.Snapshot, locks ...monitor.Lock) {
	s.Locks = monitor.NewLocks(append(List(s.Locks), locks...)...)
	recount(s)
}

// Drop removes locks from a snapshot.
func Drop(s *monitor.Snapshot, keys ...string) {
	s.Locks = monitor.NewLocks(slices.DeleteFunc(List(s.Locks), func(l monitor.Lock) bool { return slices.Contains(keys, l.Key.Raw()) })...)
	recount(s)
}

// Safe is a healthy cluster.
func Safe(now time.Time) *monitor.Snapshot {
	s := Degraded(now)
	s.Cluster.Verdict, s.Cluster.Serving, s.Cluster.CanLose, s.Cluster.Reason = monitor.VerdictSafe, 5, 2, ""
	s.Cluster.Protected, s.Cluster.Missing = true, ""
	s.Locks = monitor.NewLocks(
		LockOf(now, "orders:42", monitor.LockHeld, TokenB, "12.9 12.8 12.8 12.7 12.7"),
		LockOf(now, "leader:billing", monitor.LockHeld, TokenA, "4.9 4.8 4.8 4.7 4.7"),
	)
	recount(s)
	s.Findings = nil
	for i := range s.Nodes {
		n := &s.Nodes[i]
		n.State, n.Err, n.Since, n.Uptime = monitor.NodeServing, safetext.Text{}, now.Add(-77*time.Hour), 77*time.Hour
		n.Drift.Valid, n.Restarts, n.Locks = true, 0, 2
	}
	s.Events = s.Events[:0:0]
	return s
}

// Crashed is a cluster whose n2 restarted, started fenced and rejoins in 18 s: a lock
// lost its majority, one lost all its copies, and one may be held.
func Crashed(now time.Time) *monitor.Snapshot {
	s := Safe(now)
	s.Cluster.Verdict, s.Cluster.Serving, s.Cluster.CanLose = monitor.VerdictDegraded, 4, 1
	n := &s.Nodes[1]
	n.State, n.Since, n.Uptime, n.Restarts, n.Locks = monitor.NodeFenced, now.Add(-12*time.Second), 12*time.Second, 1, 0
	n.RejoinsAfter = now.Add(18500 * time.Millisecond)
	lost := func(key, token, copies string, nodes ...int) monitor.Lock {
		l := LockOf(now, key, monitor.LockLostMajority, token, copies)
		end := now.Add(9700 * time.Millisecond)
		Change(&l, func(c *monitor.Copy) {
			*c = monitor.Copy{State: monitor.CopyLost, Type: "string", Token: l.Holder, Len: int64(len(token)), Expires: end, LostAt: now.Add(-12 * time.Second), Cause: monitor.LostByRestart}
		}, nodes...)
		l.Lost, l.Tokens = len(nodes), min(1, l.Held)
		return l.Until(end)
	}
	s.Locks = monitor.NewLocks(
		LockOf(now, "leader:billing", monitor.LockHeld, TokenA, "4.9 - 4.8 4.7 4.7"),
		lost("orders:42", TokenB, "9.9 - 9.8 - -", 1),
		lost("orders:43", TokenC, "- - - - -", 0, 1, 2),
		LockOf(now, "import", monitor.LockMayBeHeld, TokenA, "- - - 7 7").Until(now.Add(7*time.Second)),
	)
	recount(s)
	return s
}

// Loading is a cluster whose locks are being read for the first time.
func Loading(now time.Time) *monitor.Snapshot {
	s := Safe(now)
	s.Complete, s.Settled = false, time.Time{}
	s.Cluster.Verdict, s.Cluster.Reason = monitor.VerdictUnknown, "the locks are being read for the first time"
	for i := range s.Nodes {
		s.Nodes[i].Read = []float64{0.4, 0.5, 0.3, 1, 0.6}[i]
	}
	return s
}

func fakeFindings(now time.Time) []monitor.Finding {
	return []monitor.Finding{
		{ID: "no-ttl-lock", Severity: monitor.SeverityDanger, Key: safetext.New("stuck"), Count: 1, Since: now.Add(-time.Hour),
			Title: "a lock that never ends", Evidence: safetext.New("stuck has copies without a TTL on n1, n3, n5"),
			Consequence: "if its holder is dead nobody can take it any more", Remedy: "find who sets it without PX; force-release it when its holder is known to be dead"},
		{ID: "eviction", Severity: monitor.SeverityWarning, Node: "n3", Since: now.Add(-3 * time.Hour),
			Title: "keys may be evicted", Evidence: safetext.New("maxmemory-policy allkeys-lru"),
			Consequence: "a lock can be lost, and a second client gets in", Remedy: "CONFIG SET maxmemory-policy noeviction"},
		{ID: "even", Severity: monitor.SeverityInfo, Title: "all masters have one address", Evidence: safetext.New("127.0.0.1"),
			Consequence: "they die together", Remedy: "put each on a machine of its own"},
	}
}

func recount(s *monitor.Snapshot) {
	s.Counts = monitor.Counts{}
	for l := range s.Locks.All() {
		s.Counts[l.State]++
	}
}

// Hostile is a cluster with hostile names, tokens and errors.
func Hostile(now time.Time) *monitor.Snapshot {
	s := Degraded(now)
	s.Cluster.Name = "prod \x1b[31m\u202e" + strings.Repeat("名", 40)
	var odd []monitor.Lock
	for i, name := range safetexttest.Hostile {
		l := LockOf(now, name, monitor.LockState(i%9), safetexttest.Hostile[(i+3)%len(safetexttest.Hostile)]+"x", "9.8 - 9.7 ? 9.6")
		s.Events = append(s.Events, monitor.Event{Seq: uint64(100 + i), At: now, Level: monitor.LevelAlarm, Kind: name, Key: l.Key, Text: safetext.New("the lock " + name + " is odd")})
		s.Findings = append(s.Findings, monitor.Finding{ID: name, Key: l.Key, Node: name, Title: name, Evidence: l.Key, Consequence: name, Remedy: name})
		l.Form = &lockform.Form{Library: name, Owner: l.Key, Group: l.Key, TakingAway: name, Refused: name}
		odd = append(odd, l)
		s.Nodes[i%5].Err = safetext.New("ERR " + name)
		s.Nodes[i%5].Notes = append(s.Nodes[i%5].Notes, name)
	}
	Put(s, odd...)
	s.Nodes[3].Version, s.Nodes[3].Role, s.Nodes[3].Eviction, s.Nodes[3].RunID = safetexttest.Hostile[0], safetexttest.Hostile[1], safetexttest.Hostile[7], safetexttest.Hostile[6]
	s.Nodes[0].Name = "日本-\x1b[5mblink"
	s.Nodes[4].State = monitor.NodeDenied
	return s
}

// Many is a cluster of n nodes under a guard on another host. Of each ten one is down, one
// fenced and one started unfenced; a lock has two holders, one is on few nodes, and many
// are held.
func Many(now time.Time, n int) *monitor.Snapshot {
	s := &monitor.Snapshot{At: now, Version: 1, Complete: true, Settled: now.Add(-time.Hour),
		Cluster: monitor.Cluster{Name: "prod-locks", N: n, Quorum: redlock.Quorum(n), MaxTTL: 30 * time.Second, TTLBound: 30 * time.Second}}
	five := Nodes(now)
	copies := func(of func(i int) string) string {
		var list []string
		for i := range n {
			one := of(i)
			switch s.Nodes[i].State {
			case monitor.NodeFenced:
				one = "-"
			case monitor.NodeDown:
				one = "?"
			}
			list = append(list, one)
		}
		return strings.Join(list, " ")
	}
	for i := range n {
		one := five[map[int]int{3: 1, 6: 3}[i%10]]
		one.Name, one.Addr = fmt.Sprintf("n%d", i+1), fmt.Sprintf("127.0.0.1:%d", 7001+i)
		one.RTT += time.Duration(i%7) * 10 * time.Microsecond
		if one.State != monitor.NodeDown {
			one.GuardsKnown = true
			one.Guards = []announce.Guard{{ID: "e1e2e3e4", Delay: 30350 * time.Millisecond, Host: safetext.New("ops1"), Boot: announce.BootFenced}}
		}
		if one.State == monitor.NodeFenced {
			one.RejoinsAfter = one.StartedAfter.Add(one.Guards[0].Delay)
		}
		if i%10 == 8 {
			one.Guards[0].Boot = announce.BootUnfenced
		}
		s.Nodes = append(s.Nodes, one)
	}
	locks := []monitor.Lock{
		LockOf(now, "import", monitor.LockSplit, TokenA, copies(func(i int) string {
			if i%2 == 1 {
				return "4.1b"
			}
			return "4.4"
		})),
		LockOf(now, "orders:42", monitor.LockOrphaned, "web-7_811_"+TokenA, copies(func(i int) string {
			if i%4 == 0 {
				return "9.8"
			}
			return "-"
		})),
	}
	for i := range 30 {
		locks = append(locks, LockOf(now, fmt.Sprintf("job:%03d", i), monitor.LockHeld, TokenB, copies(func(i int) string { return fmt.Sprint(20.5 - float64(i)/100) })))
	}
	locks[0].Earlier = &monitor.Reliance{Token: safetext.New(TokenB), Until: now.Add(3 * time.Second)}
	Put(s, locks...)
	s.Findings = []monitor.Finding{{ID: "split-lock", Severity: monitor.SeverityDanger, Key: safetext.New("import"), Count: 1, Since: now.Add(-time.Minute),
		Title: "two clients may rely on one lock", Evidence: safetext.New("import has copies of two tokens"), Consequence: "both may work at once", Remedy: "find out which"}}
	s.Assess(true, true, nil)
	return s
}
