// Package progress says on standard error what a command is waiting for, and how far it is.
package progress

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/x/ansi"

	"redlockctl/internal/cli/printer"
	"redlockctl/internal/crash"
	"redlockctl/internal/safetext"
	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/monitor/observe"
)

// Teller tells of one thing at a time, where there is somebody to read it.
type Teller struct {
	to   *printer.Printer
	last *Bar
}

// New tells on the standard error of a printer.
func New(to *printer.Printer) *Teller { return &Teller{to: to} }

// barWidth is how many cells a bar has.
const barWidth = 24

// Progress says on standard error what is being waited for, from the second
// second on and on a terminal only, and wipes it away when done is called. What
// is told never reaches a pipe.
func (t *Teller) Progress(what string) (done func()) {
	return t.bar(func(took time.Duration) string {
		return fmt.Sprintf("%s, %ds", t.to.Clip(safetext.Printable(what), 60), int(took.Seconds()))
	}).End
}

// ProgressFor is progress of something that takes so long.
func (t *Teller) ProgressFor(what string, all time.Duration) (done func()) {
	return t.bar(func(took time.Duration) string {
		took = min(took, all)
		return fmt.Sprintf("%s %s %s left", t.to.Clip(safetext.Printable(what), 60), t.barOf(float64(took)/float64(all)), view.Left(all-took))
	}).End
}

// ProgressOf is progress of n things, one by one. step says how many are done;
// other text is written by [Bar.Aside].
func (t *Teller) ProgressOf(what string, n int) (step func(int), b *Bar) {
	var mu sync.Mutex
	reached := 0
	b = t.bar(func(time.Duration) string {
		mu.Lock()
		defer mu.Unlock()
		return fmt.Sprintf("%s %s %d of %d", t.to.Clip(safetext.Printable(what), 60), t.barOf(float64(reached)/float64(n)), reached, n)
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
	NextReport  = 10 * time.Second
)

// Reading says on standard error how much of all keys a monitor has read: on a
// terminal a bar from the second second on, elsewhere a line once in a while.
func (t *Teller) Reading(mon *observe.Monitor) (done func()) {
	far := func(with func(*view.Glyphs, monitor.Reading, *monitor.Snapshot) string) string {
		s := mon.Snapshot()
		r, ok := s.Reading()
		switch {
		case ok:
			return with(t.to.Glyphs(), r, s)
		case s.Complete:
			return "all keys are read, looking at the locks"
		}
		return "asking the nodes of " + safetext.Printable(s.Cluster.Name)
	}
	if t.to.ErrTTY {
		return t.bar(func(took time.Duration) string {
			return fmt.Sprintf("%s, %ds", far(func(g *view.Glyphs, r monitor.Reading, s *monitor.Snapshot) string {
				return view.ReadingLine(g, r, s, 70)
			}), int(took.Seconds()))
		}).End
	}
	stop := make(chan struct{})
	var ended sync.WaitGroup
	ended.Go(crash.Safe(func() {
		wait := time.NewTimer(firstReport)
		defer wait.Stop()
		for {
			select {
			case <-stop:
				return
			case <-wait.C:
				t.to.Note("%s", far(view.ReadingText))
				wait.Reset(NextReport)
			}
		}
	}))
	return sync.OnceFunc(func() {
		close(stop)
		ended.Wait()
	})
}

// barOf is a part of 1 as a bar; none where there is nothing to be a part of.
func (t *Teller) barOf(part float64) string {
	full, empty := "█", "░"
	if t.to.ASCII {
		full, empty = "#", "."
	}
	n := 0
	if part > 0 {
		n = int(min(part, 1) * barWidth)
	}
	return "[" + strings.Repeat(full, n) + strings.Repeat(empty, barWidth-n) + "]"
}

// bar begins one. There is one at a time: within it another says nothing.
func (t *Teller) bar(text func(took time.Duration) string) *Bar {
	if !t.to.ErrTTY || t.to.Getenv("TERM") == "dumb" || t.last != nil && !t.last.over() {
		return nil
	}
	b := &Bar{w: t.to.Err, text: text, began: time.Now(), stop: make(chan struct{})}
	t.last = b
	b.finished.Go(crash.Safe(func() {
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
	}))
	return b
}

// progressAfter is how long a command may take before it says what it does.
const progressAfter = time.Second

// Bar is a line on a terminal that says how far something is; a nil one says
// nothing.
type Bar struct {
	w    io.Writer
	text func(took time.Duration) string

	mu       sync.Mutex
	began    time.Time
	shown    bool
	stop     chan struct{}
	finished sync.WaitGroup
	once     sync.Once
}

func (b *Bar) draw() {
	fmt.Fprintf(b.w, "\r%s%s", b.text(time.Since(b.began)), ansi.EraseLineRight)
}

func (b *Bar) over() bool {
	select {
	case <-b.stop:
		return true
	default:
		return false
	}
}

func (b *Bar) redraw() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.shown {
		b.draw()
	}
}

// Aside wipes the line away for what f writes; it comes back by itself.
func (b *Bar) Aside(f func()) {
	if b == nil {
		f()
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.shown {
		fmt.Fprint(b.w, "\r"+ansi.EraseLineRight)
	}
	f()
}

// End wipes the line away for good; further calls do nothing.
func (b *Bar) End() {
	if b == nil {
		return
	}
	b.once.Do(func() {
		close(b.stop)
		b.finished.Wait()
		if b.shown {
			fmt.Fprint(b.w, "\r"+ansi.EraseLineRight)
		}
	})
}
