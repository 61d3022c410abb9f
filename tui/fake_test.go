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

	"redlockctl/internal/lockform"
	"redlockctl/internal/safetext"
	"redlockctl/internal/safetext/safetexttest"
	"redlockctl/monitor"
	"redlockctl/redlock"
	"redlockctl/restartguard"
)

// fakeSource is a Source whose pictures are pushed by hand.
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
	failing  map[string]error // of acts on single locks
	kept     []*fakeKept
	block    chan struct{} // acts wait for it, if there is one
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

func (a *fakeActions) Acquire(ctx context.Context, resource string, ttl time.Duration) (*redlock.Lock, error) {
	return &redlock.Lock{}, a.call(ctx, "acquire %q %s", resource, ttl)
}

func (a *fakeActions) Release(ctx context.Context, resource, token string) ([]redlock.NodeResult, error) {
	err := a.call(ctx, "release %q %q", resource, token)
	return a.results, cmp.Or(a.failing[resource], err)
}

func (a *fakeActions) ForceReleaseKey(ctx context.Context, resource, token, reason string) ([]redlock.NodeResult, error) {
	err := a.call(ctx, "force-release %q %q because %q", resource, token, reason)
	return a.results, cmp.Or(a.failing[resource], err)
}

func (a *fakeActions) Extend(ctx context.Context, resource, token string, ttl time.Duration) (*redlock.Lock, error) {
	return &redlock.Lock{}, a.call(ctx, "extend %q %q %s", resource, token, ttl)
}

func (a *fakeActions) RevokeKey(ctx context.Context, resource, token, reason string) ([]redlock.NodeResult, error) {
	err := a.call(ctx, "revoke %q %q because %q", resource, token, reason)
	return a.results, cmp.Or(a.failing[resource], err)
}

func (a *fakeActions) Keep(ctx context.Context, resource string, ttl time.Duration) (Kept, error) {
	if err := a.call(ctx, "keep %q %s", resource, ttl); err != nil {
		return nil, err
	}
	k := &fakeKept{acts: a, key: resource, token: tokenB}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.kept = append(a.kept, k)
	return k, nil
}

// fakeKept is a lock that is kept as its test says.
type fakeKept struct {
	acts       *fakeActions
	key, token string

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

func (a *fakeActions) FenceNode(ctx context.Context, node, reason string) error {
	return a.call(ctx, "fence %q because %q", node, reason)
}

func (a *fakeActions) OpenNode(ctx context.Context, node, reason string) error {
	return a.call(ctx, "open %q because %q", node, reason)
}

// fakeLab records what was done to its nodes.
type fakeLab struct{ crashed chan string }

func (l fakeLab) did(what string, name string) error {
	l.crashed <- what + name
	return nil
}

func (l fakeLab) CrashNode(name string) error    { return l.did("", name) }
func (l fakeLab) StopNode(name string) error     { return l.did("stop ", name) }
func (l fakeLab) ContinueNode(name string) error { return l.did("continue ", name) }
func (l fakeLab) FlushNode(name string) error    { return l.did("flush ", name) }
func (l fakeLab) SkewNode(name string, by time.Duration) error {
	return l.did(fmt.Sprintf("skew %s ", by), name)
}
func (l fakeLab) StartClients(kind string, n int) error {
	return l.did(fmt.Sprintf("start %d ", n), kind)
}
func (l fakeLab) ClientKinds() []ClientKind {
	return []ClientKind{{"leak", "take a lock and never release it", 2}, {"overstay", "work on after their lock has ended", 0}}
}

// fakeStore keeps preferences in memory.
type fakeStore struct {
	mu    sync.Mutex
	p     Preferences
	saves int
	err   error
}

func (s *fakeStore) Load() (Preferences, error) { return s.p, s.err }

func (s *fakeStore) Save(p Preferences) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	s.p, s.saves = p, s.saves+1
	return nil
}

var errFake = errors.New("NOPERM \x1b[31mthis user\x1b[0m has no permissions")

// epoch is the moment that the pictures of the tests show.
var epoch = time.Date(2026, 11, 21, 12, 3, 10, 0, time.UTC)

// tokens as several libraries draw them.
const (
	tokenA = "77c0aa3f-0d61-4b0c-9a1c-5a5c3b7b2d1e"
	tokenB = "5d2aQ8kz0v1yTb3mXw7rLA=="
	tokenC = "a91f00b5c2d84e7fa91f00b5c2d84ec2"
)

