package observe_test

import (
	"context"
	"crypto/rand"
	"os"
	"strings"
	"sync"
	"sync/atomic"
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
	begun, end := time.Now(), time.After(how)
	still := watchStanding(t.Context())
	for s := m.Snapshot(); ; s = m.Snapshot() {
		said := map[string]int{}
		// Where the first packets to a node are lost again and again, it is slow until the verdict is due.
		if v := s.Cluster.Verdict; v == monitor.VerdictUnavailable || v == monitor.VerdictDegraded && time.Since(begun) > verdictMost {
			said[v.String()+": "+s.Cluster.Reason]++
		}
		for _, f := range s.Findings {
			if f.ID == "no-quorum" || f.ID == "node-down" || f.ID == "not-seen" {
				said[f.ID+" "+f.Node]++
			}
		}
		for what := range said {
			if since := time.Since(time.Unix(0, still.Load())); since < lateFor {
				t.Logf("after %s: %s; this machine stood still %s ago, so answers were late", time.Since(begun).Round(time.Millisecond), what, since)
				continue
			}
			if wrong[what]++; wrong[what] == 1 {
				t.Logf("after %s: %s", time.Since(begun).Round(time.Millisecond), what)
			}
		}
		select {
		case <-m.Changed(s.Version):
		case <-end:
			return wrong
		}
	}
}

const (
	// mostHeld is for how long a test may not run without its answers being late, and
	// lateFor for how long after that they may be.
	mostHeld = 150 * time.Millisecond
	lateFor  = 3 * time.Second
	// verdictMost is after how long the verdict is right.
	verdictMost = 3 * time.Second
)

// watchStanding notes when this process last did not run for a time.
func watchStanding(ctx context.Context) *atomic.Int64 {
	at := new(atomic.Int64)
	go func() {
		const every = 10 * time.Millisecond
		for last := time.Now(); ctx.Err() == nil; {
			time.Sleep(every)
			now := time.Now()
			if now.Sub(last) > every+mostHeld {
				at.Store(now.UnixNano())
			}
			last = now
		}
	}()
	return at
}

// A healthy cluster is healthy from far, however long answers take, with jitter and loss,
// and while a thin line is busy with the first read. REDLOCKCTL_WATCH says for how long it
// is watched, for example 10m; default 10 seconds.
func TestAHealthyClusterIsHealthyFromFar(t *testing.T) {
	t.Parallel()
	span := 10 * time.Second
	if v := os.Getenv("REDLOCKCTL_WATCH"); v != "" {
		var err error
		if span, err = time.ParseDuration(v); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		least, most time.Duration // of each way
		share       float64
		locks       int
		bits        int // that all masters share, each way; zero: as wide as you like
	}{
		"150 ms":                        {75 * time.Millisecond, 75 * time.Millisecond, 0, 200, 0},
		"300 ms":                        {150 * time.Millisecond, 150 * time.Millisecond, 0, 200, 0},
		"300 ms ± 200 ms, 2 % are lost": {50 * time.Millisecond, 250 * time.Millisecond, 0.02, 200, 0},
		"the same, 1 Mbit per second, 20,000 locks": {50 * time.Millisecond, 250 * time.Millisecond, 0.02, 20_000, 1_000_000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := labtest.Servers(t, 5)
			fill(t, servers, c.locks, 0)
			nodes, proxies := far(t, servers, c.least, c.most, c.share)
			if c.bits > 0 {
				up, down := labtest.NewLine(c.bits), labtest.NewLine(c.bits)
				for _, p := range proxies {
					p.Through(labtest.ToServer, up)
					p.Through(labtest.ToClient, down)
				}
			}
			begun, still := time.Now(), watchStanding(t.Context())
			m := watch(t, nodes, observe.Options{LockPatterns: []string{"lock:*"}, Patient: true})
			watched := make(chan map[string]int, 1)
			go func() { watched <- judged(t, m, span) }()
			until(t, m, "all nodes serving", func(s *monitor.Snapshot) bool { return s.Cluster.Serving == 5 })
			t.Logf("all are seen after %s", time.Since(begun).Round(10*time.Millisecond))
			// How often packets are lost in a row is chance: one of three starts is in time.
			for tries, took := 1, time.Since(begun); took > verdictMost && still.Load() == 0; tries++ {
				if tries == 3 {
					t.Error("that is too late")
					break
				}
				start := time.Now()
				another := watch(t, nodes, observe.Options{LockPatterns: []string{"lock:*"}, Patient: true})
				until(t, another, "all nodes serving", func(s *monitor.Snapshot) bool { return s.Cluster.Serving == 5 })
				took = time.Since(start)
			}
			if c.bits == 0 {
				until(t, m, "all locks", func(s *monitor.Snapshot) bool { return s.Complete && s.Counts[monitor.LockHeld] == c.locks })
				t.Logf("all is read after %s", time.Since(begun).Round(10*time.Millisecond))
			}
			wrong := <-watched
			t.Logf("%d locks are listed, complete: %t", m.Snapshot().Locks.Len(), m.Snapshot().Complete)
			if len(wrong) > 0 {
				t.Error(wrong)
			}
		})
	}
}

