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

// noiseShare of what there was at first is noise too: of twenty clients that come and
// go as many more have connections open at one time than at another.
const noiseShare = 0.15

func (l limit) over(d time.Duration, first float64) float64 {
	return max(l.noise, first*noiseShare) + l.perHour*d.Hours()
}

// series is what one process used, a row for each period: the least in it. A
// leak raises the least; what comes and goes, as garbage or a connection that is
// dialled anew, does not.
type series struct {
	name string
	at   []time.Duration
	rows []usage
}

// add notes a row, the least of samples; none is none.
func (s *series) add(at time.Duration, samples []usage) {
	if len(samples) == 0 {
		return
	}
	least := samples[0]
	for _, u := range samples[1:] {
		for m := range least {
			least[m] = min(least[m], u[m])
		}
	}
	s.at, s.rows = append(s.at, at), append(s.rows, least)
}

// after is s without the rows before warm.
func (s *series) after(warm time.Duration) *series {
	for i, at := range s.at {
		if at >= warm {
			return &series{s.name, s.at[i:], s.rows[i:]}
		}
	}
	return &series{name: s.name}
}

// slope is the growth of m in an hour, by least squares.
func (s *series) slope(m measure) float64 {
	var x, y, xx, xy float64
	for i, at := range s.at {
		h := at.Hours()
		x, y, xx, xy = x+h, y+s.rows[i][m], xx+h*h, xy+h*s.rows[i][m]
	}
	n := float64(len(s.at))
	d := n*xx - x*x
	if d <= 0 {
		return 0
	}
	return (n*xy - x*y) / d
}

// leastRows is the least number of rows that show anything.
const leastRows = 6

// judge prints for each process what it used, and tells which measures grew
// beyond their limit. Too few rows are a failure too: nothing was shown.
func judge(w io.Writer, all []*series, limits [measures]limit) (grown []string) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "process\tmeasure\tfirst\tlast\tslope per hour\tgrew by\tallowed\t")
	for _, s := range all {
		if len(s.rows) < leastRows {
			grown = append(grown, fmt.Sprintf("%s: only %d samples after the warm-up: this shows nothing", s.name, len(s.rows)))
			continue
		}
		first, last := s.rows[0], s.rows[len(s.rows)-1]
		span := s.at[len(s.at)-1] - s.at[0]
		for m := range measures {
			slope := s.slope(m)
			grew, allowed := slope*span.Hours(), limits[m].over(span, first[m])
			verdict := ""
			if grew > allowed {
				verdict = "GROWS"
				grown = append(grown, fmt.Sprintf("%s: %s: grew by %.1f in %s, at most %.1f is allowed", s.name, m, grew, span.Round(time.Second), allowed))
			}
			fmt.Fprintf(t, "%s\t%s\t%.1f\t%.1f\t%+.1f\t%+.1f\t%.1f\t%s\n", s.name, m, first[m], last[m], slope, grew, allowed, verdict)
		}
	}
	_ = t.Flush()
	return grown
}
