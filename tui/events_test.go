package tui

import (
	"strings"
	"testing"
	"time"

	"redlockctl/monitor"
	"redlockctl/monitor/monitortest"
	"redlockctl/server/safetext"
	"redlockctl/tui/page"
)

// A hundred acquisitions do not push out a restart.
func TestEventsOfWeightStay(t *testing.T) {
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 60, 15)
	r.sees("n2 started fenced")
	r.seesNot("job:019 acquired")
}

func TestEventsFollow(t *testing.T) {
	r := newRig(t, monitortest.Degraded(monitortest.Epoch), 120, 40)
	r.press("4")
	r.sees("following", "f stay here")
	more := func(n int) {
		s := monitortest.Degraded(monitortest.Epoch)
		for i := range n {
			s.Events = append(s.Events, monitor.Event{Seq: r.m.Events.Seq + 1 + uint64(i), At: monitortest.Epoch, Level: monitor.LevelInfo, Kind: "acquired", Key: safetext.New("x"), Text: safetext.New("x acquired")})
		}
		r.push(s)
	}
	r.press("down", "down")
	r.seesNot("following")
	r.sees("f follow the newest")
	at := r.m.Events.Selected().Seq
	more(5)
	if got := r.m.Events.Selected().Seq; got != at {
		t.Errorf("the cursor slid from event %d to %d", at, got)
	}
	r.press("f")
	more(5)
	if got := r.m.Events.Selected().Seq; got != r.m.Events.Seq {
		t.Errorf("the newest is not followed: %d of %d", got, r.m.Events.Seq)
	}
	r.press("space") // frozen: new events are kept but not shown
	before := r.m.Events.List().Len()
	more(7)
	if n := r.m.Events.List().Len(); n != before {
		t.Errorf("%d events are listed in a frozen screen, not %d", n, before)
	}
	r.press("space")
	if n := r.m.Events.List().Len(); n != before+7 {
		t.Errorf("%d events after it, not %d", n, before+7)
	}
	r.press("/")
	r.typed("kind:restart")
	r.sees("1 of ")
	r.press("enter", "enter")
	r.sees("restart, node n2")
	r.press("o")
	r.where(page.Node)
}

// Important events are kept whatever else happens, up to a limit.
func TestEventsAreBounded(t *testing.T) {
	et := page.New(&page.Screen{}, monitortest.Epoch, nil, nil).Events
	et.Add([]monitor.Event{{Seq: 1, Level: monitor.LevelAlarm, Text: safetext.New("the one that matters")}})
	for i := range 20 {
		var batch []monitor.Event
		for k := range 1000 {
			batch = append(batch, monitor.Event{Seq: uint64(2 + i*1000 + k)})
		}
		et.Add(batch)
		et.Add(batch) // events already seen are not added twice
	}
	if n := len(et.All); n > 3*page.MostEvents || et.All[0].Seq != 1 || et.Seq != 20001 {
		t.Errorf("%d events, the first is %d, the last %d", n, et.All[0].Seq, et.Seq)
	}
}

// A folded event unfolds on the overview as on the page of events: tab focuses the
// events, enter shows the cost of a restart.
func TestEventsUnfoldOnTheOverview(t *testing.T) {
	s := monitortest.Degraded(monitortest.Epoch)
	for i := range s.Events {
		if e := &s.Events[i]; e.Kind == "restart" {
			e.Cost = &monitor.RestartCost{Lost: 3, Bare: 1, Locks: []safetext.Text{safetext.New("orders:42"), safetext.New("import")}}
		}
	}
	r := newRig(t, s, 120, 40)
	r.press("tab", "tab")
	for range 12 {
		if e := r.m.selected().Event; e != nil && e.Kind == "restart" {
			break
		}
		r.press("down")
	}
	r.press("enter")
	r.sees("notice, restart, node n2", "locks orders:42, import and 1 more")
	r.press("enter", "tab", "o")
	r.where(page.Lock)
	r.press("esc", "tab", "tab", "o") // the subject of the event
	r.where(page.Node)
}

// The newest event of a lock and of a node is the first, as on the page of events.
func TestTheNewestEventIsFirst(t *testing.T) {
	s := monitortest.Degraded(monitortest.Epoch)
	last := s.Events[len(s.Events)-1].Seq
	for i, text := range []string{"first thing", "second thing"} {
		at := monitortest.Epoch.Add(time.Duration(i) * time.Second)
		s.Events = append(s.Events, monitor.Event{Seq: last + 1 + uint64(i), At: at, Level: monitor.LevelNotice, Kind: "extended", Key: safetext.New("orders:42"), Node: "n2", Text: safetext.New(text)})
	}
	for _, size := range [][2]int{{100, 40}, {200, 60}} {
		r := newRig(t, s, size[0], size[1])
		for _, command := range []string{":locks orders:42", ":nodes n2"} {
			r.press(":")
			r.typed(command[1:])
			r.press("enter")
			screen := r.screen()
			if first, second := strings.Index(screen, "first thing"), strings.Index(screen, "second thing"); second < 0 || first < second {
				t.Errorf("%s at %v: the older one is first:\n%s", command, size, screen)
			}
		}
	}
}

// A split is one line: its finding is not a second one beside its alarm. What is cleared is
// no alarm, and routine events are on their own page only.
func TestOneCauseIsOneLine(t *testing.T) {
	s := monitortest.Degraded(monitortest.Epoch)
	s.Events = nil
	event := func(seq uint64, level monitor.Level, kind, text string) {
		s.Events = append(s.Events, monitor.Event{Seq: seq, At: monitortest.Epoch, Level: level, Kind: kind, Key: safetext.New("import"), Text: safetext.New(text)})
	}
	event(1, monitor.LevelInfo, "acquired", "acquired by somebody")
	r := newRig(t, s, 100, 40)
	r.sees("nothing here that needs you; 4 has all events")
	event(2, monitor.LevelAlarm, "split", "several tokens at once")
	event(3, monitor.LevelAlarm, "finding opened", "two clients may rely on one lock [danger split-lock]")
	event(4, monitor.LevelNotice, "finding closed", "cleared: two clients may rely on one lock [danger split-lock]")
	r.push(s)
	r.sees("import: several tokens at once", "cleared: two clients")
	r.seesNot("import: two clients may rely", "acquired by somebody", "! import: cleared")
	r.press("4")
	r.sees("import: several tokens at once", "cleared: two clients", "acquired by somebody")
	r.seesNot("import: two clients may rely")
	r.press("/")
	r.typed("kind:finding")
	r.press("enter")
	r.sees("import: two clients may rely")
}