// When the line from here is cut, nothing is claimed of the cluster; when one node hangs,
// or all but two do, the event says so.
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

// The first read leaves clients on the same thin line their part of it. Others, on a line like it that
// nobody reads through, tell how many attempts fail by themselves: on a busy machine some do.
func TestAFirstReadLeavesAThinLineToClients(t *testing.T) {
	t.Parallel()
	servers := labtest.Servers(t, 5)
	fill(t, servers, 20_000, 0)
	type line struct {
		nodes       []*redlock.Node
		client      *redlock.Client
		failed, all int
	}
	thin := func() *line {
		l := &line{}
		var proxies []*labtest.Proxy
		l.nodes, proxies = far(t, servers, 5*time.Millisecond, 5*time.Millisecond, 0)
		up, down := labtest.NewLine(1_000_000), labtest.NewLine(1_000_000)
		for _, p := range proxies {
			p.Through(labtest.ToServer, up)
			p.Through(labtest.ToClient, down)
		}
		var err error
		if l.client, err = redlock.New(l.nodes, redlock.Options{NodeTimeout: 50 * time.Millisecond, Retries: 1}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.client.Close() })
		return l
	}
	read, alone := thin(), thin()
	attempts := func(how time.Duration) {
		var both sync.WaitGroup
		for _, l := range []*line{read, alone} {
			l.failed, l.all = 0, 0
			both.Go(func() {
				for end := time.Now().Add(how); time.Now().Before(end); l.all++ {
					got, err := l.client.TryAcquire(t.Context(), "client:"+rand.Text(), 10*time.Second)
					if err != nil {
						l.failed++
						time.Sleep(50 * time.Millisecond)
						continue
					}
					_, _ = got.Release(t.Context())
				}
			})
		}
		both.Wait()
	}
	attempts(time.Second) // they connect
	m := watch(t, read.nodes, observe.Options{LockPatterns: []string{"lock:*"}, Patient: true})
	begun := time.Now()
	attempts(8 * time.Second)
	s := m.Snapshot()
	t.Logf("%d of %d attempts failed while it reads, %d of %d on the other line: %d locks after %s, %s", read.failed, read.all, alone.failed, alone.all,
		s.Locks.Len(), time.Since(begun).Round(time.Millisecond), s.Cluster.Reason)
	if s.Complete {
		t.Error("all was read before the clients were")
	}
	if most := 0.2 + 2*float64(alone.failed)/float64(alone.all); float64(read.failed) > most*float64(read.all) {
		t.Errorf("%d of %d attempts failed", read.failed, read.all)
	}
}
