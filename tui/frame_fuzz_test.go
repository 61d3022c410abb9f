package tui

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/monitor/monitortest"
	"redlockctl/restartguard"
	"redlockctl/server/lockform"
	"redlockctl/server/safetext"
	"redlockctl/tui/source"
	"redlockctl/tui/styles"
)

// A frame is small here, and a console is reused for some executions. TestNoRawByteLeaves
// covers the output of the whole program, which is much slower.
const (
	frameWidth, frameHeight = 60, 15
	frameLife               = 64
)

// frames draws a console without running it, and makes a new one now and then.
type frames struct {
	*watchedFrames
	pic   *monitor.Snapshot
	guard fakeGuard
	ascii bool
	life  int
}

// console returns the present one.
func (f *frames) console() *model {
	if f.life--; f.life < 0 {
		f.life = frameLife
		m := newModel(context.Background(), Options{Cluster: Cluster{Source: newFakeSource(f.pic), Guard: f.guard, Actions: &fakeActions{}}, ASCII: f.ascii, Theme: styles.ThemeNone},
			func() time.Time { return monitortest.Epoch })
		m.Update(tea.WindowSizeMsg{Width: frameWidth, Height: frameHeight})
		f.watchedFrames = watchFrames(m)
	}
	return f.model
}

// check requires a frame that fits and contains only what a terminal shows.
func (f *frames) check(t *testing.T) {
	t.Helper()
	frame := f.View().Content
	if f.odd != "" {
		t.Fatalf("in a frame: %q", f.odd)
	}
	lines := strings.Split(frame, "\n")
	if len(lines) > frameHeight {
		t.Fatalf("%d lines on a screen of %d", len(lines), frameHeight)
	}
	for _, line := range lines {
		if n := view.Width(line); n > frameWidth {
			t.Fatalf("%d cells on a screen of %d: %q", n, frameWidth, line)
		}
	}
}

// small is a snapshot with one of each kind, in which [fill] sets the texts that others
// can choose.
func small() *monitor.Snapshot {
	pic := monitortest.Degraded(monitortest.Epoch)
	pic.Nodes, pic.Findings, pic.Events = pic.Nodes[:1], pic.Findings[:1:1], pic.Events[:1:1]
	return pic
}

// fill sets all those texts to s.
func fill(pic *monitor.Snapshot, s string) source.SnapshotMsg {
	next := *pic
	l := monitortest.LockOf(monitortest.Epoch, s, monitor.LockSplit, s, "9.8")
	l.Form = &lockform.Form{Library: s, Owner: safetext.New(s), TakingAway: s}
	next.Locks = monitor.NewLocks(l)
	for _, v := range []any{&next.Nodes[0], &next.Cluster, &next.Findings[0], &next.Events[0]} {
		poison(reflect.ValueOf(v), s)
	}
	return source.SnapshotMsg{Snap: &next, Guard: source.GuardState{ID: "g", Status: []restartguard.NodeStatus{{Node: s, Reason: s, Err: s, Until: monitortest.Epoch.Add(time.Minute)}}}, Events: next.Events}
}

// FuzzFrame: whatever keys, tokens, names, errors and events contain, each page fits and
// contains nothing that a terminal would obey.
func FuzzFrame(f *testing.F) {
	for i, s := range hostileTexts {
		f.Add(s, uint8(i), i%2 == 0)
	}
	pages := []string{"1", "2", "3", "4", "5", "6", "7", "?", "X", "W"}
	pic := small()
	consoles := map[bool]*frames{true: {pic: pic, ascii: true}, false: {pic: pic}}
	f.Fuzz(func(t *testing.T, s string, page uint8, ascii bool) {
		if len(s) > 256 {
			t.Skip("more of the same")
		}
		c := consoles[ascii]
		m := c.console()
		m.Update(fill(pic, s))
		m.Update(keyPress(pages[int(page)%len(pages)]))
		if page&0x80 != 0 {
			m.Update(keyPress("enter"))
		}
		c.check(t)
		m.Update(keyPress("esc"))
		m.Update(keyPress("esc"))
	})
}

// FuzzKeys: whatever is typed and pasted, the console continues, its frames fit, and
// Update itself sends nothing to a server.
func FuzzKeys(f *testing.F) {
	f.Add("2j\nXabc\x1b", "")
	f.Add("/state:held\n:acquire \x00\n?", "job:\x1b[2J\u202e\n")
	f.Add("2 jjs/\x01\x02\x03\x04\x05\x06\x07q", "\xff\xfe")
	special := []string{"enter", "esc", "tab", "up", "down", "backspace", "pgdown", "pgup", "home", "end", "left", "right", "space", "ctrl+c", "ctrl+u", "ctrl+w"}
	console := frames{pic: small(), guard: fakeGuardStatus(monitortest.Epoch)}
	f.Fuzz(func(t *testing.T, typed, pasted string) {
		if len(typed) > 32 || len(pasted) > 256 {
			t.Skip("more of the same")
		}
		m := console.console()
		for i, r := range typed {
			switch {
			case r < ' ':
				m.Update(keyPress(special[int(r)%len(special)]))
			case r == 0x7f:
				m.Update(tea.PasteMsg{Content: pasted})
			default:
				m.Update(tea.KeyPressMsg{Code: r, Text: string(r)})
			}
			if i == len(typed)/2 {
				m.Update(tea.PasteMsg{Content: pasted})
			}
		}
		console.check(t)
	})
}
