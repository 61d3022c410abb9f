package app

import (
	"slices"
	"sync"

	"redlockctl/internal/audit"
	"redlockctl/internal/operator"
	"redlockctl/monitor"
)

// cordonLog knows by an audit log who cordoned the nodes of a cluster. It is safe for concurrent use.
type cordonLog struct {
	lines   *auditLines
	cluster string

	mu   sync.Mutex
	acts map[string][]cordonAct // by node: the latest one that had an effect, and later ones
}

// cordonAct is an action on whether a node has a vote.
type cordonAct struct {
	monitor.Cordon
	id     string
	effect bool // it is known to have had one
}

func followCordons(lines *auditLines, cluster string) *cordonLog {
	c := &cordonLog{lines: lines, cluster: cluster, acts: map[string][]cordonAct{}}
	lines.takes = append(lines.takes, c.take)
	return c
}

// now returns the last cordon of each node, unless somebody ended it. The first call reads the whole log.
func (c *cordonLog) now() map[string]monitor.Cordon {
	c.lines.read()
	c.mu.Lock()
	defer c.mu.Unlock()
	all := map[string]monitor.Cordon{}
	for node, acts := range c.acts {
		for _, a := range slices.Backward(acts) {
			if a.KeepsOut() {
				all[node] = a.Cordon
			}
			if a.KeepsOut() || a.effect {
				break
			}
		}
	}
	return all
}

// take takes a line of the log.
func (c *cordonLog) take(r *audit.Record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.Cluster != c.cluster {
		return
	}
	acts := c.acts[r.Target]
	if r.Act == "node restart" && len(acts) > 0 {
		acts[len(acts)-1].Stopped = r.Phase == audit.Failed
	}
	if !r.OnNode() {
		return
	}
	i := slices.IndexFunc(acts, func(a cordonAct) bool { return a.id == r.ID })
	switch {
	case i < 0 && r.Phase == audit.Failed:
	case i < 0:
		acts = append(acts, cordonAct{monitor.Cordon{Action: actionOf(*r), Restart: operator.RestartIn(r.Detail)}, r.ID, r.Phase == audit.Done})
	case r.Phase != audit.Failed: // a second intent says that the node is cordoned, and waits until it is empty
		acts[i].effect = true
		acts = slices.Delete(acts, 0, i)
	case acts[i].effect:
		acts[i].Stopped = true
	default:
		acts = slices.Delete(acts, i, i+1)
	}
	c.acts[r.Target] = acts
}
