package campaign

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestWitness(t *testing.T) {
	const ms = time.Millisecond
	type belief struct {
		resource    string
		from, until time.Duration
		end         time.Duration // 0: to the end
		contradicts bool
	}
	for name, beliefs := range map[string][]belief{
		"one after the other":        {{"a", 0, 100 * ms, 0, false}, {"a", 100 * ms, 200 * ms, 0, false}},
		"two at once":                {{"a", 0, 100 * ms, 0, false}, {"a", 99 * ms, 200 * ms, 0, true}},
		"two locks":                  {{"a", 0, 100 * ms, 0, false}, {"b", 50 * ms, 200 * ms, 0, false}},
		"given back before":          {{"a", 0, 100 * ms, 40 * ms, false}, {"a", 50 * ms, 200 * ms, 0, false}},
		"the third meets the first":  {{"a", 0, 300 * ms, 0, false}, {"b", 10 * ms, 20 * ms, 0, false}, {"a", 200 * ms, 400 * ms, 0, true}},
		"an end after validity":      {{"a", 0, 100 * ms, 150 * ms, false}, {"a", 120 * ms, 200 * ms, 0, false}},
		"a validity that was over":   {{"a", 0, 100 * ms, 0, false}, {"a", 50 * ms, 50 * ms, 0, false}},
		"one that is within another": {{"a", 0, 300 * ms, 0, false}, {"a", 50 * ms, 60 * ms, 0, true}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var w Witness
				start, found := time.Now(), 0
				for i, b := range beliefs {
					time.Sleep(time.Until(start.Add(b.from)))
					end, contradicts := w.Believe(Belief{Resource: b.resource, Client: i, From: start.Add(b.from), Until: start.Add(b.until)})
					if contradicts != b.contradicts {
						t.Errorf("belief %d contradicts: %v", i, contradicts)
					}
					if contradicts {
						found++
					}
					if b.end > 0 {
						time.AfterFunc(b.end-b.from, end)
					}
				}
				if v, grants := w.Violations(); len(v) != found || grants != len(beliefs) {
					t.Errorf("%d violations, %d grants", len(v), grants)
				}
				time.Sleep(time.Second)
			})
		})
	}
}

// A late report of a belief that had already ended is still compared over its whole
// time.
func TestLateReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w Witness
		start := time.Now()
		end, _ := w.Believe(Belief{Resource: "a", From: start, Until: start.Add(time.Second)})
		time.Sleep(500 * time.Millisecond)
		end()
		time.Sleep(time.Second)
		if _, contradicts := w.Believe(Belief{Resource: "a", From: start.Add(400 * time.Millisecond), Until: start.Add(2 * time.Second)}); !contradicts {
			t.Error("not found")
		}
	})
}

func TestAccepted(t *testing.T) {
	for info, want := range map[string]int{
		"# Commandstats\r\n": 0,
		"# Commandstats\r\ncmdstat_set:calls=0,usec=0,usec_per_call=0.00,rejected_calls=2,failed_calls=0\r\n": 0,
		"# Commandstats\r\ncmdstat_get:calls=9,usec=1\r\ncmdstat_set:calls=3,usec=1,rejected_calls=2\r\n":     3,
		"cmdstat_setex:calls=3,usec=1\r\n": 0,
		"cmdstat_set:calls=x\r\n":          1,
	} {
		if got := accepted(info); got != want {
			t.Errorf("%q: %d", info, got)
		}
	}
}
