package observe

import (
	"testing"
	"time"
)

// A server that says that its data were wiped since its start may have forgotten votes until now: it
// does not say when that was.
func TestFirstAnswerOfAWipedServer(t *testing.T) {
	now := time.Now()
	w := &watch{}
	w.Uptime = time.Hour
	if got := w.incarnation(now).Started; !got.Equal(now.Add(-time.Hour)) {
		t.Error(got)
	}
	w.Facts.Wipes = 1
	if got := w.incarnation(now).Started; !got.Equal(now) {
		t.Error(got)
	}
}
