package tui

import (
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"redlockctl/monitor"
	"redlockctl/monitor/monitortest"
	"redlockctl/tui/page"
	"redlockctl/tui/source"
)

// A lock that the next client has: its page says until when the former holder may rely on it.
func TestForceReleasedLockOfTheNextClient(t *testing.T) {
	const said = "it was force-released at 22:14:01 by ops@host: host burnt; its holder may rely on it until 22:15:00"
	end := monitortest.Epoch.Add(10 * time.Second)
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40, func(o *Options) {
		o.ForceReleased = func(lock string, l *monitor.Lock, now time.Time) string {
			if lock == "orders:42" && l != nil && l.ReliedOn() && now.Before(end) {
				return said
			}
			return ""
		}
	})
	r.press(":")
	r.typed("locks orders:42")
	_, cmd := r.m.Update(keyPress("enter"))
	r.where(page.Lock)
	r.told(cmd)
	r.sees("Earlier", said)
	r.clock = end
	if r.told(r.m.askRemoval()) != 1 || r.told(r.m.askRemoval()) != 0 {
		t.Error("it is not asked once again")
	}
	r.seesNot("force-released")
}

// told runs the background work of a message, and shows what it says of removals; it returns how often it
// was asked.
func (r *rig) told(cmd tea.Cmd) (n int) {
	if cmd == nil {
		return 0
	}
	switch msg := cmd().(type) {
	case tea.BatchMsg:
		for _, one := range msg {
			n += r.told(one)
		}
	case source.RemovalMsg:
		r.m.Update(msg)
		n++
	}
	r.m.View()
	return n
}

// A lock that was force-released: its page and :locks NAME say until when its holder may rely on it.
func TestForceReleasedLock(t *testing.T) {
	const said = "it was force-released at 22:14:01 by ops@host: host burnt; its holder may rely on it until 22:15:00"
	end := monitortest.Epoch.Add(10 * time.Second)
	known := func(o *Options) {
		o.ForceReleased = func(lock string, l *monitor.Lock, now time.Time) string {
			if lock == "orders:42" && l == nil && now.Before(end) {
				return said
			}
			return ""
		}
	}
	for _, size := range [][2]int{{80, 24}, {120, 40}} {
		r := newRig(t, monitortest.Degraded(monitortest.Epoch), size[0], size[1], known)
		r.press(":")
		r.typed("locks orders:42")
		_, cmd := r.m.Update(keyPress("enter"))
		r.where(page.Lock)
		r.told(cmd)
		s := monitortest.Degraded(monitortest.Epoch)
		s.Locks = monitor.Locks{}
		r.m.Receive(s, nil, false, nil)
		r.clock = monitortest.Epoch.Add(time.Second)
		_, cmd = r.m.Update(keyPress("down"))
		if r.told(cmd) != 1 {
			t.Error("a page whose lock is gone does not ask")
		}
		r.sees("gone: no node that answers has a copy of it", said)

		r.press("esc", ":")
		r.typed("locks orders:42")
		_, cmd = r.m.Update(keyPress("enter"))
		r.where(page.Overview)
		r.told(cmd)
		r.where(page.Lock)
		r.sees("gone: no node that answers has a copy of it", said)
		r.clock = end
		if r.told(r.m.askRemoval()) != 1 || r.told(r.m.askRemoval()) != 0 {
			t.Error("it is not asked once again")
		}
		r.seesNot("force-released")

		r.press("esc", ":")
		r.typed("locks orders:42")
		_, cmd = r.m.Update(keyPress("enter"))
		r.told(cmd)
		r.where(page.Overview)
		r.sees("there is no lock orders:42")
	}
}

// A dialog whose lock somebody else has force-released says so, and until when the holder may rely on it.
func TestADialogThatWasOvertaken(t *testing.T) {
	const said = "it was force-released at 22:14:01 by ops@host: host burnt; its holder may rely on it until 22:15:00"
	for _, size := range [][2]int{{80, 24}, {120, 40}} {
		r := newRig(t, monitortest.Degraded(monitortest.Epoch), size[0], size[1], func(o *Options) {
			o.ForceReleased = func(lock string, l *monitor.Lock, now time.Time) string {
				if lock == "orders:42" && l == nil {
					return said
				}
				return ""
			}
		})
		r.press(":")
		r.typed("force-release orders:42")
		_, cmd := r.m.Update(keyPress("enter"))
		r.told(cmd)
		r.sees("Force-release orders:42?")
		r.seesNot("Earlier")
		s := monitortest.Degraded(monitortest.Epoch)
		monitortest.Drop(s, "orders:42")
		r.m.Receive(s, nil, false, nil)
		r.clock = r.clock.Add(time.Second)
		_, cmd = r.m.Update(keyPress("x"))
		if r.told(cmd) != 1 {
			t.Error("a dialog whose lock is gone does not ask")
		}
		r.sees("Copies gone", "Earlier "+said, "the lock is gone: there is nothing to remove")
		r.seesNot("Liveness")
	}
}

// Of a lock whose copies may all be on nodes that do not answer, the page does not say that it is gone.
func TestALockThatIsNotSeenIsNotGone(t *testing.T) {
	for silent, want := range []string{"gone: no node has a copy of it", "gone: no node that answers has a copy of it", 3: "not seen: no node that answers has a copy of it"} {
		if want == "" {
			continue
		}
		s := monitortest.Safe(monitortest.Epoch)
		r := newRig(t, s, 80, 24)
		r.m.open(page.Lock, "orders:42")
		gone := monitortest.Safe(monitortest.Epoch)
		for i := range silent {
			gone.Nodes[i].State = monitor.NodeSlow
		}
		gone.Locks = monitor.Locks{}
		r.push(gone)
		r.sees(want)
	}
}
