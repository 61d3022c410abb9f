package app

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"redlockctl/base/sleep"
	"redlockctl/internal/config"
	"redlockctl/internal/operator"
	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/restartguard/oneshot"
	"redlockctl/server/fences"
	"redlockctl/server/safetext"
)

// Waiter waits for nodes to serve.
type Waiter struct {
	cfg  *config.Config
	seen *Guards // nil: not known
}

// NewWaiter reads which guards run. unguarded says which of the nodes stay fenced, because no guard
// runs; empty: none do.
func NewWaiter(ctx context.Context, cfg *config.Config, names []string) (w *Waiter, unguarded string) {
	w = &Waiter{cfg: cfg}
	s, err := Look(ctx, cfg, Aim{Nodes: true})
	if err != nil {
		return w, "" // the wait itself reports why
	}
	seen, methods := GuardsOf(cfg, s), Methods(cfg)
	w.seen = &seen
	var waiting []string
	for _, n := range s.Nodes {
		// A node that is down may start fenced; no guard lets a cordoned node rejoin.
		fenced := n.State == monitor.NodeFenced || n.State == monitor.NodeDown && methods[n.Name].Kind != fences.None
		if fenced && slices.Contains(names, n.Name) {
			waiting = append(waiting, n.Name)
		}
	}
	if waiting == nil {
		return w, ""
	}
	return w, seen.Missing(waiting...)
}

// Serves waits until a node serves or ctx ends; the error says who lets it rejoin.
func (w *Waiter) Serves(ctx context.Context, name string) error {
	node, method, err := NodeOf(w.cfg, name)
	if err != nil {
		return err
	}
	if err = oneshot.WaitServing(ctx, node, method); err == nil {
		return nil
	}
	if s, e := Look(context.WithoutCancel(ctx), w.cfg, Aim{Nodes: true}); e == nil {
		n := s.Node(name)
		switch may := view.MayServe(n, s.At); {
		case n.State == monitor.NodeCordoned:
			if may != "" {
				may = "; " + may
			}
			return fmt.Errorf("%w; it is cordoned: redlockctl node uncordon %s ends that%s", err, safetext.Printable(name), may)
		case may != "":
			return fmt.Errorf("%w; %s", err, may)
		}
	}
	if runs, _ := GuardRuns(w.cfg); runs {
		if memory, _ := Remembered(w.cfg); memory[name].Wait > 0 {
			err = fmt.Errorf("%w; it rejoins in %s", err, view.Left(memory[name].Wait))
		}
		return err
	}
	if w.seen == nil {
		return err
	}
	why := w.seen.Missing(name)
	if why == "" {
		why = strings.Join(w.seen.Lines(), "; ")
	}
	return fmt.Errorf("%w; %s", err, safetext.Printable(why))
}

// WaitBeforeStart waits for D from when the former process of a node had ended: nothing may answer
// at its address. It calls waits when it begins, and what that returns when it ends.
func WaitBeforeStart(ctx context.Context, cfg *config.Config, name string, waits func(time.Duration) (done func())) error {
	node, _, err := NodeOf(cfg, name)
	if err != nil {
		return err
	}
	if err := cfg.Guardable(); err != nil {
		return ConfigError{err}
	}
	if err := oneshot.Unused(ctx, node); err != nil {
		return fmt.Errorf("%w: %w", operator.ErrRefused, err)
	}
	defer waits(cfg.Guard.Delay)()
	_ = sleep.For(ctx, cfg.Guard.Delay)
	return ctx.Err()
}
