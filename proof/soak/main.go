//go:build linux

// Command soak runs the whole program for hours, and looks for what grows: see
// scripts/soak, which builds and runs it. Five real masters of which one after the
// other flaps, a guard, a console in tmux, "redlockctl watch" and clients that take
// locks and come and go; of each process memory, goroutines and descriptors. The
// clients are in this process.
//
// It exits with 0 if nothing grew and all of them were well to the end, 1 if not,
// and 2 if it could not be run.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9/logging"
)

func main() {
	logging.Disable() // go-redis writes each failed dial to stderr
	os.Exit(run())
}

func run() int {
	var cfg config
	short := false
	flag.StringVar(&cfg.program, "program", "", "the `path` of redlockctl")
	flag.DurationVar(&cfg.length, "for", 8*time.Hour, "how long")
	flag.BoolVar(&short, "short", false, "three minutes")
	flag.DurationVar(&cfg.warm, "warm-up", 0, "what is not judged at the beginning (default a quarter, at most 20m)")
	flag.IntVar(&cfg.clients, "clients", 20, "how many `clients` take locks")
	flag.Parse()
	trouble := func(err error) int {
		fmt.Fprintln(os.Stderr, "soak:", err)
		return 2
	}
	if short {
		cfg.length = 3 * time.Minute
	}
	if cfg.warm == 0 {
		cfg.warm = min(cfg.length/4, 20*time.Minute)
	}
	switch {
	case flag.NArg() > 0:
		return trouble(fmt.Errorf("unknown argument %q", flag.Arg(0)))
	case cfg.length < 2*time.Minute:
		return trouble(fmt.Errorf("--for %s: less than two minutes show nothing", cfg.length))
	case cfg.warm < 0 || cfg.warm > cfg.length/2:
		return trouble(fmt.Errorf("--warm-up %s is more than half of --for %s", cfg.warm, cfg.length))
	case cfg.clients < 1:
		return trouble(fmt.Errorf("--clients %d is below 1", cfg.clients))
	}
	for _, program := range []string{cfg.program, "tmux", "redis-server"} {
		if _, err := exec.LookPath(program); err != nil {
			return trouble(err)
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	failed, err := cfg.soak(ctx, os.Stdout)
	if err != nil {
		return trouble(err)
	}
	for _, f := range failed {
		fmt.Println("FAILED:", f)
	}
	if len(failed) > 0 {
		return 1
	}
	fmt.Printf("nothing grew in %s\n", cfg.length)
	return 0
}

// soak runs it all; failed is what was found.
func (cfg config) soak(ctx context.Context, out io.Writer) (failed []string, err error) {
	s, err := newStage(ctx, cfg)
	if s != nil {
		defer s.close()
	}
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(out, "%s of five masters, one flapping, guard, console, watch and %d clients; the first %s are not judged.\n", cfg.length, cfg.clients, cfg.warm)
	for m := range measures {
		fmt.Fprintf(out, "Allowed of %s: %g, or %g %% of the first if that is more, and %g for each hour.\n", m, limits[m].noise, noiseShare*100, limits[m].perHour)
	}
	flapping, still := context.WithCancel(ctx)
	defer still()
	flapped := make(chan error, 1)
	go func() { flapped <- s.flap(flapping) }()
	all, err := cfg.sample(ctx, out, s)
	still()
	if flap := <-flapped; flap != nil {
		failed = append(failed, flap.Error())
	}
	if err != nil {
		return append(failed, err.Error(), s.logs()), nil
	}
	fmt.Fprintln(out)
	failed = append(failed, judge(out, all, cfg.warm)...)
	fmt.Fprintf(out, "%d kills and %d stops of masters; the clients: %s\n", s.kills, s.stops, s.clients)
	if err := s.atRest(ctx); err != nil {
		failed = append(failed, err.Error())
	}
	screen := s.screen()
	fmt.Fprintf(out, "\nThe console at the end:\n%s\n", strings.TrimRight(screen, "\n "))
	if !strings.Contains(screen, "n5") {
		failed = append(failed, "the console does not show its nodes")
	}
	for _, err := range s.end() {
		failed = append(failed, err.Error())
	}
	if len(failed) > 0 {
		fmt.Fprintln(out, s.logs())
	}
	return failed, nil
}

// sample records what the processes use, until the time has passed.
func (cfg config) sample(ctx context.Context, out io.Writer, s *stage) ([]*series, error) {
	all := make([]*series, len(s.processes))
	fmt.Fprintf(out, "Each line is the least of its period: memory in MiB/goroutines/descriptors.\n%9s", "after")
	for i, p := range s.processes {
		all[i] = &series{name: p.name}
		fmt.Fprintf(out, "  %-15s", p.name)
	}
	fmt.Fprintln(out, "  what the clients did")
	period := max(5*time.Second, min(5*time.Minute, cfg.length/48))
	every := time.NewTicker(max(time.Second, period/30))
	defer every.Stop()
	start := time.Now()
	samples := make([][]usage, len(s.processes))
	for next := period; ; {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-every.C:
		}
		at := time.Since(start)
		if at > cfg.length {
			return all, nil
		}
		for i, p := range s.processes {
			u, err := p.sample()
			if err != nil {
				return nil, err
			}
			samples[i] = append(samples[i], u)
		}
		if at < next {
			continue
		}
		fmt.Fprintf(out, "%9s", at.Round(time.Second))
		for i := range all {
			all[i].add(at, samples[i])
			samples[i] = nil
			u := all[i].rows[len(all[i].rows)-1]
			fmt.Fprintf(out, "  %-15s", fmt.Sprintf("%.1f/%.0f/%.0f", u[memory], u[goroutines], u[descriptors]))
		}
		fmt.Fprintf(out, "  %s\n", s.clients)
		for next <= at {
			next += period
		}
	}
}
