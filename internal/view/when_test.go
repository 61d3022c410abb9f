package view

import (
	"testing"
	"time"
)

func TestParseMoment(t *testing.T) {
	zone := time.FixedZone("CET", 3600)
	now := time.Date(2026, 3, 2, 3, 40, 7, 0, zone)
	for text, want := range map[string]string{
		"now": "2026-03-02T03:40:07", "2h ago": "2026-03-02T01:40:07", "2h": "2026-03-02T01:40:07", "90s ago": "2026-03-02T03:38:37",
		"03:12": "2026-03-02T03:12:00", "03:12:30": "2026-03-02T03:12:30", "22:00": "2026-03-01T22:00:00", "today 22:00": "2026-03-02T22:00:00",
		"yesterday 03:12": "2026-03-01T03:12:00", "2026-02-28 15:04": "2026-02-28T15:04:00", "2026-02-28T15:04:05": "2026-02-28T15:04:05",
		"2026-02-28": "2026-02-28T00:00:00", "2026-02-28T15:04:05+01:00": "2026-02-28T15:04:05", " 03:12 ": "2026-03-02T03:12:00",
	} {
		if got, err := ParseMoment(text, now); err != nil || got.Format("2006-01-02T15:04:05") != want {
			t.Errorf("%q is %s, %v; want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "soon", "-2h", "25:00", "yesterday", "tomorrow 03:12", "2026-13-01", "03:12 ago"} {
		if got, err := ParseMoment(text, now); err == nil {
			t.Errorf("%q is taken for %s", text, got)
		}
	}
}
