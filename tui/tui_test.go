package tui

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"

	"redlockctl/base/race"
	"redlockctl/monitor"
	"redlockctl/monitor/monitortest"
	"redlockctl/server/safetext"
	"redlockctl/tui/action"
	"redlockctl/tui/page"
	"redlockctl/tui/prefs"
)

// terminal receives the program's output.
type terminal struct {
	mu   sync.Mutex
	last bytes.Buffer
	n    int
}

func (w *terminal) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.n += len(b)
	w.last.Reset()
	w.last.Write(b)
	return len(b), nil
}

func (w *terminal) written() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.n
}

// The real program runs for an hour on a cluster that never rests, with keys pressed: it
// does not grow, and it exits when asked to.
func TestAnHour(t *testing.T) {
	race.Skip(t)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		src := newFakeSource(monitortest.Degraded(time.Now()))
		out := &terminal{}
		acts := &fakeActions{err: errFake}
		opt := Options{Cluster: Cluster{Source: src, Guard: fakeGuardStatus(time.Now()), Actions: acts}, Out: out, FPS: 4}
		m := newModel(ctx, opt, time.Now)
		p := newProgram(m, opt, tea.WithFPS(4), tea.WithInput(nil), tea.WithWindowSize(60, 15),
			tea.WithEnvironment([]string{"TERM=xterm-256color"}))
		done := make(chan error, 1)
		go func() { _, err := p.Run(); done <- err }()

		keys := []string{"j", "j", "enter", "k", "s", "tab", "down", "tab", "X", "a", "b", "esc", "?", "esc", "/", "o", "r", "enter", "esc", "space", "space", "G", "g", "esc",
			"2", "m", "W", "o", "esc", "3", "o", "esc", "4", "j", "f", "5", "j", "6", "7", ":", "g", "tab", "enter", "1", "W", "M"}
		var after runtime.MemStats
		grown := func() uint64 {
			runtime.GC()
			runtime.ReadMemStats(&after)
			return after.HeapAlloc
		}
		start := time.Now()
		var early uint64
		var routines int
		seq := uint64(1000)
		for i := 0; time.Since(start) < time.Hour; i++ {
			time.Sleep(10 * time.Second)
			s := monitortest.Degraded(time.Now())
			monitortest.Put(s, monitortest.LockOf(time.Now(), fmt.Sprintf("z-%d", i), monitor.LockState(i%9), monitortest.TokenA, "9 9 9 9 9"))
			for j := range s.Nodes { // nodes that go down, come back and restart
				s.Nodes[j].State, s.Nodes[j].Since, s.Nodes[j].RunID = monitor.NodeState(1+(i+j)%8), time.Now(), fmt.Sprint(i/3)
			}
			for range 30 {
				seq++
				s.Events = append(s.Events, monitor.Event{Seq: seq, At: time.Now(), Level: monitor.Level(seq % 3), Node: "n2", Key: safetext.New("z-1"), Text: safetext.New("z-1 something")})
			}
			src.push(s)
			p.Send(keyPress(keys[i%len(keys)]))
			if i == 90 {
				early, routines = grown(), runtime.NumGoroutine()
			}
		}
		synctest.Wait()
		late := grown()
		if n := runtime.NumGoroutine(); n > routines+2 {
			t.Errorf("the goroutines grew from %d to %d", routines, n)
		}
		if late > early+8<<20 {
			t.Errorf("the heap grew from %d to %d bytes", early, late)
		}
		if out.written() == 0 {
			t.Error("nothing was drawn")
		}
		p.Send(keyPress("ctrl+c"))
		if err := <-done; err != nil {
			t.Error(err)
		}
		cancel()
		m.Running.Close(time.Second)
		if n := len(m.Events.All); m.Events.Seq != seq || n > 3*page.MostEvents || n < page.MostEvents {
			t.Errorf("%d events are kept, the last %d of %d", n, m.Events.Seq, seq)
		}
		for name, past := range m.Past {
			if len(past.Turns) > page.MostTurns || len(past.Offsets) > 2*page.MostOffsets {
				t.Errorf("%s: %d turns and %d offsets are kept", name, len(past.Turns), len(past.Offsets))
			}
		}
		if a, b, c, d := len(m.Lock.Watched.Events), len(m.Before), len(m.prefs.History), len(m.Frozen.Missed); a > 2*page.MostWatched || b > page.MostBefore || c > prefs.MostHistory || d > page.MostChanges {
			t.Errorf("kept: %d events of a lock, %d places, %d commands, %d changes", a, b, c, d)
		}
		if n := len(m.LockView.Cached); n > 15 {
			t.Errorf("%d rows are kept", n)
		}
		// The bubble ends only when all its goroutines have ended.
	})
}

