package cli

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"redlockctl/internal/safetext"
	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/monitor/observe"
)

// barWidth is how many cells a bar has.
const barWidth = 24

// progress says on standard error what is being waited for, from the second
// second on and on a terminal only, and wipes it away when done is called. What
// is told never reaches a pipe.
func (a *commandLine) progress(what string) (done func()) {
	return a.bar(func(took time.Duration) string {
		return fmt.Sprintf("%s, %ds", a.clip(safetext.Printable(what), 60), int(took.Seconds()))
	}).end
}

// progressFor is progress of something that takes so long.
func (a *commandLine) progressFor(what string, all time.Duration) (done func()) {
	return a.bar(func(took time.Duration) string {
		took = min(took, all)
		return fmt.Sprintf("%s %s %s left", a.clip(safetext.Printable(what), 60), a.barOf(float64(took)/float64(all)), view.Left(all-took))
	}).end
}

// progressOf is progress of n things, one by one. step says how many are done;
// other text is written by [bar.aside].
func (a *commandLine) progressOf(what string, n int) (step func(int), b *bar) {
	var mu sync.Mutex
	reached := 0
	b = a.bar(func(time.Duration) string {
		mu.Lock()
		defer mu.Unlock()
		return fmt.Sprintf("%s %s %d of %d", a.clip(safetext.Printable(what), 60), a.barOf(float64(reached)/float64(n)), reached, n)
	})
	return func(i int) {
		mu.Lock()
		reached = i
		mu.Unlock()
		b.redraw()
	}, b
}

// Where standard error is no terminal, a line is written when reading takes long.
const (
	firstReport = 5 * time.Second
	nextReport  = 10 * time.Second
)

// reading says on standard error how much of all keys a monitor has read: on a
// terminal a bar from the second second on, elsewhere a line once in a while.
func (a *commandLine) reading(mon *observe.Monitor) (done func()) {
	far := func(with func(*view.Glyphs, monitor.Reading, *monitor.Snapshot) string) string {
		s := mon.Snapshot()
		r, ok := s.Reading()
		switch {
		case ok:
			return with(view.Plain(a.ascii), r, s)
		case s.Complete:
			return "all keys are read, looking at the locks"
		}
		return "asking the nodes of " + safetext.Printable(s.Cluster.Name)
	}
	if a.errTTY {
		return a.bar(func(took time.Duration) string {
			return fmt.Sprintf("%s, %ds", far(func(g *view.Glyphs, r monitor.Reading, s *monitor.Snapshot) string {
				return view.ReadingLine(g, r, s, 70)
			}), int(took.Seconds()))
		}).end
	}
	stop := make(chan struct{})
	var ended sync.WaitGroup
	ended.Go(func() {
		wait := time.NewTimer(firstReport)
		defer wait.Stop()
		for {
			select {
			case <-stop:
				return
			case <-wait.C:
				fmt.Fprintf(a.errOut, "redlockctl: %s\n", far(view.ReadingText))
				wait.Reset(nextReport)
			}
		}
	})
	return sync.OnceFunc(func() {
		close(stop)
		ended.Wait()
	})
}

// barOf is a part of 1 as a bar.
func (a *commandLine) barOf(part float64) string {
	full, empty := "█", "░"
	if a.ascii {
		full, empty = "#", "."
	}
	n := int(min(max(part, 0), 1) * barWidth)
	return "[" + strings.Repeat(full, n) + strings.Repeat(empty, barWidth-n) + "]"
}

// bar begins one. There is one at a time: within it another says nothing.
func (a *commandLine) bar(text func(took time.Duration) string) *bar {
	if !a.errTTY || a.getenv("TERM") == "dumb" || a.drawn != nil && !a.drawn.over() {
		return nil
	}
	b := &bar{w: a.errOut, text: text, began: time.Now(), stop: make(chan struct{})}
	a.drawn = b
	b.finished.Go(func() {
		wait := time.NewTimer(progressAfter)
		defer wait.Stop()
		for {
			select {
			case <-b.stop:
				return
			case <-wait.C:
				b.mu.Lock()
				b.shown = true
				b.draw()
				b.mu.Unlock()
				wait.Reset(time.Second)
			}
		}
	})
	return b
}
