package progress

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"redlockctl/cli/printer"
)

func TestProgress(t *testing.T) {
	for _, c := range []struct {
		name  string
		tty   bool
		term  string
		lasts time.Duration
		want  string
	}{
		{"nothing within the first second", true, "", 900 * time.Millisecond, ""},
		{"nothing into a pipe", false, "", 5 * time.Second, ""},
		{"nothing on a dumb terminal", true, "dumb", 5 * time.Second, ""},
		{"a bar, which is wiped away", true, "", 5500 * time.Millisecond, "\rwaiting [############............] 5.0s left\x1b[K\r\x1b[K"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var said strings.Builder
				a := New(&printer.Printer{Err: &said, ErrTTY: c.tty, ASCII: true, Getenv: func(string) string { return c.term }})
				done := a.ProgressFor("waiting", 10*time.Second)
				time.Sleep(c.lasts)
				a.Progress("not beside the bar")()
				done()
				done()
				if got := said.String(); !strings.HasSuffix(got, c.want) || c.want == "" && got != "" || strings.Contains(got, "beside") {
					t.Errorf("%q", got)
				}
			})
		})
	}
}

func TestProgressOfSeveral(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said strings.Builder
		a := New(&printer.Printer{Err: &said, ErrTTY: true, ASCII: true, Getenv: func(string) string { return "" }})
		step, b := a.ProgressOf("revoke\x1b[2J", 4)
		step(1)
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		step(2)
		b.Aside(func() { said.WriteString("a line\n") })
		b.End()
		if got := said.String(); !strings.Contains(got, "[############............] 2 of 4\x1b[K\r\x1b[Ka line\n") || strings.Contains(got, "\x1b[2J") {
			t.Errorf("%q", got)
		}
	})
}

// What has no time left, or nothing to do, draws an empty bar.
func TestProgressOfNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said strings.Builder
		a := New(&printer.Printer{Err: &said, ErrTTY: true, ASCII: true, Getenv: func(string) string { return "" }})
		done := a.ProgressFor("waiting", 0)
		time.Sleep(1500 * time.Millisecond)
		done()
		_, b := a.ProgressOf("revoke", 0)
		time.Sleep(1500 * time.Millisecond)
		b.End()
		if got := said.String(); strings.Count(got, "[........................]") != 2 {
			t.Errorf("%q", got)
		}
	})
}
