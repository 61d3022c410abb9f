// Package operator carries out the actions of a person, from the CLI or the screen. It
// refuses them in read-only mode, writes the audit log before and after, and sends them.
// No other package changes anything for a person.
//
// The order of an action is fixed: check that it is allowed, write the intent to disk,
// send the first byte to a server, log the outcome. An action that cannot be logged is
// not started.
package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"redlockctl/internal/audit"
	"redlockctl/monitor"
	"redlockctl/redlock"
	"redlockctl/restartguard/oneshot"
	"redlockctl/server/announce"
	"redlockctl/server/fences"
	"redlockctl/server/safetext"
)

// ErrReadOnly is returned for each action while the operator is read-only.
var ErrReadOnly = errors.New("refused: read-only")

// ErrRefused is returned when an action must not be carried out as asked: no reason
// given, the value is not a lock, the audit log cannot be written.
var ErrRefused = errors.New("refused")

// ErrChanged is returned when the holder is not the one that was confirmed.
var ErrChanged = errors.New("the holder changed since it was shown")

// ErrUnlogged is returned when an action was carried out but its outcome could not be
// written to the audit log. The intent is in the log.
var ErrUnlogged = errors.New("done, but the outcome is missing from the audit log")

// locks has the methods of *[redlock.Client] that an operator uses.
type locks interface {
	Nodes() []*redlock.Node
	Acquire(ctx context.Context, resource string, ttl time.Duration) (*redlock.Lock, error)
	AcquireFenced(ctx context.Context, resource string, ttl time.Duration) (*redlock.Lock, error)
	Extend(ctx context.Context, resource, token string, ttl time.Duration) (*redlock.Lock, error)
	Release(ctx context.Context, resource, token string) ([]redlock.NodeResult, error)
	Revoke(ctx context.Context, resource, token string, atMost time.Duration) ([]redlock.NodeResult, error)
	ForceRelease(ctx context.Context, resource, token string) ([]redlock.NodeResult, error)
	ForceReleaseHash(ctx context.Context, resource, holder, channel string) ([]redlock.NodeResult, error)
	Inspect(ctx context.Context, resource string) ([]redlock.NodeResult, error)
}

// keeper has the methods of *[redlock.Keeper] that an operator uses.
type keeper interface {
	State() redlock.KeeperState
	Until() time.Time
	Err() error
	Changes() <-chan redlock.KeeperState
	Stop()
	Release(ctx context.Context) ([]redlock.NodeResult, error)
}

func keepLock(l *redlock.Lock, opt redlock.KeepOptions) (keeper, error) {
	opt.AllAnswers = true // people and the log are told what each node did
	k, err := l.Keep(opt)
	if err != nil {
		return nil, err
	}
	return k, nil
}

// hand is a function of restartguard that fences a node or lets it rejoin.
type hand func(context.Context, *redlock.Node) error

// Operator acts on one cluster. It is safe for use by many goroutines.
type Operator struct {
	locks          locks
	keep           func(*redlock.Lock, redlock.KeepOptions) (keeper, error)
	cordon, rejoin hand
	guards         func(context.Context) []announce.Guard // guards that announce themselves now; nil: do not ask
	uncordon       hand
	kept           func(context.Context, *redlock.Node) (bool, error)
	opt            Options
}

// Options of an Operator.
type Options struct {
	Cluster  string
	ReadOnly bool
	Log      *audit.Log // nil only while ReadOnly
	// MaxTTL is the longest TTL that may be asked for; 0 means no limit.
	MaxTTL time.Duration
	// Force allows TTLs beyond MaxTTL and beyond what guards cover; the risk goes to
	// Note.
	Force bool
	// Methods are the fence methods of the nodes, by name; default min-replicas.
	Methods map[string]fences.Method
	// Actor is who acts, for the audit log; default user@host of the process, with the
	// real user under sudo.
	Actor string
	// Note, if set, is called after each action and when a kept lock changes.
	Note func(monitor.Event)
	// Overtaken, if set, is asked after a removal that found nothing. It names who force-released the lock,
	// if its former holder may still rely on it, and until when; empty: it does not, as far as is known. The
	// text is not escaped.
	Overtaken func(ctx context.Context, lock string) string
	// Acquired, if set, is called with the time that each acquisition took.
	Acquired func(took time.Duration, err error)
}

