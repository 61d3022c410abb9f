package observe_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"redlockctl/internal/lab"
	"redlockctl/internal/lab/labtest"
	"redlockctl/monitor"
	"redlockctl/monitor/finding"
	"redlockctl/monitor/observe"
	"redlockctl/monitor/wire"
	"redlockctl/redlock"
)

// fill sets n locks with copies on all servers, and other keys.
func fill(t *testing.T, servers []*lab.Server, locks, others int) {
	t.Helper()
	for _, s := range servers {
		do(t, s, "eval", "for i=1,ARGV[1] do redis.call('set','lock:'..i,'token'..i,'px',600000) end "+
			"for i=1,ARGV[2] do redis.call('set','app:'..i,'x') end return 1", 0, locks, others)
	}
}

// decided returns the snapshot of a one-shot view.
func decided(t *testing.T, m *observe.Monitor) *monitor.Snapshot {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if err := m.Decided(ctx); err != nil {
		t.Fatal(err, describe(m.Snapshot()))
	}
	return m.Snapshot()
}

// A view has all locks with all copies, however far the nodes are.
func TestALookIsComplete(t *testing.T) {
	t.Parallel()
	const n = 20_000
	servers := labtest.Servers(t, 5)
	fill(t, servers, n, 1000)
	far := make([]*redlock.Node, len(servers))
	for i, p := range labtest.Proxies(t, servers) {
		p.Delay(labtest.ToServer, 20*time.Millisecond, 20*time.Millisecond)
		p.Delay(labtest.ToClient, 20*time.Millisecond, 20*time.Millisecond)
		far[i] = p.Node()
	}
	m := watch(t, far, observe.Options{LockPatterns: []string{"lock:*"}, Timeout: 10 * time.Second})
	s := decided(t, m)
	if s.Locks.Len() != n || s.Counts[monitor.LockHeld] != n {
		t.Fatalf("%v, %d locks, %d held: %v", s.Complete, s.Locks.Len(), s.Counts[monitor.LockHeld], s.Unread())
	}
	// On a busy machine later changes may be late already.
	until(t, m, "all nodes", func(s *monitor.Snapshot) bool { return s.Complete && len(s.Unread()) == 0 })
	for l := range s.Locks.All() {
		for i, c := range l.Copies.All() {
			if c.State != monitor.CopyPresent {
				t.Fatalf("%s on node %d: %+v", l.Key, i, c)
			}
		}
	}
}

// A named lock is read by its name, not by a scan. So is one under a pattern that fixes
// the name.
func TestANamedLockIsReadByItsName(t *testing.T) {
	t.Parallel()
	servers := labtest.Servers(t, 3)
	fill(t, servers, 1000, 5000)
	do(t, servers[0], "config", "resetstat")
	m := watch(t, labtest.Nodes(servers), observe.Options{Keys: []string{"lock:7", "lock:none"}})
	s := decided(t, m)
	if l := lock(s, "lock:7"); !s.Complete || s.Locks.Len() != 1 || l == nil || l.Held != 3 {
		t.Fatal(describe(s))
	}
	if stats := fmt.Sprint(do(t, servers[0], "info", "commandstats")); strings.Contains(stats, "cmdstat_scan") {
		t.Error("it was scanned for")
	}
	m = watch(t, labtest.Nodes(servers), observe.Options{Match: monitor.ParseFilter("lock:9*").Pattern()})
	if s := decided(t, m); s.Locks.Len() != 111 {
		t.Errorf("%d locks begin so", s.Locks.Len())
	}
}

// An incomplete view says so, and a node that is not read yet differs from one that does
// not answer.
func TestWhatIsNotReadIsTold(t *testing.T) {
	t.Parallel()
	servers := labtest.Servers(t, 3)
	fill(t, servers, 500, 20_000)
	// A scan never ends on n3: SCAN is forbidden there.
	do(t, servers[2], "acl", "setuser", "default", "-scan")
	_ = servers[1].Kill()
	m := watch(t, labtest.Nodes(servers), observe.Options{LockPatterns: []string{"lock:*"}})
	s := decided(t, m)
	if l := lock(s, "lock:1"); l == nil || l.Copies.At(1).State != monitor.CopyUnknown {
		t.Fatal(describe(s))
	}
	if s.Nodes[2].State != monitor.NodeDenied {
		t.Error(describe(s))
	}
	// A page that never arrives.
	p := labtest.NewProxy(t, servers[0])
	p.Cut(labtest.ToClient, 30_000)
	m = watch(t, []*redlock.Node{p.Node()}, observe.Options{LockPatterns: []string{"lock:*"}})
	early := m.Snapshot()
	if early.Complete || len(early.Unread()) != 1 {
		t.Errorf("complete before anything was read: %+v", early.Unread())
	}
	if s := decided(t, m); !s.Complete || s.Locks.Len() != 500 {
		t.Errorf("a connection that broke once was not made again: %s", describe(s))
	}
}

// How nodes start may be known only after the first complete view: whoever waits for it
// gets it.
func TestWhatIsToldLateIsWaitedFor(t *testing.T) {
	t.Parallel()
	m := watch(t, labtest.Nodes(labtest.Servers(t, 3)), observe.Options{})
	for range 100 {
		decided(t, m)
		for _, form := range []finding.BootForm{finding.BootFirm, finding.BootFragile} {
			<-m.Booted(map[string]finding.BootSight{"n1": {Form: form}})
			if got := m.Snapshot().Nodes[0].StartsFenced; got != (form == finding.BootFirm) {
				t.Fatalf("told %v, and StartsFenced is %v", form, got)
			}
		}
	}
}

// A state that needs time to settle is reported by a one-shot view, each time.
func TestALookTellsWhatTakesTime(t *testing.T) {
	t.Parallel()
	servers := labtest.Servers(t, 5)
	do(t, servers[0], "set", "orphan", "a", "px", 600000)
	for i, token := range []string{"a", "a", "a", "b", "b"} {
		do(t, servers[i], "set", "split", token, "px", 600000)
	}
	for _, s := range servers { // an older incarnation cannot have lost a vote for the orphan
		for info := map[string]string{}; monitor.Integer(info, "uptime_in_seconds", 0) < 2; time.Sleep(100 * time.Millisecond) {
			wire.ParseInfo(do(t, s, "info", "server").(string), info)
		}
	}
	do(t, servers[0], "pexpire", "orphan", 600000)
	for range 4 {
		run, stop := context.WithCancel(t.Context())
		m, err := observe.New(labtest.Nodes(servers), observe.Options{MaxTTL: 10 * time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() { defer close(done); m.Run(run) }()
		s := decided(t, m)
		stop()
		<-done
		if lock(s, "orphan").State != monitor.LockMayBeHeld || s.Cluster.Verdict != monitor.VerdictDanger || s.Dangers() != 1 {
			t.Fatal(describe(s))
		}
	}
}

// A monitor of names that do not exist compares nothing, and does not conclude that it
// was stopped.
func TestAMonitorOfNamesThatAreNowhere(t *testing.T) {
	t.Parallel()
	servers := labtest.Servers(t, 3)
	m := watch(t, labtest.Nodes(servers), observe.Options{Keys: []string{"nowhere"}})
	settled(t, m)
	until(t, m, "two rounds of comparison", func(s *monitor.Snapshot) bool { return s.At.Sub(s.Settled) > 2500*time.Millisecond })
	if s := m.Snapshot(); !s.Complete || event(s, "own clock") != nil {
		t.Error(describe(s))
	}
}
