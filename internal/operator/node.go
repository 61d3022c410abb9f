package operator

import (
	"context"
	"fmt"
	"strings"
	"time"

	"redlockctl/internal/audit"
	"redlockctl/redlock"
	"redlockctl/restartguard"
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

// CheckNewCluster refuses a cluster that may have been in use: of which a node does not
// answer, is no fenced master, was configured since it started, or has a key under one
// of the patterns, or of which a guard remembers that a node served or restarted.
// Nothing is changed. What it passes has no votes to forget.
func (o *Operator) CheckNewCluster(ctx context.Context, memory map[string]restartguard.Remembered, patterns []string) error {
	for _, n := range o.locks.Nodes() {
		m := memory[n.Name()]
		if err := mayBeUsed(ctx, n, o.opt.Methods[n.Name()], m, patterns); err != nil {
			return fmt.Errorf("%w: this is no new cluster: %w", ErrRefused, err)
		}
	}
	return nil
}

func mayBeUsed(ctx context.Context, n *redlock.Node, method restartguard.Method, m restartguard.Remembered, patterns []string) error {
	if m.Served || m.Incarnations > 1 {
		return fmt.Errorf("a guard has known node %q before", n.Name())
	}
	is, err := restartguard.Inspect(ctx, n, method)
	if err != nil {
		return err
	}
	fenced, cordoned := is.Fenced()
	switch {
	case is.Role != "master":
		return fmt.Errorf("the role of node %q is %s", n.Name(), is.Role)
	case cordoned:
		return fmt.Errorf("node %q is cordoned by an operator", n.Name())
	case !fenced:
		return fmt.Errorf("node %q is neither fenced nor cordoned", n.Name())
	case is.Configured:
		return fmt.Errorf("node %q was configured since it started, so that it may have served", n.Name())
	}
	keys, err := restartguard.CountKeys(ctx, n, patterns)
	if err == nil && keys > 0 {
		err = fmt.Errorf("node %q holds keys under the lock patterns", n.Name())
	}
	return err
}
