package operator

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/internal/audit"
	"redlockctl/redlock"
)

// cluster stands for three nodes and takes note of all that is asked of them.
type cluster struct {
	t     *testing.T
	log   string // path of the audit log
	calls []string
	// onCall runs before each call is answered.
	onCall func(call string)
	look   []redlock.NodeResult
	lookIs error
	// release answers for a token; nil deletes the copies of look.
	release func(token string) ([]redlock.NodeResult, error)
	handErr error
}

func (c *cluster) called(call string) {
	c.calls = append(c.calls, call)
	if c.onCall != nil {
		c.onCall(call)
	}
}

func (c *cluster) Nodes() []*redlock.Node {
	var nodes []*redlock.Node
	for _, name := range []string{"n1", "n2", "n3"} {
		n, err := redlock.NewNode(name, &redis.Options{Addr: name + ":1"})
		if err != nil {
			c.t.Fatal(err)
		}
		nodes = append(nodes, n)
	}
	return nodes
}

func (c *cluster) Acquire(context.Context, string, time.Duration) (*redlock.Lock, error) {
	c.called("acquire")
	return &redlock.Lock{}, nil
}

func (c *cluster) Extend(context.Context, string, string, time.Duration) (*redlock.Lock, error) {
	c.called("extend")
	return &redlock.Lock{}, nil
}

func (c *cluster) Inspect(context.Context, string) ([]redlock.NodeResult, error) {
	c.called("inspect")
	return c.look, c.lookIs
}

func (c *cluster) AcquireFenced(ctx context.Context, resource string, ttl time.Duration) (*redlock.Lock, error) {
	return c.Acquire(ctx, resource, ttl)
}

func (c *cluster) ForceRelease(ctx context.Context, resource, token string) ([]redlock.NodeResult, error) {
	return c.Release(ctx, resource, token)
}

func (c *cluster) ForceReleaseHash(ctx context.Context, resource, holder, _ string) ([]redlock.NodeResult, error) {
	c.called("hash")
	return c.Release(ctx, resource, holder)
}

func (c *cluster) Revoke(ctx context.Context, resource, token string, _ time.Duration) ([]redlock.NodeResult, error) {
	c.called("revoke")
	return c.Release(ctx, resource, token)
}

func (c *cluster) Release(_ context.Context, _, token string) ([]redlock.NodeResult, error) {
	c.called("release " + token)
	if c.release != nil {
		return c.release(token)
	}
	out := make([]redlock.NodeResult, len(c.look))
	for i, r := range c.look {
		out[i] = redlock.NodeResult{Node: r.Node, Status: r.Status, Err: r.Err}
		if r.Token == token {
			out[i].Status = redlock.StatusOK
		}
	}
	return out, nil
}

func (c *cluster) keep(*redlock.Lock, redlock.KeepOptions) keeper {
	c.called("keep")
	return kept{c: c}
}

// kept is a keeper of a lock on the cluster; what a test does not ask for it has
// not.
type kept struct {
	keeper
	c *cluster
}

func (k kept) Changes() <-chan redlock.KeeperState { return nil }

func (k kept) Stop() { k.c.called("stop") }

func (k kept) Release(ctx context.Context) ([]redlock.NodeResult, error) {
	k.c.called("end of keep")
	return k.c.Release(ctx, "job", "t1")
}

func (c *cluster) hold(_ context.Context, n *redlock.Node) error {
	c.called("hold " + n.Name())
	return c.handErr
}

func (c *cluster) open(_ context.Context, n *redlock.Node) error {
	c.called("open " + n.Name())
	return c.handErr
}

