// Command cmd is the crash campaign: see scripts/crash-campaign, which builds and
// runs it. It exits with 0 if nothing was found, 1 if a lock was held by two or a
// master was open too early, and 2 if the campaign could not be run.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"redlockctl/internal/campaign"
)

func main() {
	if order := os.Getenv(campaign.GuardEnv); order != "" {
		os.Exit(campaign.GuardMain(order))
	}
	os.Exit(run())
}

func run() int {
	cfg := campaign.Config{Seed: uint64(time.Now().UnixNano())}
	var without, killGuard bool
	var server string
	flag.IntVar(&cfg.Cycles, "cycles", 40, "how many `kills`: of masters, or of the guard with --kill-guard")
	flag.BoolVar(&without, "without-guard", false, "masters come up open, and nobody closes them")
	flag.BoolVar(&killGuard, "kill-guard", false, "kill the guard, too, all the time")
	flag.IntVar(&cfg.Guards, "guards", 1, "how many `guards` there are, each with a memory of its own; with --kill-guard each is killed")
	flag.Uint64Var(&cfg.Seed, "seed", cfg.Seed, "of all choices (default: the time)")
	flag.DurationVar(&cfg.MaxTTL, "max-ttl", 0, "longest TTL of the clients (default 400ms, with --kill-guard 150ms)")
	flag.Float64Var(&cfg.DelayShare, "delay", 1, "the `share` of D that the guard waits; less than 1 is wrong, and to be found")
	flag.StringVar(&server, "redis-server", "redis-server", "the server's program")
	flag.Parse()
	trouble := func(err error) int {
		fmt.Fprintln(os.Stderr, "crash-campaign:", err)
		return 2
	}
	switch {
	case flag.NArg() > 0:
		return trouble(fmt.Errorf("unknown argument %q", flag.Arg(0)))
	case without && killGuard:
		return trouble(errors.New("--kill-guard needs a guard"))
	case cfg.Guards < 1 || cfg.Guards > 5:
		return trouble(fmt.Errorf("--guards %d is not between 1 and 5", cfg.Guards))
	case cfg.Cycles < 1:
		return trouble(fmt.Errorf("--cycles %d is below 1", cfg.Cycles))
	case without:
		cfg.Guarding = campaign.Nothing
	case killGuard:
		cfg.Guarding = campaign.Killed
	}
	path, err := exec.LookPath(server)
	if err != nil {
		return trouble(err)
	}
	cfg.RedisServer = path
	if cfg.Dir, err = os.MkdirTemp("", "redlockctl-campaign-"); err != nil {
		return trouble(err)
	}
	defer os.RemoveAll(cfg.Dir)
	cfg.Progress = func(line string) { fmt.Println(line) }
	logging.Disable() // go-redis writes each failed dial to stderr

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute+time.Duration(cfg.Cycles)*2*time.Second, errors.New("it takes too long"))
	defer cancel()
	report, err := campaign.Run(ctx, cfg)
	if report != nil {
		report.Print(os.Stdout)
	}
	switch {
	case err != nil:
		return trouble(err)
	case !report.Clean():
		return 1
	}
	fmt.Println("nothing found")
	return 0
}
