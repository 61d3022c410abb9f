package redlock

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"time"
)

// Two forced removals. Revoke is the safe one: the holder cannot extend, and no other
// client gets the lock before the TTL ends, so a holder that is alive can work
// undisturbed until its validity ends. ForceRelease frees the name at once. It is for a
// holder that is known to be dead: otherwise two clients use the lock at once.

// tombstonePrefix begins the value that replaces a revoked token.
const tombstonePrefix = "redlockctl:revoked:"

// IsTombstone reports whether a value was left by [Client.Revoke]: it has no holder,
// but keeps the rest of the TTL.
func IsTombstone(value string) bool { return strings.HasPrefix(value, tombstonePrefix) }

// Revoke revokes the lock of token: each node that has the token replaces it by a
// tombstone with the remaining TTL, so that the holder's next extension fails. The
// holder may work until its validity ends, and no other client gets a quorum before
// that if [Blocking] nodes have tombstones. A copy without TTL, or with a TTL above ten
// years, which no grant has, ends after atMost, at least a millisecond. Revoke needs
// Redis 6.0 or later.
//
// The error is nil if less than a quorum still has the token, and at least one node
// replaced it; [ErrNotHeld] and [ErrNoQuorum] are as in [Client.Release]. The resource
// is free when the tombstones have ended.
func (c *Client) Revoke(ctx context.Context, resource, token string, atMost time.Duration) ([]NodeResult, error) {
	const op = "revoke"
	switch {
	case atMost < time.Millisecond || atMost > LongestTTL:
		return nil, invalid(op, resource, fmt.Sprintf("a TTL of %s for copies without one is not between 1ms and %s", atMost, LongestTTL))
	case IsTombstone(token):
		return nil, invalid(op, resource, "it is revoked already")
	}
	return c.remove(ctx, op, request{op: opRevoke, key: resource, token: token, value: tombstoneOf(token), ttl: atMost})
}

// tombstoneOf returns the tombstone of a token: the same on all nodes and for all keys,
// so that a lock of several keys is recognized as one. It does not reveal the token.
func tombstoneOf(token string) string {
	sum := sha256.Sum256([]byte(tombstonePrefix + token))
	return tombstonePrefix + base64.RawURLEncoding.EncodeToString(sum[:])[:27]
}

// ForceRelease deletes the copies of token on all nodes, whoever holds them:
// [Client.Release] by somebody other than the holder. Each node compares when it
// deletes. For a lock of several keys with one token, call it for each key. Use it for
// locks that were acquired at least a node timeout ago: it does not see requests that
// are still on their way to a node.
func (c *Client) ForceRelease(ctx context.Context, resource, token string) ([]NodeResult, error) {
	return c.remove(ctx, "force-release", request{op: opRelease, key: resource, token: token})
}

// ForceReleaseHash is [Client.ForceRelease] for a lock that is a hash with the holder
// as its only field. It publishes "0" on channel, for clients that wait there.
func (c *Client) ForceReleaseHash(ctx context.Context, resource, holder, channel string) ([]NodeResult, error) {
	return c.remove(ctx, "force-release", request{op: opTakeHash, key: resource, token: holder, value: channel})
}

// remove sends a forced removal to all nodes; its answers mean the same as those to a
// release.
func (c *Client) remove(ctx context.Context, op string, ask request) (_ []NodeResult, err error) {
	defer c.observe(ctx, op, ask.key)(&err)
	if err := checkNames(op, ask.key, ask.token); err != nil {
		return nil, err
	}
	if err := c.enterConnected(ctx, op, ask.key); err != nil {
		return nil, err
	}
	defer c.ops.Done()
	if err := c.admission.enter(ctx, true, c.closing); err != nil {
		return nil, c.endedBy(ctx, op, ask.key, err, nil)
	}
	ask.admitted = true
	results := c.ask(ask, nil, nil)
	return results, c.assessRelease(op, ask.key, results)
}