// methodOf returns the method by which an operator fences a node.
func (opt *Options) methodOf(n *redlock.Node) fences.Method {
	m := opt.Methods[n.Name()]
	if m.Kind == fences.None {
		return fences.Method{} // an operator may fence such a node; a guard never does
	}
	return m
}

// New makes an operator on the client's nodes. It sends nothing. Close closes the client
// and the log.
func New(client *redlock.Client, opt Options) *Operator {
	by := func(do func(context.Context, *redlock.Node, fences.Method) error) hand {
		return func(ctx context.Context, n *redlock.Node) error { return do(ctx, n, opt.methodOf(n)) }
	}
	o := build(client, keepLock, by(oneshot.Cordon), by(oneshot.RejoinNow), opt)
	o.guards = func(ctx context.Context) []announce.Guard { return guardsOf(ctx, client.Nodes()) }
	o.uncordon = by(oneshot.Uncordon)
	o.kept = func(ctx context.Context, n *redlock.Node) (bool, error) {
		return oneshot.AwaitKept(ctx, n, opt.methodOf(n))
	}
	return o
}

// Close ends the client and closes the log.
func (o *Operator) Close() error {
	var err error
	if c, ok := o.locks.(io.Closer); ok {
		err = c.Close()
	}
	if o.opt.Log != nil {
		err = errors.Join(err, o.opt.Log.Close())
	}
	return err
}

// Inspect reads the copies of a lock on all nodes. It changes nothing.
func (o *Operator) Inspect(ctx context.Context, resource string) ([]redlock.NodeResult, error) {
	return o.locks.Inspect(ctx, resource)
}

// Nodes returns the nodes of the cluster.
func (o *Operator) Nodes() []*redlock.Node { return o.locks.Nodes() }

func build(l locks, keep func(*redlock.Lock, redlock.KeepOptions) (keeper, error), cordon, rejoin hand, opt Options) *Operator {
	opt.Actor = cmp.Or(opt.Actor, audit.Actor(os.Getenv))
	return &Operator{locks: l, keep: keep, cordon: cordon, rejoin: rejoin, opt: opt}
}

// ReadOnly reports whether actions are refused.
func (o *Operator) ReadOnly() bool { return o.opt.ReadOnly }

// RemovalKind says how a lock is removed from its holder.
type RemovalKind uint8

const (
	ForceRelease RemovalKind = iota // delete the copies now
	Revoke                          // replace the copies with tombstones
)

// String returns the verb.
func (w RemovalKind) String() string { return [...]string{"force-release", "revoke"}[w] }

// act is an action whose intent is in the log.
type act struct {
	o      *Operator
	target string // not escaped; the log has it escaped
	record audit.Record
}

// begin writes the intent. If it fails, nothing may be sent.
func (o *Operator) begin(r audit.Record) (*act, error) {
	if o.opt.Log == nil {
		return nil, fmt.Errorf("%w: there is no audit log", ErrRefused)
	}
	a := o.act(r)
	if err := a.write(audit.Intent, r.Detail); err != nil {
		return nil, unlogged(err)
	}
	return a, nil
}

func (o *Operator) act(r audit.Record) *act {
	a := &act{o, r.Target, r}
	a.record.ID, a.record.Actor, a.record.Cluster, a.record.Target = audit.NewID(), o.opt.Actor, o.opt.Cluster, logTarget(r.Target)
	return a
}

func unlogged(err error) error {
	return fmt.Errorf("%w: an action that cannot be logged is not done: %w", ErrRefused, err)
}

