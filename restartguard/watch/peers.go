package watch

import (
	"time"

	"redlockctl/restartguard"
	"redlockctl/server/announce"
)

// hears adds to a look what other guards announce, there and elsewhere.
func (g *Guard) hears(o *restartguard.Observation, here []announce.Guard) {
	g.hearing.Lock()
	defer g.hearing.Unlock()
	now := time.Now()
	o.Heard = g.peers.Greatest()
	o.Believed = g.peers.Might(now, g.id, max(o.Heard, g.cfg.Delay), here)
	for _, one := range here {
		if one.ID == g.id {
			o.SaidDrained = one.Drained
			continue
		}
		o.Allowed = o.Allowed || !one.MayVote.IsZero() && o.Clock.Wall != 0 && !one.MayVote.After(time.Unix(0, int64(o.Clock.Wall)))
	}
}
