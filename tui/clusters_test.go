package tui

import (
	"context"
	"testing"
	"time"

	"redlockctl/internal/view"
	"redlockctl/monitor/monitortest"
	"redlockctl/tui/action"
	"redlockctl/tui/page"
	"redlockctl/tui/source"
)

type fakeClusters struct {
	err     error
	next    Cluster
	watched []context.Context
}

func (c *fakeClusters) Names() []string { return []string{"prod", "test"} }

func (c *fakeClusters) Open(_ context.Context, name string) (Cluster, error) {
	return c.next, c.err
}

func (c *fakeClusters) Watch(ctx context.Context) func() []view.ClusterRow {
	c.watched = append(c.watched, ctx)
	other := monitortest.Safe(monitortest.Epoch)
	other.Complete = false
	return func() []view.ClusterRow {
		return []view.ClusterRow{
			{Name: "prod-locks", Snap: monitortest.Degraded(monitortest.Epoch), Delay: 30350 * time.Millisecond},
			{Name: "test", Snap: other, Delay: time.Minute},
			{Name: "broken", Err: "no password"},
		}
	}
}

// All clusters are watched while their page is shown; enter switches to another one.
func TestClustersPage(t *testing.T) {
	all := &fakeClusters{next: Cluster{Source: newFakeSource(monitortest.Safe(monitortest.Epoch)), Actions: &fakeActions{readOnly: true}}}
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40, func(o *Options) { o.Clusters, o.Guard = all, nil })
	open := func() {
		r.press(":")
		r.typed("clusters")
		r.press("enter")
		r.run()
	}
	open()
	r.sees("Clusters 3", "prod-locks", "broken", "no password", "SERVING")
	if got := r.m.Set.Clusters.Selected().Cluster; got != "prod-locks" {
		t.Errorf("the cursor is on %q", got)
	}
	r.press("esc")
	r.where(page.Overview)
	if all.watched[0].Err() == nil {
		t.Error("the clusters are looked at although nobody sees them")
	}
	open()
	r.press("enter")
	r.where(page.Overview)
	r.pending = nil
	open()
	r.press("down", "enter")
	r.run()
	r.sees("this is test")
	if last := all.watched[len(all.watched)-1]; len(all.watched) != 3 || last.Err() == nil {
		t.Errorf("%d looks, and the last goes on", len(all.watched))
	}
}

func TestAnotherCluster(t *testing.T) {
	other := monitortest.Safe(monitortest.Epoch)
	other.Cluster.Name = "the-other"
	all := &fakeClusters{next: Cluster{Source: newFakeSource(other), Actions: &fakeActions{readOnly: true}}}
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40, func(o *Options) { o.Clusters = all })
	change := func() {
		r.press(":")
		r.typed("cluster test")
		_, cmd := r.m.Update(keyPress("enter"))
		if cmd != nil {
			r.m.Update(cmd())
		}
		r.m.View()
	}
	r.m.Mine["job:001"] = action.Grant{Key: "job:001", Token: monitortest.TokenB, Until: monitortest.Epoch.Add(time.Minute)}
	change()
	r.sees("prod-locks", "1 lock acquired here: release them first")
	clear(r.m.Mine)
	all.err = errFake
	change()
	r.sees("prod-locks", "test cannot be opened: NOPERM")
	all.err = nil
	r.press("3")
	old := r.m.feed
	change()
	r.where(page.Overview)
	r.sees("the-other", "this is test", "orders:42")
	r.seesNot("stuck", "n2 fenced")
	r.press("a")
	r.sees("read-only")
	// Late messages of the old cluster are not shown.
	r.m.Update(source.SnapshotMsg{Turn: old.Turn, Snap: monitortest.Degraded(monitortest.Epoch)})
	r.m.Update(source.TickMsg{Turn: old.Turn, Guard: source.GuardState{ID: "own", Status: fakeGuardStatus(monitortest.Epoch)}})
	r.m.dirty = true
	r.seesNot("stuck")
}

// Switching to another cluster also ends the guard in the console.
func TestAnotherClusterAsksWhereNobodyElseGuards(t *testing.T) {
	all := &fakeClusters{next: Cluster{Source: newFakeSource(monitortest.Safe(monitortest.Epoch)), Actions: &fakeActions{}}}
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40, func(o *Options) { o.Clusters, o.Lab = all, nil })
	r.press(":")
	r.typed("cluster test")
	r.press("enter")
	r.sees("Change to test?", "n2 (18s) waits", "only one")
	r.pending = nil
	r.settle()
	r.press("enter")
	if len(r.pending) != 1 {
		t.Fatal("enter does nothing")
	}
	r.run()
	r.sees("this is test")
	if r.m.Dialog != nil {
		t.Error("the dialog is still there")
	}
}

// While another cluster is being opened nothing can be done on this one: its dialog would
// close in the middle of a word, and a lock that is acquired would be left behind.
func TestNoActionWhileAnotherClusterIsOpened(t *testing.T) {
	all := &fakeClusters{err: errFake}
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40, func(o *Options) { o.Clusters = all })
	r.press(":")
	r.typed("cluster test")
	r.press("enter")
	for _, keys := range [][]string{{"a"}, {"X"}, {"3", "C"}} {
		r.press(keys...)
		r.refused("another cluster is being opened")
	}
	r.run()
	r.sees("test cannot be opened")
	r.press("a")
	r.sees("Acquire a lock by hand")
}
