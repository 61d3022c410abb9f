package observe

import (
	"strings"
	"testing"
	"time"

	"redlockctl/monitor"
	"redlockctl/server/announce"
	"redlockctl/server/safetext"
)

// Whether a fence works is read by the monitor, or taken from the guards if the monitor
// may not read it.
func TestFencesThatAreSeen(t *testing.T) {
	up := map[string]string{"min-replicas-to-write": "2147483647", "min-replicas-max-lag": "10"}
	none := map[string]string{"min-replicas-to-write": "0", "min-replicas-max-lag": "10"}
	with := func(config map[string]string, more ...string) map[string]string {
		all := map[string]string{}
		for k, v := range config {
			all[k] = v
		}
		for i := 0; i < len(more); i += 2 {
			all[more[i]] = more[i+1]
		}
		return all
	}
	master := map[string]string{"role": "master", "redis_version": "7.0.15", "run_id": "a"}
	says := func(f announce.Fence, leak string) *guardsSight {
		return &guardsSight{known: true, all: []announce.Guard{{ID: "g", Delay: time.Second, Fence: f, Leak: safetext.New(leak)}}}
	}
	for name, c := range map[string]struct {
		sight sight
		want  monitor.NodeState
		leak  string
	}{
		"a fence that holds":                     {sight{info: master, config: up}, monitor.NodeFenced, ""},
		"one that a guard has found to leak":     {sight{info: master, config: up, guards: says(announce.FenceLeaks, "scripts write")}, monitor.NodeServing, "scripts write"},
		"one that scripts pass, by the version":  {sight{info: with(master, "redis_version", "6.0.16"), config: up}, monitor.NodeServing, "version 6.0.16"},
		"the same, while it serves":              {sight{info: with(master, "redis_version", "6.0.16"), config: none}, monitor.NodeServing, ""},
		"a writable replica":                     {sight{info: with(master, "role", "slave"), config: with(up, "replica-read-only", "no")}, monitor.NodeWrongRole, "replica"},
		"a replica":                              {sight{info: with(master, "role", "slave"), config: with(up, "replica-read-only", "yes")}, monitor.NodeWrongRole, ""},
		"a user that is fenced":                  {sight{info: master, config: none, fence: &userFenceSight{known: true, fenced: true}}, monitor.NodeFenced, ""},
		"a user that is cordoned":                {sight{info: master, config: none, fence: &userFenceSight{known: true, fenced: true, cordoned: true}}, monitor.NodeCordoned, ""},
		"a user of whom only the guard knows":    {sight{info: master, config: none, fence: &userFenceSight{}, guards: says(announce.FenceUp, "")}, monitor.NodeFenced, ""},
		"a cordon of which only the guard knows": {sight{info: master, config: none, fence: &userFenceSight{known: true, fenced: true}, guards: says(announce.FenceCordoned, "")}, monitor.NodeCordoned, ""},
		"a user that serves, whatever a guard said last": {sight{info: master, config: none, fence: &userFenceSight{known: true}, guards: says(announce.FenceUp, "")},
			monitor.NodeServing, ""},
	} {
		w := newWatch("n1", "addr", time.Time{})
		w.answered(c.sight)
		if w.base != c.want || (w.Leak == "") != (c.leak == "") || !strings.Contains(w.Leak, c.leak) {
			t.Errorf("%s: %s, %q", name, w.base, w.Leak)
		}
	}
}
