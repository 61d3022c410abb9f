package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"redlockctl/internal/audit"
	"redlockctl/redlock"
	"redlockctl/server/lockform"
	"redlockctl/server/safetext"
)

// Removal is a request to remove a lock from its holder, as a [Plan] showed it.
type Removal struct {
	Kind RemovalKind
	Keys []string // all keys of the lock; the first names it
	// Tokens are the tokens whose copies are removed; each node compares them again. nil:
	// each node's own token, whatever a new read finds. The holder of a hash must be named.
	Tokens []string
	Reason string // for the audit log
	// OnlyKeys leaves out keys that are derived from the name of another.
	OnlyKeys bool
	// Standing is what was known of the lock when it was shown; nil: nothing besides its
	// copies.
	Standing *Standing
}

// Removal returns the removal that the plan describes.
func (p Plan) Removal(reason string) Removal {
	r := Removal{Kind: p.Kind, Keys: p.Keys, Reason: reason, Standing: p.standing}
	for _, t := range p.Tokens {
		r.Tokens = append(r.Tokens, t.Token)
	}
	return r
}

// KeyOutcome is the outcome for one key of a lock. The results, one for each node in the
// nodes' order, say where a copy may be left. They are set even with an error, if
// something was sent.
type KeyOutcome struct {
	Key     string
	Results []redlock.NodeResult
	// Extendable are the nodes that were not reached and may still make a majority for the holder,
	// who can extend the lock there without end. nil: they cannot.
	Extendable []string
	Err        error
}

// Outcome has the outcome of each key of a lock; the key that names the lock is first.
type Outcome []KeyOutcome

// Err is nil if the lock was removed. A key without copies of the tokens does not fail it if
// another key had some.
func (o Outcome) Err() error {
	var gone error
	took := false
	for i, k := range o {
		switch {
		case k.Err == nil:
			took = true
		case errors.Is(k.Err, redlock.ErrNotHeld):
			gone = cmp.Or(gone, k.Err)
		case i == 0:
			return k.Err
		default:
			return fmt.Errorf("\"%s\", a key of the same lock: %w", safetext.Escape(k.Key), k.Err)
		}
	}
	if took {
		return nil
	}
	return gone
}

// Remove removes a lock from its holder: all its keys, and those derived from their names
// (see [lockform.Siblings]). Each key is read, checked as in [MakePlan] and logged
// separately; a key that fails does not stop the others.
//
// A key fails with [redlock.ErrNotHeld] if there is no copy, with [ErrChanged] if only
// tokens are there that were not named, with [ErrUnsupported] for a form of lock that
// cannot be removed, and with [redlock.ErrNoQuorum] if too few nodes answered to be sure
// that the lock ended. A single node that is down does not fail it.
func (o *Operator) Remove(ctx context.Context, r Removal) Outcome {
	out := o.removeKeys(ctx, r)
	if o.opt.Overtaken != nil && errors.Is(out.Err(), redlock.ErrNotHeld) { // perhaps somebody else was faster
		if told := o.opt.Overtaken(ctx, r.Keys[0]); told != "" {
			out[0].Err = overtakenError{out[0].Err, safetext.Escape(told)}
		}
	}
	return out
}

// overtakenError is the error of a removal that found nothing, with who force-released the lock.
type overtakenError struct {
	error
	told string // safe to show
}

func (e overtakenError) Error() string { return e.error.Error() + "; " + e.told }
func (e overtakenError) Unwrap() error { return e.error }

// OvertakenBy says by the error of a removal who force-released the lock before; empty: nobody, as far as
// is known.
func OvertakenBy(err error) string {
	var e overtakenError
	errors.As(err, &e)
	return e.told
}

func (o *Operator) removeKeys(ctx context.Context, r Removal) (out Outcome) {
	for i, key := range r.Keys {
		if slices.ContainsFunc(out, func(k KeyOutcome) bool { return k.Key == key }) {
			continue // already removed with an earlier key
		}
		if err := context.Cause(ctx); err != nil && i > 0 {
			return append(out, KeyOutcome{Key: key, Err: err})
		}
		out = append(out, o.removeKey(ctx, r, key)...)
	}
	return out
}

