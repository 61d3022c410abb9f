package cli

import (
	"strings"
	"testing"
	"time"

	"redlockctl/cli/printer"
	"redlockctl/server/safetext"
	"redlockctl/tui/action"
)

func TestWhatOutlivesTheScreenIsTold(t *testing.T) {
	var said strings.Builder
	a := newCommandLine(&printer.Printer{Err: &said})
	a.tellParting(action.Parting{
		Released: []safetext.Text{safetext.New("deploy")},
		Left:     []action.Left{{Key: safetext.New("job:\x1b[2J"), Until: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}},
	})
	if want := "redlockctl: deploy released\nredlockctl: job:\\x1b[2J stays locked until 03:04:05; nothing extends it any more\n"; said.String() != want {
		t.Errorf("it says %q; want %q", said.String(), want)
	}
}
