package observe

import (
	"strings"
	"testing"
	"time"

	"redlockctl/monitor"
	"redlockctl/monitor/table"
	"redlockctl/server/announce"
)

// A cordon outlives a restart: its node rejoins when an operator says so, not by time alone. Events
// name that operator.
func TestACordonOutlivesARestart(t *testing.T) {
	now := time.Now()
	acted := monitor.Action{Act: "node drain", Actor: "ops@host", Reason: "upgrade"}
	w := newTestWorldWith(t, Options{ActedOn: func(node string) (monitor.Action, bool) { return acted, node == "n1" }}, now, "n1", "n2")
	guards := &guardsSight{known: true, all: []announce.Guard{{ID: "g", Delay: 30 * time.Second}}}
	see := func(after time.Duration, run, value string) *watch {
		at := now.Add(after)
		w.answered(1, sight{sent: at, received: at, server: at, info: master("run_id", "other"), config: fence("0"), guards: guards}, at)
		w.answered(0, sight{sent: at, received: at, server: at, info: master("run_id", run, "uptime_in_seconds", "0"), config: fence(value), guards: guards}, at)
		return w.nodes[0]
	}
	told := func(kind string) (texts []string) {
		for _, e := range w.events.latest() {
			if e.Kind == kind && !e.Part {
				texts = append(texts, e.Text.Raw())
			}
		}
		return texts
	}
	see(0, "one", "0")
	see(time.Second, "one", "2147483646")
	see(20*time.Second, "two", "2147483647") // the guard has not seen it yet
	n := see(20*time.Second+100*time.Millisecond, "two", "2147483646")
	if n.State != monitor.NodeCordoned || !n.Since.Equal(now.Add(time.Second)) {
		t.Errorf("%s since %s", n.State, n.Since.Sub(now))
	}
	if got := told("cordoned"); len(got) != 1 || !strings.HasSuffix(got[0], "no guard lets it rejoin; node drain by ops@host: upgrade") {
		t.Errorf("%q", got)
	}
	w.toldRestart(0, monitor.RestartCost{}, now.Add(21*time.Second))
	if got := told("restart"); len(got) != 1 || strings.Contains(got[0], "· rejoins") || !strings.HasSuffix(got[0], ": it rejoins after redlockctl node uncordon n1") {
		t.Errorf("%q", got)
	}
	acted = monitor.Action{Act: "node uncordon", Actor: "ops@host", Reason: "back"}
	see(20*time.Second+200*time.Millisecond, "two", "2147483647")
	if got := told("fenced"); len(got) != 1 || !strings.HasSuffix(got[0], "; node uncordon by ops@host: back") {
		t.Errorf("%q", got)
	}
	see(31*time.Second, "two", "0")
	if got := told("rejoined"); len(got) != 1 || got[0] != "n1 accepts writes again" {
		t.Errorf("%q", got)
	}
	if n := see(90*time.Second, "two", "2147483646"); !n.Since.Equal(now.Add(90 * time.Second)) {
		t.Errorf("another cordon is said to last since %s", n.Since.Sub(now))
	}
}

// A cordoned node says how many copies are left, and when the last one expires.
func TestACordonedNodeSaysWhenItIsEmpty(t *testing.T) {
	now := time.Now()
	w := newTestWorld(t, now, "n1")
	read := func(at time.Time, second time.Duration) *monitor.Node {
		w.answered(0, sight{sent: at, received: at, info: master(), config: fence("2147483646")}, at)
		w.read(0, "one", at, at, []table.Row{
			{Key: "a", Type: "string", TTL: 5 * time.Second, Len: 1, Prefix: "a"}, {Key: "b", Type: "string", TTL: second, Len: 1, Prefix: "b"},
		})
		w.scanned(0, "one", w.table.Epoch(0), at, at)
		return &w.snapshot(at, 1).Nodes[0]
	}
	if n := read(now, 20*time.Second); n.Locks != 2 || n.CopiesUntil.Sub(now.Add(20*time.Second)).Abs() > 10*time.Millisecond {
		t.Errorf("%d until %s", n.Locks, n.CopiesUntil.Sub(now))
	}
	// What was extended before the cordon is read a moment later.
	later := now.Add(1100 * time.Millisecond)
	if n := read(later, 30*time.Second); n.CopiesUntil.Sub(later.Add(30*time.Second)).Abs() > 10*time.Millisecond {
		t.Errorf("extended: until %s", n.CopiesUntil.Sub(later))
	}
	if n := read(later.Add(1100*time.Millisecond), -time.Millisecond); !n.CopiesUntil.IsZero() {
		t.Errorf("no TTL: until %s", n.CopiesUntil.Sub(later))
	}
}
