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
	"redlockctl/internal/lockform"
	"redlockctl/internal/safetext"
	"redlockctl/redlock"
)

// taking is one way to take the copies of a token away.
type taking func(ctx context.Context, resource, token string) ([]redlock.NodeResult, error)

// ForceRelease deletes the copies of the token that was shown, compared again
// on each node when it runs. An empty token means: whatever a fresh look finds,
// each node's own. Values that are no tokens are refused, and so are keys that a
// library keeps beside its locks, such as counters; a hash is taken for a
// Redisson lock if the token, its holder, is named. Further keys of the same
// lock go with it (see [lockform.Siblings]).
//
// It fails with [redlock.ErrNotHeld] if no copy is there, with [ErrChanged] if
// the token is on no node that answered, but another is, with
// [redlock.ErrUnsupported] for a form of lock that cannot be taken away, and with
// [redlock.ErrNoQuorum] if so few nodes took part that the lock may go on. A
// node that is down does not fail it otherwise; the results, one for each node
// in the nodes' order, say where a copy may be left. They are there also with
// an error, once something was sent.
func (o *Operator) ForceRelease(ctx context.Context, resource, token, reason string) ([]redlock.NodeResult, error) {
	return o.takeAway(ctx, ForceRelease, resource, token, reason, o.locks.ForceRelease, o.locks.ForceReleaseHash)
}

// Revoke puts a tombstone in the place of the token that was shown: its holder
// cannot extend any more, and nobody else gets in before the TTL is over. A copy
// without TTL ends with the cluster's max TTL. Token and errors are as in
// [Operator.ForceRelease]; a hash is refused.
func (o *Operator) Revoke(ctx context.Context, resource, token, reason string) ([]redlock.NodeResult, error) {
	revoke := func(ctx context.Context, resource, token string) ([]redlock.NodeResult, error) {
		return o.locks.Revoke(ctx, resource, token, cmp.Or(o.opt.MaxTTL, defaultTombstone))
	}
	return o.takeAway(ctx, Revoke, resource, token, reason, revoke, nil)
}

// defaultTombstone ends the tombstone of a copy without TTL where the cluster
// has no max TTL.
const defaultTombstone = time.Hour

// takeAway looks, chooses and takes. ofHash is the way for a hash; nil where
// there is none.
func (o *Operator) takeAway(ctx context.Context, way Way, resource, token, reason string, ofString, ofHash taking) ([]redlock.NodeResult, error) {
	if err := o.mayAct(reason); err != nil {
		return nil, err
	}
	if resource == "" {
		return nil, fmt.Errorf("%w: the lock needs a name", redlock.ErrInvalid)
	}
	a, err := o.begin(audit.Record{Act: way.String(), Target: resource, Reason: reason, TokenSHA: audit.TokenSHA(token)})
	if err != nil {
		return nil, err
	}
	found, err := o.locks.Inspect(ctx, resource)
	if ctxErr := context.Cause(ctx); ctxErr != nil {
		// A release is sent although the context is over, so it must not begin then.
		return nil, a.end(summary(found), ctxErr)
	}
	do, hash := ofString, false
	if ofHash != nil && token != "" && slices.ContainsFunc(found, func(r redlock.NodeResult) bool { return r.Type == "hash" }) {
		do, hash = ofHash, true
	}
	tokens, err := choose(way, resource, token, hash, found, err)
	if err != nil {
		return nil, a.end(joined("; ", summary(found), hashes(found)), err)
	}
	if token == "" {
		// Only now it is known whose copies will go: that too is on disk before
		// they do.
		if err := a.write(audit.Intent, hashes(found)); err != nil {
			return nil, unlogged(err)
		}
	}
	results, err := take(ctx, do, resource, tokens, found)
	detail := summary(results)
	if err == nil {
		var more error
		if detail, more = siblings(ctx, do, resource, tokens, detail); more != nil {
			err = more
		}
	}
	return results, a.end(detail, err)
}

// siblings takes the further keys of the same lock: those that bear the same
// token.
func siblings(ctx context.Context, do taking, resource string, tokens []string, detail string) (string, error) {
	for _, t := range tokens {
		keys := lockform.Siblings(resource, t)
		for _, key := range keys {
			if key == resource {
				continue
			}
			switch _, err := do(ctx, key, t); {
			case err == nil:
				detail = joined("; ", detail, logTarget(key)+" too")
			case !errors.Is(err, redlock.ErrNotHeld):
				return detail, fmt.Errorf("%q, a key of the same lock: %w", key, err)
			}
		}
	}
	return detail, nil
}

