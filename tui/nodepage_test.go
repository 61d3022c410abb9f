package tui

import (
	"strings"
	"testing"
	"time"

	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/monitor/monitortest"
)

// anHour has measurements of an hour with a good start, a slow minute and a minute
// without answers.
func anHour(end time.Time) (minutes []monitor.Minute) {
	ms := time.Millisecond
	for i := range 60 {
		one := monitor.Minute{At: end.Add(time.Duration(i-60) * time.Minute), Answered: 600, Least: ms / 5, Mean: ms / 2, Most: ms,
			Offset: monitor.Estimate{Valid: true, Offset: time.Duration(i) * ms, Bound: ms / 10}}
		switch i {
		case 20:
			one.Most = 42 * ms
		case 40:
			one = monitor.Minute{At: one.At, Failed: 7}
		}
		minutes = append(minutes, one)
	}
	return minutes
}

// The page of a node says how it was an hour ago, and when it was worst.
func TestNodePageTellsOfAnHourAgo(t *testing.T) {
	for _, w := range []int{60, 80, 200} {
		s := monitortest.Degraded(monitortest.Epoch)
		s.Nodes[0].Minutes = anHour(monitortest.Epoch)
		r := newRig(t, s, w, 60)
		r.press("3", "o")
		r.sees("RTT at 11:03 0.2ms to 1.0ms, mean 0.5ms; the longest 42.0ms at 11:23",
			"clock at 11:03 +0.0 ±0.1 ms", "7 of 35,407 probes unanswered, the last at 11:43")
		if line := r.m.Node.Hour(s.Nodes[0].Minutes, 60)[0]; !strings.Contains(line, strings.Repeat("▁", 40)+" "+strings.Repeat("▁", 19)) {
			t.Errorf("a minute without an answer is no gap: %q", line)
		}
		checkFrame(t, r.m.View().Content, w, 60, false)
		r.press("3", "down", "down", "o") // n3 has not been watched for long enough
		r.seesNot("probes unanswered", "Hour")
	}
}

// At 80 columns, a long reason of the guard loses whole clauses, and never displaces RTT.
func TestALongReasonLeavesRTTItsRoom(t *testing.T) {
	long := func(o *Options) {
		g := fakeGuardStatus(monitortest.Epoch)
		g[1].Reason = "restarted, 1,180 copies lost, 12 of them of locks that are still held"
		o.Guard = g
	}
	for _, page := range []string{"1", "3"} {
		r := newRig(t, monitortest.Degraded(monitortest.Epoch), 80, 24, long)
		r.press(page)
		if head := lineWith(r.screen(), "STATE"); !strings.Contains(head, "RTT") || !strings.Contains(head, "LOCKS") {
			t.Errorf("page %s: %s", page, head)
		}
		if line := lineWith(r.screen(), "█"); !strings.HasSuffix(strings.TrimSpace(line), "18s, restarted") {
			t.Errorf("page %s: %s", page, line)
		}
	}
}

// One time axis: a copy that outlives the majority marks the majority's end.
func TestMajorityEndIsMarkedOnTheAxis(t *testing.T) {
	s := monitortest.Degraded(monitortest.Epoch)
	monitortest.Put(s, monitortest.LockOf(monitortest.Epoch, "uneven", monitor.LockHeld, monitortest.TokenA, "30 20 10 5 -"))
	r := newRig(t, s, 100, 40)
	r.press(":")
	r.typed("lock uneven")
	r.press("enter")
	r.sees("the majority ends here")
	var at []int
	for l := range strings.SplitSeq(r.screen(), "\n") {
		if i := strings.Index(l, r.m.St.Here); i >= 0 {
			at = append(at, view.Width(l[:i]))
		}
	}
	var end int
	for l := range strings.SplitSeq(r.screen(), "\n") {
		if before, _, ok := strings.Cut(l, " 10.0s "+r.m.St.Points); ok {
			end = view.Width(before)
		}
	}
	if len(at) != 2 || at[0] != end || at[1] != end {
		t.Errorf("the two longer copies are marked at %v, the majority ends at %d:\n%s", at, end, r.screen())
	}
}

// A lock without TTL never expires: it has no time axis, even if there was one before.
// There is one if only some of its copies have no TTL.
func TestALockWithoutTTLHasNoAxis(t *testing.T) {
	put := func(copies string) *monitor.Snapshot {
		s := monitortest.Degraded(monitortest.Epoch)
		monitortest.Put(s, monitortest.LockOf(monitortest.Epoch, "endless", monitor.LockNoTTL, monitortest.TokenA, copies))
		return s
	}
	r := newRig(t, put("30 30 30 - -"), 100, 40)
	r.press(":")
	r.typed("lock endless")
	r.press("enter")
	r.sees("15s", "30s", r.m.St.Full)
	r.push(put("i i i - -"))
	r.sees("never expires: no TTL", "n1 "+r.m.St.NodeState(monitor.NodeServing).Sign+" no TTL")
	r.seesNot("15s", "30s", r.m.St.Full)
	r.push(put("i i 5 - -"))
	r.sees("3s", r.m.St.Full)
}

// The page of the lab says which actions are possible on the node under the cursor, even
// while the result of the last action is shown.
func TestLabPageUnderADialog(t *testing.T) {
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40)
	r.press("7", "c")
	r.seesNot("off: go to the nodes")
	r.settle()
	r.press("enter")
	r.run()
	r.sees("crash n1: done", "lost votes without a restart")
	r.seesNot("off: go to the nodes")
}
