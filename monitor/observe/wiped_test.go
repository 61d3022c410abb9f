package observe

import (
	"testing"
	"time"
)

// A server that says that its data was wiped since its start may have forgotten votes up
// to now: it does not say when it was wiped.
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
