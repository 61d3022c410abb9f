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
	"redlockctl/restartguard/memory"
	"redlockctl/restartguard/oneshot"
	"redlockctl/server/announce"
)

// Cordon fences a node until an operator uncordons it. If a guard watches the node,
// Cordon returns when the guard has recorded the cordon, so that it survives a crash.
func (o *Operator) Cordon(ctx context.Context, node, reason string) error {
	return o.node(ctx, "node cordon", o.keepOut, node, reason)
}

// Drain cordons a node as [Operator.Cordon] does, to be restarted when it is empty: it waits for
// no copy.
func (o *Operator) Drain(ctx context.Context, node, reason string) error {
	a, err := o.handled(ctx, "node drain", o.keepOut, node, reason, "")
	if err != nil {
		return err
	}
	return a.end("cordoned; this action does not wait until it is empty", nil)
}

// BeginDrain is [Operator.Drain] for a caller that waits until the node is empty and then calls
// ended, which logs how the drain ended: how, or err. The log says for which restart it drains the node:
// restart are the nodes that it has still to restart; nil: for none.
func (o *Operator) BeginDrain(ctx context.Context, node, reason string, restart []string) (ended func(how string, err error) error, err error) {
	of := ""
	if restart != nil {
		of = inRestart + strings.Join(restart, ", ")
	}
	a, err := o.handled(ctx, "node drain", o.keepOut, node, reason, of)
	if err != nil {
		return nil, err
	}
	// Without this line the log still has the intent.
	_ = a.write(audit.Intent, "cordoned; waits until it is empty")
	return func(how string, err error) error {
		if err != nil {
			how = of
		}
		return a.end(how, err)
	}, nil
}

// inRestart begins the detail of the intent to drain a node for a restart.
const inRestart = "in a restart of "

// RestartIn returns the nodes that a restart had still to restart when it drained one of them, by the detail of
// that intent; nil: it was for no restart.
func RestartIn(detail string) []string {
	if nodes, ok := strings.CutPrefix(detail, inRestart); ok {
		return strings.Split(nodes, ", ")
	}
	return nil
}

// keepOut cordons a node and waits until a guard has recorded that.
func (o *Operator) keepOut(ctx context.Context, n *redlock.Node) error {
	if err := o.cordon(ctx, n); err != nil || o.kept == nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, keepsWithin)
	defer cancel()
	_, err := o.kept(ctx, n)
	return err
}

// keepsWithin is how long a guard may take to record that its node is cordoned.
const keepsWithin = 3 * time.Second

// Uncordon ends a cordon. The guards let the node rejoin when it may vote. A node that is
// not cordoned is refused.
func (o *Operator) Uncordon(ctx context.Context, node, reason string) error {
	if n, err := o.find(node); err == nil {
		is, err := oneshot.Inspect(ctx, n, o.opt.methodOf(n))
		if _, cordoned := is.Fenced(); err == nil && !is.Blind && !cordoned {
			return fmt.Errorf("%w: %q: %w", ErrRefused, node, oneshot.ErrNotCordoned)
		}
	}
	return o.node(ctx, "node uncordon", o.uncordon, node, reason)
}

// RejoinNow lets a node rejoin early, whoever fenced it.
func (o *Operator) RejoinNow(ctx context.Context, node, reason string) error {
	return o.node(ctx, "node rejoin", o.rejoin, node, reason)
}

// ForgetDelay has the guard of a state directory forget the D of other guards, by a name as of
// [restartguard.KnownDelay.Is]. It returns whose.
func (o *Operator) ForgetDelay(dir, name, reason string) ([]memory.KnownDelay, error) {
	if err := o.mayAct(reason); err != nil {
		return nil, err
	}
	a, err := o.begin(audit.Record{Act: "guard forget", Target: name, Reason: reason})
	if err != nil {
		return nil, err
	}
	gone, err := memory.ForgetDelay(dir, name)
	if err == nil && len(gone) == 0 {
		err = fmt.Errorf("%w: no guard %q is remembered in %s", ErrRefused, name, dir)
	}
	parts := make([]string, len(gone))
	for i, k := range gone {
		parts[i] = fmt.Sprintf("D %s of guard %s", k.Delay, k.Name())
	}
	return gone, a.end(strings.Join(parts, ", "), err)
}

func (o *Operator) node(ctx context.Context, what string, do hand, name, reason string) error {
	a, err := o.handled(ctx, what, do, name, reason, "")
	if err != nil {
		return err
	}
	return a.end("", nil)
}

// handled calls do for a node, with the intent and its detail in the log. A failure is logged too; otherwise the
// caller ends the action.
func (o *Operator) handled(ctx context.Context, what string, do hand, name, reason, detail string) (*act, error) {
	if err := o.mayAct(reason); err != nil {
		return nil, err
	}
	n, err := o.find(name)
	if err != nil {
		return nil, err
	}
	a, err := o.begin(audit.Record{Act: what, Target: name, Reason: reason, Detail: detail})
	if err != nil {
		return nil, err
	}
	if err = do(ctx, n); err != nil {
		return nil, a.end("", fmt.Errorf("%s %s: %w", what, name, err))
	}
	return a, nil
}

// ChangeUsers calls do to change ACL users of a node, on the record. act is "users " and the change,
// users are their names; passwords must not be among them. do returns the outcome for the log.
func (o *Operator) ChangeUsers(act, name, users, reason string, do func(*redlock.Node) (string, error)) error {
	if err := o.mayAct(reason); err != nil {
		return err
	}
	n, err := o.find(name)
	if err != nil {
		return err
	}
	a, err := o.begin(audit.Record{Act: act, Target: name, Reason: reason, Detail: users})
	if err != nil {
		return err
	}
	told, err := do(n)
	return a.end(told, err)
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

// Already reports whether the node is already cordoned, or already serving, so that there
// is nothing to do. It is false if that is unknown: the action then returns the error.
func (o *Operator) Already(ctx context.Context, node string, cordoned bool) bool {
	n, err := o.find(node)
	if err != nil {
		return false
	}
	is, err := oneshot.Inspect(ctx, n, o.opt.methodOf(n))
	if err != nil || is.Blind || is.Role != "master" {
		return false
	}
	if cordoned {
		_, cordoned := is.Fenced()
		return cordoned
	}
	return is.Params.MinReplicas == 0 // with any other value it may refuse writes
}

// listenFor is how long to listen for the guards of a new cluster: longer than a guard
// takes to announce itself on a server that has just started.
const listenFor = 3 * time.Second

// CheckNewCluster refuses a cluster that may have been in use. It looks at the nodes, at
// the memory of this machine's guard, and at the announcements of the guards that watch
// the nodes; see [restartguard.FirstUse]. It changes nothing. It returns the guards that
// it asked; its error says when the nodes would rejoin anyway. again means that the
// guards were listened to just now.
func (o *Operator) CheckNewCluster(ctx context.Context, memory map[string]restartguard.Fact, patterns []string, delay time.Duration, again bool) (asked []announce.Guard, err error) {
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

func (o *Operator) askFirstUse(ctx context.Context, memory map[string]restartguard.Fact, patterns []string, delay time.Duration) (asked []announce.Guard, err error) {
	for _, n := range o.locks.Nodes() {
		f, err := oneshot.AskFirstUse(ctx, n, o.opt.Methods[n.Name()], memory[n.Name()], patterns)
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
