package page

import (
	"time"

	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/server/safetext"
)

// removal is how the shown lock was force-released, once no copy of it is left or another client has it.
type removal struct {
	key    string
	holder safetext.Text // when it was asked; empty: no copy was left
	asked  time.Time     // on this machine's clock
	asking bool
	text   string // not escaped; empty: its holder does not rely on it, as far as is known
}

const (
	// removalEvery is how often it is asked again: the outcome is logged a moment after the copies are
	// gone, and the holder relies on the lock for a time.
	removalEvery = 2 * time.Second
	// removalNext is how soon after the last time it is asked of another lock, or another holder: in a
	// list that changes, each moment has another one under the cursor.
	removalNext = 300 * time.Millisecond
)

// Due reports whether to ask now how a lock was force-released; l: the lock now, nil: no copy of it is left.
func (r *removal) Due(key string, l *monitor.Lock, now time.Time) bool {
	var holder safetext.Text
	if l != nil {
		holder = l.Holder
	}
	pause := removalEvery
	if asks := l == nil || l.ReliedOn(); !asks || key != r.key || holder != r.holder {
		*r = removal{asked: r.asked, asking: r.asking}
		if pause = removalNext; !asks {
			return false
		}
	}
	if r.asking || !r.asked.IsZero() && now.Sub(r.asked) < pause {
		return false
	}
	r.key, r.holder, r.asked, r.asking = key, holder, now, true
	return true
}

// Take shows how a lock was force-released.
func (r *removal) Take(key, text string) {
	if r.asking = false; key == r.key {
		r.text = text
	}
}

// Facts say how a lock was force-released.
func (r *removal) Facts(g *view.Glyphs, key string) []view.Fact {
	if r.key != key || r.text == "" {
		return nil
	}
	return []view.Fact{{Label: "Earlier", Text: g.Whole(r.text), Tone: view.Bad}}
}
