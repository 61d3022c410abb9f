package operator

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"redlockctl/internal/audit"
	"redlockctl/monitor"
	"redlockctl/redlock"
)

func TestReadOnlySendsNothing(t *testing.T) {
	for _, act := range acts {
		t.Run(act.name, func(t *testing.T) {
			o, c := start(t, func(o *Options) { o.ReadOnly = true })
			if err := act.do(t.Context(), o); !errors.Is(err, ErrReadOnly) {
				t.Errorf("got %v; want ErrReadOnly", err)
			}
			if len(c.calls) != 0 || len(c.records()) != 0 || !o.ReadOnly() {
				t.Errorf("calls %q, records %+v; want none", c.calls, c.records())
			}
		})
	}
}

func TestWhatCannotBeLoggedIsNotSent(t *testing.T) {
	for _, act := range acts {
		for what, spoil := range map[string]func(*Options){
			"the log cannot be written": func(o *Options) { _ = o.Log.Close() },
			"there is no log":           func(o *Options) { o.Log = nil },
		} {
			t.Run(act.name+", "+what, func(t *testing.T) {
				o, c := start(t, spoil)
				if err := act.do(t.Context(), o); !errors.Is(err, ErrRefused) {
					t.Errorf("got %v; want ErrRefused", err)
				}
				if len(c.calls) != 0 {
					t.Errorf("sent %q; want nothing", c.calls)
				}
			})
		}
	}
}

// What is on disk at the first call is what would be left after a crash.
func TestIntentIsOnDiskBeforeTheAct(t *testing.T) {
	for _, act := range acts {
		t.Run(act.name, func(t *testing.T) {
			o, c := start(t, nil)
			var before []audit.Record
			c.onCall = func(string) {
				if before == nil {
					before = c.records()
				}
			}
			if err := act.do(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(c.calls, act.sent) {
				t.Errorf("sent %q; want %q", c.calls, act.sent)
			}
			if len(before) != 1 {
				t.Fatalf("%d records before the act; want 1", len(before))
			}
			got := before[0]
			want := act.want
			want.Time, want.ID, want.Phase, want.Actor, want.Cluster = got.Time, got.ID, audit.Intent, "ops@host", "lab"
			if got != want || got.ID == "" || time.Since(got.Time) > time.Hour {
				t.Errorf("intent is %+v; want %+v", got, want)
			}
			after := c.records()
			last := after[len(after)-1]
			if len(after) < 2 || last.Phase != audit.Done || last.ID != got.ID || last.Act != got.Act || last.Target != got.Target || last.Reason != got.Reason {
				t.Errorf("outcome is %+v; want it done, with the same id, act, target and reason", last)
			}
		})
	}
}

// The event of an action says who did it, and why.
func TestAnActionIsNotedWithWhoDidIt(t *testing.T) {
	o, _ := start(t, nil)
	var noted []string
	o.opt.Note = func(e monitor.Event) { noted = append(noted, e.Text.Raw()) }
	if err := o.Cordon(t.Context(), "n1", "disk change"); err != nil {
		t.Fatal(err)
	}
	if want := []string{"operator: cordon n1 by ops@host (disk change)"}; !slices.Equal(noted, want) {
		t.Errorf("%q, want %q", noted, want)
	}
}

// A removal that finds nothing names the operator who was faster; its event comes from the audit log.
func TestARemovalThatWasOvertaken(t *testing.T) {
	noted := 0
	o, c := start(t, func(o *Options) {
		o.Note = func(monitor.Event) { noted++ }
		o.Overtaken = func(_ context.Context, lock string) string { return "it was force-released by alice: " + lock + " \\" }
	})
	c.look = look("", "", "")
	err := o.Remove(t.Context(), Removal{Kind: Revoke, Keys: []string{"none"}, Reason: "dead"}).Err()
	const told = `it was force-released by alice: none \\`
	if !errors.Is(err, redlock.ErrNotHeld) || OvertakenBy(err) != told || !strings.HasSuffix(err.Error(), "; "+told) || noted != 0 {
		t.Errorf("%v, by %q, %d events", err, OvertakenBy(err), noted)
	}
	if by := OvertakenBy(redlock.ErrNotHeld); by != "" {
		t.Errorf("by %q", by)
	}
}

func TestDangerousActsNeedAReason(t *testing.T) {
	for _, reason := range []string{"", " \t\n"} {
		o, c := start(t, nil)
		_, force := o.ForceRelease(t.Context(), "job", "t1", reason)
		_, revoke := o.Revoke(t.Context(), "job", "t1", reason)
		for name, err := range map[string]error{
			"force-release": force,
			"revoke":        revoke,
			"fence":         o.Cordon(t.Context(), "n1", reason),
			"open":          o.RejoinNow(t.Context(), "n1", reason),
		} {
			if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "reason") {
				t.Errorf("%s: %v; want ErrRefused for want of a reason", name, err)
			}
		}
		if len(c.calls) != 0 {
			t.Errorf("sent %q; want nothing", c.calls)
		}
	}
}