// An idle program writes only whole seconds.
func TestBytesAtRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s := monitortest.Degraded(time.Now())
		for _, l := range monitortest.List(s.Locks) {
			monitortest.Change(&l, func(c *monitor.Copy) {
				if !c.Expires.IsZero() {
					c.Expires = time.Now().Add(90 * time.Second)
				}
			})
			monitortest.Put(s, l.Timed(l.Since(), time.Now().Add(90*time.Second)))
		}
		out := &terminal{}
		opt := Options{Cluster: Cluster{Source: newFakeSource(s), Guard: fakeGuardStatus(time.Now())}, Out: out}
		m := newModel(ctx, opt, time.Now)
		p := newProgram(m, opt, tea.WithInput(nil), tea.WithWindowSize(120, 40),
			tea.WithEnvironment([]string{"TERM=xterm-256color"}))
		done := make(chan error, 1)
		go func() { _, err := p.Run(); done <- err }()
		time.Sleep(5 * time.Second)
		before := out.written()
		time.Sleep(60 * time.Second)
		perSecond := (out.written() - before) / 60
		t.Logf("%d bytes a second", perSecond)
		if perSecond > 2048 {
			t.Errorf("%d bytes a second at rest", perSecond)
		}
		p.Quit()
		if err := <-done; err != nil {
			t.Error(err)
		}
		cancel()
	})
}

// An action that runs when the program ends gets a moment to finish.
func TestRunWaitsForActs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &action.Running{}
		if !r.Begin() {
			t.Fatal("an act may not begin")
		}
		go func() {
			time.Sleep(time.Second)
			r.End()
		}()
		start := time.Now()
		r.Close(time.Minute)
		if d := time.Since(start); d != time.Second {
			t.Errorf("waited %s", d)
		}
		if r.Begin() {
			t.Error("an act began after the end")
		}
		r = &action.Running{}
		r.Begin()
		start = time.Now()
		r.Close(3 * time.Second) // an action that never ends
		if d := time.Since(start); d != 3*time.Second {
			t.Errorf("waited %s", d)
		}
		r.End()
	})
}

// The terminal is restored, also when the context ends; after a panic:
// [TestPanicGivesTheTerminalBack].
func TestTerminalIsRestored(t *testing.T) {
	for _, how := range []string{"context", "quit"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var all lockedBuffer
				opt := Options{Cluster: Cluster{Source: newFakeSource(monitortest.Degraded(time.Now()))}, Out: &all}
				m := newModel(ctx, opt, time.Now)
				p := newProgram(m, opt, tea.WithInput(nil), tea.WithWindowSize(80, 24))
				done := make(chan error, 1)
				go func() { _, err := p.Run(); done <- err }()
				time.Sleep(3 * time.Second)
				switch how {
				case "context":
					cancel()
				case "quit":
					p.Quit()
				}
				if err := <-done; err != nil {
					t.Error(err)
				}
				got := all.String()
				for _, want := range []string{"\x1b[?1049h", "\x1b[?1049l", "\x1b[?25h"} {
					if !bytes.Contains([]byte(got), []byte(want)) {
						t.Errorf("%q was not written", want)
					}
				}
				cancel()
			})
		})
	}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

var _ io.Writer = (*lockedBuffer)(nil)
