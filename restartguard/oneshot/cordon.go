package oneshot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/base/sleep"
	"redlockctl/redlock"
	"redlockctl/restartguard"
	"redlockctl/restartguard/fence"
	"redlockctl/restartguard/wire"
	"redlockctl/server/announce"
	"redlockctl/server/fences"
	"redlockctl/server/minreplicas"
	"redlockctl/server/safetext"
	"redlockctl/server/serverinfo"
)

// Cordon fences a node for an operator: no guard lets it rejoin. It returns after the fence was
// read back and a canary write was refused. It overwrites any other value of min-replicas-to-write.
// The cordon is in the server's memory: a restart forgets it, and a guard that saw it sets it
// again. A cordoned node refuses writes as a replica too.
//
// With [fences.ACL] it is a mark on the user. With [fences.None] it only
// fails with ErrDenied.
func Cordon(ctx context.Context, node *redlock.Node, method fences.Method) error {
	if method.Kind == fences.None {
		return adviceError(node)
	}
	l := wire.Dial(node, method, wire.HandTimeout)
	defer l.Close()
	before, err := l.Params(ctx) // a fence that cannot be read back is not set
	if err != nil {
		return wire.NodeError(node, err, ErrNotFenced)
	}
	set, err := l.Set(ctx, minreplicas.FenceCordon, before.MaxLag <= 0, true)
	switch {
	case err != nil:
		return wire.NodeError(node, err, ErrNotFenced)
	case set.Blind != nil:
		return wire.NodeError(node, set.Blind, ErrNotFenced)
	case !set.After.Cordoned():
		return fmt.Errorf("node %q: %w: %s", node.Name(), ErrNotFenced, readBack(method, set.After))
	}
	canary, after, err := l.Prove(ctx)
	if err != nil {
		return wire.NodeError(node, err, ErrNotFenced)
	}
	if got, why := canary(); got == restartguard.CanaryAccepted {
		return fmt.Errorf("node %q: %w: a canary write got through%s", node.Name(), ErrNotFenced, because(why))
	}
	p, err := after()
	switch {
	case err != nil:
		return wire.NodeError(node, err, ErrNotFenced)
	case !p.Cordoned():
		// A guard removed the fence at the same time and is about to restore the cordon, or
		// another operator removed it.
		return fmt.Errorf("node %q: %w: changed by another at the same time: %s", node.Name(), ErrNotFenced, readBack(method, p))
	}
	return nil
}

// Uncordon ends an operator's cordon, and nothing else: the node stays fenced, is handed back to
// the guards, and rejoins when it may vote ([restartguard.MayVoteFrom]). Without a cordon it fails
// with [ErrNotCordoned].
func Uncordon(ctx context.Context, node *redlock.Node, method fences.Method) error {
	if method.Kind == fences.None {
		return adviceError(node)
	}
	l := wire.Dial(node, method, wire.HandTimeout)
	defer l.Close()
	before, err := l.Params(ctx)
	switch {
	case err != nil:
		return wire.NodeError(node, err, ErrNotFenced)
	case !before.Cordoned():
		return fmt.Errorf("node %q: %w", node.Name(), ErrNotCordoned)
	}
	set, err := l.Set(ctx, minreplicas.FenceUp, false, false)
	switch {
	case err != nil:
		return wire.NodeError(node, err, ErrNotFenced)
	case set.Blind != nil:
		return wire.NodeError(node, set.Blind, ErrNotFenced)
	case !set.After.Fenced():
		return fmt.Errorf("node %q: %w: %s", node.Name(), ErrNotFenced, readBack(method, set.After))
	}
	return nil
}

// AwaitKept waits until a guard announces on the node that it keeps the cordon over any crash. If
// the node restarts before that, it is cordoned again. It fails with ErrNotFenced if somebody ends the
// cordon, and returns false if there is no guard, or none that has seen the cordon within the
// context's time.
func AwaitKept(ctx context.Context, node *redlock.Node, method fences.Method) (kept bool, err error) {
	was, failed := "", false // the incarnation in which it was seen
	for alone := time.Now(); ; {
		p, run, all, err := keepers(ctx, node, method)
		restarted := run == "" || run != was && (was != "" || failed)
		if err == nil {
			was = run
		}
		failed = failed || err != nil
		switch {
		case err == nil && !p.Cordoned() && !restarted:
			return false, fmt.Errorf("node %q: %w: changed by another at the same time: %s", node.Name(), ErrNotFenced, readBack(method, p))
		case err == nil && !p.Cordoned():
			if err := Cordon(ctx, node, method); err != nil && !errors.Is(err, restartguard.ErrUnreachable) {
				return false, err
			}
		case err == nil && slices.ContainsFunc(all, func(g announce.Guard) bool { return g.Cordoned }):
			return true, nil
		case err == nil && len(all) > 0:
			alone = time.Now()
		case time.Since(alone) > keptAlone:
			return false, nil
		}
		if sleep.For(ctx, keptPoll) != nil {
			return false, nil
		}
	}
}

