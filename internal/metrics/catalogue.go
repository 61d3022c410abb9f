package metrics

import (
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"redlockctl/monitor"
	"redlockctl/restartguard"
	"redlockctl/server/announce"
	"redlockctl/server/safetext"
)

// series is one metric, made when it is scraped.
type series struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

// catalogue has all metrics of a cluster, by name without [namespace].
type catalogue map[string]series

// newCatalogue makes the catalogue. It is small, so each collector makes its own and the
// package needs no variable.
func newCatalogue() catalogue {
	all := catalogue{}
	add := func(name, help string, labels ...string) {
		kind := prometheus.GaugeValue
		if strings.HasSuffix(name, "_total") {
			kind = prometheus.CounterValue
		}
		all[name] = series{prometheus.NewDesc(namespace+name, help, append([]string{"cluster"}, labels...), nil), kind}
	}
	add("cluster_nodes", "Configured nodes.")
	add("cluster_quorum", "Nodes in a quorum.")
	add("cluster_serving_nodes", "Nodes that accept writes now.")
	add("cluster_spare_nodes", "How many more nodes may fail before nothing can be locked; below 0 nothing can be locked now.")
	add("cluster_lockable", "1 while a quorum of nodes serves, 0 while nothing can be locked; missing while it is not known.")
	add("cluster_protected", "1 while no restart can give a vote twice, as far as is known: each node has a guard and started fenced, would do so by its files, or is fully persistent. Missing while a start was not seen yet and nothing else is wrong.")
	add("cluster_quorum_return_seconds", "Time until the guard restores a quorum: 0 while there is one, +Inf if it does not come back by itself.")

	add("node_up", "1 while the node answers.", "node")
	add("node_serving", "1 while the node accepts writes.", "node")
	add("node_fenced", "1 while a guard or an operator keeps the node out of the quorum.", "node")
	add("node_cordoned", "1 while the node is cordoned by an operator.", "node")
	add("node_rtt_seconds", "The last round trip to the node.", "node")
	add("node_clock_offset_seconds", "How far the node's clock is ahead of this machine's.", "node")
	add("node_clock_offset_bound_seconds", "Uncertainty of the offset, plus or minus.", "node")
	add("node_clock_drift_ratio", "How much faster the node's clock runs than this machine's; 0.00001 is 10 ppm.", "node")
	add("node_clock_drift_bound_ratio", "Uncertainty of the drift, plus or minus.", "node")
	add("node_locks", "Copies of locks on the node.", "node")
	add("node_restarts_total", "Restarts of the node that this process has seen.", "node")

	add("locks", "Locks in this state.", "state")
	add("findings", "Open findings: Redlock assumptions that do not hold now.", "severity", "id")

	add("export_events_total", "Events sent to the OTLP receiver.")
	add("export_dropped_events_total", "Events that were not sent: overwritten before they could be sent (missed), or refused by the receiver (refused).", "reason")

	add("record_up", "1 while this process records what happens, 0 while it cannot; missing if another process records, or nothing is to be recorded.")
	add("record_lag_seconds", "Time since this process last wrote to the record.")

	add("guard_healthy", "1 while the guard in this process checks every node, 0 while it is stuck on one.")
	add("guard_node_denied", "1 while the node refuses the guard in this process, which then cannot protect it.", "node")
	add("guard_delay_seconds", "D of each guard that is seen on the nodes, this one included. All must be equal.", "guard", "host")
	add("guard_node_phase", "1 for the present phase of the node, 0 for the others.", "node", "phase")
	add("node_rejoin_seconds", "Time until the node rejoins; 0 if it does not wait.", "node")
	add("node_boot_fence_verified", "1 if the last start of the node was fenced, 0 if unfenced; missing until a start was seen.", "node")
	add("node_fence_proven", "1 if a canary write was refused since the node was fenced.", "node")
	add("node_exposed_seconds_total", "Greatest possible time that the node served after a loss before it was fenced. Above 0, two clients may have held one lock.", "node")
	return all
}