func (a *act) write(phase, detail string) error {
	r := a.record
	r.Time, r.Phase, r.Detail = time.Now().UTC(), phase, detail
	return a.o.opt.Log.Write(r)
}

// end writes the outcome: detail, or err. It returns err, joined with [ErrUnlogged] if
// the log failed.
func (a *act) end(detail string, err error) error {
	phase := audit.Done
	if err != nil {
		phase = audit.Failed
		detail = joined("; ", logText(err), detail)
	}
	logErr := a.write(phase, detail)
	a.note(err)
	switch {
	case logErr == nil:
		return err
	case err != nil:
		return fmt.Errorf("%w (and the outcome is missing from the audit log: %w)", err, logErr)
	}
	return fmt.Errorf("%w: %w", ErrUnlogged, logErr)
}

func (a *act) note(err error) {
	r := a.record
	if errors.Is(err, redlock.ErrNotHeld) && (r.Act == ForceRelease.String() || r.Act == Revoke.String()) {
		return // who follows the log tells it, after what took the copies away, which may not be seen yet
	}
	e := monitor.Event{Level: monitor.LevelNotice, Act: r.ID}
	act, onNode := strings.CutPrefix(r.Act, "node ")
	switch {
	case onNode:
		e.Node = r.Target
	case !strings.HasPrefix(act, "guard "):
		e.Key = safetext.New(a.target)
	}
	text := act + " " + a.target + " by " + r.Actor
	if more := cmp.Or(r.Reason, r.Detail); more != "" {
		text += " (" + more + ")"
	}
	if err != nil {
		text += ": " + err.Error()
	}
	a.o.note(e, text)
}

func (o *Operator) note(e monitor.Event, text string) {
	if o.opt.Note != nil {
		e.At, e.Kind, e.Text = time.Now(), "operator", safetext.New("operator: "+text)
		o.opt.Note(e)
	}
}

// HandTTL returns the TTL of a lock acquired by hand: given, or 30 s within most, the
// cluster's max TTL (0: unknown).
func HandTTL(given, most time.Duration) time.Duration {
	const usual = 30 * time.Second
	if most > 0 {
		most = min(usual, most)
	}
	return cmp.Or(given, most, usual)
}

// AcquireOptions of [Operator.AcquireWith] and [Operator.Keep].
type AcquireOptions struct {
	Fencing bool          // also draw a fencing token
	Wait    time.Duration // how long to keep trying; 0: as often as [redlock.Options] says
	For     time.Duration // how long the lock is kept before it is released; 0: until somebody releases it
	Reason  string        // for the log; may be empty
}

// AcquireWith acquires a lock by hand. A TTL above the cluster's max is refused. If the
// acquisition cannot be logged, the lock is released again. If the wait times out, the
// error says why, with each node's result.
func (o *Operator) AcquireWith(ctx context.Context, resource string, ttl time.Duration, opt AcquireOptions) (*redlock.Lock, error) {
	return o.acquireWith(ctx, resource, ttl, opt, "")
}

func (o *Operator) acquireWith(ctx context.Context, resource string, ttl time.Duration, opt AcquireOptions, more string) (*redlock.Lock, error) {
	do, try := o.locks.Acquire, ctx
	if opt.Fencing {
		do = o.locks.AcquireFenced
	}
	if opt.Wait > 0 {
		var cancel context.CancelFunc
		try, cancel = context.WithTimeout(ctx, opt.Wait)
		defer cancel()
	}
	lock, err := o.acquire(try, resource, ttl, opt.Reason, more, do)
	if err != nil && opt.Wait > 0 && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		err = waited(opt.Wait, err)
	}
	return lock, err
}

func waited(wait time.Duration, err error) error {
	var last *redlock.Error
	if !errors.As(err, &last) {
		return fmt.Errorf("%w: %w", redlock.ErrNoQuorum, err)
	}
	kind := redlock.ErrNoQuorum
	if errors.Is(err, redlock.ErrContended) {
		kind = redlock.ErrContended
	}
	e := &redlock.Error{Op: last.Op, Resource: last.Resource, Kind: kind, Attempts: last.Attempts, Nodes: last.Nodes}
	return fmt.Errorf("%w (waited %s)", e, wait)
}