// lockOf makes a lock from the seconds that each copy has left: "12 12 - ? 5b"
// where - is absent, ? unknown, i without an end and a letter another token.
func lockOf(now time.Time, key string, state monitor.LockState, token, copies string) monitor.Lock {
	l := monitor.Lock{Key: safetext.New(key), State: state, Holder: safetext.New(token), Since: now.Add(-2 * time.Minute), Tokens: 1}
	var ends []time.Time
	var list []monitor.Copy
	for _, f := range strings.Fields(copies) {
		c := monitor.Copy{State: monitor.CopyPresent, Type: "string", Token: l.Holder, Len: int64(len(token))}
		switch f {
		case "-":
			c = monitor.Copy{State: monitor.CopyAbsent}
		case "?":
			c = monitor.Copy{State: monitor.CopyUnknown}
		case "i":
			l.Held++
		default:
			own := !strings.HasSuffix(f, "b")
			var sec float64
			if _, err := fmt.Sscanf(strings.TrimSuffix(f, "b"), "%g", &sec); err != nil {
				panic(err)
			}
			c.Expires = now.Add(time.Duration(sec * float64(time.Second)))
			if own {
				l.Held++
				ends = append(ends, c.Expires)
			} else {
				c.Token = safetext.New(tokenC)
				c.Len = int64(len(tokenC))
				l.Tokens = 2
			}
		}
		list = append(list, c)
	}
	l.Copies = monitor.PackCopies(list...)
	q := redlock.Quorum(l.Copies.Len())
	if l.Held >= q && len(ends) >= q {
		slices.SortFunc(ends, func(a, b time.Time) int { return b.Compare(a) })
		l.MajorityEnd = ends[q-1]
	}
	l.Margin = l.Held - (l.Copies.Len() - q + 1)
	return l
}

// change changes the copies of l on these nodes; none: on all.
func change(l *monitor.Lock, f func(c *monitor.Copy), nodes ...int) {
	var list []monitor.Copy
	for i, c := range l.Copies.All() {
		if nodes == nil || slices.Contains(nodes, i) {
			f(&c)
		}
		list = append(list, c)
	}
	l.Copies = monitor.PackCopies(list...)
}

func fakeNodes(now time.Time) []monitor.Node {
	ms := func(f float64) time.Duration { return time.Duration(f * float64(time.Millisecond)) }
	rtts := func(fs ...float64) (out []time.Duration) {
		for _, f := range fs {
			out = append(out, ms(f))
		}
		return out
	}
	node := func(name string, state monitor.NodeState, up time.Duration, locks int) monitor.Node {
		return monitor.Node{
			Name: name, Addr: "127.0.0.1:700" + name[1:], State: state, Since: now.Add(-up), Uptime: up, Locks: locks,
			RunID: "8f2c19aa6d0e4b7c8f2c19aa6d0e4b7c8f2c19aa", Version: "7.0.15", Role: "master", Eviction: "noeviction", Clients: 12,
			RTT: ms(0.3), RTTs: rtts(0.3, 0.3, 0.4, 0.3, 0.3, 0.9, 0.3, 0.3),
			Offset: monitor.Estimate{Valid: true, Offset: ms(0.2), Bound: ms(0.1)},
			Drift:  monitor.Drift{Valid: true, PPM: 4, Bound: 0.6},
		}
	}
	day := 24 * time.Hour
	n := []monitor.Node{
		node("n1", monitor.NodeServing, 3*day+4*time.Hour, 1204),
		node("n2", monitor.NodeFenced, 12*time.Second, 0),
		node("n3", monitor.NodeServing, 9*day+time.Hour, 1198),
		node("n4", monitor.NodeDown, 0, 0),
		node("n5", monitor.NodeServing, 3*day+4*time.Hour, 1201),
	}
	n[1].Drift.Valid = false
	n[1].Offset.Offset = ms(-1.1)
	n[1].Restarts = 1
	n[2].Drift.PPM = -2
	n[3].Since = now.Add(-40 * time.Second)
	n[3].Err = safetext.New("dial tcp 127.0.0.1:7004: connect: connection refused")
	return n
}

