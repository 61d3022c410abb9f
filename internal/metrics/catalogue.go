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

// catalogue is all that is collected of a cluster.
type catalogue struct {
	all []series

	nodes, quorum, serving, spare, lockable, protected, returns series

	up, nodeServing, fenced, held, rtt, offset, bound, drift, driftBound, copies, restarts series

	locks, findings series

	exportSent, exportDropped series

	guardUp, guardDenied, delay, phase, rejoin, verified, proven, exposed series
}

// newCatalogue makes the catalogue; it is small, and made anew for each collector
// rather than kept in a variable of the package.
func newCatalogue() catalogue {
	var all []series
	one := func(kind prometheus.ValueType, name, help string, labels []string) series {
		s := series{prometheus.NewDesc(namespace+name, help, append([]string{"cluster"}, labels...), nil), kind}
		all = append(all, s)
		return s
	}
	gauge := func(name, help string, labels ...string) series {
		return one(prometheus.GaugeValue, name, help, labels)
	}
	counter := func(name, help string, labels ...string) series {
		return one(prometheus.CounterValue, name, help, labels)
	}
	c := catalogue{
		nodes:     gauge("cluster_nodes", "How many nodes are configured."),
		quorum:    gauge("cluster_quorum", "How many nodes make a quorum."),
		serving:   gauge("cluster_serving_nodes", "How many nodes accept writes now."),
		spare:     gauge("cluster_spare_nodes", "How many more nodes may fail before nothing can be locked; below 0 it is already so."),
		lockable:  gauge("cluster_lockable", "1 while a quorum of nodes serves, 0 while nothing can be locked."),
		protected: gauge("cluster_protected", "1 while no restart of a node can give a vote twice, as far as can be seen: each node has a guard and started fenced, or forgets nothing."),
		returns:   gauge("cluster_quorum_return_seconds", "In how long the guard gives the cluster a quorum back: 0 while there is one, +Inf where it does not come back by itself."),

		up:          gauge("node_up", "1 while the node answers.", "node"),
		nodeServing: gauge("node_serving", "1 while the node accepts writes.", "node"),
		fenced:      gauge("node_fenced", "1 while the node is kept out of the quorum by a fence, be it a guard's or an operator's.", "node"),
		held:        gauge("node_cordoned", "1 while an operator keeps the node cordoned.", "node"),
		rtt:         gauge("node_rtt_seconds", "The last round trip to the node.", "node"),
		offset:      gauge("node_clock_offset_seconds", "How far the node's clock is ahead of this machine's.", "node"),
		bound:       gauge("node_clock_offset_bound_seconds", "How exactly the offset is known, plus or minus.", "node"),
		drift:       gauge("node_clock_drift_ratio", "By how much the node's clock runs faster than this machine's.", "node"),
		driftBound:  gauge("node_clock_drift_bound_ratio", "How exactly the drift is known, plus or minus.", "node"),
		copies:      gauge("node_locks", "How many copies of locks the node has.", "node"),
		restarts:    counter("node_restarts_total", "How many restarts of the node were seen by this process.", "node"),

		locks:    gauge("locks", "How many locks are in this state.", "state"),
		findings: gauge("findings", "How many assumptions of Redlock of this kind do not hold now.", "severity", "id"),

		exportSent:    counter("export_events_total", "How many events were sent to the OTLP receiver."),
		exportDropped: counter("export_dropped_events_total", "How many events were not: forgotten before they could be sent (missed), or not taken by the receiver (refused).", "reason"),

		guardUp:     gauge("guard_healthy", "1 while the guard in this process gets on with each node."),
		guardDenied: gauge("guard_node_denied", "1 while the node answers and refuses the guard in this process, which then cannot protect it.", "node"),
		delay:       gauge("guard_delay_seconds", "The delay D of each guard that is seen on the nodes, this one too: they must be the same.", "guard", "host"),
		phase:       gauge("guard_node_phase", "1 for the phase that the guard sees the node in, 0 for the others.", "node", "phase"),
		rejoin:      gauge("node_rejoin_seconds", "In how long the node rejoins; 0 if it does not wait.", "node"),
		verified:    gauge("node_boot_fence_verified", "1 if the last start of the node started fenced, 0 if unfenced; missing until a start was seen.", "node"),
		proven:      gauge("node_fence_proven", "1 if a canary write was refused since the node was fenced.", "node"),
		exposed:     counter("node_exposed_seconds_total", "For how long at most the node served after a loss, before it was fenced.", "node"),
	}
	c.all = all
	return c
}

// collector makes the series of the clusters that are shown.
type collector struct{ m *Metrics }