// acquire acquires a lock by calling do; more is added to the TTL in the log.
func (o *Operator) acquire(ctx context.Context, resource string, ttl time.Duration, reason, more string, do func(context.Context, string, time.Duration) (*redlock.Lock, error)) (*redlock.Lock, error) {
	risk, err := o.mayUse(ctx, resource, ttl)
	if err != nil {
		return nil, err
	}
	a, err := o.begin(audit.Record{Act: "acquire", Target: resource, Reason: reason, Detail: joined(", ", "ttl "+ttl.String(), more, risk)})
	if err != nil {
		return nil, err
	}
	began := time.Now()
	lock, err := do(ctx, resource, ttl)
	if o.opt.Acquired != nil {
		o.opt.Acquired(time.Since(began), err)
	}
	if err != nil {
		return nil, a.end(decided(nodesOf(err), err), err)
	}
	a.record.TokenSHA = audit.TokenSHA(lock.Token())
	if err := a.end(decided(lock.Nodes(), nil), nil); err != nil {
		// Nobody knows the token, so nobody else could release it.
		_, releaseErr := o.locks.Release(context.WithoutCancel(ctx), resource, lock.Token())
		err = fmt.Errorf("%w: the lock was taken, could not be logged, and was released again: %w", ErrRefused, err)
		if releaseErr != nil {
			err = fmt.Errorf("%w; %w", err, releaseErr)
		}
		return nil, err
	}
	return lock, nil
}

// Extend extends a grant by its token. A TTL above the cluster's max is
// refused.
func (o *Operator) Extend(ctx context.Context, resource, token string, ttl time.Duration) (*redlock.Lock, error) {
	return o.extend(ctx, resource, token, ttl, "")
}

// extend extends a grant; more is added to the TTL in the log.
func (o *Operator) extend(ctx context.Context, resource, token string, ttl time.Duration, more string) (*redlock.Lock, error) {
	risk, err := o.mayUse(ctx, resource, ttl)
	if err != nil {
		return nil, err
	}
	a, err := o.begin(audit.Record{Act: "extend", Target: resource, TokenSHA: audit.TokenSHA(token), Detail: joined(", ", "ttl "+ttl.String(), more, risk)})
	if err != nil {
		return nil, err
	}
	lock, err := o.locks.Extend(ctx, resource, token, ttl)
	if err != nil {
		return nil, a.end(decided(nodesOf(err), err), err)
	}
	return lock, a.end(decided(lock.Nodes(), nil), nil)
}

// mayUse makes the checks that all actions on a lock share. risk is not empty if Force
// allowed something risky.
func (o *Operator) mayUse(ctx context.Context, resource string, ttl time.Duration) (risk string, err error) {
	switch {
	case o.opt.ReadOnly:
		return "", ErrReadOnly
	case resource == "":
		return "", fmt.Errorf("%w: the lock needs a name", redlock.ErrInvalid)
	case ttl <= 0:
		return "", fmt.Errorf("%w: the TTL %s is not positive", redlock.ErrInvalid, ttl)
	}
	if risk, err = o.within(ctx, ttl); risk != "" {
		o.note(monitor.Event{Level: monitor.LevelAlarm, Key: safetext.New(resource)}, "by force: "+risk)
	}
	return risk, err
}

// Release releases a grant by its token.
func (o *Operator) Release(ctx context.Context, resource, token string) ([]redlock.NodeResult, error) {
	switch {
	case o.opt.ReadOnly:
		return nil, ErrReadOnly
	case resource == "" || token == "":
		return nil, fmt.Errorf("%w: a release needs the name of the lock and its token", redlock.ErrInvalid)
	}
	a, err := o.begin(audit.Record{Act: "release", Target: resource, TokenSHA: audit.TokenSHA(token)})
	if err != nil {
		return nil, err
	}
	results, err := o.locks.Release(ctx, resource, token)
	return results, a.end(summary(results), err)
}

