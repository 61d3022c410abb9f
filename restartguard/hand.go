package restartguard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"redlockctl/redlock"
)

// Errors of [Cordon] and [RejoinNow]; all are wrapped, test with errors.Is.
var (
	// ErrUnreachable is returned when the node does not answer. What was sent may
	// have been carried out or not: look again.
	ErrUnreachable = errors.New("node does not answer")
	// ErrDenied is returned when the node does not let us: wrong password, or no
	// right to CONFIG or INFO.
	ErrDenied = errors.New("node does not allow it")
	// ErrNotFenced is returned by Cordon when the fence does not hold: it reads back
	// otherwise, or a canary write got through.
	ErrNotFenced = errors.New("node is not fenced")
	// ErrNotServing is returned by RejoinNow when the node still refuses writes.
	ErrNotServing = errors.New("node does not serve")
)

// handTimeout bounds each round of commands, where the context does not end
// sooner.
const handTimeout = 2 * time.Second

// Cordon closes a node by an operator's hand: no guard lifts it. It returns after
// the fence was read back and a canary write was refused. What another setting
// of min-replicas-to-write was there before is overwritten. The hold lives in the
// server's memory: a restart forgets it, and a guard that saw it puts it up again.
//
// By [ACL] it is a mark on the user that says so. It does nothing by [Advice] but to
// fail with ErrDenied.
func Cordon(ctx context.Context, node *redlock.Node, method Method) error {
	if method.Kind == Advice {
		return adviceError(node)
	}
	l := dial(node, method, handTimeout)
	defer l.close()
	before, err := l.params(ctx) // what cannot be read back is not set
	if err != nil {
		return handError(node, err, ErrNotFenced)
	}
	set, err := l.set(ctx, FenceCordon, before.MaxLag <= 0)
	switch {
	case err != nil:
		return handError(node, err, ErrNotFenced)
	case set.blind != nil:
		return handError(node, set.blind, ErrNotFenced)
	case !set.after.cordoned():
		return fmt.Errorf("node %q: %w: %s", node.Name(), ErrNotFenced, method.readBack(set.after))
	}
	canary, after, err := l.prove(ctx)
	if err != nil {
		return handError(node, err, ErrNotFenced)
	}
	if got, _ := canary(); got == CanaryAccepted {
		return fmt.Errorf("node %q: %w: a canary write got through", node.Name(), ErrNotFenced)
	}
	p, err := after.result()
	switch {
	case err != nil:
		return handError(node, err, ErrNotFenced)
	case !p.cordoned():
		// A guard's lift crossed it, and that guard is about to put it back, or
		// another hand opened it.
		return fmt.Errorf("node %q: %w: changed by another at the same time: %s", node.Name(), ErrNotFenced, method.readBack(p))
	}
	return nil
}

// RejoinNow opens a node by an operator's hand, whoever closed it and before any
// deadline. It returns after the fence was read back and a canary write got
// through; where the server does not let us write the canary, the reading has to
// do. A guard accepts it, unless it never saw the node closed since its last
// loss.
func RejoinNow(ctx context.Context, node *redlock.Node, method Method) error {
	if method.Kind == Advice {
		return adviceError(node)
	}
	l := dial(node, method, handTimeout)
	defer l.close()
	if _, err := l.params(ctx); err != nil {
		return handError(node, err, ErrNotServing)
	}
	set, err := l.set(ctx, FenceNone, false)
	switch {
	case err != nil:
		return handError(node, err, ErrNotServing)
	case set.blind != nil:
		return handError(node, set.blind, ErrNotServing)
	case set.after.MinReplicas != FenceNone:
		return fmt.Errorf("node %q: %w: %s", node.Name(), ErrNotServing, method.readBack(set.after))
	}
	canary, after, err := l.prove(ctx)
	if err != nil {
		return handError(node, err, ErrNotServing)
	}
	got, why := canary()
	switch {
	case got == CanaryAccepted || isDenied(why):
		return nil
	case got == CanaryFenced:
		p, _ := after.result()
		return fmt.Errorf("node %q: %w: a canary write was refused with %s: %s", node.Name(), ErrNotServing, method.refusal(), method.readBack(p))
	}
	return handError(node, why, ErrNotServing)
}

func adviceError(node *redlock.Node) error {
	return fmt.Errorf("node %q: %w: its fence is \"none\"", node.Name(), ErrDenied)
}

func readBack(p Params) string {
	return fmt.Sprintf("read back %s %d, %s %d", paramMinReplicas, p.MinReplicas, paramMaxLag, p.MaxLag)
}

// handError names the node and the kind of failure. The text of a server in it
// is rendered.
func handError(node *redlock.Node, err, otherwise error) error {
	kind := otherwise
	switch {
	case isDenied(err):
		kind = ErrDenied
	case errors.Is(err, errBroken):
		kind = ErrUnreachable
	}
	return fmt.Errorf("node %q: %w: %s", node.Name(), kind, show(err))
}