const (
	keptPoll = 20 * time.Millisecond // between two reads of the announcements
	// keptAlone is how long no guard must have been seen before there is none: longer than a guard
	// takes to announce itself again after a start of the server.
	keptAlone = 300 * time.Millisecond
)

// keepers reads the fence of a node, its run_id (empty if INFO is denied) and the guards that announce
// themselves there.
func keepers(ctx context.Context, node *redlock.Node, method fences.Method) (p minreplicas.Params, run string, guards []announce.Guard, err error) {
	l := wire.Dial(node, method, wire.HandTimeout)
	defer l.Close()
	var channels *redis.StringSliceCmd
	var info *redis.StringCmd
	var params func() (minreplicas.Params, error)
	if err := l.Send(ctx, func(p redis.Pipeliner) {
		params = l.Codec.Ask(ctx, p)
		channels = p.PubSubChannels(ctx, announce.Pattern)
		info = p.Info(ctx, "server")
	}); err != nil {
		return p, "", nil, err
	}
	p, err = params()
	return p, serverinfo.Field(info.Val(), "run_id"), announce.DecodeAll(channels.Val()), err
}

// Announced returns the guards that announce themselves on a node, as channels.
func Announced(ctx context.Context, node *redlock.Node, timeout time.Duration) ([]string, error) {
	l := wire.Dial(node, fences.Method{}, timeout)
	defer l.Close()
	var channels *redis.StringSliceCmd
	if err := l.Send(ctx, func(p redis.Pipeliner) { channels = p.PubSubChannels(ctx, announce.Pattern) }); err != nil {
		return nil, err
	}
	return channels.Result()
}

// RejoinNow removes the fence of a node for an operator, whoever set it and before any deadline. It
// returns after the fence was read back and a canary write was accepted; if the server denies the
// canary write, the fence that was read back must do. A guard accepts that, unless it never saw the
// node fenced since its last loss.
func RejoinNow(ctx context.Context, node *redlock.Node, method fences.Method) error {
	if method.Kind == fences.None {
		return adviceError(node)
	}
	l := wire.Dial(node, method, wire.HandTimeout)
	defer l.Close()
	if _, err := l.Params(ctx); err != nil {
		return wire.NodeError(node, err, ErrNotServing)
	}
	l.Introduced = true
	if is, err := l.Look(ctx); err == nil && restartguard.Foreign(is.Role) != "" {
		return fmt.Errorf("node %q: %w: it is %s", node.Name(), ErrNotServing, restartguard.Foreign(is.Role))
	}
	set, err := l.Set(ctx, minreplicas.FenceNone, false, false)
	switch {
	case err != nil:
		return wire.NodeError(node, err, ErrNotServing)
	case set.Blind != nil:
		return wire.NodeError(node, set.Blind, ErrNotServing)
	case set.After.MinReplicas != minreplicas.FenceNone:
		return fmt.Errorf("node %q: %w: %s", node.Name(), ErrNotServing, readBack(method, set.After))
	}
	canary, after, err := l.Prove(ctx)
	if err != nil {
		return wire.NodeError(node, err, ErrNotServing)
	}
	got, why := canary()
	switch {
	case got == restartguard.CanaryAccepted || wire.IsDenied(why):
		return nil
	case got == restartguard.CanaryFenced:
		p, _ := after()
		return fmt.Errorf("node %q: %w: a canary write was refused with %s: %s", node.Name(), ErrNotServing, fence.Of(method).Traits().Refusal, readBack(method, p))
	}
	return wire.NodeError(node, why, ErrNotServing)
}

// readBack returns the fence that was read back, in words.
func readBack(m fences.Method, p minreplicas.Params) string {
	if w := fence.Of(m).Words(p); w != "" {
		return "read back: " + w
	}
	return p.String()
}

func adviceError(node *redlock.Node) error {
	return fmt.Errorf("node %q: %w: its fence is \"none\"", node.Name(), restartguard.ErrDenied)
}

// because returns the reason as the end of a sentence; "" if there is none.
func because(err error) string {
	if err == nil {
		return ""
	}
	return ": " + safetext.Error(err)
}
