package main

import (
	"context"

	"redlockctl/internal/lab"
	"redlockctl/monitor/observe"
)

// monitorRun measures the monitor: how fast it sees, what it costs the masters
// and this machine. Where a figure is a ratio, both sides are measured in turns
// in the same run.
type monitorRun struct {
	wanted
	report
	servers lab.Servers
	locks   int
}

// options are those of a cluster whose locks have a name of their own.
func (b *monitorRun) options() observe.Options {
	return observe.Options{LockPatterns: []string{"lock:*"}}
}

// watched runs f beside a monitor.
func (b *monitorRun) watched(f func(ctx context.Context, m *observe.Monitor) error) error {
	return watching(b.servers, b.options(), f)
}

// watchedPatiently is watched by a monitor as the console has it.
func (b *monitorRun) watchedPatiently(f func(ctx context.Context, m *observe.Monitor) error) error {
	opt := b.options()
	opt.Patient = true
	return watching(b.servers, opt, f)
}

func watching(servers lab.Servers, opt observe.Options, f func(ctx context.Context, m *observe.Monitor) error) error {
	m, err := observe.New(servers.Nodes(), opt)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); m.Run(ctx) }()
	defer func() { cancel(); <-done }()
	return f(ctx, m)
}
