package page

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"redlockctl/monitor"
	"redlockctl/monitor/monitortest"
	"redlockctl/server/safetext"
	"redlockctl/tui/styles"
)

func TestEventsSayWhatTheyAreAbout(t *testing.T) {
	st := styles.New(styles.Look{Theme: styles.ThemeNone})
	v := eventView{&st}
	event := func(level monitor.Level, node, key, text string) monitor.Event {
		return monitor.Event{At: monitortest.Epoch, Level: level, Node: node, Key: safetext.New(key), Text: safetext.New(text)}
	}
	for _, c := range []struct {
		event monitor.Event
		want  string
	}{
		{event(monitor.LevelAlarm, "", "orders:42", "several tokens at once"), "! orders:42: several tokens at once"},
		{event(monitor.LevelInfo, "", "a", "acquired by x"), "  a: acquired by x"},
		{event(monitor.LevelInfo, "", "job", "job acquired"), "  job acquired"},
		{event(monitor.LevelNotice, "n2", "", "n2 restarted"), "· n2 restarted"},
		{event(monitor.LevelNotice, "n2", "", "restarted"), "· n2: restarted"},
	} {
		if got := strings.Join(v.whole(&c.event, 80, true), ""); ansi.Strip(got) != ansi.Strip(v.row(&c.event, 80, true)) {
			t.Errorf("a sentence that fits is drawn in another way: %q", got)
		}
		if got := ansi.Strip(v.row(&c.event, 80, true)); got != " 12:03:10 "+c.want {
			t.Errorf("%q, not %q", got, c.want)
		}
	}
}

// Beside a lock or a node an event is told whole, and a text without end is not.
func TestAnEventIsToldWhole(t *testing.T) {
	st := styles.New(styles.Look{Theme: styles.ThemeNone})
	v := eventView{&st}
	e := monitor.Event{At: monitortest.Epoch, Level: monitor.LevelAlarm, Node: "n2", Text: safetext.New("n2 restarted: 1,180 locks lost a copy, 14 have a bare majority now")}
	got := ansi.Strip(strings.Join(v.whole(&e, 60, true), "\n"))
	if want := " 12:03:10 ! n2 restarted: 1,180 locks lost a copy, 14 have\n            a bare majority now"; got != want {
		t.Errorf("%q, not %q", got, want)
	}
	e.Text = safetext.New(strings.Repeat("\x1b[31m restarted ", 100_000))
	lines := v.whole(&e, 60, true)
	for _, l := range lines {
		if len(lines) > mostOfEvent+2 || ansi.StringWidth(l) > 60 || strings.Contains(ansi.Strip(l), "\x1b") {
			t.Fatalf("%d lines: %q", len(lines), l)
		}
	}
}
