package table

import (
	"slices"
	"testing"
	"time"

	"redlockctl/monitor"
)

// If changes may have been missed, a TTL that ran out does not prove that a lock has
// expired.
func TestALockExpiresWhenItsNodesAreUpToDate(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(r *rig)
		want      []string
		held      bool
	}{
		"extended": {func(r *rig) { r.set("job:1", "token", 10*time.Second, 0, 1, 2) }, []string{"extended"}, true},
		"expired":  {func(r *rig) {}, []string{"expired"}, false},
		"another got it": {func(r *rig) { r.set("job:1", "other", 10*time.Second, 0, 1, 2) },
			[]string{"expired", "acquired"}, true},
		"the nodes are gone": {func(r *rig) {
			for i := range 3 {
				r.Unreachable(i, r.now)
			}
		}, []string{"not seen"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(3, 0)
			r.set("job:1", "token", 2*time.Second, 0, 1, 2)
			for i := range 3 {
				r.scan(i)
			}
			r.Settle(r.now)
			r.now = r.now.Add(4 * time.Second)
			for i := range 3 {
				r.Missed(i, r.now)
			}
			// Nor does an answer to an earlier read.
			r.Read(0, r.now.Add(-3900*time.Millisecond), r.now, []Row{NewRow("job:1", "string", 1900, 5, "token")})
			r.Refresh(r.now)
			if got := r.kinds(); len(got) > 0 || r.Locks().Get("job:1") == nil {
				t.Fatalf("before anything was read: %q", got)
			}
			c.meanwhile(r)
			for i := range 3 {
				r.scan(i)
			}
			r.now = r.now.Add(time.Millisecond)
			r.Refresh(r.now)
			if got := r.kinds(); !slices.Equal(got, c.want) {
				t.Errorf("%q", got)
			}
			if l := r.Locks().Get("job:1"); c.held != (l != nil && l.State == monitor.LockHeld && l.Held == 3) {
				t.Errorf("%+v", l)
			}
		})
	}
}

// A node that has reported all its changes is as up to date as one that was read again.
func TestANodeThatHasToldAllIsUpToDate(t *testing.T) {
	r := newRig(1, 0)
	r.set("job:1", "token", 2*time.Second, 0)
	r.scan(0)
	r.Settle(r.now)
	r.now = r.now.Add(3 * time.Second)
	r.Missed(0, r.now)
	r.Refresh(r.now)
	r.Sync(0, r.now.Add(-time.Millisecond))
	if r.Refresh(r.now); len(r.events) > 0 || !r.Unconfirmed() {
		t.Fatalf("%q", r.kinds())
	}
	r.now = r.now.Add(time.Millisecond)
	r.Sync(0, r.now)
	if r.Refresh(r.now); !slices.Equal(r.kinds(), []string{"expired"}) || r.Unconfirmed() {
		t.Errorf("%q", r.kinds())
	}
}

func TestWhatDiffersFromWhatIsShown(t *testing.T) {
	r := newRig(1, 0)
	r.set("job:1", "token", 10*time.Second, 0)
	r.set("job:2", "token", 0, 0)
	r.scan(0)
	r.Settle(r.now)
	if keys, next := r.Sample(0, 0, 1); len(keys) != 1 || next != 1 {
		t.Errorf("%q %d", keys, next)
	}
	if keys, _ := r.Sample(0, 1, 5); len(keys) < 2 || !slices.Contains(keys, "job:1") || !slices.Contains(keys, "job:2") {
		t.Errorf("%q", keys)
	}
	for name, c := range map[string]struct {
		row  Row
		want bool
	}{
		"the same":                {NewRow("job:1", "string", 10000, 5, "token"), false},
		"about the same":          {NewRow("job:1", "string", 9800, 5, "token"), false},
		"another token":           {NewRow("job:1", "string", 10000, 5, "other"), true},
		"another type":            {NewRow("job:1", "list", 10000, 5, ""), true},
		"extended":                {NewRow("job:1", "string", 20000, 5, "token"), true},
		"no TTL any more":         {NewRow("job:1", "string", -1, 5, "token"), true},
		"about to end":            {NewRow("job:1", "string", 500, 5, "token"), true},
		"gone":                    {NewRow("job:1", "none", -2, 0, ""), true},
		"gone without a TTL":      {NewRow("job:2", "none", -2, 0, ""), true},
		"not shown":               {NewRow("job:3", "string", 10000, 5, "token"), true},
		"neither shown nor there": {NewRow("job:3", "none", -2, 0, ""), false},
		"not shown, about to end": {NewRow("job:3", "string", 500, 5, "token"), false},
	} {
		if got := len(r.Differs(0, r.now, r.now, []Row{c.row}, true)) == 1; got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	extended := []Row{NewRow("job:1", "string", 20000, 5, "token")}
	if r.Differs(0, r.now, r.now, extended, false) != nil {
		t.Error("ends are compared")
	}
	if r.Differs(0, r.now.Add(-time.Second), r.now, extended, true) != nil {
		t.Error("an older read counts")
	}
	if end := r.now.Add(9500 * time.Millisecond); r.Differs(0, end, end, []Row{NewRow("job:1", "none", -2, 0, "")}, true) != nil {
		t.Error("it was about to expire")
	}
	r.Missed(0, r.now.Add(time.Second))
	if r.Differs(0, r.now, r.now, extended, true) != nil {
		t.Error("the node is not up to date")
	}
}