func fakeGuardStatus(now time.Time) fakeGuard {
	return fakeGuard{
		{Node: "n1", Phase: restartguard.PhaseActive, Known: true, Verified: true},
		{Node: "n2", Phase: restartguard.PhaseClosed, Known: true, Verified: true, Since: now.Add(-12 * time.Second), Until: now.Add(18500 * time.Millisecond), Reason: "restarted, 1,180 copies lost"},
		{Node: "n3", Phase: restartguard.PhaseActive, Known: true, BootExposed: 288 * time.Millisecond},
		{Node: "n4", Phase: restartguard.PhaseUnreachable, Err: "connection refused"},
		{Node: "n5", Phase: restartguard.PhaseActive},
	}
}

// picture is the degraded cluster of the sketches: locks in every state.
func picture(now time.Time) *monitor.Snapshot {
	lock := func(key string, state monitor.LockState, token, copies string) monitor.Lock {
		return lockOf(now, key, state, token, copies)
	}
	hash := lock("session:cache", monitor.LockNotALock, "", "- - - ? -")
	change(&hash, func(c *monitor.Copy) { *c = monitor.Copy{State: monitor.CopyPresent, Type: "hash", Len: 3} }, 0)
	s := &monitor.Snapshot{
		At: now, Version: 1,
		Cluster: monitor.Cluster{Name: "prod-locks", N: 5, Quorum: 3, MaxTTL: 30 * time.Second, Serving: 3,
			Verdict: monitor.VerdictDanger, Reason: "a lock that never ends; n2 fenced, n4 down", Absent: "n2 fenced, n4 down", CanLose: 0},
		Nodes: fakeNodes(now),
		Locks: monitor.NewLocks(
			lock("invoices:2026-11", monitor.LockOrphan, tokenA, "- - - ? 8.4"),
			lock("import", monitor.LockSplit, tokenC, "4.4 - 4.3 ? 4.1b"),
			lock("orders:42", monitor.LockBare, "web-7_811_"+tokenA, "9.8 - 9.7 ? 9.6"),
			lock("orders:43", monitor.LockHeld, tokenB, "12.9 - 12.8 ? 12.7"),
			lock("orders:44", monitor.LockExpiring, tokenB, "0.8 - 0.7 ? 0.6"),
			lock("report", monitor.LockOverTTL, tokenC, "7200 - 7200 ? 7200"),
			lock("stuck", monitor.LockImmortal, tokenA, "i - i ? i"),
			lock("new", monitor.LockPartial, tokenB, "30 - - ? -"),
			hash,
		),
	}
	owned := *s.Locks.Get("orders:42")
	owned.Form = &lockform.Form{Library: "DistributedLock", Owner: safetext.New("web-7 (pid 811)"), TakingAway: "its thread works on until it asks again"}
	split := *s.Locks.Get("import")
	split.Form = &lockform.Form{Library: "redsync"}
	more := []monitor.Lock{owned, split}
	for i := range 30 {
		more = append(more, lock(fmt.Sprintf("job:%03d", i), monitor.LockHeld, tokenB, "20.5 - 20.4 ? 20.3"))
	}
	put(s, more...)
	s.Findings = fakeFindings(now)
	event := func(ago time.Duration, level monitor.Level, kind, node, key, text string) {
		s.Events = append(s.Events, monitor.Event{Seq: uint64(len(s.Events) + 1), At: now.Add(-ago), Level: level, Kind: kind, Node: node, Key: safetext.New(key), Text: safetext.New(text)})
	}
	event(19*time.Second, monitor.LevelAlarm, "down", "n4", "", "n4 unreachable: connection refused")
	event(12*time.Second, monitor.LevelNotice, "restart", "n2", "", "n2 restarted (run 8f2c… → 19aa…): 1,180 copies lost, 14 locks now bare")
	event(12*time.Second, monitor.LevelNotice, "fenced", "n2", "", "n2 came up closed")
	for i := range 20 {
		event(time.Duration(20-i)*100*time.Millisecond, monitor.LevelInfo, "acquired", "", fmt.Sprintf("job:%03d", i), fmt.Sprintf("job:%03d acquired, 3 of 5", i))
	}
	return s
}

// listOf are the locks of a set, each a value of its own.
func listOf(set monitor.Locks) (locks []monitor.Lock) {
	for l := range set.All() {
		locks = append(locks, *l)
	}
	return locks
}

// put sets locks of a picture, and drop takes them out of it.
func put(s *monitor.Snapshot, locks ...monitor.Lock) {
	s.Locks = monitor.NewLocks(append(listOf(s.Locks), locks...)...)
	recount(s)
}

func drop(s *monitor.Snapshot, keys ...string) {
	s.Locks = monitor.NewLocks(slices.DeleteFunc(listOf(s.Locks), func(l monitor.Lock) bool { return slices.Contains(keys, l.Key.Raw()) })...)
	recount(s)
}