// collector makes the series of all clusters of this process.
type collector struct{ m *Metrics }

func (c collector) Describe(out chan<- *prometheus.Desc) {
	for _, s := range newCatalogue() {
		out <- s.desc
	}
}

func (c collector) Collect(out chan<- prometheus.Metric) {
	c.m.look()
	all := newCatalogue()
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	for _, shown := range c.m.shown {
		shown.collect(sink{all, label(shown.Name), out})
	}
}

func (c *shown) collect(o sink) {
	for _, g := range guardsOf(c.Cluster) {
		o.put("guard_delay_seconds", g.Delay.Seconds(), label(g.ID), label(g.Host.Raw()))
	}
	if c.Monitor != nil {
		o.snapshot(c.Monitor.Snapshot())
	}
	if c.Export != nil {
		sent, missed, refused := c.Export.Counts()
		o.put("export_events_total", float64(sent))
		o.put("export_dropped_events_total", float64(missed), "missed")
		o.put("export_dropped_events_total", float64(refused), "refused")
	}
	if r := c.Record; r != nil && (r.Err() == nil || r.Problem() != nil) {
		up := 0.0
		lag, wrote := r.Lag()
		if wrote && r.Err() == nil {
			up = 1
		}
		o.put("record_up", up)
		if wrote {
			o.put("record_lag_seconds", lag.Seconds())
		}
	}
	if c.Down != nil {
		o.put("guard_healthy", 0)
	}
	if c.Guard == nil {
		return
	}
	o.guard(c.Guard, c.Monitor == nil, time.Now())
	for node, l := range c.lives {
		o.put("node_exposed_seconds_total", l.total.Seconds(), label(node))
		if c.Monitor == nil {
			o.put("node_restarts_total", float64(l.restarts), label(node))
		}
	}
}

// guardsOf returns all guards, each once: the one in this process and those that it sees, or
// those that the monitor sees.
func guardsOf(c Cluster) (all []announce.Guard) {
	add := func(g announce.Guard) {
		if i := slices.IndexFunc(all, g.Same); i < 0 {
			all = append(all, g)
		} else if g.Delay > all[i].Delay {
			all[i] = g
		}
	}
	if c.Guard != nil {
		host, _ := os.Hostname()
		add(announce.Guard{ID: c.Guard.ID(), Delay: c.Guard.Delay(), Host: safetext.New(host)})
		for _, g := range c.Guard.Others() {
			add(g)
		}
	} else if c.Monitor != nil {
		all, _ = c.Monitor.Snapshot().Guards()
	}
	return all
}

// sink sends the series of one cluster.
type sink struct {
	catalogue
	cluster string
	out     chan<- prometheus.Metric
}

func (o sink) put(name string, value float64, labels ...string) {
	s := o.catalogue[name]
	o.out <- prometheus.MustNewConstMetric(s.desc, s.kind, value, append([]string{o.cluster}, labels...)...)
}

