package cli

import (
	"redlockctl/internal/app"
	"redlockctl/internal/safetext"
)

// guardsSeenJSON are the guards that run, as far as it can be told from here.
type guardsSeenJSON struct {
	Running     *bool           `json:"guard_running,omitempty"` // left out: not known
	GuardsKnown bool            `json:"guards_known"`
	Guards      []seenGuardJSON `json:"guards"`
}

// seenGuardJSON is a guard that announces itself on nodes.
type seenGuardJSON struct {
	ID      string          `json:"id"`
	Host    safetext.Text   `json:"host"`
	PID     int             `json:"pid,omitempty"`
	DelayMs int64           `json:"delay_ms"`
	On      []safetext.Text `json:"on"`
}

// seenDoc is what can be told of the guards.
func seenDoc(g app.Guards) guardsSeenJSON {
	doc := guardsSeenJSON{Running: g.Running(), GuardsKnown: g.Known, Guards: []seenGuardJSON{}}
	for _, one := range g.All {
		seen := seenGuardJSON{ID: one.ID, Host: one.Host, PID: one.PID, DelayMs: ms(one.Delay), On: []safetext.Text{}}
		for _, name := range g.On(one) {
			seen.On = append(seen.On, text(name))
		}
		doc.Guards = append(doc.Guards, seen)
	}
	return doc
}