func TestTTLIsBounded(t *testing.T) {
	o, c := start(t, nil)
	_, acquire := o.AcquireWith(t.Context(), "job", 31*time.Second, AcquireOptions{})
	_, extend := o.Extend(t.Context(), "job", "t1", 31*time.Second)
	for _, err := range []error{acquire, extend} {
		if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "31s") || !strings.Contains(err.Error(), "30s") {
			t.Errorf("got %v; want ErrRefused with both values", err)
		}
	}
	_, keep := o.Keep(t.Context(), "job", 31*time.Second, AcquireOptions{})
	if !errors.Is(keep, ErrRefused) {
		t.Errorf("keep: %v; want ErrRefused", keep)
	}
	_, zero := o.AcquireWith(t.Context(), "job", 0, AcquireOptions{})
	_, nameless := o.AcquireWith(t.Context(), "", time.Second, AcquireOptions{})
	_, tokenless := o.Release(t.Context(), "job", "")
	_, forceNameless := o.ForceRelease(t.Context(), "", "t1", "dead")
	for _, err := range []error{zero, nameless, tokenless, forceNameless} {
		if !errors.Is(err, redlock.ErrInvalid) {
			t.Errorf("got %v; want redlock.ErrInvalid", err)
		}
	}
	if len(c.calls) != 0 || len(c.records()) != 0 {
		t.Errorf("sent %q; want nothing", c.calls)
	}
	if _, err := o.AcquireWith(t.Context(), "job", 30*time.Second, AcquireOptions{}); err != nil {
		t.Errorf("the longest TTL itself: %v", err)
	}
}

func TestUnknownNodeIsRefused(t *testing.T) {
	o, c := start(t, nil)
	err := o.Cordon(t.Context(), "n\x1b9", "disk")
	if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "n1, n2, n3") || strings.Contains(err.Error(), "\x1b") || len(c.calls) != 0 {
		t.Errorf("got %v, sent %q; want ErrRefused with the names there are", err, c.calls)
	}
}

func TestForceRelease(t *testing.T) {
	hash := look("t1", "", "")
	hash[1] = redlock.NodeResult{Node: "n2", Status: redlock.StatusProtocol, Type: "hash"}
	long := look("t1", "", "")
	long[0].Len = 1000
	empty := look("t1", "", "")
	empty[0].Token = ""
	ok, held, absent, down := redlock.StatusOK, redlock.StatusHeld, redlock.StatusAbsent, redlock.StatusDown
	for _, tt := range []struct {
		name   string
		look   []redlock.NodeResult
		lookIs error
		token  string
		calls  []string
		want   []redlock.Status
		err    error
		says   []string
	}{
		{name: "the token that was shown", look: look("t1", "t2", "t1"), token: "t1", calls: []string{"release t1"}, want: []redlock.Status{ok, held, ok}},
		{name: "whatever is there, each node's own", look: look("t1", "t2", ""), calls: []string{"release t1", "release t2"}, want: []redlock.Status{ok, ok, absent}},
		{name: "a node that is down", look: look("t1", "!", "t1"), token: "t1", calls: []string{"release t1"}, want: []redlock.Status{ok, down, ok}},
		{name: "another holder by now", look: look("t2", "t2", "!"), token: "t1", err: ErrChanged, says: []string{`"t2" on n1, n2`, "not heard of: n3"}},
		{name: "another token on a minority, and the others late", look: look("t2", "slow", "slow"), token: "t1", err: redlock.ErrNoQuorum, says: []string{`"job": n2, n3 did not answer in time: whether the holder changed is not known`}},
		{name: "another token on a minority, and one down", look: look("t2", "", "!"), token: "t1", err: redlock.ErrNoQuorum, says: []string{`"job": n3 is down: whether the holder changed is not known`}},
		{name: "nothing there", look: look("", "", "!"), token: "t1", err: redlock.ErrNotHeld, says: []string{`"job"`, "not heard of: n3"}},
		{name: "nothing there of any", look: look("", "", ""), err: redlock.ErrNotHeld},
		{name: "no node answers", look: look("!", "!", "!"), lookIs: redlock.ErrNoQuorum, token: "t1", err: redlock.ErrNoQuorum},
		{name: "the client is closed", lookIs: redlock.ErrClosed, err: redlock.ErrClosed},
		{name: "a hash", look: hash, err: ErrRefused, says: []string{"n2 is a hash"}},
		{name: "a long value", look: long, token: "t1", err: ErrRefused, says: []string{"1000 bytes"}},
		{name: "an empty value", look: empty, err: ErrRefused},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o, c := start(t, nil)
			c.look, c.lookIs = tt.look, tt.lookIs
			results, err := o.ForceRelease(t.Context(), "job", tt.token, "holder is dead")
			if !errors.Is(err, tt.err) {
				t.Fatalf("got %v; want %v", err, tt.err)
			}
			for _, s := range tt.says {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("the error does not say %q: %v", s, err)
				}
			}
			if want := append([]string{"inspect"}, tt.calls...); !slices.Equal(c.calls, want) {
				t.Errorf("sent %q; want %q", c.calls, want)
			}
			var got []redlock.Status
			for _, r := range results {
				got = append(got, r.Status)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("nodes say %v; want %v", got, tt.want)
			}
			records := c.records()
			phase := audit.Done
			if tt.err != nil {
				phase = audit.Failed
			}
			if last := records[len(records)-1]; last.Phase != phase || last.Detail == "" {
				t.Errorf("outcome is %+v; want phase %s with a detail", last, phase)
			}
		})
	}
}

