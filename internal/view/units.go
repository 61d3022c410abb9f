package view

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"redlockctl/monitor/words"
)

// Remaining formats a remaining time in at most four cells, rounded down so that a lock
// never seems to last longer than it does.
func Remaining(d time.Duration) string {
	switch {
	case d <= 0:
		return "0s"
	case d < time.Second:
		return "<1s"
	case d < 100*time.Second:
		return strconv.Itoa(int(d/time.Second)) + "s"
	case d < 100*time.Minute:
		return strconv.Itoa(int(d/time.Minute)) + "m"
	case d < 48*time.Hour:
		return strconv.Itoa(int(d/time.Hour)) + "h"
	case d < 1000*24*time.Hour:
		return strconv.Itoa(int(d/(24*time.Hour))) + "d"
	default:
		return ">2y"
	}
}

// longAway is a remaining time that is more likely a mistake than a TTL.
const longAway = 10 * 365 * 24 * time.Hour

// farAway reports whether an end is so late that it counts as never.
func farAway(end, now time.Time) bool { return end.Sub(now) >= longAway }

// endClock formats an end as a time of day.
func endClock(end, now time.Time) string {
	if farAway(end, now) {
		return "never"
	}
	return Clock(end)
}

// Left formats a remaining time: rounded down to tenths of a second below a minute,
// otherwise like [Age].
func Left(d time.Duration) string {
	switch d = max(d, 0); {
	case d >= longAway:
		return "never"
	case d < time.Minute:
		return strconv.FormatFloat(d.Truncate(100*time.Millisecond).Seconds(), 'f', 1, 64) + "s"
	}
	return Age(d)
}

// Age formats an age in at most six cells, rounded down.
func Age(d time.Duration) string {
	d = max(d, 0)
	s, m, h := int(d/time.Second), int(d/time.Minute), int(d/time.Hour)
	switch {
	case m < 1:
		return strconv.Itoa(s) + "s"
	case m < 10:
		return twoUnits(m, "m", s%60, "s")
	case h < 1:
		return strconv.Itoa(m) + "m"
	case h < 24:
		return twoUnits(h, "h", m%60, "m")
	case h < 100*24:
		return strconv.Itoa(h/24) + "d" + strconv.Itoa(h%24) + "h"
	default:
		return strconv.Itoa(h/24) + "d"
	}
}

// twoUnits formats two units, such as 2h05m.
func twoUnits(n int, unit string, m int, small string) string {
	s := strconv.Itoa(n) + unit
	if m < 10 {
		s += "0"
	}
	return s + strconv.Itoa(m) + small
}

// Span formats a configured duration, such as a TTL or D, rounded to the millisecond.
func Span(d time.Duration) string {
	s := d.Round(time.Millisecond).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// Milliseconds formats a measured time: in ms with one decimal, or two if it is very
// short, or in seconds if it is long.
func Milliseconds(d time.Duration) string {
	if d.Abs() >= time.Second {
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + "s"
	}
	decimals := 1
	if d != 0 && d.Abs() < 100*time.Microsecond {
		decimals = 2
	}
	return strconv.FormatFloat(inMS(d), 'f', decimals, 64) + "ms"
}

func inMS(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Clock formats a time of day.
func Clock(t time.Time) string { return t.Format("15:04:05") }

// Moment formats a date and time in the local zone.
func Moment(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05") }

// momentSince formats a time, with date or year only if needed, see [words.Near].
func momentSince(t, now time.Time) string {
	t, now = t.Local(), now.Local()
	switch {
	case words.Near(t, now):
		return Clock(t)
	case t.Year() != now.Year():
		return Moment(t)
	}
	return t.Format("01-02 15:04:05")
}

// Count writes n with a comma every three digits.
func Count(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Plural returns n and its noun; the plural adds an s unless many is given.
func Plural(n int, one string, many ...string) string {
	switch {
	case n == 1:
		return "1 " + one
	case len(many) > 0:
		return Count(n) + " " + many[0]
	}
	return Count(n) + " " + one + "s"
}

// ParseEnd parses the end of a time that begins at since, as [ParseMoment] does; but a
// time of day that comes within the hour, or whose last one is before since, is today's. An
// end after now is now.
func ParseEnd(text string, since, now time.Time) (time.Time, error) {
	end, err := ParseMoment(text, now)
	if err != nil {
		return end, err
	}
	if next, err := ParseMoment("today "+strings.TrimSpace(text), now); err == nil && (next.Sub(now) <= time.Hour || !end.After(since)) {
		end = next
	}
	if end.After(now) {
		end = now
	}
	return end, nil
}

// momentForms are the accepted forms of a moment besides "2h ago".
var momentForms = []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly}

// ParseMoment parses a moment: "2h ago" or "2h", "03:12" (the last one), "yesterday
// 03:12", "2026-01-31 15:04" and RFC 3339. It returns it in the zone of now, which is also
// that of a moment without a zone.
func ParseMoment(text string, now time.Time) (time.Time, error) {
	s := strings.TrimSpace(text)
	if s == "now" {
		return now, nil
	}
	if d, err := time.ParseDuration(strings.TrimSpace(strings.TrimSuffix(s, "ago"))); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	day, clock := now, s
	if rest, ok := strings.CutPrefix(s, "yesterday"); ok {
		day, clock = now.AddDate(0, 0, -1), strings.TrimSpace(rest)
	} else if rest, ok := strings.CutPrefix(s, "today"); ok {
		clock = strings.TrimSpace(rest)
	}
	for _, form := range []string{"15:04:05", "15:04"} {
		if c, err := time.Parse(form, clock); err == nil {
			t := time.Date(day.Year(), day.Month(), day.Day(), c.Hour(), c.Minute(), c.Second(), c.Nanosecond(), now.Location())
			if clock == s && t.After(now) {
				t = t.AddDate(0, 0, -1)
			}
			return t, nil
		}
	}
	for _, form := range momentForms {
		if t, err := time.ParseInLocation(form, s, now.Location()); err == nil {
			return t.In(now.Location()), nil
		}
	}
	return time.Time{}, fmt.Errorf(`%q: write how long ago ("2h ago"), or when ("03:12", "yesterday 03:12", "2026-01-31 15:04")`, text)
}
