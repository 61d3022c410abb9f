package view

import (
	"fmt"
	"time"
)

// SpanDoc is a time from a moment to another.
type SpanDoc struct {
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
}

// CoverageDoc says for which parts of the time that was asked for there is a record.
type CoverageDoc struct {
	Recorded []SpanDoc `json:"recorded"`
	Gaps     []SpanDoc `json:"gaps"`      // nothing was recorded
	LockGaps []SpanDoc `json:"lock_gaps"` // no locks were recorded; they include gaps
}

// mostGaps is how many gaps are named.
const mostGaps = 6

// Lines says in words what is missing, a gap a line; none: nothing is.
func (c *CoverageDoc) Lines(utc bool) (lines []string) {
	lines = gapLines("nothing was recorded", c.Gaps, utc)
	var locks []SpanDoc
	for _, gap := range c.LockGaps { // what is left of them besides the gaps
		for _, all := range c.Gaps {
			if all.Since.Before(gap.Until) && gap.Since.Before(all.Until) {
				if all.Since.After(gap.Since) {
					locks = append(locks, SpanDoc{gap.Since, all.Since})
				}
				gap.Since = all.Until
			}
		}
		if gap.Until.After(gap.Since) {
			locks = append(locks, gap)
		}
	}
	return append(lines, gapLines("locks were not recorded", locks, utc)...)
}

func gapLines(what string, gaps []SpanDoc, utc bool) (lines []string) {
	var rest time.Duration
	for i, gap := range gaps {
		if i >= mostGaps {
			rest += gap.Until.Sub(gap.Since)
			continue
		}
		lines = append(lines, fmt.Sprintf("%s from %s to %s (%s)", what, Stamp(gap.Since, utc), Stamp(gap.Until, utc), Span(gap.Until.Sub(gap.Since))))
	}
	if n := len(gaps) - mostGaps; n > 0 {
		lines = append(lines, fmt.Sprintf("%s %s more, for %s in all: -o json lists them", what, Plural(n, "time"), Span(rest)))
	}
	return lines
}