// After a crash between the read and the last release, the log must say whose copies were
// being deleted.
func TestForceReleaseOfAnyLogsWhatItFoundFirst(t *testing.T) {
	o, c := start(t, nil)
	c.look = look("t1", "t2", "!")
	c.onCall = func(call string) {
		if call != "release t1" {
			return
		}
		r := c.records()
		want := "found n1 sha256:" + audit.TokenSHA("t1") + ", n2 sha256:" + audit.TokenSHA("t2")
		if len(r) != 2 || r[1].Phase != audit.Intent || r[1].Detail != want || r[1].ID != r[0].ID {
			t.Errorf("before the release the log is %+v; want a second intent with %q", r, want)
		}
	}
	if _, err := o.ForceRelease(t.Context(), "job", "", "dead"); err != nil {
		t.Fatal(err)
	}
	o, c = start(t, nil)
	c.onCall = func(string) { _ = o.opt.Log.Close() }
	if _, err := o.ForceRelease(t.Context(), "job", "", "dead"); !errors.Is(err, ErrRefused) || len(c.calls) != 1 {
		t.Errorf("log lost after the look: %v, sent %q; want ErrRefused and nothing deleted", err, c.calls)
	}
}

func TestForceReleaseTellsHowItEnded(t *testing.T) {
	for _, tt := range []struct {
		name    string
		release error
		answers []redlock.NodeResult
		want    error
	}{
		{"taken by another a moment ago", &redlock.Error{Op: "release", Kind: redlock.ErrNotHeld}, look("t2", "t2", ""), ErrChanged},
		{"another token, and who had a copy is late", &redlock.Error{Op: "release", Kind: redlock.ErrNotHeld}, look("t2", "slow", ""), redlock.ErrNoQuorum},
		{"ended a moment ago", &redlock.Error{Op: "release", Kind: redlock.ErrNotHeld}, look("", "", ""), redlock.ErrNotHeld},
		{"too few nodes took part", &redlock.Error{Op: "release", Kind: redlock.ErrNoQuorum}, look("!", "!", ""), redlock.ErrNoQuorum},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o, c := start(t, nil)
			c.release = func(string) ([]redlock.NodeResult, error) { return tt.answers, tt.release }
			results, err := o.ForceRelease(t.Context(), "job", "t1", "dead")
			if !errors.Is(err, tt.want) || len(results) != 3 || results[0].Status != tt.answers[0].Status {
				t.Errorf("got %v, %v; want %v", results, err, tt.want)
			}
			if r := c.records(); r[len(r)-1].Phase != audit.Failed {
				t.Errorf("outcome %+v; want it failed", r[len(r)-1])
			}
		})
	}
}

