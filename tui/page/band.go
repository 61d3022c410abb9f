package page

import (
	"time"

	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/tui/styles"
)

// heldBy has the recorded holders of the shown lock.
type heldBy struct {
	key   string
	asked time.Time // when they were last read, on this machine's clock
	from  time.Time // beginning of the record
	band  view.Band
}

// bandEvery is how often the holders are read again.
const bandEvery = 10 * time.Second

// due reports whether the holders of a lock should be read now.
func (h *heldBy) due(key string, now time.Time) bool {
	if key == h.key && now.Sub(h.asked) < bandEvery {
		return false
	}
	if key != h.key {
		*h = heldBy{key: key}
	}
	h.asked = now
	return true
}

// Take shows the holders of a lock, and since when there is a record.
func (h *heldBy) Take(key string, band view.Band, from time.Time) {
	if key == h.key {
		h.band, h.from = band, from
	}
}

// of returns the recorded holders of a lock.
func (h *heldBy) of(l *monitor.Lock) []view.GrantDoc {
	if h.key != l.Key.Raw() {
		return nil
	}
	return h.band.Grants
}

// Maker returns what is recorded about who left an orphaned lock.
func (h *heldBy) Maker(ctx *view.Context, l *monitor.Lock) []view.Fact {
	return view.MakerFacts(ctx, l, h.of(l))
}

// lines draws the recent holders of a lock on an axis of time; events are those of the lock.
func (h *heldBy) lines(p *Screen, key string, events []monitor.Event, w int) []string {
	if h.key != key || len(h.band.Grants) == 0 {
		return nil
	}
	length := view.BandLength(h.band.Grants, h.from, p.Now)
	band := view.Band{From: p.Now.Add(-length), To: p.Now, Grants: h.band.Grants, Gaps: h.band.Gaps}.AsSeen(p.Shown.Locks.Get(key))
	said := "  last " + view.Age(length)
	line, ctx := "", p.context()
	ctx.Tokens = view.TokensOf(events)
	for _, part := range band.Line(ctx, w-styles.FactIndent-view.Width(said)-2) {
		line += p.St.Paint(part.Tone).Of(part.Text)
	}
	if line == "" {
		return nil
	}
	return []string{" " + p.St.Fact("Holders", line+p.St.Dim.Of(said))}
}
