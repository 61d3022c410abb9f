package observe

import (
	"testing"
	"time"

	"redlockctl/monitor"
	"redlockctl/monitor/table"
	"redlockctl/server/announce"
)

// Two guards that watch locks hear each other, and themselves. The machine is busy: each answer waits
// before it is handled, and the clocks of the nodes are known badly. The end of a lock that lost its
// majority stays where it is: nobody extends it.
func TestTheEndOfALockDoesNotCreep(t *testing.T) {
	for name, c := range map[string]struct{ before, after time.Duration }{ // the reading of a node's clock
		"busy before the command is sent":     {900 * time.Millisecond, 0},
		"busy before the answer is handled":   {0, 900 * time.Millisecond},
		"a little":                            {20 * time.Millisecond, 150 * time.Millisecond},
		"busy as much before as after":        {300 * time.Millisecond, 300 * time.Millisecond},
		"calm":                                {time.Millisecond, time.Millisecond},
		"a little less than what is believed": {time.Millisecond, 90 * time.Millisecond},
	} {
		start := time.Now()
		const ahead, ttl = 7 * time.Second, 28 * time.Second // of the nodes' clocks
		var views []*world
		for range 2 {
			views = append(views, newTestWorldWith(t, Options{MaxTTL: ttl}, start, "n1", "n2", "n3"))
		}
		now := start
		said := make([][]string, 3) // by node
		sight := func(i int, late time.Duration) sight {
			s := sight{sent: now, received: now.Add(c.before + late), server: now.Add(c.before + ahead), info: master(), config: fence("0")}
			if i > 0 && now.After(start.Add(2*time.Second)) {
				s.config = fence("2147483647")
			}
			s.guards = &guardsSight{known: true, all: []announce.Guard{{ID: "g", Delay: ttl}}, locks: announce.DecodeLocks(said[i])}
			return s
		}
		granted, end := start.Add(time.Second), start.Add(time.Second+ttl)
		rows := func(i int) (rows []table.Row) {
			if now.Before(granted) || i > 0 && now.After(granted.Add(time.Second)) {
				return nil
			}
			return []table.Row{{Key: "k", Type: "string", TTL: end.Sub(now), Len: 20, Prefix: "0123456789abcdefghij"}}
		}
		var worst, least time.Duration
		for round := 0; now.Before(end.Add(-time.Second)); round++ {
			for k, w := range views {
				w.beat = func() time.Time { return now }
				for i := range said {
					late := c.after
					if round < 20 && k == 0 {
						late = 0
					}
					w.answered(i, sight(i, late), now)
					if i > 0 && round == 20 {
						w.wiped(i, "one", now)
					}
					w.read(i, "one", now, now, rows(i))
					w.scanned(i, "one", w.table.Epoch(i), now, now)
					w.readUpTo(i, "one", now, now)
				}
				w.tick(now)
				if l := w.table.Locks().Get("k"); l != nil && round > 22 {
					off := l.HeldUntil().Sub(end)
					worst, least = max(worst, off), min(least, off)
					if l.State != monitor.LockLostMajority {
						t.Fatalf("%s: %s", name, l.State)
					}
				}
			}
			for i := range said {
				said[i] = nil
				for _, w := range views {
					said[i] = append(said[i], w.vouches(i, now)...)
				}
			}
			now = now.Add(100 * time.Millisecond)
		}
		if worst > extendedSeen || least < -extendedSeen {
			t.Errorf("%s: held until %s to %s after its end", name, least, worst)
		}
	}
}

// extendedSeen is a difference that a person sees.
const extendedSeen = 20 * time.Millisecond