func truth(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

func (o sink) snapshot(s *monitor.Snapshot) {
	o.put("cluster_nodes", float64(s.Cluster.N))
	o.put("cluster_quorum", float64(s.Cluster.Quorum))
	// Unknown values are missing, not 0.
	if !s.Cluster.NotSeen {
		o.put("cluster_serving_nodes", float64(s.Cluster.Serving))
	}
	if c := &s.Cluster; !c.NotSeen && (c.Serving >= c.Quorum || c.Serving+c.Hidden < c.Quorum) {
		o.put("cluster_spare_nodes", float64(c.CanLose))
		o.put("cluster_lockable", truth(c.Serving >= c.Quorum))
	}
	if !s.Cluster.StartsUnseen { // unknown values are missing
		o.put("cluster_protected", truth(s.Cluster.Protected))
	}
	for _, n := range s.Nodes {
		name := label(n.Name)
		up := true
		switch n.State {
		case monitor.NodeUnknown, monitor.NodeSlow, monitor.NodeDown:
			up = false
		}
		o.put("node_up", truth(up), name)
		if n.State != monitor.NodeDenied || n.LocksHidden {
			o.put("node_serving", truth(n.State == monitor.NodeServing || n.LocksHidden), name)
		}
		o.put("node_fenced", truth(n.State == monitor.NodeFenced || n.State == monitor.NodeCordoned), name)
		o.put("node_cordoned", truth(n.State == monitor.NodeCordoned), name)
		o.put("node_restarts_total", float64(n.Restarts), name)
		if up && n.ReadWhole() {
			o.put("node_locks", float64(n.Locks), name)
		}
		if up && n.RTT > 0 {
			o.put("node_rtt_seconds", n.RTT.Seconds(), name)
		}
		if up && n.Offset.Valid {
			o.put("node_clock_offset_seconds", n.Offset.Offset.Seconds(), name)
			o.put("node_clock_offset_bound_seconds", n.Offset.Bound.Seconds(), name)
		}
		if up && n.Drift.Valid {
			o.put("node_clock_drift_ratio", n.Drift.PPM/1e6, name)
			o.put("node_clock_drift_bound_ratio", n.Drift.Bound/1e6, name)
		}
	}
	for st := range monitor.LockStates() {
		if !s.Complete {
			break // keys that are not read yet would change most of them
		}
		o.put("locks", float64(s.Counts[st]), word(st.String()))
	}
	type kind struct{ severity, id string }
	count := map[kind]int{}
	for _, f := range s.Findings {
		count[kind{f.Severity.String(), label(f.ID)}]++
	}
	for k, n := range count {
		o.put("findings", float64(n), k.severity, k.id)
	}
}

// guard sends what the guard knows; alone: there is no monitor.
func (o sink) guard(g Guard, alone bool, now time.Time) {
	o.put("guard_healthy", truth(g.Healthy() == nil))
	outlook := g.Outlook()
	// Unknown values are missing, not 0.
	known := !outlook.Unknown()
	returns := 0.0
	if !outlook.Possible() {
		returns = math.Inf(1)
		if !outlook.Until.IsZero() {
			returns = max(0, outlook.Until.Sub(now).Seconds())
		}
	}
	if known {
		o.put("cluster_quorum_return_seconds", returns)
	}
	if alone {
		o.put("cluster_nodes", float64(outlook.N))
		o.put("cluster_quorum", float64(outlook.Quorum))
		o.put("cluster_serving_nodes", float64(outlook.Voting))
		if known {
			o.put("cluster_spare_nodes", float64(outlook.Voting-outlook.Quorum))
			o.put("cluster_lockable", truth(outlook.Possible()))
		}
	}
	for _, s := range g.Status() {
		name := label(s.Node)
		o.put("guard_node_denied", truth(s.Denied), name)
		for p := restartguard.PhaseUnknown; p <= restartguard.PhaseUnreachable; p++ {
			o.put("guard_node_phase", truth(s.Phase == p), name, word(p.String()))
		}
		wait := 0.0
		if s.Phase == restartguard.PhaseFenced && !s.Until.IsZero() {
			wait = max(0, s.Until.Sub(now).Seconds())
		}
		o.put("node_rejoin_seconds", wait, name)
		if s.Known {
			o.put("node_boot_fence_verified", truth(s.Verified), name)
		}
		if s.Phase == restartguard.PhaseFenced || s.Phase == restartguard.PhaseCordoned {
			o.put("node_fence_proven", truth(s.Proven), name)
		}
		if alone {
			o.put("node_up", truth(s.Denied || s.Phase != restartguard.PhaseUnknown && s.Phase != restartguard.PhaseUnreachable), name)
			if !s.Denied {
				o.put("node_serving", truth(s.Serves()), name)
			}
			o.put("node_fenced", truth(s.Phase == restartguard.PhaseFenced || s.Phase == restartguard.PhaseCordoned), name)
			o.put("node_cordoned", truth(s.Phase == restartguard.PhaseCordoned), name)
		}
	}
}

// word returns a state as a label: "not_a_lock".
func word(s string) string {
	return strings.ToLower(strings.NewReplacer(" ", "_", "-", "_").Replace(s))
}
