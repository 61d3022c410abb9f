package redlock

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"time"
)

// Two ways to take a lock from its holder. Revoke is the safe one: the holder
// cannot extend any more, and nobody else gets in before the TTL is over, so
// that a holder that is alive goes on in peace until its validity ends.
// ForceRelease frees the name at once; it is for a holder that is known to be
// dead, since one that is not shares the lock with the next.

// tombstonePrefix begins the value that takes the place of a revoked token.
const tombstonePrefix = "redlockctl:revoked:"

// IsTombstone reports whether a value is what [Client.Revoke] leaves: no holder, but
// the rest of the TTL of one.
func IsTombstone(value string) bool { return strings.HasPrefix(value, tombstonePrefix) }

// Revoke takes a lock from the holder of token: on each node that has the token
// a tombstone takes its place, with the TTL that is left, so that the holder's
// next extension fails. The holder may go on until its validity ends, and nobody
// else gets a quorum before if tombstones are on [Blocking] nodes. A copy without
// TTL, or with a TTL above ten years, which no grant has, ends in atMost: at least a
// millisecond. It needs Redis 6.0 or later.
//
// The error is nil when the token is left on less than a quorum and was
// replaced somewhere; [ErrNotHeld] and [ErrNoQuorum] are as in [Client.Release].
// The resource is free when the tombstones have ended.
func (c *Client) Revoke(ctx context.Context, resource, token string, atMost time.Duration) ([]NodeResult, error) {
	const op = "revoke"
	switch {
	case atMost < time.Millisecond || atMost > LongestTTL:
		return nil, invalid(op, resource, fmt.Sprintf("a TTL of %s for copies without one is not between 1ms and %s", atMost, LongestTTL))
	case IsTombstone(token):
		return nil, invalid(op, resource, "it is revoked already")
	}
	return c.remove(ctx, op, call{op: opRevoke, key: resource, token: token, value: tombstoneOf(token), ttl: atMost})
}

// tombstoneOf is what takes the place of a token: the same on all nodes and
// under all keys, so that a lock that is several keys is seen to be one. It does
// not tell the token.
func tombstoneOf(token string) string {
	sum := sha256.Sum256([]byte(tombstonePrefix + token))
	return tombstonePrefix + base64.RawURLEncoding.EncodeToString(sum[:])[:27]
}

// ForceRelease deletes the copies of token on all nodes, compared on each when
// it runs, whoever holds them: [Client.Release] by another's hand. Locks that
// are several keys with one token are taken key by key. It is for locks that were
// acquired at least a node timeout ago: what is still on its way to a node is not
// seen there.
func (c *Client) ForceRelease(ctx context.Context, resource, token string) ([]NodeResult, error) {
	return c.remove(ctx, "force-release", call{op: opRelease, key: resource, token: token})
}

// ForceReleaseHash is [Client.ForceRelease] for a lock that is a hash whose only field
// is its holder. "0" is published on channel, for those who wait there.
func (c *Client) ForceReleaseHash(ctx context.Context, resource, holder, channel string) ([]NodeResult, error) {
	return c.remove(ctx, "force-release", call{op: opTakeHash, key: resource, token: holder, value: channel})
}

// remove asks all nodes and judges the answers as a release.
func (c *Client) remove(ctx context.Context, op string, ask call) ([]NodeResult, error) {
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
