package progress

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/charmbracelet/x/ansi"
)

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
