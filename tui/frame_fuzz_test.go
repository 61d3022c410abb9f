package tui

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"redlockctl/internal/lockform"
	"redlockctl/internal/safetext"
	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/monitor/monitortest"
	"redlockctl/tui/styles"
)

// A frame is small here, and a console lives for some executions: what a whole
// program makes of hostile text is FuzzNoRawByteLeaves, which is much slower.
const (
	frameWidth, frameHeight = 60, 15
	frameLife               = 64
)

// framed is a console that is drawn, and not run.
func framed(pic *monitor.Snapshot, guard fakeGuard, ascii bool) *model {
	m := newModel(context.Background(), Options{Source: newFakeSource(pic), Guard: guard, Actions: &fakeActions{}, ASCII: ascii, Theme: styles.ThemeNone},
		func() time.Time { return monitortest.Epoch })
	m.Update(tea.WindowSizeMsg{Width: frameWidth, Height: frameHeight})
	return m
}

// checkDrawn wants a frame that fits, of what a terminal shows.
func checkDrawn(t *testing.T, m *model) {
	t.Helper()
	w := watchFrames(m)
	frame := w.View().Content
	if w.odd != "" {
		t.Fatalf("in a frame: %q", w.odd)
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

// small is a picture of one of each, in which all that others can choose is s.
func small(s string) (*monitor.Snapshot, fakeGuard) {
	pic := *monitortest.Degraded(monitortest.Epoch)
	pic.Nodes = pic.Nodes[:1]
	poison(reflect.ValueOf(&pic.Nodes[0]), s)
	l := monitortest.LockOf(monitortest.Epoch, s, monitor.LockSplit, s, "9.8")
	l.Form = &lockform.Form{Library: s, Owner: safetext.New(s), TakingAway: s}
	pic.Locks = monitor.NewLocks(l)
	poison(reflect.ValueOf(&pic.Cluster), s)
	pic.Findings, pic.Events = pic.Findings[:1:1], pic.Events[:1:1]
	poison(reflect.ValueOf(&pic.Findings[0]), s)
	poison(reflect.ValueOf(&pic.Events[0]), s)
	return &pic, fakeGuard{{Node: s, Reason: s, Err: s, Until: monitortest.Epoch.Add(time.Minute)}}
}

// FuzzFrame: whatever stands in keys, tokens, names, errors and events, each page
// fits, and has nothing that a terminal obeys.
func FuzzFrame(f *testing.F) {
	for i, s := range hostileTexts {
		f.Add(s, uint8(i), i%2 == 0)
	}
	pages := []string{"1", "2", "3", "4", "5", "6", "7", "?", "X", "w"}
	f.Fuzz(func(t *testing.T, s string, page uint8, ascii bool) {
		if len(s) > 1<<10 {
			t.Skip("more of the same")
		}
		p, guard := small(s)
		m := framed(p, guard, ascii)
		m.Update(keyPress(pages[int(page)%len(pages)]))
		if page&0x80 != 0 {
			m.Update(keyPress("enter"))
		}
		checkDrawn(t, m)
	})
}

// FuzzKeys: whatever is typed and pasted, the console goes on, its frames fit, and
// nothing is sent to a server by Update itself.
func FuzzKeys(f *testing.F) {
	f.Add("2j\nXabc\x1b", "")
	f.Add("/state:held\n:acquire \x00\n?", "job:\x1b[2J\u202e\n")
	f.Add("2 jjs/\x01\x02\x03\x04\x05\x06\x07q", "\xff\xfe")
	special := make([]string, 0, len(specialKeys))
	for i := range 32 {
		special = append(special, []string{"enter", "esc", "tab", "up", "down", "backspace", "pgdown", "pgup", "home", "end", "left", "right", "space", "ctrl+c", "ctrl+u", "ctrl+w"}[i%16])
	}
	pic := monitortest.Degraded(monitortest.Epoch)
	guard := fakeGuardStatus(monitortest.Epoch)
	var m *model
	life := 0
	f.Fuzz(func(t *testing.T, typed, pasted string) {
		if len(typed) > 64 || len(pasted) > 1<<10 {
			t.Skip("more of the same")
		}
		if life--; life < 0 {
			m, life = framed(pic, guard, false), frameLife
		}
		for i, r := range typed {
			switch {
			case r < ' ':
				m.Update(keyPress(special[r]))
			case r == 0x7f:
				m.Update(tea.PasteMsg{Content: pasted})
			default:
				m.Update(tea.KeyPressMsg{Code: r, Text: string(r)})
			}
			if i == len(typed)/2 {
				m.Update(tea.PasteMsg{Content: pasted})
			}
		}
		checkDrawn(t, m)
	})
}