func (c collector) Describe(out chan<- *prometheus.Desc) {
	for _, s := range newCatalogue().all {
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
		o.put(o.delay, g.Delay.Seconds(), label(g.ID), label(g.Host.Raw()))
	}
	if c.Monitor != nil {
		o.snapshot(c.Monitor.Snapshot())
	}
	if c.Export != nil {
		sent, missed, refused := c.Export.Counts()
		o.put(o.exportSent, float64(sent))
		o.put(o.exportDropped, float64(missed), "missed")
		o.put(o.exportDropped, float64(refused), "refused")
	}
	if c.Down != nil {
		o.put(o.guardUp, 0)
	}
	if c.Guard == nil {
		return
	}
	o.guard(c.Guard, c.Monitor == nil, time.Now())
	for node, l := range c.lives {
		o.put(o.exposed, l.total.Seconds(), label(node))
		if c.Monitor == nil {
			o.put(o.restarts, float64(l.restarts), label(node))
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

func (o sink) put(s series, value float64, labels ...string) {
	o.out <- prometheus.MustNewConstMetric(s.desc, s.kind, value, append([]string{o.cluster}, labels...)...)
}

func one(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

func (o sink) snapshot(s *monitor.Snapshot) {
	o.put(o.nodes, float64(s.Cluster.N))
	o.put(o.quorum, float64(s.Cluster.Quorum))
	o.put(o.serving, float64(s.Cluster.Serving))
	// What is not known is missing, not 0.
	if c := &s.Cluster; c.Serving >= c.Quorum || c.Serving+c.Hidden < c.Quorum {
		o.put(o.spare, float64(c.CanLose))
		o.put(o.lockable, one(c.Serving >= c.Quorum))
	}
	o.put(o.protected, one(s.Cluster.Protected))
	for _, n := range s.Nodes {
		name := label(n.Name)
		up := true
		switch n.State {
		case monitor.NodeUnknown, monitor.NodeSlow, monitor.NodeDown:
			up = false
		}
		o.put(o.up, one(up), name)
		if n.State != monitor.NodeDenied || n.LocksHidden {
			o.put(o.nodeServing, one(n.State == monitor.NodeServing || n.LocksHidden), name)
		}
		o.put(o.fenced, one(n.State == monitor.NodeFenced || n.State == monitor.NodeCordoned), name)
		o.put(o.held, one(n.State == monitor.NodeCordoned), name)
		o.put(o.restarts, float64(n.Restarts), name)
		if up && n.Read >= 1 {
			o.put(o.copies, float64(n.Locks), name)
		}
		if up && n.RTT > 0 {
			o.put(o.rtt, n.RTT.Seconds(), name)
		}
		if up && n.Offset.Valid {
			o.put(o.offset, n.Offset.Offset.Seconds(), name)
			o.put(o.bound, n.Offset.Bound.Seconds(), name)
		}
		if up && n.Drift.Valid {
			o.put(o.drift, n.Drift.PPM/1e6, name)
			o.put(o.driftBound, n.Drift.Bound/1e6, name)
		}
	}
	for st := range monitor.LockStates() {
		if !s.Complete {
			break // what is not read yet would change most of them
		}
		o.put(o.locks, float64(s.Counts[st]), word(st.String()))
	}
	type kind struct{ severity, id string }
	count := map[kind]int{}
	for _, f := range s.Findings {
		count[kind{f.Severity.String(), label(f.ID)}]++
	}
	for k, n := range count {
		o.put(o.findings, float64(n), k.severity, k.id)
	}
}

// guard puts out what the guard knows; alone where there is no monitor.
func (o sink) guard(g Guard, alone bool, now time.Time) {
	o.put(o.guardUp, one(g.Healthy() == nil))
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
		o.put(o.returns, returns)
	}
	if alone {
		o.put(o.nodes, float64(outlook.N))
		o.put(o.quorum, float64(outlook.Quorum))
		o.put(o.serving, float64(outlook.Voting))
		if known {
			o.put(o.spare, float64(outlook.Voting-outlook.Quorum))
			o.put(o.lockable, one(outlook.Possible()))
		}
	}
	for _, s := range g.Status() {
		name := label(s.Node)
		o.put(o.guardDenied, one(s.Denied), name)
		for p := restartguard.PhaseUnknown; p <= restartguard.PhaseUnreachable; p++ {
			o.put(o.phase, one(s.Phase == p), name, word(p.String()))
		}
		wait := 0.0
		if s.Phase == restartguard.PhaseFenced && !s.Until.IsZero() {
			wait = max(0, s.Until.Sub(now).Seconds())
		}
		o.put(o.rejoin, wait, name)
		if s.Known {
			o.put(o.verified, one(s.Verified), name)
		}
		if s.Phase == restartguard.PhaseFenced || s.Phase == restartguard.PhaseCordoned {
			o.put(o.proven, one(s.Proven), name)
		}
		if alone {
			o.put(o.up, one(s.Denied || s.Phase != restartguard.PhaseUnknown && s.Phase != restartguard.PhaseUnreachable), name)
			if !s.Denied {
				o.put(o.nodeServing, one(s.Serves()), name)
			}
			o.put(o.fenced, one(s.Phase == restartguard.PhaseFenced || s.Phase == restartguard.PhaseCordoned), name)
			o.put(o.held, one(s.Phase == restartguard.PhaseCordoned), name)
		}
	}
}

// word is a state as a label: "not_a_lock".
func word(s string) string {
	return strings.ToLower(strings.NewReplacer(" ", "_", "-", "_").Replace(s))
}
