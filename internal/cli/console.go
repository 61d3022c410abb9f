package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/signal"
	"syscall"
	"time"

	"redlockctl/internal/operator"
	"redlockctl/internal/safetext"
	"redlockctl/monitor"
	"redlockctl/redlock"
	"redlockctl/tui"
)

// console is the program without a command: the screen on the configured
// masters, or, where there is no terminal, the same as plain text.
func (a *commandLine) console(ctx context.Context, guard guardMode, addr string) error {
	cfg, err := a.load()
	if err != nil {
		return err
	}
	if !a.inTTY || !a.outTTY {
		if addr != "" {
			return usageError{errors.New("--listen is for the console, which needs a terminal; without one use redlockctl guard --listen")}
		}
		if err := a.tableOnly("use redlockctl status, nodes or locks with -o json"); err != nil {
			return err
		}
		s, err := a.look(ctx, cfg, aim{})
		if err != nil {
			return err
		}
		a.printStatus(a.out, s)
		fmt.Fprintln(a.out)
		a.printLocks(a.out, s, matching(s, monitor.Filter{}))
		fmt.Fprintln(a.errOut, "redlockctl: no terminal, so no console; redlockctl --help names the commands")
		return a.incomplete(s)
	}
	if guard == guardAlways && cfg.Cluster.ReadOnly {
		return usageError{errors.New("--guard: a guard fences nodes, and this cluster is read-only")}
	}
	set, _, err := a.loadAll()
	if err != nil {
		return err
	}
	told, err := listen(addr)
	if err != nil {
		return err
	}
	serving, stop := context.WithCancel(ctx)
	clusters := &clusterSwitch{set: set, guard: guard, told: told, ctx: ctx}
	defer clusters.close()
	defer told.serve(serving, slog.New(slog.DiscardHandler))() // the screen has the terminal
	defer stop()
	shown, err := clusters.Open(ctx, cfg.Cluster.Name)
	if err != nil {
		return err
	}
	return a.screen(ctx, tui.Options{
		Source: shown.Source, Guard: shown.Guard, Actions: shown.Actions, Delay: shown.Delay, Clusters: clusters,
		NoColor: !cfg.TUI.Color, FPS: cfg.TUI.FPS,
	})
}

// screen runs the terminal UI until the person quits, or a signal comes: SIGHUP
// too, which a terminal that is closed sends.
func (a *commandLine) screen(ctx context.Context, opt tui.Options) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGHUP)
	defer stop()
	opt.ASCII, opt.In, opt.Out = a.ascii, a.in, a.out
	opt = a.remembering(opt)
	opt.Tell = a.tellLeft
	err := tui.Run(ctx, opt)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil // SIGTERM is a way to quit
	}
	return err
}

// tellLeft says which locks outlive the screen on which they were acquired.
func (a *commandLine) tellLeft(left []tui.Left) {
	for _, l := range left {
		fmt.Fprintf(a.errOut, "redlockctl: %s stays locked until %s; nothing extends it any more\n", safetext.Escape(l.Key.Raw()), l.Until.Format("15:04:05"))
	}
}

// Keep acquires a lock that is extended until it is released, and notes in the
// stream of events what becomes of it.
func (a actions) Keep(ctx context.Context, resource string, ttl time.Duration) (tui.Kept, error) {
	began := time.Now()
	k, err := a.op.Keep(ctx, resource, ttl)
	if a.told != nil {
		a.told.Acquired(a.cluster, time.Since(began), err)
	}
	a.note("", resource, "operator: acquire "+resource+", to be kept", err)
	if err != nil {
		return nil, err // a nil *Kept in the interface would not be nil
	}
	go func() {
		for s := range k.Changes() {
			a.noteKept(k, s)
		}
	}()
	return k, nil
}

func (a actions) noteKept(k *operator.Kept, s redlock.KeeperState) {
	e := monitor.Event{At: time.Now(), Level: monitor.LevelNotice, Kind: "operator", Key: safetext.New(k.Resource())}
	text := "operator: " + k.Resource() + ", kept here, is " + s.String()
	switch s {
	case redlock.Released:
		return // which is noted as an act
	case redlock.Uncertain, redlock.Lost:
		e.Level = monitor.LevelAlarm
		if err := k.Err(); err != nil {
			text += ": " + err.Error()
		}
	}
	e.Text = safetext.New(text)
	a.mon.Note(e)
}

func (a actions) Extend(ctx context.Context, resource, token string, ttl time.Duration) (*redlock.Lock, error) {
	l, err := a.op.Extend(ctx, resource, token, ttl)
	a.note("", resource, fmt.Sprintf("operator: extend %s to %s", resource, ttl), err)
	return l, err
}

func (a actions) RevokeKey(ctx context.Context, key, token, reason string) ([]redlock.NodeResult, error) {
	r, err := a.op.Revoke(ctx, key, token, reason)
	a.note("", key, fmt.Sprintf("operator: revoke %s (%s)", key, reason), err)
	return r, err
}

func (a actions) ForceReleaseKey(ctx context.Context, key, token, reason string) ([]redlock.NodeResult, error) {
	r, err := a.op.ForceRelease(ctx, key, token, reason)
	a.note("", key, fmt.Sprintf("operator: force-release %s (%s)", key, reason), err)
	return r, err
}
