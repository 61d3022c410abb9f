package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"redlockctl/base/sleep"
	"redlockctl/internal/audit"
	"redlockctl/redlock"
	"redlockctl/restartguard"
	"redlockctl/server/announce"
)

// Cordon keeps a node out until a person lets it rejoin.
// It returns when a guard keeps the cordon over a crash, where one watches the node.
func (o *Operator) Cordon(ctx context.Context, node, reason string) error {
	return o.node(ctx, "node cordon", func(ctx context.Context, n *redlock.Node) error {
		if err := o.cordon(ctx, n); err != nil || o.kept == nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, keepsWithin)
		defer cancel()
		_, err := o.kept(ctx, n)
		return err
	}, node, reason)
}

// keepsWithin is the time in which a guard that watches a node has written down that it is cordoned.
const keepsWithin = 3 * time.Second

// Uncordon ends a cordon, and hands the node back to the guards: it rejoins when it may vote. One
// that is not cordoned is refused.
func (o *Operator) Uncordon(ctx context.Context, node, reason string) error {
	if n, err := o.find(node); err == nil {
		is, err := restartguard.Inspect(ctx, n, o.opt.methodOf(n))
		if _, cordoned := is.Fenced(); err == nil && !is.Blind && !cordoned {
			return fmt.Errorf("%w: node %q is not cordoned; \"node rejoin --now\" removes any fence", ErrRefused, node)
		}
	}
	return o.node(ctx, "node uncordon", o.uncordon, node, reason)
}

// RejoinNow lets a node rejoin early, whoever fenced it.
func (o *Operator) RejoinNow(ctx context.Context, node, reason string) error {
	return o.node(ctx, "node rejoin", o.rejoin, node, reason)
}

func (o *Operator) node(ctx context.Context, what string, do hand, name, reason string) error {
	if err := o.mayAct(reason); err != nil {
		return err
	}
	n, err := o.find(name)
	if err != nil {
		return err
	}
	a, err := o.begin(audit.Record{Act: what, Target: name, Reason: reason})
	if err != nil {
		return err
	}
	if err = do(ctx, n); err != nil {
		err = fmt.Errorf("%s %s: %w", what, name, err)
	}
	return a.end("", err)
}

func (o *Operator) find(name string) (*redlock.Node, error) {
	var names []string
	for _, n := range o.locks.Nodes() {
		if n.Name() == name {
			return n, nil
		}
		names = append(names, n.Name())
	}
	return nil, fmt.Errorf("%w: there is no node %q; the nodes are %s", ErrRefused, name, strings.Join(names, ", "))
}

// Already reports whether a node is cordoned, or else serving, so that there is
// nothing to do. Where that cannot be told it is false: the act itself says what is
// wrong.
func (o *Operator) Already(ctx context.Context, node string, cordoned bool) bool {
	n, err := o.find(node)
	if err != nil {
		return false
	}
	is, err := restartguard.Inspect(ctx, n, o.opt.methodOf(n))
	if err != nil || is.Blind || is.Role != "master" {
		return false
	}
	if cordoned {
		_, cordoned := is.Fenced()
		return cordoned
	}
	return is.Params.MinReplicas == 0 // with any other value it may refuse writes
}

// listenFor is how long the guards of a new cluster are listened to: longer than one
// takes to announce itself on a server that has just started.
const listenFor = 3 * time.Second

// CheckNewCluster refuses a cluster that may have been in use, by what the nodes show, what
// the guard of this machine remembers, and what the guards announce that watch the nodes; see
// [restartguard.FirstUse]. Nothing is changed. It returns the guards that it asked, and in an
// error when the nodes would rejoin without it. again: they were listened to just now.
func (o *Operator) CheckNewCluster(ctx context.Context, memory map[string]restartguard.Remembered, patterns []string, delay time.Duration, again bool) (asked []announce.Guard, err error) {
	until := time.Now().Add(listenFor)
	for {
		asked, err = o.askFirstUse(ctx, memory, patterns, delay)
		over := again || !time.Now().Before(until)
		if over || err != nil && !errors.Is(err, restartguard.ErrNoGuard) {
			return asked, err
		}
		if err := sleep.For(ctx, 100*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

func (o *Operator) askFirstUse(ctx context.Context, memory map[string]restartguard.Remembered, patterns []string, delay time.Duration) (asked []announce.Guard, err error) {
	for _, n := range o.locks.Nodes() {
		f, err := restartguard.AskFirstUse(ctx, n, o.opt.Methods[n.Name()], memory[n.Name()], patterns)
		if err != nil {
			return nil, fmt.Errorf("%w: it cannot be told that this is a new cluster: %w", ErrRefused, err)
		}
		now := time.Now()
		if from, why := f.MayVoteFrom(now, delay); from.After(now) {
			return nil, fmt.Errorf("%w: this is no new cluster: %w; a guard lets its nodes rejoin %s after it has met them", ErrRefused, why, from.Sub(now))
		}
		for _, g := range f.Guards {
			if !slices.ContainsFunc(asked, g.Same) {
				asked = append(asked, g)
			}
		}
	}
	return asked, nil
}
