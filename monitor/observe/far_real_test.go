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
	"redlockctl/monitor/observe"
	"redlockctl/redlock"
)

// far returns the servers as they are seen from another continent: each way takes from
// least to most, and a share is lost and sent again.
func far(t *testing.T, servers []*lab.Server, least, most time.Duration, share float64) ([]*redlock.Node, []*labtest.Proxy) {
	t.Helper()
	proxies := labtest.Proxies(t, servers)
	nodes := make([]*redlock.Node, len(proxies))
	for i, p := range proxies {
		for _, d := range []labtest.Direction{labtest.ToServer, labtest.ToClient} {
			p.Delay(d, least, most)
			p.Lose(d, share, 2*most+200*time.Millisecond)
		}
		nodes[i] = p.Node()
	}
	return nodes, proxies
}

// judged collects what a monitor says while it watches, that is wrong of a healthy
// cluster.
func judged(t *testing.T, m *observe.Monitor, how time.Duration) (wrong map[string]int) {
	t.Helper()
	wrong = map[string]int{}
	end := time.After(how)
	held := stoodStill(t.Context(), how)
	for s := m.Snapshot(); ; s = m.Snapshot() {
		if v := s.Cluster.Verdict; v == monitor.VerdictUnavailable || v == monitor.VerdictDegraded {
			wrong[v.String()+": "+s.Cluster.Reason]++
		}
		for _, f := range s.Findings {
			if f.ID == "no-quorum" || f.ID == "node-down" || f.ID == "not-seen" {
				wrong[f.ID+" "+f.Node]++
			}
		}
		select {
		case <-m.Changed(s.Version):
		case <-end:
			if long := <-held; long > mostHeld && len(wrong) > 0 {
				t.Logf("this machine stood still for %s, so answers were late: %v", long, wrong)
				return nil
			}
			return wrong
		}
	}
}

// mostHeld is for how long a test may not run without its answers being late.
const mostHeld = 150 * time.Millisecond

// stoodStill measures for how long at most this process did not run within a time.
func stoodStill(ctx context.Context, how time.Duration) <-chan time.Duration {
	longest := make(chan time.Duration, 1)
	go func() {
		const every = 10 * time.Millisecond
		most, end := time.Duration(0), time.Now().Add(how-every)
		for last := time.Now(); last.Before(end) && ctx.Err() == nil; last = time.Now() {
			time.Sleep(every)
			most = max(most, time.Since(last)-every)
		}
		longest <- most
	}()
	return longest
}

// A healthy cluster is healthy from far, however long answers take, with jitter and loss.
func TestAHealthyClusterIsHealthyFromFar(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		least, most time.Duration // of each way
		share       float64
	}{
		"150 ms":                        {75 * time.Millisecond, 75 * time.Millisecond, 0},
		"300 ms":                        {150 * time.Millisecond, 150 * time.Millisecond, 0},
		"300 ms ± 200 ms, 2 % are lost": {50 * time.Millisecond, 250 * time.Millisecond, 0.02},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := labtest.Servers(t, 5)
			fill(t, servers, 200, 0)
			nodes, _ := far(t, servers, c.least, c.most, c.share)
			begun := time.Now()
			m := watch(t, nodes, observe.Options{LockPatterns: []string{"lock:*"}})
			until(t, m, "all nodes serving", func(s *monitor.Snapshot) bool { return s.Cluster.Serving == 5 })
			t.Logf("all are seen after %s", time.Since(begun).Round(10*time.Millisecond))
			until(t, m, "all locks", func(s *monitor.Snapshot) bool { return s.Complete && s.Counts[monitor.LockHeld] == 200 })
			t.Logf("all is read after %s", time.Since(begun).Round(10*time.Millisecond))
			if wrong := judged(t, m, 10*time.Second); len(wrong) > 0 {
				t.Error(fmt.Sprint(wrong), describe(m.Snapshot()))
			}
		})
	}
}

