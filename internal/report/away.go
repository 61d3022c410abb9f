package report

import (
	"maps"
	"slices"
	"time"

	"redlockctl/monitor"
)

const (
	unrecorded = "not recorded"
	// around is how far a restart and the state that follows it may be apart, and how long a node
	// that is uncordoned and may vote stays fenced, until its guard lets it rejoin.
	around = 2500 * time.Millisecond
)

// awayOf counts how often and for how long a node, or the cluster, was in each state but the good one.
// What it was before a gap of the record or an unknown time goes on if it is so after it. A cordon
// lasts beyond a restart, after which the node is down or fenced until a guard cordons it again; the
// moment in which a guard lets an uncordoned node rejoin belongs to it. A fence is one wait, unless
// the node restarts in it.
func awayOf(name string, parts []Part, restarts []time.Time) (all []Away) {
	serving, fenced, cordoned := monitor.NodeServing.String(), monitor.NodeFenced.String(), monitor.NodeCordoned.String()
	gap := func(state string) bool { return state == unrecorded || state == monitor.NodeUnknown.String() }
	restarted := func(from, to time.Time) bool {
		return slices.ContainsFunc(restarts, func(at time.Time) bool { return !at.Before(from.Add(-around)) && !at.After(to.Add(around)) })
	}
	by := map[string]*Away{}
	cordon, fence := false, time.Time{} // the node is still cordoned; last time the fence was seen, zero: it is down
	var last Part                       // that was known
	for i, p := range parts {
		state, again := p.State, p.State == last.State
		next := ""
		if k := slices.IndexFunc(parts[i+1:], func(o Part) bool { return !gap(o.State) }); k >= 0 {
			next = parts[i+1+k].State
		}
		switch {
		case gap(state):
			again = false
		case state == cordoned:
			again, cordon, fence = cordon, true, time.Time{}
		case state == fenced && cordon && next == cordoned && (last.State != cordoned || last.To != p.From || restarted(p.From, p.From)),
			state == fenced && cordon && next == serving && p.To.Sub(p.From) < around:
			state, again = cordoned, true
		case state == fenced:
			again = !fence.IsZero() && (last.State == fenced || !restarted(fence, p.From))
			cordon, fence = false, p.To
		case state == serving:
			cordon, fence = false, time.Time{}
		}
		if !gap(p.State) {
			last = p
		}
		a := by[state]
		if a == nil {
			a = &Away{Name: name, State: state}
			by[state] = a
		}
		if a.Total += p.To.Sub(p.From); !again {
			a.Times++
		}
	}
	for _, state := range slices.Sorted(maps.Keys(by)) {
		if state != serving && state != monitor.VerdictSafe.String() {
			all = append(all, *by[state])
		}
	}
	return all
}
