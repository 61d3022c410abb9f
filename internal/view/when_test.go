package view

import (
	"strings"
	"testing"
	"time"

	"redlockctl/monitor"
	"redlockctl/monitor/monitortest"
)

// On a screen without room for AT, an end that is ten minutes to a day away is a time of day,
// until it is nearer.
func TestAFarEndIsATimeOfDay(t *testing.T) {
	now := monitortest.Epoch // 12:03:10
	for _, c := range []struct {
		noAt bool
		left time.Duration
		want string
	}{
		{true, 48 * time.Minute, "12:51"}, {true, 10 * time.Minute, "12:13"}, {true, 10*time.Minute - 1, "9m"}, {true, 9 * time.Second, "9s"},
		{true, 24*time.Hour - 1, "12:03"}, {true, 24 * time.Hour, "24h"}, {true, 20 * 365 * 24 * time.Hour, "∞"}, {false, 48 * time.Minute, "48m"},
	} {
		l := monitortest.LockOf(now, "job", monitor.LockHeld, monitortest.TokenA, "1 1 1 1 1").Timed(now, now.Add(c.left))
		ctx := &Context{Glyphs: &Unicode, Snap: monitortest.Safe(now), Now: now, Short: true, NoAt: c.noAt}
		if got := lockEnds(ctx, &l); got.Text != c.want {
			t.Errorf("%s, AT has no room: %v: %q; want %q", c.left, c.noAt, got.Text, c.want)
		} else if strings.Contains(got.Text, ":") && !ctx.Until().Equal(now.Add(c.left-clockFrom+1)) {
			t.Errorf("%s: it is drawn again at %s", c.left, ctx.Until())
		}
	}
}

func TestParseMoment(t *testing.T) {
	zone := time.FixedZone("CET", 3600)
	now := time.Date(2026, 3, 2, 3, 40, 7, 0, zone)
	for text, want := range map[string]string{
		"now": "2026-03-02T03:40:07", "2h ago": "2026-03-02T01:40:07", "2h": "2026-03-02T01:40:07", "90s ago": "2026-03-02T03:38:37",
		"03:12": "2026-03-02T03:12:00", "03:12:30": "2026-03-02T03:12:30", "22:00": "2026-03-01T22:00:00", "today 22:00": "2026-03-02T22:00:00",
		"yesterday 03:12": "2026-03-01T03:12:00", "2026-02-28 15:04": "2026-02-28T15:04:00", "2026-02-28T15:04:05": "2026-02-28T15:04:05",
		"2026-02-28": "2026-02-28T00:00:00", "2026-02-28T15:04:05+03:00": "2026-02-28T13:04:05", " 03:12 ": "2026-03-02T03:12:00",
		"03:12:30.7": "2026-03-02T03:12:30.7", "yesterday 03:12:30.07": "2026-03-01T03:12:30.07", "2026-02-28 15:04:05.007": "2026-02-28T15:04:05.007", // a lock changes hands within a second
	} {
		if got, err := ParseMoment(text, now); err != nil || got.Format("2006-01-02T15:04:05.999") != want {
			t.Errorf("%q is %s, %v; want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "soon", "-2h", "25:00", "yesterday", "tomorrow 03:12", "2026-13-01", "03:12 ago"} {
		if got, err := ParseMoment(text, now); err == nil {
			t.Errorf("%q is taken for %s", text, got)
		}
	}
}
