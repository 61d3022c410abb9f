// Package words formats numbers and times for sentences.
package words

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Count returns n with its noun in singular or plural.
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// MostNamed is how many of many names a sentence has.
const MostNamed = 3

// Names lists names, the first three of many and how many more there are.
func Names(names []string) string {
	if more := len(names) - MostNamed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:MostNamed], ", "), more)
	}
	return strings.Join(names, ", ")
}

// At says when something was, in words that stay true.
func At(at, now time.Time) string { return "at " + Moment(at, now) }

// Moment returns a time of day, with its date if that is not [Near].
func Moment(at, now time.Time) string {
	switch {
	case at.IsZero():
		return "–"
	case Near(at, now):
		return at.Format("15:04:05")
	}
	return at.Format("2006-01-02 15:04:05")
}

// Near reports whether a time of day says which moment is meant: one of the last or next
// twelve hours.
func Near(at, now time.Time) bool { return at.Sub(now).Abs() < 12*time.Hour }

// Goes says when a copy on a node that refuses writes expires; a zero end: never.
func Goes(end, now time.Time) string {
	if end.IsZero() {
		return "has no TTL, stays until it is deleted after the node serves"
	}
	return "goes at " + Moment(end, now)
}

// Signed returns a duration with its sign, in whole milliseconds.
func Signed(d time.Duration) string {
	s := d.Round(time.Millisecond).String()
	if d >= 0 {
		s = "+" + s
	}
	return s
}

// Bytes returns a size in powers of 1024, with one decimal.
func Bytes(n int64) string {
	f, unit := float64(n), 0
	for f >= 1024 && unit < 4 {
		f /= 1024
		unit++
	}
	if unit == 0 {
		return strconv.FormatInt(n, 10) + " B"
	}
	return strconv.FormatFloat(f, 'f', 1, 64) + " " + [...]string{"", "KiB", "MiB", "GiB", "TiB"}[unit]
}
