package world

import "time"

const ms = time.Millisecond

// epoch is where every local clock begins; any moment would do.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// clock is a local clock: true time with an error of rate and an offset.
type clock struct {
	ppm    int64 // parts per million that it runs fast
	offset time.Duration
}

// at returns what the clock shows at a true time.
func (c clock) at(t time.Duration) time.Duration {
	return t + t/1_000_000*time.Duration(c.ppm) + t%1_000_000*time.Duration(c.ppm)/1_000_000 + c.offset
}

// time is at, as a time.Time for the product's code.
func (c clock) time(t time.Duration) time.Time { return epoch.Add(c.at(t)) }

// when returns the last true time at which the clock shows at most local.
func (c clock) when(local time.Duration) time.Duration {
	t := time.Duration(float64(local-c.offset) / (1 + float64(c.ppm)/1e6))
	for c.at(t) > local {
		t--
	}
	for c.at(t+1) <= local {
		t++
	}
	return t
}

// whenTime is when for a time.Time.
func (c clock) whenTime(local time.Time) time.Duration { return c.when(local.Sub(epoch)) }

// lasts converts a duration on this clock to true time.
func (c clock) lasts(d time.Duration) time.Duration {
	return time.Duration(float64(d) / (1 + float64(c.ppm)/1e6))
}
