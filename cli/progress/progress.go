// Package progress shows on standard error what a command waits for, and how far it is.
package progress

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/x/ansi"

	"redlockctl/base/crash"
	"redlockctl/cli/printer"
	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/monitor/observe"
	"redlockctl/server/safetext"
)

// Teller shows the progress of one thing at a time, on a terminal only.
type Teller struct {
	to   *printer.Printer
	last *Bar
}

// New returns a Teller that writes to the standard error of a printer.
func New(to *printer.Printer) *Teller { return &Teller{to: to} }

// barWidth is how many cells a bar has.
const barWidth = 24

// Progress shows on a terminal what the command waits for, after one second, and removes
// it when done is called.
func (t *Teller) Progress(what string) (done func()) {
	return t.bar(func(took time.Duration) string {
		return fmt.Sprintf("%s, %ds", t.to.Clip(safetext.Printable(what), 60), int(took.Seconds()))
	}).End
}

// ProgressFor shows the progress of something that takes the time all.
func (t *Teller) ProgressFor(what string, all time.Duration) (done func()) {
	return t.bar(func(took time.Duration) string {
		took = min(took, all)
		return fmt.Sprintf("%s %s %s left", t.to.Clip(safetext.Printable(what), 60), t.barOf(float64(took)/float64(all)), view.Left(all-took))
	}).End
}

// ProgressOf shows the progress of n steps. step sets how many are done; use [Bar.Aside]
// to write other text meanwhile.
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

// Without a terminal, a line is written when reading takes long.
const (
	firstReport = 5 * time.Second
	NextReport  = 10 * time.Second
)

// Reading shows how many keys a monitor has read: on a terminal as a bar, after one
// second; elsewhere as a line now and then.
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

// barOf draws a fraction as a bar; empty if the fraction is not known.
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

// bar starts a bar. There is one at a time: a nested one shows nothing.
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

// progressAfter is how long a command may take before progress is shown.
const progressAfter = time.Second

// Bar is a progress line on a terminal; a nil Bar shows nothing.
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

// Aside removes the line while f writes; it reappears at the next update.
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

// End removes the line; further calls do nothing.
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
