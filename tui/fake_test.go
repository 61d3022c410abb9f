package tui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"redlockctl/internal/operator"
	"redlockctl/internal/who"
	"redlockctl/monitor"
	"redlockctl/monitor/monitortest"
	"redlockctl/redlock"
	"redlockctl/restartguard"
	"redlockctl/tui/action"
	"redlockctl/tui/prefs"
)

// fakeSource is a Source whose snapshots the test pushes.
type fakeSource struct {
	mu      sync.Mutex
	snap    *monitor.Snapshot
	changed chan struct{}
}

func newFakeSource(s *monitor.Snapshot) *fakeSource {
	return &fakeSource{snap: s, changed: make(chan struct{})}
}

func (f *fakeSource) Snapshot() *monitor.Snapshot {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.snap
}

func (f *fakeSource) Changed(version uint64) <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.snap.Version > version {
		c := make(chan struct{})
		close(c)
		return c
	}
	return f.changed
}

func (f *fakeSource) ChangedSince(uint64) ([]string, bool) { return nil, false }

func (f *fakeSource) EventsSince(uint64) ([]monitor.Event, uint64) { return f.Snapshot().Events, 0 }

func (f *fakeSource) History(string) []monitor.Event { return nil }

func (f *fakeSource) push(s *monitor.Snapshot) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s.Version = f.snap.Version + 1
	f.snap = s
	close(f.changed)
	f.changed = make(chan struct{})
}

type fakeGuard []restartguard.NodeStatus

func (g fakeGuard) ID() string { return "own" }

func (g fakeGuard) Status() []restartguard.NodeStatus { return g }

// fakeActions records what was sent.
type fakeActions struct {
	mu       sync.Mutex
	readOnly bool
	err      error
	results  []redlock.NodeResult
	calls    []string
	failing  map[string]error // of actions on single locks
	kept     []*fakeKept
	answer   *who.Answer
	block    chan struct{} // actions wait for it, if set
}

func (a *fakeActions) ReadOnly() bool { return a.readOnly }

func (a *fakeActions) call(ctx context.Context, format string, args ...any) error {
	a.mu.Lock()
	a.calls = append(a.calls, fmt.Sprintf(format, args...))
	a.mu.Unlock()
	if a.block != nil {
		select {
		case <-a.block:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return a.err
}

func (a *fakeActions) sent() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.calls)
}

func (a *fakeActions) AcquireWith(ctx context.Context, resource string, ttl time.Duration, _ operator.AcquireOptions) (*redlock.Lock, error) {
	return &redlock.Lock{}, a.call(ctx, "acquire %q %s", resource, ttl)
}

func (a *fakeActions) Who(ctx context.Context, resource string, _ *who.Answer) (*who.Answer, error) {
	if err := a.call(ctx, "who %q", resource); err != nil {
		return nil, err
	}
	return a.answer, nil
}

func (a *fakeActions) Release(ctx context.Context, resource, token string) ([]redlock.NodeResult, error) {
	err := a.call(ctx, "release %q %q", resource, token)
	return a.results, cmp.Or(a.failing[resource], err)
}

func (a *fakeActions) Remove(ctx context.Context, r operator.Removal) (out operator.Outcome) {
	for _, key := range r.Keys {
		err := a.call(ctx, "%s %q %s because %q", r.Kind, key, strings.Trim(fmt.Sprintf("%q", r.Tokens), "[]"), r.Reason)
		out = append(out, operator.KeyOutcome{Key: key, Results: a.results, Err: cmp.Or(a.failing[key], err)})
	}
	return out
}

func (a *fakeActions) Extend(ctx context.Context, resource, token string, ttl time.Duration) (*redlock.Lock, error) {
	return &redlock.Lock{}, a.call(ctx, "extend %q %q %s", resource, token, ttl)
}

