package view

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"redlockctl/internal/who"
	"redlockctl/monitor"
)

// LeftBehind reports whether a lock is a minority of copies that nobody completes.
func LeftBehind(c *Context, l *monitor.Lock) bool {
	switch l.State {
	case monitor.LockOrphaned:
		return true
	case monitor.LockOverTTL, monitor.LockNoTTL: // which are told before it
		return l.Held >= 0 && !hasMajority(l, c.Snap.Cluster.Quorum)
	}
	return false
}

// MakerFacts are what a record knows of who left a lock behind: until when its token held the
// lock, if it ever did, and when it was last heard of. None of another lock.
func MakerFacts(c *Context, l *monitor.Lock, grants []GrantDoc) []Fact {
	if !LeftBehind(c, l) {
		return nil
	}
	sha, recalled := strings.CutPrefix(l.Holder.Raw(), "sha256:")
	if !recalled {
		sum := sha256.Sum256([]byte(l.Holder.Raw()))
		sha = hex.EncodeToString(sum[:])
	}
	for i := len(grants) - 1; i >= 0; i-- {
		g := &grants[i]
		if g.TokenSHA == "" || !strings.HasPrefix(sha, g.TokenSHA) {
			continue
		}
		text := "held it for " + Age(g.held(c.Now)) + ", from " + Clock(g.Began)
		if g.Owner != nil {
			text = c.Whole(g.Owner.Raw()) + " " + text
		}
		if !g.Ended.IsZero() {
			text += " to " + Clock(g.Ended) + " (" + c.Whole(g.How) + ")"
		}
		return append([]Fact{{Label: "Maker", Text: text}}, Fact{Text: g.heard(c.Now)})
	}
	return nil
}

// heard says when the holder was last heard of.
func (g *GrantDoc) heard(now time.Time) string {
	if g.Extensions == 0 || g.Extended.IsZero() {
		return "it was not seen to extend it"
	}
	w := who.Answer{Extends: g.Extensions, Extended: max(0, now.Sub(g.Extended)), Usually: g.Extended.Sub(g.Began) / time.Duration(g.Extensions)}
	w.Liveness = who.AssessLiveness(who.Signs{Extends: w.Extends, Extended: w.Extended, Usually: w.Usually})
	return WhoLiveness(&w, 0)
}
