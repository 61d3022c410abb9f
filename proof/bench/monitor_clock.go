package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"redlockctl/internal/lab"
	"redlockctl/monitor"
	"redlockctl/monitor/observe"
)

// clock measures drift under load: all clocks are one, so the truth is 0.
func (b *monitorRun) clock() error {
	span := 60 * time.Second
	if b.quick {
		span = 20 * time.Second
	}
	return b.watched(func(ctx context.Context, m *observe.Monitor) error {
		if err := m.Settled(ctx); err != nil {
			return err
		}
		if _, err := b.setNX(span); err != nil {
			return err
		}
		sum, n := 0.0, 0
		for _, node := range m.Snapshot().Nodes {
			if node.Drift.Valid {
				sum += node.Drift.PPM * node.Drift.PPM
				n++
			}
		}
		if n < len(b.servers) {
			return fmt.Errorf("drift of %d nodes only", n)
		}
		steps := 0
		for _, e := range m.Snapshot().Events {
			if strings.Contains(e.Kind, "clock") {
				steps++
			}
		}
		b.line("drift under load, rms", "ppm", math.Sqrt(sum/float64(n)), 1, "after %s", span)
		b.line("false steps of clocks", "", float64(steps), 0, "in %s", span)
		return nil
	})
}

// step is how soon a step of 20 ms is seen, of a server with a clock of its own.
func (b *monitorRun) step() error {
	dir, err := os.MkdirTemp("", "redlockctl-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	shim, err := lab.BuildClockShim(dir)
	if err != nil {
		return err
	}
	alone, err := lab.StartServers(b.server, 1)
	if err != nil {
		return err
	}
	defer alone.Close()
	if err := cmp.Or(alone[0].Kill(), alone[0].UseClock(shim), alone[0].Start()); err != nil {
		return err
	}
	return watching(alone, observe.Options{}, func(ctx context.Context, m *observe.Monitor) error {
		took, err := b.steps(ctx, m, alone[0])
		if err != nil {
			return err
		}
		b.line("a step of 20 ms seen", "ms", slices.Max(took), 300, "the longest of %d; %.0f ms in the middle", len(took), median(took))
		return nil
	})
}

// steps moves the clock of a server, and takes the time, in ms, until each step is seen.
func (b *monitorRun) steps(ctx context.Context, m *observe.Monitor, s *lab.Server) (took []float64, err error) {
	if err := m.Settled(ctx); err != nil {
		return nil, err
	}
	time.Sleep(6 * time.Second)
	offset := time.Duration(0)
	for range b.rounds(4, 8) {
		seen := m.Snapshot()
		offset += 20 * time.Millisecond
		begun := time.Now()
		if err := s.SetClock(offset, 1); err != nil {
			return nil, err
		}
		last := uint64(0)
		if n := len(seen.Events); n > 0 {
			last = seen.Events[n-1].Seq
		}
		for version := seen.Version; ; {
			if time.Since(begun) > 5*time.Second {
				return nil, errors.New("a step was not seen")
			}
			<-m.Changed(version)
			version = m.Snapshot().Version
			events, _ := m.EventsSince(last)
			if slices.ContainsFunc(events, func(e monitor.Event) bool { return e.Kind == "clock step" }) {
				break
			}
		}
		took = append(took, float64(time.Since(begun).Milliseconds()))
		time.Sleep(2500 * time.Millisecond)
	}
	return took, nil
}
