package watch

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"redlockctl/restartguard"
	"redlockctl/server/announce"
)

// Others returns the other guards that were seen within [restartguard.PeerKept].
func (g *Guard) Others() []announce.Guard {
	g.peersMu.Lock()
	defer g.peersMu.Unlock()
	all := g.peers.Present(time.Now())
	slices.SortStableFunc(all, func(a, b announce.Guard) int {
		return cmp.Or(cmp.Compare(b.Delay, a.Delay), cmp.Compare(a.ID, b.ID))
	})
	return all
}

// noteGuards notes the guards that announce themselves on a node, and reports each whose D
// differs.
func (g *Guard) noteGuards(all []announce.Guard) {
	own, _ := announce.Decode(announce.Guard{ID: g.id, Delay: g.cfg.Delay}.Channel()) // rounded as theirs
	var events []restartguard.Event
	now := time.Now()
	g.peersMu.Lock()
	for _, o := range all {
		known := slices.ContainsFunc(g.peers.Present(now), func(p announce.Guard) bool { return p.Same(o) && p.Delay == o.Delay })
		if o.ID == g.id || known || o.Delay == own.Delay && !o.Absurd {
			continue
		}
		text := fmt.Sprintf("guard %s has D = %s, this one has %s: the greater one counts. Give both the same max_ttl and delay", o.Name(), o.Delay, g.cfg.Delay)
		if o.Absurd {
			text = fmt.Sprintf("guard %s announces a D of more than %s, which no configuration allows: it counts as %s. End it, or who pretends to be one", o.Name(), announce.MostDelay, o.Delay)
		}
		events = append(events, restartguard.Event{At: now, Kind: "delays", Text: text, Alarm: true})
	}
	if g.peers.Hear(now, g.id, all) {
		g.delaysUnwritten = true
	}
	events = append(events, g.keepDelays(now)...)
	g.peersMu.Unlock()
	g.emit("", events)
}

// keepDelays writes the D of other guards to the memory if they have changed, and forgets the
// guards that an operator wants forgotten. peersMu must be locked.
func (g *Guard) keepDelays(now time.Time) (events []restartguard.Event) {
	m := g.cfg.Memory
	if m == nil {
		return nil
	}
	if now.Sub(g.forgetReadAt) >= restartguard.HearEvery {
		g.forgetReadAt = now
		for _, id := range m.TakeForgotten() {
			if g.peers.Forget(id) {
				events = append(events, restartguard.Event{At: now, Kind: "delays", Text: fmt.Sprintf("the D of guard %s is forgotten, as an operator wanted it", id[:min(6, len(id))])})
			}
			g.delaysUnwritten = true
		}
	}
	if g.delaysUnwritten {
		g.delaysUnwritten = m.PutDelays(&g.peers, now) != nil // tried again with the next announcement
	}
	return events
}

// addAnnounced adds to an observation what other guards announce, on that node and on others. It
// returns until when the last of them keeps the node fenced; zero: none does.
func (g *Guard) addAnnounced(o *restartguard.Observation, here []announce.Guard) (until time.Time) {
	g.peersMu.Lock()
	defer g.peersMu.Unlock()
	now := time.Now()
	o.Heard, o.Least = g.peers.Greatest(), g.peers.Least()
	o.Believed = g.peers.Might(now, g.id, max(o.Heard, g.cfg.Delay), here)
	for _, one := range here {
		if one.ID == g.id {
			o.SaidDrained = one.Drained
			continue
		}
		if one.Run != "" && one.About(o.RunID) && one.Boot > o.Started { // who saw it unfenced counts
			o.Started, o.BootExposed = one.Boot, one.Exposed
		}
		if !one.MayVote.IsZero() && o.Clock.Wall != 0 {
			// Nobody has a reason to wait for more than the greatest D.
			wait := one.MayVote.Sub(time.Unix(0, int64(o.Clock.Wall)))
			o.Allowed = o.Allowed || wait <= 0
			if 0 < wait && wait <= announce.MostDelay {
				o.Later = true
				if at := now.Add(wait); at.After(until) {
					until = at
				}
			}
		}
	}
	return until
}

const guardsUnread = "the announcements of other guards cannot be read, so that only its own D counts here"
