// Package trace records what happens in a simulation, for people to read.
package trace

import (
	"encoding/json"
	"fmt"
	"math"
	"time"
)

// Line is one event of a schedule.
type Line struct {
	At   time.Duration // true time since the beginning
	Who  string        // c1 a client, n1 a master, g1 a guard, !! the witness
	Text string
}

// MarshalJSON writes the moment in microseconds.
func (l Line) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		AtUs int64  `json:"at_us"`
		Who  string `json:"who"`
		Text string `json:"text"`
	}{l.At.Microseconds(), l.Who, l.Text})
}

// Log records events.
type Log struct{ Lines []Line }

// Add records an event.
func (t *Log) Add(now time.Duration, who, text string) {
	t.Lines = append(t.Lines, Line{now, who, text})
}

// At formats a moment.
func At(t time.Duration) string {
	if t == Never {
		return "never"
	}
	return fmt.Sprintf("%.4f s", t.Seconds())
}

// Span formats a duration.
func Span(d time.Duration) string {
	switch {
	case d.Abs() < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d.Abs() < time.Second:
		return d.Round(100 * time.Microsecond).String()
	}
	return d.Round(time.Millisecond).String()
}

// Never is a moment after every schedule.
const Never = time.Duration(math.MaxInt64)
