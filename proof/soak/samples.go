//go:build linux

package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// measure is something that a process uses.
type measure int

const (
	memory      measure = iota // MiB of its own, resident
	goroutines                 // at this moment, or the most so far where only that can be seen
	descriptors                // open files and connections
	measures
)

func (m measure) String() string { return [...]string{"memory, MiB", "goroutines", "descriptors"}[m] }

// usage is what one process used at one moment.
type usage [measures]float64

// limit is how much a measure may grow: by noise, whatever the time, and by
// perHour for each hour beside it.
type limit struct{ noise, perHour float64 }

var limits = [measures]limit{memory: {16, 4}, goroutines: {16, 4}, descriptors: {8, 2}}

// noiseShare of the first value counts as noise too: the number of connections of twenty
// clients that come and go varies by as much.
const noiseShare = 0.15

func (l limit) over(d time.Duration, first float64) float64 {
	return max(l.noise, first*noiseShare) + l.perHour*d.Hours()
}

// series is what one process used: a row with the least value of each period. A leak
// raises the least value; garbage, or a connection that is reopened, does not.
type series struct {
	name string
	at   []time.Duration
	rows []usage
}

// add notes a row, the least of samples, of which there is one at least.
func (s *series) add(at time.Duration, samples []usage) {
	least := samples[0]
	for _, u := range samples[1:] {
		for m := range least {
			least[m] = min(least[m], u[m])
		}
	}
	s.at, s.rows = append(s.at, at), append(s.rows, least)
}

// quarters are the means of the first and of the last quarter of the rows behind
// warm, and the time between them; !ok if those are too few to show anything.
func (s *series) quarters(warm time.Duration) (first, last usage, apart time.Duration, ok bool) {
	from := 0
	for from < len(s.at) && s.at[from] < warm {
		from++
	}
	at, rows := s.at[from:], s.rows[from:]
	n := len(rows) / 4
	if n < 2 {
		return first, last, 0, false
	}
	for i := range n {
		for m := range measures {
			first[m] += rows[i][m] / float64(n)
			last[m] += rows[len(rows)-n+i][m] / float64(n)
		}
	}
	return first, last, at[len(at)-n] - at[0], true
}

// judge prints for each process what it used in the first and the last quarter of the
// time after warm, and returns which measures grew beyond their limit. Too few rows
// are a failure too: they prove nothing.
func judge(w io.Writer, all []*series, warm time.Duration) (grown []string) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "process\tmeasure\tfirst quarter\tlast quarter\tgrew by\tallowed\t")
	for _, s := range all {
		first, last, apart, ok := s.quarters(warm)
		if !ok {
			grown = append(grown, fmt.Sprintf("%s: too few samples after the warm-up: this shows nothing", s.name))
			continue
		}
		for m := range measures {
			grew, allowed := last[m]-first[m], limits[m].over(apart, first[m])
			verdict := ""
			if grew > allowed {
				verdict = "GROWS"
				grown = append(grown, fmt.Sprintf("%s: %s: grew by %.1f in %s, at most %.1f is allowed", s.name, m, grew, apart.Round(time.Second), allowed))
			}
			fmt.Fprintf(t, "%s\t%s\t%.1f\t%.1f\t%+.1f\t%.1f\t%s\n", s.name, m, first[m], last[m], grew, allowed, verdict)
		}
	}
	_ = t.Flush()
	return grown
}