// safePicture is a cluster in which all is well.
func safePicture(now time.Time) *monitor.Snapshot {
	s := picture(now)
	s.Cluster.Verdict, s.Cluster.Serving, s.Cluster.CanLose, s.Cluster.Reason = monitor.VerdictSafe, 5, 2, ""
	s.Cluster.Protected, s.Cluster.Missing = true, ""
	s.Locks = monitor.NewLocks(
		lockOf(now, "orders:42", monitor.LockHeld, tokenB, "12.9 12.8 12.8 12.7 12.7"),
		lockOf(now, "leader:billing", monitor.LockHeld, tokenA, "4.9 4.8 4.8 4.7 4.7"),
	)
	recount(s)
	s.Findings = nil
	for i := range s.Nodes {
		n := &s.Nodes[i]
		n.State, n.Err, n.Since, n.Uptime = monitor.NodeServing, safetext.Text{}, now.Add(-77*time.Hour), 77*time.Hour
		n.Drift.Valid, n.Restarts, n.Locks = true, 0, 2
	}
	s.Events = s.Events[:0:0]
	return s
}

func safeGuard() (g fakeGuard) {
	for i := range 5 {
		g = append(g, restartguard.NodeStatus{Node: fmt.Sprintf("n%d", i+1), Phase: restartguard.PhaseActive, Known: true, Verified: true})
	}
	return g
}

func fakeFindings(now time.Time) []monitor.Finding {
	return []monitor.Finding{
		{ID: "immortal-lock", Severity: monitor.SeverityDanger, Key: safetext.New("stuck"), Count: 1, Since: now.Add(-time.Hour),
			Title: "a lock that never ends", Evidence: safetext.New("stuck has copies without a TTL on n1, n3, n5"),
			Consequence: "if its holder is dead nobody can take it any more", Remedy: "find who sets it without PX; force-release it when its holder is known to be dead"},
		{ID: "eviction", Severity: monitor.SeverityWarning, Node: "n3", Since: now.Add(-3 * time.Hour),
			Title: "keys may be evicted", Evidence: safetext.New("maxmemory-policy allkeys-lru"),
			Consequence: "a lock can vanish before its time, and a second client gets in", Remedy: "CONFIG SET maxmemory-policy noeviction"},
		{ID: "even", Severity: monitor.SeverityInfo, Title: "all masters have one address", Evidence: safetext.New("127.0.0.1"),
			Consequence: "they die together", Remedy: "put each on a machine of its own"},
	}
}

func recount(s *monitor.Snapshot) {
	s.Counts = monitor.Counts{}
	for l := range s.Locks.All() {
		s.Counts[l.State]++
	}
}

// hostilePicture is a cluster of hostile names, tokens and errors.
func hostilePicture(now time.Time) *monitor.Snapshot {
	s := picture(now)
	s.Cluster.Name = "prod \x1b[31m\u202e" + strings.Repeat("名", 40)
	var odd []monitor.Lock
	for i, name := range safetexttest.Hostile {
		l := lockOf(now, name, monitor.LockState(i%9), safetexttest.Hostile[(i+3)%len(safetexttest.Hostile)]+"x", "9.8 - 9.7 ? 9.6")
		s.Events = append(s.Events, monitor.Event{Seq: uint64(100 + i), At: now, Level: monitor.LevelAlarm, Kind: name, Key: l.Key, Text: safetext.New("the lock " + name + " is odd")})
		s.Findings = append(s.Findings, monitor.Finding{ID: name, Key: l.Key, Node: name, Title: name, Evidence: l.Key, Consequence: name, Remedy: name})
		l.Form = &lockform.Form{Library: name, Owner: l.Key, Group: l.Key, TakingAway: name, Refused: name}
		odd = append(odd, l)
		s.Nodes[i%5].Err = safetext.New("ERR " + name)
		s.Nodes[i%5].Notes = append(s.Nodes[i%5].Notes, name)
	}
	put(s, odd...)
	s.Nodes[3].Version, s.Nodes[3].Role, s.Nodes[3].Eviction, s.Nodes[3].RunID = safetexttest.Hostile[0], safetexttest.Hostile[1], safetexttest.Hostile[7], safetexttest.Hostile[6]
	s.Nodes[0].Name = "日本-\x1b[5mblink"
	s.Nodes[4].State = monitor.NodeDenied
	return s
}
