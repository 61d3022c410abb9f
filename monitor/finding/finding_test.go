package finding

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"redlockctl/monitor"
	"redlockctl/monitor/clock"
	"redlockctl/server/announce"
	"redlockctl/server/fences"
	"redlockctl/server/safetext"
)

func TestFindings(t *testing.T) {
	node := func(i int, f func(*monitor.Node)) func(*scene, time.Duration) {
		return func(s *scene, _ time.Duration) { f(&s.Nodes[i]) }
	}
	locks := func(l ...monitor.Lock) func(*scene, time.Duration) {
		return func(s *scene, _ time.Duration) { s.Locks = monitor.NewLocks(l...) }
	}
	at := func(when time.Duration, f func(s *scene)) func(*scene, time.Duration) {
		return func(s *scene, at time.Duration) {
			if at == when {
				f(s)
			}
		}
	}
	down := func(s *scene, lost ...int) {
		for _, i := range lost {
			s.Nodes[i].State, s.Nodes[i].Err = monitor.NodeDown, safetext.New("connection refused")
			s.Cluster.Serving--
			s.Cluster.CanLose--
		}
		s.Cluster.Verdict = monitor.VerdictDegraded
		if s.Cluster.CanLose < 0 {
			s.Cluster.Verdict = monitor.VerdictUnavailable
		}
	}
	for name, c := range map[string]struct {
		change func(s *scene, at time.Duration)
		want   []string
		says   string // in the evidence of the first
	}{
		"a cluster in good order": {nil, nil, ""},
		"eviction with a limit": {node(0, func(n *monitor.Node) { n.Eviction, n.Facts.MaxMemory = "volatile-lru", 100<<20 }),
			[]string{"danger eviction-policy n1"}, "volatile-lru, 1.0 MiB of maxmemory 100.0 MiB used"},
		"eviction without a limit": {node(0, func(n *monitor.Node) { n.Eviction = "allkeys-lru" }), []string{"info eviction-policy n1"}, "maxmemory 0"},
		"eviction, the limit is not known": {node(0, func(n *monitor.Node) { n.Eviction, n.Facts.MaxMemory = "allkeys-lru", -1 }),
			[]string{"warning eviction-policy n1"}, ""},
		"keys were evicted before": {node(1, func(n *monitor.Node) { n.Facts.Evicted = 7 }), []string{"warning evictions n2"}, "evicted_keys 7 since its start"},
		"keys are evicted": {at(5*time.Second, func(s *scene) { s.Nodes[1].Facts.Evicted = 3 }),
			[]string{"danger evictions n2"}, "3 evicted while it was watched, the last at 00:00:05"},
		"no password": {node(0, func(n *monitor.Node) { n.Facts.Open = true }), []string{"warning open-server n1"}, "PING without a login is answered at 10.0.0.1:6379"},
		"no password on this host": {func(s *scene, _ time.Duration) {
			s.Nodes[0].Facts.Open, s.Nodes[0].Addr = true, "127.0.0.1:6379"
		}, nil, ""},
		"no limit of lag": {node(2, func(n *monitor.Node) { n.Facts.MaxLag = 0 }), []string{"danger fence-off n3"}, "min-replicas-max-lag 0"},
		"its last start started unfenced": {func(s *scene, _ time.Duration) {
			s.guard.Nodes["n2"] = monitor.GuardedNode{Known: true, OpenFor: 180 * time.Millisecond}
		}, []string{"warning boot-fence n2"}, "for at most 180ms"},
		"open though it should be closed": {func(s *scene, _ time.Duration) {
			s.guard.Nodes["n2"] = monitor.GuardedNode{Known: true, Exposed: true, AtStart: true, Err: "CONFIG denied"}
		}, []string{"danger boot-fence n2"}, "CONFIG denied"},
		"the guard fences it after a step of its clock": {func(s *scene, at time.Duration) {
			s.guard.Nodes["n2"] = monitor.GuardedNode{Known: true, Verified: true, Exposed: at < 2*time.Second, Since: findingEpoch}
		}, nil, ""},
		"the guard does not get to fence it": {func(s *scene, _ time.Duration) {
			s.guard.Nodes["n2"] = monitor.GuardedNode{Known: true, Verified: true, Exposed: true, Since: findingEpoch}
		}, []string{"danger fence-denied n2"}, "the guard is fencing it"},
		"the guard cannot fence it after a wipe": {func(s *scene, _ time.Duration) {
			s.guard.Nodes["n2"] = monitor.GuardedNode{Known: true, Verified: true, Exposed: true, Since: findingEpoch, Err: "CONFIG denied"}
		}, []string{"danger fence-denied n2"}, "CONFIG denied"},
		"a guard here has just seen it start unfenced": {func(s *scene, _ time.Duration) {
			s.Nodes[1].StartedAfter = findingEpoch
			s.guard.Nodes["n2"] = monitor.GuardedNode{Known: true, OpenFor: 180 * time.Millisecond}
		}, []string{"danger boot-fence n2"}, "for at most 180ms"},
		"a guard elsewhere has just seen it start unfenced": {func(s *scene, _ time.Duration) {
			delete(s.guard.Nodes, "n2")
			s.Nodes[1].StartedAfter = findingEpoch
			s.Nodes[1].Guards = []announce.Guard{{ID: "B", Host: safetext.New("ops1"), Boot: announce.BootUnfenced, Exposed: 12 * time.Millisecond}}
		}, []string{"danger boot-fence n2"}, "the guard on ops1 saw, for at most 12ms"},
		"open right after a restart, seen without a guard": {func(s *scene, at time.Duration) {
			s.guard.Nodes = map[string]monitor.GuardedNode{"n1": {Known: true, Verified: true}}
			for i := range s.Nodes {
				s.Nodes[i].Persistent = i > 0 && i != 1
			}
			s.Nodes[1].Facts.OpenAt = findingEpoch
		}, []string{"danger boot-fence n2", "warning no-guard", "warning unsafe-persistence n2"}, "right after its restart, at 00:00:00"},
		"it would start unfenced, under a guard": {func(s *scene, _ time.Duration) {
			s.boots = map[string]BootSight{"n2": {Form: BootUnfenced, Evidence: "its file says 0"}}
		}, []string{"danger boot-fence n2"}, "its file says 0"},
		"it would start unfenced, under no guard": {func(s *scene, _ time.Duration) {
			delete(s.guard.Nodes, "n2")
			s.Nodes[1].Facts.AppendOnly = ""
			s.boots = map[string]BootSight{"n2": {Form: BootUnfenced, Evidence: "its file says 0"}}
		}, []string{"warning boot-fence n2", "warning no-guard"}, "its file says 0"},
		"its boot fence does not last": {func(s *scene, _ time.Duration) {
			s.boots = map[string]BootSight{"n2": {Form: BootFragile, Evidence: "an include without anchors"}}
		}, []string{"warning boot-fence n2"}, "without anchors"},
		"a guard remembers that it started unfenced": {func(s *scene, _ time.Duration) {
			s.guard = nil
			for i := range s.Nodes {
				s.Nodes[i].Persistent = true
			}
			s.boots = map[string]BootSight{"n2": {Form: BootFirm, Guarded: true, Started: announce.BootUnfenced}, "n1": {Form: BootFirm, Guarded: true}}
		}, []string{"warning boot-fence n2"}, "according to the memory of a guard on this host"},
		"a guard elsewhere saw that it started unfenced": {func(s *scene, _ time.Duration) {
			s.guard = nil
			for i := range s.Nodes {
				s.Nodes[i].Persistent = true
			}
			s.Nodes[0].Guards = []announce.Guard{{ID: "A", Boot: announce.BootFenced}}
			s.Nodes[1].Guards = []announce.Guard{{ID: "A", Boot: announce.BootUnknown}, {ID: "B", Host: safetext.New("ops1"), Boot: announce.BootUnfenced, Exposed: 12 * time.Millisecond}}
		}, []string{"warning boot-fence n2"}, "the guard on ops1 saw, for at most 12ms"},
		"its users were saved, and it is fenced by one": {func(s *scene, _ time.Duration) {
			s.opt.Fences = map[string]fences.Kind{"n1": fences.ACL}
			s.Nodes[0].Facts.ACLSaves = 2
		}, []string{"warning boot-fence-rewritten n1"}, "ACL SAVE 2 × since its start"},
		"its users were saved, and no fence is among them": {node(0, func(n *monitor.Node) { n.Facts.ACLSaves = 2 }), nil, ""},
		"its file was rewritten, which its boot fence survives": {func(s *scene, _ time.Duration) {
			s.Nodes[0].Facts.ConfigRewrites = 1
			s.boots = map[string]BootSight{"n1": {Form: BootFirm}}
		}, []string{"info save-by-hand n1"}, "CONFIG REWRITE 1 × since its start"},
		"CONFIG has another name": {node(0, func(n *monitor.Node) {
			n.Facts.ConfigError, n.Facts.ConfigMissing = "ERR unknown command 'CONFIG'", true
		}), []string{"danger fence-denied n1"}, "unknown command"},
		"CONFIG has another name, under no guard": {func(s *scene, _ time.Duration) {
			s.guard = nil
			for i := range s.Nodes {
				s.Nodes[i].Persistent = true
			}
			s.Nodes[0].Facts.ConfigError, s.Nodes[0].Facts.ConfigMissing = "ERR unknown command 'CONFIG'", true
		}, []string{"warning fence-denied n1"}, "unknown command"},
		"CONFIG is denied": {node(0, func(n *monitor.Node) { n.Facts.ConfigError = "NOPERM" }), []string{"danger fence-denied n1"}, "NOPERM"},
		"CONFIG is denied to this user, and not to the guard's": {node(0, func(n *monitor.Node) {
			n.Facts.ConfigError = "NOPERM"
			n.Guards = []announce.Guard{{ID: "A", Boot: announce.BootFenced}}
		}), nil, ""},
		"CONFIG is denied where the fence is a user": {func(s *scene, _ time.Duration) {
			s.opt.Fences = map[string]fences.Kind{"n1": fences.ACL}
			s.Nodes[0].Facts.ConfigError = "NOPERM"
		}, nil, ""},
		"no start has been seen": {func(s *scene, _ time.Duration) { s.guard.Nodes["n4"] = monitor.GuardedNode{} },
			[]string{"warning boot-fence-unverified"}, "n4"},
		"a replica in place of a master": {node(0, func(n *monitor.Node) {
			n.State, n.Role, n.Err = monitor.NodeWrongRole, "slave", safetext.New("a replica of h:1")
		}),
			[]string{"danger wrong-role n1"}, "a replica of"},
		"replicas":         {node(0, func(n *monitor.Node) { n.Replicas = 2 }), []string{"warning replicas n1"}, "connected_slaves 2"},
		"one server twice": {node(0, func(n *monitor.Node) { n.RunID = "run2" }), []string{"danger same-server"}, "n1 (10.0.0.1:6379) and n2 (10.0.0.2:6379)"},
		"one host twice":   {node(0, func(n *monitor.Node) { n.Addr = "10.0.0.2:7000" }), []string{"warning same-host"}, "n1, n2 on 10.0.0.2"},
		"all on this machine": {func(s *scene, _ time.Duration) {
			for i, a := range []string{"127.0.0.1:1", "localhost:2", "[::1]:3", "/run/redis.sock", "127.0.0.9:1"} {
				s.Nodes[i].Addr = a
			}
		}, []string{"info same-host"}, "on this machine"},
		"an even number": {func(s *scene, _ time.Duration) {
			s.Nodes, s.Cluster.N, s.Cluster.Serving, s.Cluster.CanLose = s.Nodes[:4], 4, 4, 1
		}, []string{"info even-nodes"}, "4 nodes, quorum 3"},
		"one node": {func(s *scene, _ time.Duration) {
			s.Nodes, s.Cluster.N, s.Cluster.Serving, s.Cluster.CanLose, s.Cluster.Quorum = s.Nodes[:1], 1, 1, 0, 1
		}, []string{"info single-node"}, ""},
		"nothing persists, and no guard is seen": {func(s *scene, _ time.Duration) { s.guard = nil },
			[]string{"warning no-guard"}, "no guard is seen on n1, n2, n3, n4, n5"},
		"nothing persists, and guards cannot be seen": {func(s *scene, _ time.Duration) {
			s.guard = nil
			for i := range s.Nodes {
				s.Nodes[i].GuardsKnown = false
			}
		}, []string{"warning no-guard"}, "guards cannot be seen on n1, n2, n3, n4, n5"},
		"a guard elsewhere": {func(s *scene, _ time.Duration) {
			s.guard = nil
			for i := range s.Nodes {
				s.Nodes[i].Guards = []announce.Guard{{ID: "g", Delay: time.Hour, Boot: announce.BootFenced}}
			}
		}, nil, ""},
		"a guard elsewhere that has seen no start": {func(s *scene, _ time.Duration) {
			s.guard = nil
			for i := range s.Nodes {
				s.Nodes[i].Guards = []announce.Guard{{ID: "g", Delay: time.Hour}}
			}
		}, []string{"warning boot-fence-unverified"}, "n1, n2, n3, n4, n5"},
		"persistence by halves, and no guard": {func(s *scene, _ time.Duration) {
			s.guard = nil
			for i := range s.Nodes {
				s.Nodes[i].Persistent = true
			}
			s.Nodes[3].Persistent, s.Nodes[3].Facts.AppendOnly = false, "yes"
			s.Nodes[4].Persistent, s.Nodes[4].Facts.Save = false, "3600 1"
		}, []string{"warning no-guard", "warning unsafe-persistence n4", "warning unsafe-persistence n5"}, "no guard is seen on n4, n5"},
		"a node that the guard here leaves out": {func(s *scene, _ time.Duration) { delete(s.guard.Nodes, "n5") },
			[]string{"warning no-guard", "warning unsafe-persistence n5"}, "no guard is seen on n5"},
		"a lock without TTL": {locks(lockOf("job:2", monitor.LockNoTTL, "a", "a", "a", "", "")), []string{"danger no-ttl-lock"},
			"job:2: a without TTL on n1 n2 n3"},
		"a lock without TTL that is being revoked": {locks(lockOf("job:2", monitor.LockNoTTL, "a", "a", "redlockctl:revoked:x", "", "")), []string{"danger no-ttl-lock"}, ""},
		"a lock without TTL with another token": {locks(lockOf("job:2", monitor.LockNoTTL, "a", "a", "a", "b", "")),
			[]string{"danger no-ttl-lock", "warning several-tokens"}, ""},
		"locks that are split": {locks(lockOf("job:2", monitor.LockSplit, "a", "a", "a", "b", "c"), lockOf("job:3", monitor.LockSplit, "a", "b", "", "", "")),
			[]string{"warning several-tokens"}, "2; the first: job:2: a on n1 n2 n3, b on n4, c on n5"},
		"two clients may rely on one of them": {locks(lockOf("job:2", monitor.LockSplit, "a", "a", "a", "b", "c"), func() monitor.Lock {
			l := lockOf("job:3", monitor.LockSplit, "a", "a", "b", "b", "b")
			l.Earlier = &monitor.Reliance{Token: safetext.New("a")}
			return l
		}()), []string{"danger split-lock", "warning several-tokens"}, "job:3: b on n3 n4 n5, a on n1 n2"},
		"two clients have one of them, and nobody is known to have the other": {locks(func() monitor.Lock {
			l := lockOf("job:2", monitor.LockSplit, "a", "a", "b", "b", "")
			l.Earlier, l.Contested = &monitor.Reliance{Token: safetext.New("b")}, true
			return l
		}(), func() monitor.Lock {
			l := lockOf("job:3", monitor.LockSplit, "a", "a", "b", "b", "b")
			l.Earlier = &monitor.Reliance{Token: safetext.New("a")}
			return l
		}()), []string{"danger split-lock"}, "2; the first: job:3: b on n3 n4 n5, a on n1 n2"},
		"attempts on a lock without TTL that fail": {func(s *scene, at time.Duration) {
			l := lockOf("job:2", monitor.LockNoTTL, "a", "a", "a", "", "")
			if at%time.Second == 0 {
				l = lockOf("job:2", monitor.LockNoTTL, "a", "a", "a", fmt.Sprint(at/time.Second), "")
			}
			l.Lasts = true
			s.Locks = monitor.NewLocks(l)
		}, []string{"danger no-ttl-lock"}, ""},
		"contenders that take turns": {func(s *scene, at time.Duration) {
			s.Locks = monitor.NewLocks(lockOf("job:2", monitor.LockSplit, "a", "a", "a", fmt.Sprint(at/time.Second), ""))
		}, nil, ""},
		"a lost majority, its nodes are fenced": {func(s *scene, _ time.Duration) {
			s.Locks = monitor.NewLocks(lostLock())
			for i := range 3 {
				s.Nodes[i].State = monitor.NodeFenced
			}
		}, []string{"warning lost-majority"}, "job:3"},
		"a lost majority, another client can get in": {func(s *scene, _ time.Duration) { s.Locks = monitor.NewLocks(lostLock()) }, []string{"danger exposed-lock"}, "job:3"},
		"an orphan": {locks(lockOf("job:2", monitor.LockOrphaned, "a", "a", "", "", "")), []string{"warning orphan-lock"}, ""},
		"copies on nodes that refuse writes, which keep nobody out": {func(s *scene, _ time.Duration) {
			s.Nodes[1].State, s.Nodes[2].State = monitor.NodeCordoned, monitor.NodeFenced
			s.Locks = monitor.NewLocks(lockOf("job:2", monitor.LockOrphaned, "", "a", "a", "", ""))
		}, []string{"info stays-fenced n2", "info orphan-lock"}, ""},
		"they outlive the cordon": {func(s *scene, at time.Duration) {
			if s.Nodes[1].State = monitor.NodeServing; at < 5*time.Second {
				s.Nodes[1].State = monitor.NodeFenced
			}
			s.Locks = monitor.NewLocks(lockOf("job:2", monitor.LockOrphaned, "", "a", "", "", ""))
		}, []string{"warning orphan-lock"}, "job:2: a on n2"},
		"one of them serves": {func(s *scene, _ time.Duration) {
			s.Nodes[1].State = monitor.NodeFenced
			s.Locks = monitor.NewLocks(lockOf("job:2", monitor.LockOrphaned, "", "a", "a", "", ""))
		}, []string{"warning orphan-lock"}, "job:2: a on n2 n3"},
		"a long TTL": {locks(lockOf("job:2", monitor.LockOverTTL, "a", "a", "a", "a", "a")), []string{"danger over-ttl"}, ""},
		"a key that is no lock": {func(s *scene, _ time.Duration) {
			l := lockOf("list", monitor.LockNotALock, "", "a")
			l.Copies = changed(l.Copies, 1, func(c *monitor.Copy) { c.Type, c.Len, c.Token = "list", 3, safetext.Text{} })
			s.Locks = monitor.NewLocks(l)
		}, []string{"info foreign-keys"}, "list: a list of 3 on n2"},
		"a huge value": {func(s *scene, _ time.Duration) {
			l := lockOf("job:1", monitor.LockHeld, "a", "a", "a", "a", "a")
			l.Copies = changed(l.Copies, 2, func(c *monitor.Copy) { c.Len = 512 << 20 })
			s.Locks = monitor.NewLocks(l)
		}, []string{"warning hostile-content"}, "a value of 536870912 bytes on n3"},
		"a huge name": {locks(lockOf(strings.Repeat("x", 1<<20), monitor.LockHeld, "a", "a", "a", "a", "a")), []string{"warning hostile-content"},
			"a name of 1048576 bytes"},
		"a clock went forward": {node(1, func(n *monitor.Node) { n.Facts.StepAt, n.Facts.StepBy = findingEpoch, time.Second }),
			[]string{"danger clock-step n2"}, "by +1s, at 00:00:00"},
		"a clock went forward, and a guard has fenced the node": {func(s *scene, _ time.Duration) {
			n := &s.Nodes[1]
			n.State, n.Facts.StepAt, n.Facts.StepBy = monitor.NodeFenced, findingEpoch, time.Second
		}, []string{"warning clock-step n2"}, "by +1s"},
		"a clock went forward, more than max TTL ago": {node(1, func(n *monitor.Node) { n.Facts.StepAt, n.Facts.StepBy = findingEpoch.Add(-31*time.Second), time.Second }),
			[]string{"warning clock-step n2"}, "by +1s"},
		"a clock went back": {node(1, func(n *monitor.Node) { n.Facts.StepAt, n.Facts.StepBy = findingEpoch, -time.Second }),
			[]string{"warning clock-step n2"}, "by -1s"},
		"it serves before it may vote": {node(1, func(n *monitor.Node) {
			n.Early, n.EarlyUntil = true, findingEpoch.Add(time.Hour)
			n.Guards = []announce.Guard{{ID: "g", Delay: time.Minute}}
		}), []string{"danger serves-early n2"}, "it serves, and may vote from"},
		"a clock went forward long ago": {node(1, func(n *monitor.Node) { n.Facts.StepAt, n.Facts.StepBy = findingEpoch.Add(-2*time.Minute), time.Second }), nil, ""},
		"a clock beyond the allowance": {node(1, func(n *monitor.Node) { n.Drift = monitor.Drift{Valid: true, PPM: -10_100, Bound: 10} }),
			[]string{"danger clock-rate"}, "n5 runs 10180 ± 12 ppm faster than n2; the drift allowance is 10000 ppm (drift_factor 0.01)"},
		"a clock that may be beyond the allowance": {node(1, func(n *monitor.Node) { n.Drift = monitor.Drift{Valid: true, PPM: -10_100, Bound: 9_500} }), nil, ""},
		"a clock that is broken":                   {node(1, func(n *monitor.Node) { n.Drift = monitor.Drift{Valid: true, PPM: 2_000, Bound: 10} }), []string{"warning clock-rate"}, "2000 ± 10 ppm"},
		"two clocks that are slewed": {func(s *scene, _ time.Duration) {
			s.Nodes[0].Drift.PPM, s.Nodes[1].Drift.PPM = 499, -499
		}, nil, ""},
		"a smaller allowance": {func(s *scene, _ time.Duration) { s.opt.DriftFactor = 0.0001 },
			[]string{"warning clock-rate"}, "allowance is 100 ppm"},
		"a slow network": {func(s *scene, _ time.Duration) {
			for i := range s.Nodes[:3] {
				s.Nodes[i].RTTs = slices.Repeat([]time.Duration{8 * time.Second}, 60)
			}
		}, []string{"warning slow-attempts"}, "8s at p99; the max TTL is 30s"},
		"slow minority": {func(s *scene, _ time.Duration) {
			for i := range s.Nodes[:2] {
				s.Nodes[i].RTTs = slices.Repeat([]time.Duration{20 * time.Second}, 60)
			}
		}, nil, ""},
		"one hiccup": {func(s *scene, _ time.Duration) {
			for i := range s.Nodes {
				s.Nodes[i].RTTs = slices.Repeat([]time.Duration{time.Millisecond}, 60)
				s.Nodes[i].RTTs[7] = 20 * time.Second
			}
		}, nil, ""},
		"one node is down":   {at(0, func(s *scene) { down(s, 1) }), []string{"warning node-down n2"}, "connection refused"},
		"a majority is down": {at(0, func(s *scene) { down(s, 1, 2, 3); s.Cluster.Absent = "n2 down" }), []string{"danger no-quorum"}, "2 of 5 nodes serve, a quorum is 3: n2 down"},
		"until when, says the guard": {at(0, func(s *scene) { down(s, 1, 2, 3); s.guard.Outlook = "a quorum is back at 00:00:20" }),
			[]string{"danger no-quorum"}, "a quorum is back at 00:00:20"},
		"a short absence": {func(s *scene, at time.Duration) {
			switch at {
			case 5 * time.Second:
				down(s, 1)
			case 6 * time.Second:
				*s.Snapshot = *goodScene().Snapshot
			}
		}, nil, ""},
		"a node that hangs":          {node(0, func(n *monitor.Node) { n.State, n.Err = monitor.NodeSlow, safetext.New("no answer in time") }), []string{"warning node-down n1"}, "no answer in time"},
		"a node that reads its data": {node(0, func(n *monitor.Node) { n.State = monitor.NodeLoading }), []string{"warning node-down n1"}, "LOADING"},
		"a node that lets nobody look": {node(0, func(n *monitor.Node) { n.State, n.Err = monitor.NodeDenied, safetext.New("NOAUTH") }),
			[]string{"warning node-down n1"}, "NOAUTH"},
		"a node that was just fenced": {node(0, func(n *monitor.Node) { n.State = monitor.NodeFenced }), nil, ""},
		"a node that nobody opens":    {node(0, func(n *monitor.Node) { n.State, n.Since = monitor.NodeFenced, findingEpoch.Add(-time.Hour) }), []string{"warning stays-fenced n1"}, "fenced since 23:00:00"},
		"a node that its guard does not open": {node(0, func(n *monitor.Node) {
			n.State, n.Since, n.GuardsKnown = monitor.NodeFenced, findingEpoch.Add(-time.Hour), true
			n.Guards = []announce.Guard{{ID: "ABCDEFGH", Host: safetext.New("ops"), Delay: time.Minute}}
		}), []string{"warning stays-fenced n1"}, "though ops (ABCDEF) watches it"},
		"a node whose guard waits for longer": {node(0, func(n *monitor.Node) {
			n.State, n.Since, n.GuardsKnown = monitor.NodeFenced, findingEpoch.Add(-time.Hour), true
			n.Guards = []announce.Guard{{ID: "ABCDEFGH", Host: safetext.New("ops"), Delay: time.Hour}}
		}), nil, ""},
		"a node whose guard came late": {node(0, func(n *monitor.Node) {
			n.State, n.Since, n.GuardsKnown = monitor.NodeFenced, findingEpoch.Add(-time.Hour), true
			n.RejoinsAfter = findingEpoch.Add(time.Minute)
			n.Guards = []announce.Guard{{ID: "ABCDEFGH", Host: safetext.New("ops"), Delay: time.Minute}}
		}), nil, ""},
		"a node that is cordoned": {node(0, func(n *monitor.Node) { n.State = monitor.NodeCordoned }), []string{"info stays-fenced n1"}, "cordoned"},
		"a node that is known to be cordoned": {node(0, func(n *monitor.Node) {
			n.State, n.Older, n.Cordon = monitor.NodeCordoned, true, &monitor.Cordon{Action: monitor.Action{Act: "node drain", Actor: "ops@host", Reason: "disk", At: findingEpoch}, Restart: []string{"n1", "n2"}, Stopped: true}
		}), []string{"info stays-fenced n1"}, "by ops@host: disk; in a restart of n1, n2 that was interrupted, by the audit log here"},
		"a node that is down in a restart": {node(0, func(n *monitor.Node) {
			n.State, n.Err, n.Cordon = monitor.NodeDown, safetext.New("connection refused"), &monitor.Cordon{Action: monitor.Action{Act: "node drain", Actor: "ops@host", Reason: "disk", At: findingEpoch}, Restart: []string{"n1", "n2"}}
		}), []string{"warning node-down n1", "info stays-fenced n1"}, "connection refused"},
		"memory is used up": {node(0, func(n *monitor.Node) { n.Facts.MaxMemory, n.UsedMemory = 100, 95 }), []string{"warning memory-full n1"}, ""},
		"connections are nearly used up": {node(0, func(n *monitor.Node) { n.Clients, n.Facts.MaxClients = 900, 1000 }),
			[]string{"warning clients-full n1"}, "900 of maxclients 1000 connections are open"},
		"an invalid answer to the guard": {func(s *scene, _ time.Duration) {
			s.guard.Nodes["n2"] = monitor.GuardedNode{Known: true, Verified: true, Invalid: "SUBSCRIBE: not a reply of a Redis server: a list of 0"}
		}, []string{"warning invalid-answers n2"}, "a list of 0"},
		"an invalid answer of a node that is down": {func(s *scene, _ time.Duration) {
			s.Nodes[1].State = monitor.NodeDown
			s.guard.Nodes["n2"] = monitor.GuardedNode{Known: true, Verified: true, Invalid: "SUBSCRIBE: not a reply of a Redis server: a list of 0"}
		}, []string{"warning node-down n2"}, ""},
		"some connections are left": {node(0, func(n *monitor.Node) { n.Clients, n.Facts.MaxClients = 899, 1000 }), nil, ""},
		"connections were refused": {at(5*time.Second, func(s *scene) { s.Nodes[0].Facts.Refused = 3 }),
			[]string{"warning clients-full n1"}, "3 connections refused while it was watched, the last at 00:00:05"},
		"one was reset before it was looked at": {at(5*time.Second, func(s *scene) {
			s.Nodes[0].Clients, s.Nodes[0].Facts.MaxClients, s.Nodes[0].Facts.Refused = 9, 10000, 1
		}), nil, ""},
		"refused by protected-mode": {at(5*time.Second, func(s *scene) {
			s.Nodes[0].Clients, s.Nodes[0].Facts.MaxClients, s.Nodes[0].Facts.Refused = 9, 10000, 3
		}), []string{"warning clients-full n1"}, "clients had left before they were accepted"},
		"the disk fails":               {node(0, func(n *monitor.Node) { n.Facts.DiskFails = "aof_last_write_status:err" }), []string{"warning disk-fails n1"}, "err"},
		"saved by hand, before":        {node(0, func(n *monitor.Node) { n.Facts.Saves = 2 }), []string{"info save-by-hand n1"}, "SAVE 2 × since its start"},
		"saved by hand, seen":          {at(time.Second, func(s *scene) { s.Nodes[0].Facts.Saves = 2 }), []string{"warning save-by-hand n1"}, "SAVE 2 × while it was watched"},
		"a snapshot in the background": {at(time.Second, func(s *scene) { s.Nodes[0].Facts.BackgroundSaves = 1 }), []string{"info save-by-hand n1"}, "BGSAVE"},
		"its file was rewritten":       {at(time.Second, func(s *scene) { s.Nodes[0].Facts.ConfigRewrites = 1 }), []string{"warning boot-fence-rewritten n1"}, "CONFIG REWRITE 1 ×"},
		"counters of another life": {at(time.Second, func(s *scene) {
			s.Nodes[0].RunID, s.Nodes[0].Facts.Saves = "other", -1
		}), nil, ""},
		"some of it is denied": {node(0, func(n *monitor.Node) {
			n.Limits = []monitor.Limit{{Text: "TIME denied", Do: monitor.AdviceRights}, {Text: "scripts denied", Do: monitor.AdviceRights}}
		}),
			[]string{"info limited-sight n1"}, "TIME denied; scripts denied"},
		"a node does not tell of all changes": {node(0, func(n *monitor.Node) {
			n.Facts.UnreportedAt, n.Facts.Unreported, n.Facts.UnreportedKey = findingEpoch, 2, safetext.New("job:1")
		}),
			[]string{"warning unreported-changes n1"}, "2 keys, the last at 00:00:00, e.g. job:1"},
		"it did not once": {node(0, func(n *monitor.Node) {
			n.Facts.UnreportedAt, n.Facts.Unreported, n.Facts.UnreportedKey = findingEpoch.Add(-2*lately), 2, safetext.New("job:1")
		}), nil, ""},
		"this process was stopped": {func(s *scene, _ time.Duration) {
			s.discontinuity = clock.Discontinuity{At: findingEpoch, Gap: 3 * time.Second, Text: "this process was stopped for 3s"}
		}, []string{"info console-stopped"}, "stopped for 3s, at 00:00:00"},
		"our clock moved": {func(s *scene, _ time.Duration) {
			s.discontinuity = clock.Discontinuity{At: findingEpoch, Jump: time.Hour, Text: "the clock moved"}
		}, []string{"warning console-stopped"}, ""},
		"stopped a while ago": {func(s *scene, _ time.Duration) {
			s.discontinuity = clock.Discontinuity{At: findingEpoch.Add(-2 * discontinuityHold), Gap: time.Hour}
		}, nil, ""},
		"gravest first": {func(s *scene, _ time.Duration) {
			s.Nodes[4].Replicas = 1
			s.Nodes[3].Facts.MaxLag = 0
			s.Nodes[0].Limits = []monitor.Limit{{Text: "x", Do: monitor.AdviceRights}}
			s.Nodes[1].Replicas = 1
			s.Locks = monitor.NewLocks(lockOf("job:2", monitor.LockSplit, "a", "a", "a", "b", ""))
		}, []string{"danger fence-off n4", "warning several-tokens", "warning replicas n2", "warning replicas n5", "info limited-sight n1"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			events, got := film(t, goodScene(), 20*time.Second, c.change)
			if !slices.Equal(names(got), c.want) {
				t.Fatalf("%q, not %q: %v", names(got), c.want, events)
			}
			if len(events) != len(c.want) {
				t.Errorf("%d events: %v", len(events), events)
			}
			for _, f := range got {
				if f.Title == "" || f.Evidence.Empty() || f.Consequence == "" || f.Remedy == "" || f.Since.IsZero() {
					t.Errorf("something is missing: %+v", f)
				}
			}
			if len(got) > 0 && !strings.Contains(got[0].Evidence.Raw(), c.says) {
				t.Errorf("evidence %q", got[0].Evidence)
			}
		})
	}
}

