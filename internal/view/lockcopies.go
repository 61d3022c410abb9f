package view

import (
	"time"

	"redlockctl/monitor"
	"redlockctl/monitor/words"
)

// leftOverFacts lists the copies that nobody can use any more, and when they expire.
func leftOverFacts(c *Context, l *monitor.Lock) (facts []Fact) {
	for i, one := range l.Copies.All() {
		if i >= len(c.Snap.Nodes) || !c.Snap.LeftOver(l, i) {
			continue
		}
		n, end := &c.Snap.Nodes[i], one.Expires
		if farAway(end, c.Now) {
			end = time.Time{}
		}
		f := Fact{Text: "on " + c.Name(n.Name) + ", " + n.State.String() + ": " + words.Goes(end, c.Now)}
		if facts == nil {
			f.Label = "Left over"
		}
		facts = append(facts, f)
	}
	return facts
}

// cutShort reports whether the holder's copy i ends early because the clock of its node was stepped
// forward since the copy was set or extended.
func cutShort(c *Context, l *monitor.Lock, i int) bool {
	f, one := &c.Snap.Nodes[i].Facts, l.Copies.At(i)
	if f.StepBy <= 0 || !f.StepAt.After(l.Since()) || !f.StepAt.After(l.ExtendedAt()) || one.State != monitor.CopyPresent || one.Token != l.Holder || one.Expires.IsZero() {
		return false
	}
	latest := l.HeldUntil()
	for _, other := range l.Copies.All() {
		if other.Token == l.Holder && other.Expires.After(latest) {
			latest = other.Expires
		}
	}
	return latest.Sub(one.Expires) > f.StepBy/2
}

// clockFacts says which copies end early because of a step of a clock.
func clockFacts(c *Context, l *monitor.Lock) (facts []Fact) {
	for i := range min(len(c.Snap.Nodes), l.Copies.Len()) {
		if !cutShort(c, l, i) {
			continue
		}
		n := &c.Snap.Nodes[i]
		f := Fact{Text: c.Name(n.Name) + " was stepped by " + words.Signed(n.Facts.StepBy) + " at " + Clock(n.Facts.StepAt) + ": its copy ends early", Tone: Warn}
		if facts == nil {
			f.Label = "Clock"
		}
		facts = append(facts, f)
	}
	return facts
}
