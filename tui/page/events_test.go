package page

import (
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
		if got := ansi.Strip(v.row(&c.event, 80, true)); got != " 12:03:10 "+c.want {
			t.Errorf("%q, not %q", got, c.want)
		}
	}
}
