package operator

import (
	"errors"
	"strings"
	"testing"
	"time"

	"redlockctl/internal/audit"
	"redlockctl/redlock"
)

// The release of a kept lock is logged before and after. If the first line cannot be
// written, the lock stays kept.
func TestKeptIsReleasedOnRecord(t *testing.T) {
	o, c := start(t, nil)
	k, err := o.Keep(t.Context(), "job", time.Second, AcquireOptions{})
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
	if k, err = o.Keep(t.Context(), "job", time.Second, AcquireOptions{}); err != nil {
		t.Fatal(err)
	}
	_ = o.opt.Log.Close()
	if _, err := k.Release(t.Context()); !errors.Is(err, ErrRefused) || len(c.calls) != 2 {
		t.Errorf("without a log: %v, sent %q; want ErrRefused, and the lock kept", err, c.calls)
	}
}

// lostKept is a fake keeper whose lock is lost.
type lostKept struct{ kept }

func (lostKept) State() redlock.KeeperState { return redlock.Lost }

func (lostKept) Err() error { return &redlock.Error{Op: "keep", Kind: redlock.ErrNotHeld} }

func (lostKept) Changes() <-chan redlock.KeeperState {
	over := make(chan redlock.KeeperState)
	close(over)
	return over
}

// The loss of a kept lock is in the log once, and why, also if nobody asks for it.
func TestKeptIsLostOnRecord(t *testing.T) {
	o, c := start(t, nil)
	stopped := make(chan struct{})
	c.onCall = func(call string) {
		if call == "stop" {
			close(stopped)
		}
	}
	o.keep = func(*redlock.Lock, redlock.KeepOptions) (keeper, error) { return lostKept{kept{c: c}}, nil }
	k, err := o.Keep(t.Context(), "job", time.Second, AcquireOptions{})
	if err != nil {
		t.Fatal(err)
	}
	<-stopped
	k.Stop() // waits for the first one
	r := c.records()
	if len(r) != 3 || r[2].Act != "keep" || r[2].Phase != audit.Failed || r[2].Detail != "lock lost: keep: no majority has this token" {
		t.Errorf("the log is %+v", r)
	}
}

// A lock kept for a time is released and logged at its end. Terms say who keeps it, since
// when and why.
func TestKeptForATimeIsReleasedThen(t *testing.T) {
	o, c := start(t, nil)
	released := make(chan struct{})
	c.onCall = func(call string) {
		if strings.HasPrefix(call, "release") {
			close(released)
		}
	}
	k, err := o.Keep(t.Context(), "job", time.Second, AcquireOptions{For: time.Millisecond, Reason: "rolling update"})
	if err != nil {
		t.Fatal(err)
	}
	if is := k.Terms(); is.By == "" || is.Reason != "rolling update" || is.End.Sub(is.Since) != time.Millisecond {
		t.Errorf("its terms are %+v", is)
	}
	<-released
	r := c.records()
	if r[0].Reason != "rolling update" || !strings.Contains(r[0].Detail, "kept for 1ms") {
		t.Errorf("the log says of its acquisition %+v", r[0])
	}
	if last := r[2]; last.Act != "release" || last.Detail != "its time has ended" {
		t.Errorf("the log ends with %+v; want the release, and why", last)
	}
	if _, err := o.Keep(t.Context(), "job", time.Second, AcquireOptions{For: -1}); !errors.Is(err, redlock.ErrInvalid) {
		t.Errorf("for a negative time: %v; want ErrInvalid", err)
	}
}