// take takes the copies of tokens, which a look has found, away by way of do.
func take(ctx context.Context, do taking, resource string, tokens []string, found []redlock.NodeResult) ([]redlock.NodeResult, error) {
	results := slices.Clone(found)
	var failed error
	deleted, changed := 0, false
	for i, t := range tokens {
		released, err := do(ctx, resource, t)
		// That this token is gone by now is no failure as long as another was found
		// and deleted.
		if err != nil && !errors.Is(err, redlock.ErrNotHeld) && failed == nil {
			failed = err
		}
		for _, r := range released {
			j := slices.IndexFunc(results, func(f redlock.NodeResult) bool { return f.Node == r.Node })
			if r.Status == redlock.StatusOK {
				deleted++
			}
			// What is said of a node is the answer to its own token; of a node on
			// which none was found, the answer to the first.
			if j >= 0 && (copyOf(found[j]) && found[j].Token == t || !copyOf(found[j]) && i == 0) {
				changed = changed || r.Status == redlock.StatusHeld
				results[j] = r
			}
		}
	}
	switch {
	case failed != nil:
		return results, failed
	case deleted == 0 && changed:
		return results, fmt.Errorf("%q: %w, a moment ago", resource, ErrChanged)
	case deleted == 0:
		return results, fmt.Errorf("%q: %w: its copies ended a moment ago", resource, redlock.ErrNotHeld)
	}
	return results, nil
}

// choose is which tokens' copies to delete, from a look at all nodes that ended
// with lookErr.
func choose(way Way, resource, token string, hash bool, found []redlock.NodeResult, lookErr error) ([]string, error) {
	var tokens, silent []string
	for _, r := range found {
		if why := refusal(way, resource, r, hash); why != "" {
			return nil, fmt.Errorf("%w: %s", ErrRefused, why)
		}
		switch {
		case hash && r.Type == "hash":
			if !slices.Contains(tokens, token) {
				tokens = append(tokens, token)
			}
		case copyOf(r):
			if !slices.Contains(tokens, r.Token) {
				tokens = append(tokens, r.Token)
			}
		case r.Status != redlock.StatusAbsent:
			silent = append(silent, r.Node)
		}
	}
	unheard := ""
	if len(silent) > 0 {
		unheard = " (not heard of: " + strings.Join(silent, ", ") + ")"
	}
	switch {
	case len(tokens) == 0 && len(silent) == len(found): // nobody knows anything
		return nil, cmp.Or(lookErr, fmt.Errorf("%q: %w%s", resource, redlock.ErrNoQuorum, unheard))
	case len(tokens) == 0:
		return nil, fmt.Errorf("%w%s", NotLocked(resource, len(found)-len(silent), len(found)), unheard)
	case token == "":
		return tokens, nil
	case slices.Contains(tokens, token):
		return []string{token}, nil
	}
	there := make([]string, len(tokens))
	for i, t := range tokens {
		there[i] = fmt.Sprintf("%q on %s", t, strings.Join(holding(found, t), ", "))
	}
	return nil, fmt.Errorf("%q: %w: now there is %s%s", resource, ErrChanged, strings.Join(there, "; "), unheard)
}

// notLocked is the error of [NotLocked].
type notLocked struct {
	resource     string
	answered, of int
}

// NotLocked is the error of an act on a lock, or a look for one, of which no copy
// was found on the nodes that answered, so many of so many: a [redlock.ErrNotHeld]
// for an act in which no token was named. Its text is safe to show.
func NotLocked(resource string, answered, of int) error { return notLocked{resource, answered, of} }

func (e notLocked) Error() string {
	return fmt.Sprintf("\"%s\" is not locked: no copy on the %d of %d nodes that answered", safetext.Escape(e.resource), e.answered, e.of)
}

func (notLocked) Unwrap() error { return redlock.ErrNotHeld }

// copyOf tells if a look found a string on the node.
func copyOf(r redlock.NodeResult) bool {
	return r.Status == redlock.StatusHeld || r.Status == redlock.StatusOK
}

// holding are the nodes that hold a copy of token.
func holding(found []redlock.NodeResult, token string) []string {
	var nodes []string
	for _, r := range found {
		if copyOf(r) && r.Token == token {
			nodes = append(nodes, r.Node)
		}
	}
	return nodes
}
