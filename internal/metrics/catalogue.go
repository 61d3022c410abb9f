package metrics

import (
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"redlockctl/internal/announce"
	"redlockctl/internal/safetext"
	"redlockctl/monitor"
	"redlockctl/restartguard"
)

// series is one metric that is made when it is asked for.
type series struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

// catalogue is all that is collected of a cluster, by name without [namespace].
type catalogue map[string]series

// newCatalogue makes the catalogue; it is small, and made anew for each collector
// rather than kept in a variable of the package.
func newCatalogue() catalogue {
	all := catalogue{}
	add := func(name, help string, labels ...string) {
		kind := prometheus.GaugeValue
		if strings.HasSuffix(name, "_total") {
			kind = prometheus.CounterValue
		}
		all[name] = series{prometheus.NewDesc(namespace+name, help, append([]string{"cluster"}, labels...), nil), kind}
	}
	add("cluster_nodes", "How many nodes are configured.")
	add("cluster_quorum", "How many nodes make a quorum.")
	add("cluster_serving_nodes", "How many nodes accept writes now.")
	add("cluster_spare_nodes", "How many more nodes may fail before nothing can be locked; below 0 it is already so.")
	add("cluster_lockable", "1 while a quorum of nodes serves, 0 while nothing can be locked.")
	add("cluster_protected", "1 while no restart of a node can give a vote twice, as far as can be seen: each node has a guard and started fenced, or forgets nothing.")
	add("cluster_quorum_return_seconds", "In how long the guard gives the cluster a quorum back: 0 while there is one, +Inf where it does not come back by itself.")

	add("node_up", "1 while the node answers.", "node")
	add("node_serving", "1 while the node accepts writes.", "node")
	add("node_fenced", "1 while the node is kept out of the quorum by a fence, be it a guard's or an operator's.", "node")
	add("node_cordoned", "1 while an operator keeps the node cordoned.", "node")
	add("node_rtt_seconds", "The last round trip to the node.", "node")
	add("node_clock_offset_seconds", "How far the node's clock is ahead of this machine's.", "node")
	add("node_clock_offset_bound_seconds", "How exactly the offset is known, plus or minus.", "node")
	add("node_clock_drift_ratio", "By how much the node's clock runs faster than this machine's.", "node")
	add("node_clock_drift_bound_ratio", "How exactly the drift is known, plus or minus.", "node")
	add("node_locks", "How many copies of locks the node has.", "node")
	add("node_restarts_total", "How many restarts of the node were seen by this process.", "node")

	add("locks", "How many locks are in this state.", "state")
	add("findings", "How many assumptions of Redlock of this kind do not hold now.", "severity", "id")

	add("export_events_total", "How many events were sent to the OTLP receiver.")
	add("export_dropped_events_total", "How many events were not: forgotten before they could be sent (missed), or not taken by the receiver (refused).", "reason")

	add("guard_healthy", "1 while the guard in this process gets on with each node.")
	add("guard_node_denied", "1 while the node answers and refuses the guard in this process, which then cannot protect it.", "node")
	add("guard_delay_seconds", "The delay D of each guard that is seen on the nodes, this one too: they must be the same.", "guard", "host")
	add("guard_node_phase", "1 for the phase that the guard sees the node in, 0 for the others.", "node", "phase")
	add("node_rejoin_seconds", "In how long the node rejoins; 0 if it does not wait.", "node")
	add("node_boot_fence_verified", "1 if the last start of the node started fenced, 0 if unfenced; missing until a start was seen.", "node")
	add("node_fence_proven", "1 if a canary write was refused since the node was fenced.", "node")
	add("node_exposed_seconds_total", "For how long at most the node served after a loss, before it was fenced.", "node")
	return all
}

// collector makes the series of the clusters that are shown.
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

// guardsOf are all guards that are seen, each once: the one in this process and
// those that it sees, or those that the monitor sees.
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

// sink puts series of one cluster out.
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
	o.put("cluster_serving_nodes", float64(s.Cluster.Serving))
	// What is not known is missing, not 0.
	if c := &s.Cluster; c.Serving >= c.Quorum || c.Serving+c.Hidden < c.Quorum {
		o.put("cluster_spare_nodes", float64(c.CanLose))
		o.put("cluster_lockable", truth(c.Serving >= c.Quorum))
	}
	o.put("cluster_protected", truth(s.Cluster.Protected))
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
		if up && n.Read >= 1 {
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
			break // what is not read yet would change most of them
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

// guard puts out what the guard knows; alone where there is no monitor.
func (o sink) guard(g Guard, alone bool, now time.Time) {
	o.put("guard_healthy", truth(g.Healthy() == nil))
	outlook := g.Outlook()
	// What is not known is missing, not 0.
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

// word is a state as a label: "not_a_lock".
func word(s string) string {
	return strings.ToLower(strings.NewReplacer(" ", "_", "-", "_").Replace(s))
}
