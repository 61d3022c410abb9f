package cli

import (
	"strings"
	"testing"
	"time"

	"redlockctl/cli/app"
	"redlockctl/monitor"
	"redlockctl/server/safetext"
)

func TestEventPrinterPrintsEachEventOnceAndLittleOfTheEveryday(t *testing.T) {
	at := time.Date(2026, 1, 2, 12, 3, 10, 0, time.Local)
	event := func(seq int, after time.Duration, level monitor.Level, kind, text string) monitor.Event {
		return monitor.Event{Seq: uint64(seq), At: at.Add(after), Level: level, Kind: kind, Text: safetext.New(text)}
	}
	events := []monitor.Event{
		event(1, 0, monitor.LevelInfo, "acquired", "a was acquired"),
		event(2, 0, monitor.LevelInfo, "released", "a was released"),
		event(3, 0, monitor.LevelNotice, "restart", "n2 restarted\x1b[2J"),
		event(4, 500*time.Millisecond, monitor.LevelInfo, "acquired", "b was acquired"),
		event(5, time.Second, monitor.LevelInfo, "acquired", "c was acquired"),
	}
	var w strings.Builder
	p := &eventPrinter{out: &w}
	p.print(events[:3])
	p.print(events[1:]) // the oldest has been dropped
	p.print(events)
	want := "12:03:10  a was acquired\n12:03:10  n2 restarted\\x1b[2J\n12:03:11  c was acquired\n"
	if w.String() != want {
		t.Errorf("%q, want %q", w.String(), want)
	}
}

func TestDemoMaxTTLFollowsCrashEvery(t *testing.T) {
	for every, want := range map[time.Duration]time.Duration{
		0: 10 * time.Second, time.Second: time.Second, 3 * time.Second: 3 * time.Second, time.Minute: 10 * time.Second,
	} {
		o := demoOptions{DemoOptions: app.DemoOptions{Nodes: 5, CrashEvery: every}}
		if err := o.check(); err != nil || o.MaxTTL != want {
			t.Errorf("--crash-every %s: max TTL %s, error %v; want %s", every, o.MaxTTL, err, want)
		}
	}
}
