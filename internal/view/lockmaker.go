package view

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"redlockctl/internal/who"
	"redlockctl/monitor"
	"redlockctl/server/safetext"
)

// LeftBehind reports whether a lock is orphaned.
func LeftBehind(c *Context, l *monitor.Lock) bool {
	switch l.State {
	case monitor.LockOrphaned:
		return true
	case monitor.LockOverTTL, monitor.LockNoTTL: // these states are shown instead of orphaned
		return l.Held >= 0 && !l.ReliedOn()
	}
	return false
}

// MakerFacts returns what a record knows about who left an orphaned lock: until when its
// token held the lock, if ever, and when it was last seen. None for other locks.
func MakerFacts(c *Context, l *monitor.Lock, grants []GrantDoc) []Fact {
	if !LeftBehind(c, l) {
		return nil
	}
	sha := tokenSHA(l.Holder)
	for i := len(grants) - 1; i >= 0; i-- {
		g := &grants[i]
		if g.TokenSHA == "" || !strings.HasPrefix(sha, g.TokenSHA) {
			continue
		}
		until := c.Now
		if !g.Until.IsZero() && g.Until.Before(until) {
			until = g.Until // its end may not be written yet
		}
		text := "held it for " + Age(g.held(until)) + ", from " + Clock(g.Began)
		if g.Owner != nil {
			text = ToldBy(c, *g.Owner) + " " + text
		}
		if !g.Ended.IsZero() {
			text += " to " + Clock(g.Ended) + " (" + c.Whole(g.How) + ")"
		}
		return append([]Fact{{Label: "Maker", Text: text}}, Fact{Text: g.heard(c.Now)})
	}
	return nil
}

// hashed is before the hash of a token, or its beginning, where a token could be.
const hashed = "sha256:"

// hashName names a token by the beginning of its hash.
func hashName(sha string) string { return hashed + sha[:min(6, len(sha))] }

// tokenSHA returns the hash of a token; of one from a record, what is known of it.
func tokenSHA(token safetext.Text) string {
	sha, recalled := strings.CutPrefix(token.Raw(), hashed)
	if !recalled {
		sum := sha256.Sum256([]byte(token.Raw()))
		sha = hex.EncodeToString(sum[:])
	}
	return sha
}

// heard says when the holder was last seen.
func (g *GrantDoc) heard(now time.Time) string {
	if g.Extensions == 0 || g.Extended.IsZero() {
		return "it was not seen to extend it"
	}
	w := who.Answer{Extends: g.Extensions, Extended: max(0, now.Sub(g.Extended))}
	switch span := g.Extended.Sub(g.Began); {
	case !g.Partly:
		w.Usually = span / time.Duration(g.Extensions)
	case g.Extensions > 2:
		w.Usually = usually(span, g.Extensions)
	}
	w.Liveness = who.AssessLiveness(who.Signs{Extends: w.Extends, Extended: w.Extended, Usually: w.Usually})
	return WhoLiveness(&w)
}