// removing removes the copies of one token.
type removing func(ctx context.Context, resource, token string) ([]redlock.NodeResult, error)

// removingBy returns how: [ForceRelease] deletes the copies. [Revoke] replaces each with
// a tombstone that keeps the rest of its TTL. A copy without TTL, or with one longer than
// any grant has, gets the cluster's max TTL.
func (o *Operator) removingBy(way RemovalKind, hash bool) removing {
	switch {
	case way == Revoke:
		return func(ctx context.Context, resource, token string) ([]redlock.NodeResult, error) {
			return o.locks.Revoke(ctx, resource, token, cmp.Or(o.opt.MaxTTL, defaultTombstone))
		}
	case hash:
		return o.forceReleaseHash
	}
	return o.locks.ForceRelease
}

// ErrUnsupported is returned for a form of lock that cannot be removed safely from
// outside. The error says why.
var ErrUnsupported = errors.New("this form of lock cannot be removed from outside")

// forceReleaseHash deletes a plain lock of Redisson. Fair locks and read-write locks keep
// queues and modes in further keys and fields that a removal would leave inconsistent:
// they are refused with [ErrUnsupported].
func (o *Operator) forceReleaseHash(ctx context.Context, resource, holder string) ([]redlock.NodeResult, error) {
	channel, fair, why := lockform.RedissonLock(resource, holder)
	for _, key := range fair {
		if why != "" {
			break
		}
		seen, err := o.locks.Inspect(ctx, key)
		if err != nil {
			return seen, err
		}
		if slices.ContainsFunc(seen, func(r redlock.NodeResult) bool { return r.Type != "" }) {
			why = "a Redisson fair lock keeps a queue of waiters beside it"
		}
	}
	if why != "" {
		return nil, fmt.Errorf("force-release %q: %w: %s", resource, ErrUnsupported, why)
	}
	return o.locks.ForceReleaseHash(ctx, resource, holder, channel)
}

// defaultTombstone is the TTL of the tombstone for a copy without TTL, if the cluster has
// no max TTL.
const defaultTombstone = time.Hour

// removeKey reads, plans and removes one key. The outcomes of keys derived from it follow
// its own.
func (o *Operator) removeKey(ctx context.Context, r Removal, key string) []KeyOutcome {
	failed := func(err error) []KeyOutcome { return []KeyOutcome{{Key: key, Err: err}} }
	if err := o.mayAct(r.Reason); err != nil {
		return failed(err)
	}
	if key == "" {
		return failed(fmt.Errorf("%w: the lock needs a name", redlock.ErrInvalid))
	}
	record := audit.Record{Act: r.Kind.String(), Target: key, Reason: r.Reason}
	if len(r.Tokens) == 1 {
		record.TokenSHA = audit.TokenSHA(r.Tokens[0])
	}
	a, err := o.begin(record)
	if err != nil {
		return failed(err)
	}
	found, err := o.locks.Inspect(ctx, key)
	if ctxErr := context.Cause(ctx); ctxErr != nil {
		// A release is sent even after its context has ended, so do not start one then.
		return failed(a.end(summary(found), ctxErr))
	}
	plan, err := MakePlan(r.Kind, Target{Keys: []string{key}, Copies: found, LookErr: err, Tokens: r.Tokens, Quorum: redlock.Quorum(len(found)), Standing: r.Standing})
	if err != nil {
		return failed(a.end(joined("; ", summary(found), hashes(found)), err))
	}
	relied := r.Standing.reliedUntil(found, plan.Tokens, time.Now())
	if len(r.Tokens) != 1 {
		// Only now are the removed tokens known: log them before they are removed.
		if err := a.write(audit.Intent, hashes(found)); err != nil {
			return failed(unlogged(err))
		}
	}
	do := o.removingBy(r.Kind, slices.ContainsFunc(found, func(r redlock.NodeResult) bool { return r.Type == "hash" }))
	results, err := removeTokens(ctx, do, key, plan.Tokens, found, r.Standing)
	if r.Kind == Revoke && err == nil {
		// The holder may have extended it since the look: the tombstones have the TTLs that the
		// copies had when they were replaced.
		if left, bad := o.locks.Inspect(ctx, key); bad == nil {
			relied = relied.later(r.Standing.reliedUntil(left, tombstones(left), time.Now()))
		}
	}
	told := relied.String()
	var on extendableError
	if errors.As(err, &on) {
		told = on.text() // no time at which it ends
	}
	out, detail, bad := []KeyOutcome{{Key: key, Results: results, Extendable: on.nodes}}, joined("; ", told, summary(results)), 0
	if err == nil && !r.OnlyKeys {
		out = append(out, removeSiblings(ctx, do, r, key, plan.Tokens)...)
		for i, k := range out[1:] {
			if detail = joined("; ", detail, logTarget(k.Key)+" too"); k.Err != nil && bad == 0 {
				bad, err = i+1, k.Err
			}
		}
	}
	if err == nil {
		err = r.partly(key, results)
	}
	out[bad].Err = a.end(detail, err)
	return out
}