func (a *fakeActions) Keep(ctx context.Context, resource string, ttl time.Duration, opt operator.AcquireOptions) (action.Kept, error) {
	more := ""
	if opt.For > 0 {
		more = fmt.Sprintf(" for %s because %q", opt.For, opt.Reason)
	}
	if err := a.call(ctx, "keep %q %s%s", resource, ttl, more); err != nil {
		return nil, err
	}
	k := &fakeKept{acts: a, key: resource, token: monitortest.TokenB}
	k.terms = operator.Terms{By: "alice@ops-1", Since: monitortest.Epoch, Reason: opt.Reason}
	if opt.For > 0 {
		k.terms.End = monitortest.Epoch.Add(opt.For)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.kept = append(a.kept, k)
	return k, nil
}

// fakeKept is a kept lock with preset states.
type fakeKept struct {
	acts       *fakeActions
	key, token string
	terms      operator.Terms

	mu      sync.Mutex
	state   redlock.KeeperState
	until   time.Time
	err     error
	stopped bool
}

func (k *fakeKept) is(state redlock.KeeperState, until time.Time, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.state, k.until, k.err = state, until, err
}

func (k *fakeKept) Resource() string            { return k.key }
func (k *fakeKept) Token() string               { return k.token }
func (k *fakeKept) Nodes() []redlock.NodeResult { return nil }
func (k *fakeKept) Terms() operator.Terms       { return k.terms }

func (k *fakeKept) State() redlock.KeeperState {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.state
}

func (k *fakeKept) Until() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.until
}

func (k *fakeKept) Err() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.err
}

func (k *fakeKept) Stop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stopped = true
}

func (k *fakeKept) Release(ctx context.Context) ([]redlock.NodeResult, error) {
	if err := k.acts.call(ctx, "release kept %q", k.key); err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.state = redlock.Released
	return k.acts.results, nil
}

func (a *fakeActions) Cordon(ctx context.Context, node, reason string) error {
	return a.call(ctx, "fence %q because %q", node, reason)
}

func (a *fakeActions) Drain(ctx context.Context, node, reason string) error {
	return a.call(ctx, "drain %q because %q", node, reason)
}

func (a *fakeActions) Uncordon(ctx context.Context, node, reason string) error {
	return a.call(ctx, "uncordon %q because %q", node, reason)
}

func (a *fakeActions) RejoinNow(ctx context.Context, node, reason string) error {
	return a.call(ctx, "open %q because %q", node, reason)
}

// fakeLab records what was done to its nodes.
type fakeLab struct{ crashed chan string }

func (l fakeLab) did(what string, name string) error {
	l.crashed <- what + name
	return nil
}

func (l fakeLab) Cannot(string) string         { return "" }
func (l fakeLab) Do(action, node string) error { return l.did(action+" ", node) }
func (l fakeLab) SkewNode(name string, by time.Duration) error {
	return l.did(fmt.Sprintf("skew %s ", by), name)
}

// fakeStore keeps preferences in memory.
type fakeStore struct {
	mu    sync.Mutex
	p     prefs.Preferences
	saves int
	err   error
}

func (s *fakeStore) Load() (prefs.Preferences, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.p, s.err
}

func (s *fakeStore) Change(change func(*prefs.Preferences)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	change(&s.p)
	s.saves++
	return nil
}

var errFake = errors.New("NOPERM \x1b[31mthis user\x1b[0m has no permissions")

func fakeGuardStatus(now time.Time) fakeGuard {
	return fakeGuard{
		{Node: "n1", Phase: restartguard.PhaseServing, Known: true, Verified: true},
		{Node: "n2", Phase: restartguard.PhaseFenced, Known: true, Verified: true, Since: now.Add(-12 * time.Second), Until: now.Add(18500 * time.Millisecond), Reason: "restarted, 1,180 copies lost"},
		{Node: "n3", Phase: restartguard.PhaseServing, Known: true, BootExposed: 288 * time.Millisecond},
		{Node: "n4", Phase: restartguard.PhaseUnreachable, Err: "connection refused"},
		{Node: "n5", Phase: restartguard.PhaseServing},
	}
}

func safeGuard() (g fakeGuard) {
	for i := range 5 {
		g = append(g, restartguard.NodeStatus{Node: fmt.Sprintf("n%d", i+1), Phase: restartguard.PhaseServing, Known: true, Verified: true})
	}
	return g
}