// A clock finding says how far the clock moved; the event of the step is a part of it.
func TestWhatMovedAClockIsOneLine(t *testing.T) {
	for want, change := range map[string]func(*scene, time.Duration){
		"its clock was stepped by -1s": func(s *scene, _ time.Duration) {
			s.Nodes[1].Facts.StepAt, s.Nodes[1].Facts.StepBy = findingEpoch, -time.Second
		},
		"this process was stopped for 3s": func(s *scene, _ time.Duration) {
			s.discontinuity = clock.Discontinuity{At: findingEpoch, Gap: 3 * time.Second, Text: "this process was stopped for 3s"}
		},
	} {
		events, got := film(t, goodScene(), 20*time.Second, change)
		if len(got) != 1 || got[0].Title != want || len(events) != 1 || !events[0].Part {
			t.Errorf("%q: %v, %v", want, got, events)
		}
	}
}

// A guard, or its memory, that still speaks of the node's earlier, unfenced start says nothing about
// the present one: no danger. Once a guard has seen the present one start fenced, the finding is
// cleared without waiting, however often it came and went before.
func TestUnfencedStartOfAnEarlierIncarnation(t *testing.T) {
	unfenced := announce.Guard{ID: "A", Host: safetext.New("ops1"), Boot: announce.BootUnfenced}
	fenced := announce.Guard{ID: "A", Host: safetext.New("ops1"), Boot: announce.BootFenced}
	restart := 5 * time.Second
	for name, says := range map[string]func(s *scene, at time.Duration){
		"the guard here": func(s *scene, at time.Duration) {
			s.guard.Nodes["n4"] = monitor.GuardedNode{RunID: "earlier", Known: true}
			if at >= restart+time.Second {
				s.guard.Nodes["n4"] = monitor.GuardedNode{RunID: "later", Known: true, Verified: true}
			}
		},
		"its memory, which is read seldom": func(s *scene, at time.Duration) {
			delete(s.guard.Nodes, "n4")
			s.boots = map[string]BootSight{"n4": {Form: BootFirm, Guarded: true, RunID: "earlier", Started: announce.BootUnfenced}}
			s.Nodes[3].Guards = []announce.Guard{{ID: "A"}}
			if at >= restart+time.Second {
				s.Nodes[3].Guards = []announce.Guard{fenced}
			}
		},
	} {
		for at, f := range severest(t, says, restart) {
			if f == monitor.SeverityDanger || at >= restart+time.Second {
				t.Errorf("%s: it is a %s at %s", name, f, at)
			}
		}
	}

	s := goodScene()
	delete(s.guard.Nodes, "n4")
	s.Nodes[3].StartedAfter = findingEpoch
	_, last := film(t, s, 15*time.Second, func(s *scene, at time.Duration) {
		s.Nodes[3].Guards = []announce.Guard{fenced}
		if at < 14*time.Second && at%(4*time.Second) < time.Second { // each time it stays for longer
			s.Nodes[3].Guards = []announce.Guard{unfenced}
		}
	})
	if len(last) > 0 {
		t.Errorf("%q are open, though a guard says that it started fenced", names(last))
	}
}

// Where operators have cordoned a quorum away, the advice begins with them.
func TestAQuorumThatIsCordonedAway(t *testing.T) {
	s := goodScene()
	s.Cluster.Verdict = monitor.VerdictUnavailable
	for i := range 3 {
		s.Nodes[i].State = monitor.NodeCordoned
	}
	f := &found{}
	if !noQuorum(known{Snapshot: s.Snapshot, guard: s.guard}, f) || !strings.HasPrefix(f.Remedy, "Uncordon n1, n2, n3 (redlockctl node uncordon), unless they are being restarted. ") {
		t.Errorf("%q", f.Remedy)
	}
}
