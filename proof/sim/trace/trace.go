// Package trace takes down what happens in a simulation, as people read it.
package trace

import (
	"encoding/json"
	"fmt"
	"math"
	"time"
)

// Line is one thing that happened in a schedule, in the order in which it did.
type Line struct {
	At   time.Duration // true time since the beginning
	Who  string        // c1 a client, n1 a master, g1 a guard, !! the witness
	Text string
}

// MarshalJSON has the moment in microseconds.
func (l Line) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		AtUs int64  `json:"at_us"`
		Who  string `json:"who"`
		Text string `json:"text"`
	}{l.At.Microseconds(), l.Who, l.Text})
}

// Log takes down what happens.
type Log struct{ Lines []Line }

// Add takes down one thing.
func (t *Log) Add(now time.Duration, who, text string) {
	t.Lines = append(t.Lines, Line{now, who, text})
}

// At is a moment as a trace shows it.
func At(t time.Duration) string {
	if t == Never {
		return "never"
	}
	return fmt.Sprintf("%.4f s", t.Seconds())
}

// Span is a duration as a trace shows it.
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