// ErrPartly is returned when too few nodes have a tombstone to keep others from a quorum.
var ErrPartly = errors.New("revoked on too few nodes")

// partlyError is ErrPartly with its consequence. It is a [redlock.ErrNoQuorum] too.
type partlyError struct{ text string }

func (e partlyError) Error() string   { return e.text }
func (e partlyError) Unwrap() []error { return []error{ErrPartly, redlock.ErrNoQuorum} }

// partly returns the error of a revoke that protects nobody; nil: it protects, or it is a
// force-release.
func (r *Removal) partly(key string, results []redlock.NodeResult) error {
	on := 0
	for _, one := range results {
		if one.Status == redlock.StatusOK || one.Status == redlock.StatusHeld && redlock.IsTombstone(one.Token) {
			on++
		}
	}
	if r.Kind != Revoke || on >= redlock.Blocking(len(results)) {
		return nil
	}
	means := "that protects nobody, another client can get in on the others"
	if now := time.Now(); r.Standing.keepsOut() && r.Standing.relianceOf(r.named()) != nil {
		means = "nobody else gets in " + until(r.Standing.Lock.HeldUntil(), now) + ", as long as the nodes that lost its copies stay fenced"
	}
	return partlyError{fmt.Sprintf("\"%s\" is revoked on %d of %d nodes only: %s", safetext.Escape(key), on, len(results), means)}
}

// named returns the requested tokens.
func (r *Removal) named() (tokens []TokenCopies) {
	for _, t := range r.Tokens {
		tokens = append(tokens, TokenCopies{Token: t})
	}
	return tokens
}

// removeSiblings removes the keys of the same lock that are derived from the name of one,
// if they have the same token.
func removeSiblings(ctx context.Context, do removing, r Removal, key string, tokens []TokenCopies) (out []KeyOutcome) {
	for _, t := range tokens {
		for _, sibling := range lockform.Siblings(key, t.Token) {
			if sibling == key {
				continue
			}
			results, err := do(ctx, sibling, t.Token)
			if errors.Is(err, redlock.ErrNotHeld) {
				continue
			}
			if err == nil {
				err = r.partly(sibling, results)
			}
			out = append(out, KeyOutcome{Key: sibling, Results: results, Err: err})
		}
	}
	return out
}