// RunBegins logs that a command starts to run under a grant; command is its first word.
// If it fails, the command must not run. ended logs how it ended.
func (o *Operator) RunBegins(lock *redlock.Lock, command string) (ended func(how string, failed bool) error, err error) {
	a, err := o.begin(audit.Record{Act: "run", Target: lock.Resource(), TokenSHA: audit.TokenSHA(lock.Token()), Detail: "command " + command})
	if err != nil {
		return nil, err
	}
	return func(how string, failed bool) error {
		if failed {
			return a.write(audit.Failed, how)
		}
		return a.write(audit.Done, how)
	}, nil
}

// mayAct makes the checks that all dangerous actions share.
func (o *Operator) mayAct(reason string) error {
	switch {
	case o.opt.ReadOnly:
		return ErrReadOnly
	case strings.TrimSpace(reason) == "":
		return fmt.Errorf("%w: it needs a reason, which the audit log keeps", ErrRefused)
	}
	return nil
}

func nodesOf(err error) []redlock.NodeResult {
	var e *redlock.Error
	if errors.As(err, &e) {
		return e.Nodes
	}
	return nil
}

// logTarget returns the name of a lock for the log, which escapes by itself what JSON can
// hold.
func logTarget(resource string) string {
	if utf8.ValidString(resource) {
		return resource
	}
	return safetext.Escape(resource)
}

// logText returns an error for the log. Messages for people contain the tokens that were
// found instead; the log must not.
func logText(err error) string {
	var e *redlock.Error
	var on extendableError
	switch {
	case errors.As(err, &on): // the detail has the rest
		return logText(on.error)
	case errors.Is(err, ErrChanged):
		return ErrChanged.Error()
	case errors.As(err, &e) && e.Kind != nil:
		return e.Op + ": " + e.Kind.Error()
	}
	return err.Error()
}

// decided summarises an action that ended as soon as enough nodes had answered. The log
// must not suggest that the other nodes failed. This does not apply if somebody else
// ended the action.
func decided(results []redlock.NodeResult, err error) string {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return summary(results)
	}
	parts := make([]string, 0, len(results))
	for _, r := range results {
		if r.Status == redlock.StatusUnanswered {
			parts = append(parts, r.Node+" not waited for")
		} else {
			parts = append(parts, summary([]redlock.NodeResult{r}))
		}
	}
	return strings.Join(parts, ", ")
}

func summary(results []redlock.NodeResult) string {
	parts := make([]string, len(results))
	for i, r := range results {
		parts[i] = r.Node + " " + r.Status.String()
		if r.Err != nil {
			parts[i] += " (" + r.Err.Error() + ")"
		}
	}
	return strings.Join(parts, ", ")
}

func joined(sep string, parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), sep)
}

// Standing returns the nodes' results for a lock that was acquired or extended. The first
// quorum of answers decided it. Nodes that had not answered by then are read now: the
// read is queued after the command that they were sent, so the copies exist before the
// program exits and the count is complete.
func (o *Operator) Standing(ctx context.Context, lock *redlock.Lock) []redlock.NodeResult {
	results := lock.Nodes()
	if seen, err := o.Inspect(ctx, lock.Resource()); err == nil {
		for i, r := range seen {
			// After a refusal the read shows who holds the lock. Other answers stay: a
			// replica shows a copy that is not its own vote.
			if s := results[i].Status; s != redlock.StatusUnanswered && s != redlock.StatusHeld {
				continue
			}
			results[i] = r
			if r.Status == redlock.StatusHeld && r.Token == lock.Token() {
				results[i] = redlock.NodeResult{Node: r.Node, Status: redlock.StatusOK}
			}
		}
	}
	return results
}
