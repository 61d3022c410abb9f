package observe_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"redlockctl/base/race"
	"redlockctl/internal/lab/labtest"
	"redlockctl/monitor"
	"redlockctl/monitor/observe"
)

// A server whose SCAN never ends takes no more memory than allowed, whether its keys are
// locks or are missing when they are read. The scan is given up and reported; the other
// nodes are watched as before.
func TestAnEndlessScanIsGivenUp(t *testing.T) {
	race.Skip(t)
	for _, locks := range []bool{true, false} {
		t.Run(fmt.Sprintf("locks %t", locks), func(t *testing.T) {
			servers := labtest.Servers(t, 3)
			for _, s := range servers {
				do(t, s, "set", "job:1", "token", "px", 600000)
			}
			nodes := append(labtest.Nodes(servers[:2]), labtest.Endless(t, "n3", servers[2].Addr(), locks))
			peak := labtest.HeapPeak(t)
			m := watch(t, nodes, observe.Options{MaxMemory: 32 << 20, Timeout: 5 * time.Second})
			s := until(t, m, "the endless one is given up", func(s *monitor.Snapshot) bool {
				return slices.ContainsFunc(s.Nodes[2].Notes, func(n string) bool { return strings.Contains(n, "SCAN does not end") }) &&
					found(s, "limited-sight", "n3") && found(s, "locks-unread", "n3") == locks
			})
			if n := peak(); n > 96<<20 {
				t.Errorf("%d MiB in between", n>>20)
			}
			if l := lock(s, "job:1"); l == nil || l.Held != 2 {
				t.Error(describe(s))
			}
			do(t, servers[0], "del", "job:1")
			do(t, servers[1], "set", "job:1", "other", "px", 600000)
			until(t, m, "changes of the others", func(s *monitor.Snapshot) bool {
				l := lock(s, "job:1")
				return l != nil && l.Copies.At(0).State == monitor.CopyAbsent && l.Copies.At(1).Token.Raw() == "other"
			})
		})
	}
}

// If a keyspace is too large, its locks are watched as far as memory allows, and other
// keys are not. A finding says so until it fits.
func TestAHugeKeyspaceFindsNoRoom(t *testing.T) {
	servers := labtest.Servers(t, 2)
	const script = `for i = 1, 60000 do redis.call('RPUSH', 'app:' .. i, 'x') end
for i = 1, 500 do redis.call('SET', 'lock:' .. i, 'token' .. i, 'PX', 600000) end
return 1`
	for _, s := range servers {
		do(t, s, "eval", script, 0)
	}
	m := watch(t, labtest.Nodes(servers), observe.Options{MaxMemory: 32 << 20, ScanEvery: 100 * time.Millisecond})
	s := until(t, m, "what finds no room is told", func(s *monitor.Snapshot) bool {
		return found(s, "locks-unread", "n1") && found(s, "locks-unread", "n2") && s.Counts[monitor.LockHeld] == 500
	})
	if n := s.Nodes[0].NoRoom; n < 30_000 || n > 65_000 {
		t.Errorf("%d keys of n1 are unread", n)
	}
	for _, s := range servers {
		do(t, s, "flushall")
		do(t, s, "set", "lock:1", "token1", "px", 600000)
	}
	until(t, m, "all of it fits", func(s *monitor.Snapshot) bool {
		return !found(s, "locks-unread", "n1") && !found(s, "locks-unread", "n2") && s.Counts[monitor.LockHeld] == 1 && s.Counts[monitor.LockLostMajority] == 499
	})
}
