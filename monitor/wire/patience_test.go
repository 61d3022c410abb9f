package wire

import (
	"testing"
	"time"
)

// Patience follows the round trips, never below its floor, and never without bound.
func TestPatienceFollowsTheRoundTrip(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		trips       []time.Duration // again and again
		least, most time.Duration
	}{
		"nothing measured":   {nil, PatienceFirst, PatienceFirst},
		"beside it":          {[]time.Duration{ms / 5, ms / 2}, 500 * ms, 500 * ms},
		"another continent":  {[]time.Duration{150 * ms}, 500 * ms, 700 * ms},
		"and jitter":         {[]time.Duration{100 * ms, 300 * ms, 500 * ms}, 1500 * ms, 4 * time.Second},
		"longer than a life": {[]time.Duration{time.Hour}, patienceMost, patienceMost},
	} {
		t.Run(name, func(t *testing.T) {
			p := NewPatience(500 * ms)
			for i := range 300 * len(c.trips) {
				p.Took(c.trips[i%len(c.trips)])
			}
			if got := p.Answer(); got < c.least || got > c.most {
				t.Errorf("waits %s, not %s to %s", got, c.least, c.most)
			}
			if p.Setup() < setupLeast || p.Timeout() <= 0 {
				t.Errorf("setup %s, timeout %s", p.Setup(), p.Timeout())
			}
		})
	}
	if p := NewPatience(time.Minute); p.Answer() != time.Minute || p.Setup() != time.Minute {
		t.Error("the floor is the user's")
	}
}
