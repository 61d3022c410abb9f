package view

import (
	"testing"
	"time"
)

func TestTimes(t *testing.T) {
	for _, c := range []struct {
		d         time.Duration
		left, age string
	}{
		{-time.Second, "0s", "0s"},
		{0, "0s", "0s"},
		{999 * time.Millisecond, "<1s", "0s"},
		{9999 * time.Millisecond, "9s", "9s"},
		{99 * time.Second, "99s", "1m39s"},
		{100 * time.Second, "1m", "1m40s"},
		{90 * time.Minute, "90m", "1h30m"},
		{47 * time.Hour, "47h", "1d23h"},
		{1000 * time.Hour, "41d", "41d16h"},
		{90000 * time.Hour, ">2y", "3750d"},
	} {
		if got := Remaining(c.d); got != c.left || len(got) > 4 {
			t.Errorf("remaining(%s) = %q", c.d, got)
		}
		if got := Age(c.d); got != c.age || len(got) > 6 {
			t.Errorf("age(%s) = %q", c.d, got)
		}
	}
	for d, want := range map[time.Duration]string{-1: "0.0s", 999 * time.Millisecond: "0.9s", 59999 * time.Millisecond: "59.9s", 64 * time.Second: "1m04s", 2*time.Hour + 3*time.Minute: "2h03m", 90000 * time.Hour: "never"} {
		if got := Left(d); got != want {
			t.Errorf("Left(%s) = %q, not %q", d, got, want)
		}
	}
	for d, want := range map[time.Duration]string{0: "0s", 30350 * time.Millisecond: "30.35s", 2 * time.Minute: "2m", time.Hour: "1h", 90 * time.Minute: "1h30m", 1500 * time.Microsecond: "2ms", 100 * time.Second: "1m40s"} {
		if got := Span(d); got != want {
			t.Errorf("Span(%s) = %q, not %q", d, got, want)
		}
	}
	for d, want := range map[time.Duration]string{0: "0.0ms", 39 * time.Microsecond: "0.04ms", 312 * time.Microsecond: "0.3ms", -1500 * time.Microsecond: "-1.5ms", 1500 * time.Millisecond: "1.5s"} {
		if got := Milliseconds(d); got != want {
			t.Errorf("Milliseconds(%s) = %q, not %q", d, got, want)
		}
	}
	if a, b, c := Plural(1, "copy", "copies"), Plural(1200, "copy", "copies"), Plural(0, "node"); a != "1 copy" || b != "1,200 copies" || c != "0 nodes" {
		t.Error(a, b, c)
	}
	if got := Count(-1234567); got != "-1,234,567" {
		t.Error(got)
	}
	if got := Count(-123); got != "-123" {
		t.Error(got)
	}
}

func TestSparkline(t *testing.T) {
	ms := time.Millisecond
	if got := Unicode.Sparkline([]time.Duration{ms, ms, 8 * ms, ms}, 6); got != "  ▁▁█▁" {
		t.Errorf("%q", got)
	}
	if got := ASCII.Sparkline([]time.Duration{ms, 2 * ms}, 1); got != "_" {
		t.Errorf("%q", got)
	}
	if got := Unicode.Sparkline(nil, 4); Width(got) != 4 {
		t.Errorf("%q", got)
	}
	if got := Unicode.Sparkline([]time.Duration{300000, 401000, 299000}, 3); got != "▁▁▁" {
		t.Errorf("noise looks like trouble: %q", got)
	}
}

// A time that is half a day away has its date, and one in another year has the year too.
func TestMomentSince(t *testing.T) {
	now := time.Date(2026, 11, 20, 3, 12, 9, 0, time.Local)
	for want, at := range map[string]time.Time{
		"03:12:04":            now.Add(-5 * time.Second),
		"23:12:09":            now.Add(-4 * time.Hour),
		"11-19 15:12:09":      now.Add(-12 * time.Hour),
		"2025-11-20 03:12:09": now.AddDate(-1, 0, 0),
	} {
		if got := momentSince(at, now); got != want {
			t.Errorf("%s is told as %q; want %q", at, got, want)
		}
	}
}

// The end of a time is the next one of that time of day where the last one makes no sense.
func TestParseEnd(t *testing.T) {
	now := time.Date(2026, 11, 25, 12, 31, 24, 0, time.UTC)
	for _, c := range []struct {
		until string
		since time.Duration
		want  time.Time
	}{
		{"12:31:30", 24 * time.Hour, now},
		{"13:00", 24 * time.Hour, now},
		{"18:00", time.Hour, now},
		{"18:00", 24 * time.Hour, now.Add(-time.Duration(18*time.Hour + 31*time.Minute + 24*time.Second))},
		{"12:30", time.Hour, now.Add(-84 * time.Second)},
		{"yesterday 13:00", 48 * time.Hour, now.Add(-time.Duration(23*time.Hour + 31*time.Minute + 24*time.Second))},
		{"1h ago", 24 * time.Hour, now.Add(-time.Hour)},
		{"now", time.Hour, now},
	} {
		if got, err := ParseEnd(c.until, now.Add(-c.since), now); err != nil || !got.Equal(c.want) {
			t.Errorf("%s since %s ago: %s, %v, not %s", c.until, c.since, got, err, c.want)
		}
	}
}

// Round trips of all nodes are on one scale: 98 ms is not drawn as 0.3 ms.
func TestRTTs(t *testing.T) {
	ms := time.Millisecond
	near, far := Unicode.RTTs([]time.Duration{ms / 3, ms / 3}, 2), Unicode.RTTs([]time.Duration{98 * ms, 98 * ms}, 2)
	if near != "▁▁" || far != "▅▅" {
		t.Errorf("%q, %q", near, far)
	}
	for want, rtts := range map[bool][]time.Duration{
		false: {98 * ms, 97 * ms, 99 * ms, 98 * ms, 110 * ms},
		true:  {ms / 3, ms / 3, ms / 2, ms / 3, 4 * ms},
	} {
		if got := SlowRTT(rtts); got != want {
			t.Errorf("%v above normal: %v", rtts, got)
		}
	}
}