// When the line from here is cut, nothing is claimed of the cluster; when one node hangs,
// or all but two do, that is said of them.
func TestACutLineSaysNothingOfTheCluster(t *testing.T) {
	t.Parallel()
	servers := labtest.Servers(t, 5)
	fill(t, servers, 20, 0)
	nodes, proxies := far(t, servers, 5*time.Millisecond, 10*time.Millisecond, 0)
	m := watch(t, nodes, observe.Options{LockPatterns: []string{"lock:*"}})
	settled(t, m)
	var wrong []string
	watched := make(chan struct{})
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		defer close(watched)
		for s := m.Snapshot(); ctx.Err() == nil; s = m.Snapshot() {
			if s.Cluster.Verdict == monitor.VerdictUnavailable || found(s, "no-quorum", "") {
				wrong = append(wrong, s.Cluster.Verdict.String()+": "+s.Cluster.Reason)
			}
			select {
			case <-m.Changed(s.Version):
			case <-ctx.Done():
			}
		}
	}()
	for range 3 {
		cut := time.Now()
		for _, p := range proxies {
			p.CutOff()
		}
		s := until(t, m, "nothing seen", func(s *monitor.Snapshot) bool {
			return s.Cluster.NotSeen && strings.Contains(s.Cluster.Reason, "sees 0 of 5 nodes (since ")
		})
		t.Logf("said after %s: %s", s.At.Sub(cut).Round(time.Millisecond), s.Cluster.Reason)
		if since := s.Cluster.NotSeenSince; since.Before(cut.Add(-time.Second)) || since.After(cut.Add(time.Second)) {
			t.Errorf("not seen since %s, and the line was cut at %s", since, cut)
		}
		until(t, m, "a finding that says so", func(s *monitor.Snapshot) bool { return found(s, "not-seen", "") })
		for _, p := range proxies {
			p.Resume()
		}
		until(t, m, "all seen again", func(s *monitor.Snapshot) bool {
			return s.Complete && s.Cluster.Serving == 5 && s.Counts[monitor.LockHeld] == 20 && !found(s, "not-seen", "")
		})
	}
	stop()
	<-watched
	if len(wrong) > 0 {
		t.Error(wrong)
	}
	alarms := map[string]int{}
	for _, e := range m.Snapshot().Events {
		if e.Level == monitor.LevelAlarm && !e.Part {
			alarms[e.Kind]++
		}
	}
	if alarms["not seen from here"] != 3 || len(alarms) != 1 {
		t.Errorf("alarms: %v\n%s", alarms, describe(m.Snapshot()))
	}
	// That nodes hang while others answer is theirs.
	for _, p := range proxies[:3] {
		p.Hold(labtest.ToServer)
	}
	until(t, m, "no quorum", func(s *monitor.Snapshot) bool {
		return s.Cluster.Verdict == monitor.VerdictUnavailable && found(s, "no-quorum", "")
	})
}

// The first read leaves clients on the same thin line their part of it.
func TestAFirstReadLeavesAThinLineToClients(t *testing.T) {
	t.Parallel()
	servers := labtest.Servers(t, 5)
	fill(t, servers, 20_000, 0)
	nodes, proxies := far(t, servers, 5*time.Millisecond, 5*time.Millisecond, 0)
	up, down := labtest.NewLine(1_000_000), labtest.NewLine(1_000_000)
	for _, p := range proxies {
		p.Through(labtest.ToServer, up)
		p.Through(labtest.ToClient, down)
	}
	client, err := redlock.New(nodes, redlock.Options{NodeTimeout: 50 * time.Millisecond, Retries: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	n := 0
	attempts := func(how time.Duration) (failed, all int) {
		for end := time.Now().Add(how); time.Now().Before(end); all++ {
			n++
			l, err := client.TryAcquire(t.Context(), fmt.Sprintf("client:%d", n), 10*time.Second)
			if err != nil {
				failed++
				time.Sleep(50 * time.Millisecond)
				continue
			}
			_, _ = l.Release(t.Context())
		}
		return failed, all
	}
	attempts(time.Second) // it connects
	quiet, of := attempts(2 * time.Second)
	t.Logf("quiet: %d of %d attempts failed", quiet, of)
	m := watch(t, nodes, observe.Options{LockPatterns: []string{"lock:*"}, Patient: true})
	begun := time.Now()
	failed, all := attempts(8 * time.Second)
	s := m.Snapshot()
	t.Logf("%d of %d attempts failed while it reads: %d locks after %s, %s", failed, all, s.Locks.Len(), time.Since(begun).Round(time.Millisecond), s.Cluster.Reason)
	if s.Complete {
		t.Error("all was read before the clients were")
	}
	if failed*5 > all {
		t.Errorf("%d of %d attempts failed", failed, all)
	}
}
