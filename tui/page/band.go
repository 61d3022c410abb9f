package page

import (
	"time"

	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/tui/styles"
)

// heldBy is who held the lock that is looked at, out of a record.
type heldBy struct {
	key    string
	asked  time.Time // for that key, on this machine's clock
	from   time.Time // since when something is recorded
	grants []view.GrantDoc
}

// bandEvery is how often the holders are asked for anew.
const bandEvery = 10 * time.Second

// Asks is the lock whose holders are to be read from a record; "": none is.
func (m *lockFacts) Asks(now time.Time) string {
	key := m.Watched.key
	if !m.Watched.on || key == m.heldBy.key && now.Sub(m.heldBy.asked) < bandEvery {
		return ""
	}
	if key != m.heldBy.key {
		m.heldBy = heldBy{key: key}
	}
	m.heldBy.asked = now
	return key
}

// Held takes in the holders of a lock, and since when they are recorded.
func (m *lockFacts) Held(key string, grants []view.GrantDoc, from time.Time) {
	if key == m.heldBy.key {
		m.heldBy.grants, m.heldBy.from = grants, from
	}
}

// Maker is what is recorded of who left an orphaned lock behind.
func (m *lockFacts) Maker(ctx *view.Context, l *monitor.Lock) []view.Fact {
	if m.heldBy.key != l.Key.Raw() {
		return nil
	}
	return view.MakerFacts(ctx, l, m.heldBy.grants)
}

// bandLines is who held the lock lately, on one axis of time.
func (m *lockFacts) bandLines(w int) []string {
	h := &m.heldBy
	if h.key != m.Watched.key || len(h.grants) == 0 {
		return nil
	}
	length := view.BandLength(h.grants, h.from, m.Now)
	band := view.Band{From: m.Now.Add(-length), To: m.Now, Grants: h.grants}
	said := "  last " + view.Age(length)
	line := ""
	for _, part := range band.Line(m.context(), w-styles.FactIndent-view.Width(said)-2) {
		line += m.St.Paint(part.Tone).Of(part.Text)
	}
	if line == "" {
		return nil
	}
	return []string{" " + m.St.Fact("Holders", line+m.St.Dim.Of(said))}
}
