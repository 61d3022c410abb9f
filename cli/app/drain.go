package app

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"redlockctl/base/sleep"
	"redlockctl/internal/config"
	"redlockctl/internal/restart"
	"redlockctl/internal/view"
	"redlockctl/redlock"
	"redlockctl/restartguard"
	"redlockctl/restartguard/oneshot"
	"redlockctl/server/safetext"
)

// ErrNotDrained is returned by [Drain] when its time ended before the node was drained.
var ErrNotDrained = errors.New("not drained")

const (
	drainPoll = 500 * time.Millisecond
	// drainSeen is how long a guard takes to count the copies of a node itself, at most.
	drainSeen = 10 * time.Second
)

// remaining is the part of a text that changes each second.
var remaining = regexp.MustCompile(` \(<?[0-9]+[a-z]+\)`)

// Drained is the result of waiting for a cordoned node.
type Drained struct {
	// Guards: a guard takes the node for drained, so a restart needs no D.
	Guards bool
	// Unseen is why no guard does.
	Unseen string
}

// Drain waits until a cordoned node has no unexpired copy, and a guard has seen that. It calls says
// with the progress each time that changes. It fails with [restart.ErrUncordoned] as soon as the
// node is not cordoned any more.
func Drain(ctx context.Context, cfg *config.Config, name string, says func(string)) (d Drained, err error) {
	node, _, err := NodeOf(cfg, name)
	if err != nil {
		return d, err
	}
	said, last := "", "no look has been answered yet"
	var empty time.Time
	c := cordon{cfg: cfg, name: name, since: time.Now()}
	for {
		text, left, err := drainLook(ctx, cfg, node)
		if err == nil && left == 0 {
			if empty.IsZero() {
				empty = time.Now()
			}
			d.Guards, d.Unseen = drainedSeen(ctx, cfg, name)
			text = view.GuardMustSee
		} else {
			empty = time.Time{}
		}
		// The cordon is read after the copies: none has come meanwhile.
		var is string
		if err == nil {
			is, err = c.look(ctx)
		}
		switch {
		case ctx.Err() != nil:
			if _, err := c.look(context.WithoutCancel(ctx)); errors.Is(err, restart.ErrUncordoned) {
				return d, err
			}
			if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return d, fmt.Errorf("%w: %s: %w", ErrNotDrained, last, context.Cause(ctx))
			}
			return d, fmt.Errorf("%w: %s", ErrNotDrained, last)
		case errors.Is(err, restart.ErrUncordoned):
			return d, err
		case err != nil:
			text = safetext.Printable(err.Error())
		case is != "":
			text = is
		case left == 0 && (d.Guards || time.Since(empty) > drainSeen):
			return d, nil
		}
		last = text
		if now := remaining.ReplaceAllString(text, ""); now != said {
			says(text)
			said = now
		}
		_ = sleep.For(ctx, drainPoll)
	}
}

// drainedSeen reports whether a guard takes a node for drained, or why no known guard does.
func drainedSeen(ctx context.Context, cfg *config.Config, name string) (bool, string) {
	s, err := Look(ctx, cfg, Aim{Nodes: true})
	if err != nil {
		return false, safetext.Printable(err.Error())
	}
	if n := s.Node(name); n.Drained() {
		return true, ""
	} else if len(n.Guards) == 0 {
		return false, "no guard watches it"
	}
	return false, "no guard has seen that it is empty"
}

// drainLook returns what is still in the way, and how many copies that are.
func drainLook(ctx context.Context, cfg *config.Config, node *redlock.Node) (text string, left int, err error) {
	copies, err := oneshot.CopiesOn(ctx, node, cfg.Cluster.LockPatterns)
	if err != nil || len(copies) == 0 {
		return "", 0, err
	}
	now := time.Now()
	latest := slices.MaxFunc(copies, func(a, b restartguard.Copy) int { return a.Ends().Compare(b.Ends()) })
	text = view.CopiesLeft(len(copies), latest.Ends(), now)
	inWay := slices.DeleteFunc(slices.Clone(copies), func(c restartguard.Copy) bool {
		return !c.Endless() && (cfg.Cluster.MaxTTL == 0 || c.Left <= cfg.Cluster.MaxTTL)
	})
	if len(inWay) > 0 {
		c := inWay[0]
		why := "has no TTL, and never ends: redlockctl force-release ends it"
		if !c.Endless() {
			why = fmt.Sprintf("has a TTL above max_ttl: %s left", view.Remaining(c.Left))
		}
		text += fmt.Sprintf("; in the way: %s %s", safetext.Escape(c.Key), why)
		if len(inWay) > 1 {
			text += fmt.Sprintf("; %d more", len(inWay)-1)
		}
	}
	return text, len(copies), nil
}
