package cli

import (
	"fmt"
	"io"
	"time"

	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/server/safetext"
)

// eventPrinter prints each event once, as a line with the time of day.
type eventPrinter struct {
	out     io.Writer
	weighty bool      // skip routine events
	seq     uint64    // of the last event seen
	sample  time.Time // time of the last routine event that was printed
}

// print prints new events. One routine event per second is enough to see that the clients
// work.
func (p *eventPrinter) print(events []monitor.Event) {
	for _, e := range events {
		if e.Seq <= p.seq {
			continue
		}
		p.seq = e.Seq
		if e.Part {
			continue
		}
		if e.Level == monitor.LevelInfo {
			if p.weighty || e.Kind != "acquired" || e.At.Sub(p.sample) < time.Second {
				continue
			}
			p.sample = e.At
		}
		about := safetext.Escape(view.EventAbout(&e))
		if about != "" {
			about += " "
		}
		fmt.Fprintf(p.out, "%s  %s%s\n", view.Clock(e.At), about, e.Text)
	}
}