// The lock core sends releases even after its context has ended.
func TestForceReleaseDoesNotBeginAfterItWasCancelled(t *testing.T) {
	o, c := start(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	c.onCall = func(string) { cancel() }
	if _, err := o.ForceRelease(ctx, "job", "t1", "dead"); !errors.Is(err, context.Canceled) || len(c.calls) != 1 {
		t.Errorf("got %v, sent %q; want it cancelled after the look", err, c.calls)
	}
}

func TestOutcomeThatCannotBeLoggedIsSaid(t *testing.T) {
	for _, act := range acts {
		t.Run(act.name, func(t *testing.T) {
			o, c := start(t, nil)
			c.onCall = func(call string) {
				if call != "inspect" {
					_ = o.opt.Log.Close()
				}
			}
			err := act.do(t.Context(), o)
			if strings.HasPrefix(act.name, "acquire") || act.name == "keep" {
				// Nobody would know the token, so the lock must not stay.
				if !errors.Is(err, ErrRefused) || !slices.Equal(c.calls, []string{"acquire", "release "}) {
					t.Errorf("got %v, sent %q; want ErrRefused, and the lock released", err, c.calls)
				}
				return
			}
			if !errors.Is(err, ErrUnlogged) {
				t.Errorf("got %v; want ErrUnlogged", err)
			}
		})
	}
}

func TestFailureIsLogged(t *testing.T) {
	o, c := start(t, nil)
	c.handErr = errors.New("n2 says \x1b[2J")
	if err := o.Cordon(t.Context(), "n2", "disk"); !errors.Is(err, c.handErr) {
		t.Errorf("got %v; want the cause", err)
	}
	r := c.records()
	if len(r) != 2 || r[1].Phase != audit.Failed || !strings.Contains(r[1].Detail, "n2 says") {
		t.Errorf("log is %+v; want a failure with its cause", r)
	}
	if b, _ := os.ReadFile(c.log); bytes.Contains(b, []byte("\x1b")) {
		t.Errorf("the log holds an escape code: %q", b)
	}
}

// The verdict comes before the slower answers. The log must not present nodes that were
// not waited for as failed.
func TestTheLogTellsWhoWasNotWaitedFor(t *testing.T) {
	results := []redlock.NodeResult{
		{Node: "n1", Status: redlock.StatusOK}, {Node: "n2", Status: redlock.StatusOK}, {Node: "n3"},
	}
	for err, want := range map[error]string{
		nil: "n1 ok, n2 ok, n3 not waited for",
		&redlock.Error{Kind: redlock.ErrContended}: "n1 ok, n2 ok, n3 not waited for",
		&redlock.Error{Kind: context.Canceled}:     "n1 ok, n2 ok, n3 unanswered",
	} {
		if got := decided(results, err); got != want {
			t.Errorf("%v: %s", err, got)
		}
	}
}

// The other keys of a rueidislock lock follow from the name of one key. They are removed
// with it and logged once, unless only that key is wanted.
func TestSiblingsGoAlong(t *testing.T) {
	for _, only := range []bool{false, true} {
		o, c := start(t, nil)
		keys := []string{"rueidislock:0:job", "rueidislock:1:job"}
		if only {
			keys = keys[:1]
		}
		out := o.Remove(t.Context(), Removal{Keys: keys, Tokens: []string{"t1"}, Reason: "dead", OnlyKeys: only})
		if err := out.Err(); err != nil {
			t.Fatal(err)
		}
		want := 16 // the number that lockform looks for
		if only {
			want = 1
		}
		if len(out) != want || len(c.calls) != 1+want || out[0].Key != keys[0] {
			t.Errorf("only %v: %d keys by %q", only, len(out), c.calls)
		}
		if r := c.records(); len(r) != 2 || strings.Contains(r[1].Detail, "rueidislock:1:job too") == only {
			t.Errorf("only %v: the log is %+v", only, r)
		}
	}
}

// A key that fails does not stop the others, and the lock then fails. A key without
// copies does not fail it unless no key has any.
func TestOutcomeOfSeveralKeys(t *testing.T) {
	gone, down := &redlock.Error{Kind: redlock.ErrNotHeld}, &redlock.Error{Kind: redlock.ErrNoQuorum}
	for _, c := range []struct {
		errs []error
		want error
	}{
		{[]error{nil, gone}, nil}, {[]error{gone, nil}, nil}, {[]error{gone, gone}, redlock.ErrNotHeld},
		{[]error{nil, down}, redlock.ErrNoQuorum}, {[]error{gone, down}, redlock.ErrNoQuorum}, {[]error{down, nil}, redlock.ErrNoQuorum},
	} {
		var out Outcome
		for _, err := range c.errs {
			out = append(out, KeyOutcome{Key: "k", Err: err})
		}
		if err := out.Err(); !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%v: %v; want %v", c.errs, err, c.want)
		}
	}
}
