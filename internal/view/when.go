package view

import (
	"fmt"
	"strings"
	"time"
)

// momentForms are how a moment may be written, beside how long ago.
var momentForms = []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly}

// ParseMoment reads a moment as a person writes it: "2h ago" or "2h", "03:12" (the last
// one), "yesterday 03:12", "2026-01-31 15:04" and RFC 3339. Without a zone it is in that of
// now.
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
			t := time.Date(day.Year(), day.Month(), day.Day(), c.Hour(), c.Minute(), c.Second(), 0, now.Location())
			if clock == s && t.After(now) {
				t = t.AddDate(0, 0, -1)
			}
			return t, nil
		}
	}
	for _, form := range momentForms {
		if t, err := time.ParseInLocation(form, s, now.Location()); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf(`%q: write how long ago ("2h ago"), or when ("03:12", "yesterday 03:12", "2026-01-31 15:04")`, text)
}