func removeTokens(ctx context.Context, do removing, resource string, tokens []TokenCopies, found []redlock.NodeResult, known *Standing) ([]redlock.NodeResult, error) {
	results := slices.Clone(found)
	var failed error
	deleted, changed := 0, false
	var late, refused []string // nodes that had a copy and did not answer; copies whose removal was refused
	var fenced []int
	for i, t := range tokens {
		released, err := do(ctx, resource, t.Token)
		// A token that disappeared meanwhile is not an error if another one was found and
		// deleted.
		if err != nil && !errors.Is(err, redlock.ErrNotHeld) && failed == nil {
			failed = err
		}
		for _, r := range released {
			j := slices.IndexFunc(results, func(f redlock.NodeResult) bool { return f.Node == r.Node })
			if r.Status == redlock.StatusOK {
				deleted++
			}
			// A node's result is the answer to its own token; without a token there, the
			// answer to the first.
			if j >= 0 && (copyOf(found[j]) && found[j].Token == t.Token || !copyOf(found[j]) && i == 0) {
				changed = changed || r.Status == redlock.StatusHeld
				results[j] = r
				switch {
				case !copyOf(found[j]) || copyOf(r) || r.Status == redlock.StatusAbsent:
				case r.Status == redlock.StatusFenced:
					fenced = append(fenced, j)
				default:
					late = append(late, r.Node)
				}
			}
		}
	}
	on := extendable(tokens, found, results)
	for _, j := range fenced {
		refused = append(refused, known.stays(found[j], time.Now(), slices.Contains(on, found[j].Node)))
		if !endless(found[j]) {
			results[j].MayLiveUntil = time.Now().Add(found[j].TTL)
		}
	}
	for j := range results {
		if slices.Contains(on, results[j].Node) {
			results[j].MayLiveUntil = time.Time{}
		}
	}
	err := removed(resource, results, failed, deleted, changed, late, refused)
	if err != nil && on != nil {
		err = extendableError{err, on}
	}
	return results, err
}

// extendable returns the nodes that were not reached, if they may still make a majority for the
// holder of one of the tokens; else nil.
func extendable(tokens []TokenCopies, found, results []redlock.NodeResult) []string {
	for _, t := range tokens {
		if redlock.IsTombstone(t.Token) {
			continue // nobody extends it
		}
		var on []string
		for j, r := range results {
			switch {
			case r.Status == redlock.StatusOK, r.Status == redlock.StatusAbsent, r.Status == redlock.StatusHeld:
			case copyOf(found[j]) && found[j].Token == t.Token, !copyOf(found[j]) && found[j].Status != redlock.StatusAbsent:
				on = append(on, r.Node)
			}
		}
		if len(on) >= redlock.Quorum(len(results)) {
			return on
		}
	}
	return nil
}

// extendableError is the error of a removal that did not reach enough nodes: the holder may keep the
// lock on the others.
type extendableError struct {
	error
	nodes []string
}

func (e extendableError) text() string {
	return "its holder may still have a majority on " + safetext.Escape(strings.Join(e.nodes, " ")) + ", and extend the lock without end: do it again when they answer and accept writes"
}

func (e extendableError) Error() string { return e.error.Error() + "; " + e.text() }
func (e extendableError) Unwrap() error { return e.error }

// removed returns the error of a removal of copies.
func removed(resource string, results []redlock.NodeResult, failed error, deleted int, changed bool, late, refused []string) error {
	switch {
	case failed != nil && refused != nil:
		return fmt.Errorf("%w; not removed: %s", failed, strings.Join(refused, "; "))
	case failed != nil:
		return failed
	case deleted == 0 && late != nil:
		return notHeardError{resource, joined("; ", append(refused, unheard(results, late))...)}
	case deleted == 0 && refused != nil:
		return notHeardError{resource, "not removed: " + strings.Join(refused, "; ")}
	case deleted == 0 && changed:
		return fmt.Errorf("%q: %w, a moment ago", resource, ErrChanged)
	case deleted == 0:
		return fmt.Errorf("%q: %w: its copies expired or were deleted a moment ago", resource, redlock.ErrNotHeld)
	}
	return nil
}

func hashes(found []redlock.NodeResult) string {
	var parts []string
	for _, r := range found {
		if copyOf(r) && r.Token != "" {
			parts = append(parts, r.Node+" sha256:"+audit.TokenSHA(r.Token))
		}
	}
	if parts == nil {
		return ""
	}
	return "found " + strings.Join(parts, ", ")
}