// start makes an operator on a cluster in which token t1 holds two nodes of
// three.
func start(t *testing.T, change func(*Options)) (*Operator, *cluster) {
	t.Helper()
	c := &cluster{t: t, log: filepath.Join(t.TempDir(), "audit.jsonl"), look: look("t1", "t1", "")}
	log, err := audit.Open(c.log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	opt := Options{Cluster: "lab", Log: log, MaxTTL: 30 * time.Second, Actor: "ops@host"}
	if change != nil {
		change(&opt)
	}
	return build(c, c.keep, c.hold, c.open, opt), c
}

// look is what three nodes say when they are asked for a lock: "" has none,
// "!" does not answer.
func look(tokens ...string) []redlock.NodeResult {
	out := make([]redlock.NodeResult, len(tokens))
	for i, token := range tokens {
		r := redlock.NodeResult{Node: []string{"n1", "n2", "n3"}[i]}
		switch token {
		case "":
			r.Status = redlock.StatusAbsent
		case "!":
			r.Status, r.Err = redlock.StatusDown, errors.New("connection refused")
		default:
			r.Status, r.Type, r.Token, r.Len, r.TTL = redlock.StatusHeld, "string", token, int64(len(token)), time.Second
		}
		out[i] = r
	}
	return out
}

// records reads the audit log, and fails the test if a token is in it.
func (c *cluster) records() []audit.Record {
	c.t.Helper()
	b, err := os.ReadFile(c.log)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, token := range []string{"t1", "t2"} {
		if bytes.Contains(b, []byte(token)) {
			c.t.Errorf("the log holds the token %s: %s", token, b)
		}
	}
	var out []audit.Record
	for s := bufio.NewScanner(bytes.NewReader(b)); s.Scan(); {
		var r audit.Record
		if err := json.Unmarshal(s.Bytes(), &r); err != nil {
			c.t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

// acts are all that an operator can do, with what it sends for it.
var acts = []struct {
	name string
	do   func(context.Context, *Operator) error
	want audit.Record
	sent []string
}{
	{"acquire", func(ctx context.Context, o *Operator) error {
		_, err := o.AcquireWith(ctx, "job", time.Second, AcquireOptions{})
		return err
	},
		audit.Record{Act: "acquire", Target: "job", Detail: "ttl 1s"}, []string{"acquire"}},
	{"acquire fenced", func(ctx context.Context, o *Operator) error {
		_, err := o.AcquireWith(ctx, "job", time.Second, AcquireOptions{Fencing: true})
		return err
	}, audit.Record{Act: "acquire", Target: "job", Detail: "ttl 1s"}, []string{"acquire"}},
	{"keep", func(ctx context.Context, o *Operator) error {
		_, err := o.Keep(ctx, "job", time.Second, AcquireOptions{})
		return err
	},
		audit.Record{Act: "acquire", Target: "job", Detail: "ttl 1s, kept: extended until it is interrupted or released"}, []string{"acquire", "keep"}},
	{"extend", func(ctx context.Context, o *Operator) error {
		_, err := o.Extend(ctx, "job", "t1", time.Second)
		return err
	}, audit.Record{Act: "extend", Target: "job", TokenSHA: audit.TokenSHA("t1"), Detail: "ttl 1s"}, []string{"extend"}},
	{"release", func(ctx context.Context, o *Operator) error { _, err := o.Release(ctx, "job", "t1"); return err },
		audit.Record{Act: "release", Target: "job", TokenSHA: audit.TokenSHA("t1")}, []string{"release t1"}},
	{"force-release", func(ctx context.Context, o *Operator) error {
		_, err := o.ForceRelease(ctx, "job", "t1", "dead")
		return err
	}, audit.Record{Act: "force-release", Target: "job", TokenSHA: audit.TokenSHA("t1"), Reason: "dead"}, []string{"inspect", "release t1"}},
	{"force-release of any", func(ctx context.Context, o *Operator) error {
		_, err := o.ForceRelease(ctx, "job", "", "dead")
		return err
	}, audit.Record{Act: "force-release", Target: "job", Reason: "dead"}, []string{"inspect", "release t1"}},
	{"revoke", func(ctx context.Context, o *Operator) error {
		_, err := o.Revoke(ctx, "job", "t1", "runs for hours")
		return err
	}, audit.Record{Act: "revoke", Target: "job", TokenSHA: audit.TokenSHA("t1"), Reason: "runs for hours"}, []string{"inspect", "revoke", "release t1"}},
	{"fence", func(ctx context.Context, o *Operator) error { return o.Cordon(ctx, "n2", "disk") },
		audit.Record{Act: "node cordon", Target: "n2", Reason: "disk"}, []string{"hold n2"}},
	{"open", func(ctx context.Context, o *Operator) error { return o.RejoinNow(ctx, "n2", "done") },
		audit.Record{Act: "node rejoin", Target: "n2", Reason: "done"}, []string{"open n2"}},
}

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

// What is on disk when the first call comes is what a crash would leave.
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

// A crash between the look and the last release must leave in the log whose
// copies were being deleted.
func TestForceReleaseOfAnyLogsWhatItFoundFirst(t *testing.T) {
	o, c := start(t, nil)
	c.look = look("t1", "t2", "!")
	c.onCall = func(call string) {
		if call != "release t1" {
			return
		}
		r := c.records()
		want := "found n1 " + audit.TokenSHA("t1") + ", n2 " + audit.TokenSHA("t2")
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

// The lock core sends releases although the context is over.
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
				// Nobody would have the token: the lock must not stay.
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

// The verdict comes before the slower answers: that they were not waited for must
// not read as if something had failed.
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

// The keys of a rueidislock lock follow from the name of one: they go along with it,
// on record once, unless that key alone is meant.
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
		want := 16 // as many as lockform looks for
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

// A key that fails holds up none of the others, and fails the lock; one that has
// nothing left does not, unless all have nothing left.
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

// ForceRelease and Revoke remove one key of one token; "": of all.
func (o *Operator) ForceRelease(ctx context.Context, key, token, reason string) ([]redlock.NodeResult, error) {
	return o.removeOne(ctx, ForceRelease, key, token, reason)
}

func (o *Operator) Revoke(ctx context.Context, key, token, reason string) ([]redlock.NodeResult, error) {
	return o.removeOne(ctx, Revoke, key, token, reason)
}

func (o *Operator) removeOne(ctx context.Context, way Way, key, token, reason string) ([]redlock.NodeResult, error) {
	r := Removal{Way: way, Keys: []string{key}, Reason: reason}
	if token != "" {
		r.Tokens = []string{token}
	}
	out := o.Remove(ctx, r)
	return out[0].Results, out.Err()
}
