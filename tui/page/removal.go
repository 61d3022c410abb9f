package page

import (
	"time"

	"redlockctl/internal/view"
)

// removal is how the shown lock was force-released, once no copy of it is left.
type removal struct {
	key    string
	asked  time.Time // on this machine's clock
	asking bool
	text   string // not escaped; empty: its holder does not rely on it, as far as is known
}

// removalEvery is how often it is asked again: the outcome is logged a moment after the copies are gone,
// and the holder relies on the lock for a time.
const removalEvery = 2 * time.Second

// Due reports whether to ask now how a lock was force-released; gone: no copy of it is left.
func (r *removal) Due(key string, gone bool, now time.Time) bool {
	if !gone || key != r.key {
		*r = removal{}
	}
	if !gone || r.asking || !r.asked.IsZero() && now.Sub(r.asked) < removalEvery {
		return false
	}
	r.key, r.asked, r.asking = key, now, true
	return true
}

// Take shows how a lock was force-released.
func (r *removal) Take(key, text string) {
	if key == r.key {
		r.asking, r.text = false, text
	}
}

// facts say how a lock was force-released.
func (r *removal) facts(g *view.Glyphs, key string) []view.Fact {
	if r.key != key {
		return nil
	}
	return []view.Fact{{Label: "Earlier", Text: g.Whole(r.text), Tone: view.Bad}}
}
