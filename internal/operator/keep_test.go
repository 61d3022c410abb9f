package operator

import (
	"errors"
	"strings"
	"testing"
	"time"

	"redlockctl/internal/audit"
)

// A lock that is kept is given back between two lines of the log, and kept on
// where the first cannot be written.
func TestKeptIsReleasedOnRecord(t *testing.T) {
	o, c := start(t, nil)
	k, err := o.Keep(t.Context(), "job", time.Second)
	if err != nil {
		t.Fatal(err)
	}
	c.onCall = func(call string) {
		if r := c.records(); call == "end of keep" && (len(r) != 3 || r[2].Act != "release" || r[2].Phase != audit.Intent) {
			t.Errorf("before the release the log is %+v; want its intent", r)
		}
	}
	if _, err := k.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(c.calls, ", "); got != "acquire, keep, end of keep, release t1" {
		t.Errorf("sent %s", got)
	}
	if r := c.records(); len(r) != 4 || r[3].Phase != audit.Done || r[3].ID != r[2].ID {
		t.Errorf("the log is %+v; want the release done", r)
	}

	o, c = start(t, nil)
	if k, err = o.Keep(t.Context(), "job", time.Second); err != nil {
		t.Fatal(err)
	}
	_ = o.opt.Log.Close()
	if _, err := k.Release(t.Context()); !errors.Is(err, ErrRefused) || len(c.calls) != 2 {
		t.Errorf("without a log: %v, sent %q; want ErrRefused, and the lock kept", err, c.calls)
	}
}
