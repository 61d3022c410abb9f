// Command cmd is the crash campaign: see scripts/crash-campaign, which builds and runs
// it. It exits with 0 if nothing was found, 1 if two clients held a lock or a master
// served too early, and 2 if the campaign could not run.
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

	"redlockctl/proof/campaign"
)

func main() { os.Exit(run()) }

func run() int {
	cfg := campaign.Config{Seed: uint64(time.Now().UnixNano())}
	var without, killGuard, delayed bool
	var server, fence string
	flag.IntVar(&cfg.Cycles, "cycles", 40, "how many `kills`: of masters, or of the guard with --kill-guard")
	flag.BoolVar(&without, "without-guard", false, "masters start unfenced, and nobody fences them")
	flag.BoolVar(&killGuard, "kill-guard", false, "kill the guard, too, all the time")
	flag.BoolVar(&delayed, "before-start", false, "servers start after redlockctl node wait --before-start, which is killed at times, and no guard")
	flag.StringVar(&cfg.Redlockctl, "redlockctl", "redlockctl", "the `program`, for --before-start and --kill-guard")
	flag.StringVar(&fence, "fence", "min-replicas", "how guards close masters: min-replicas or acl")
	flag.BoolVar(&cfg.Early, "early-rejoin", false, "guards let masters rejoin before D, by evidence")
	flag.BoolVar(&cfg.Drains, "drains", false, "half of the masters are cordoned and emptied before they are killed; two guards with different D, cut off at times")
	flag.StringVar(&cfg.Pattern, "lock-pattern", "", "where --early-rejoin looks for locks; any but the default is wrong, and to be found")
	flag.IntVar(&cfg.Guards, "guards", 0, "how many `guards` there are, each with a memory of its own; with --kill-guard each is killed (default 1, with --drains 2)")
	flag.Uint64Var(&cfg.Seed, "seed", cfg.Seed, "of all choices (default: the time)")
	flag.DurationVar(&cfg.MaxTTL, "max-ttl", 0, "longest TTL of the clients (default 400ms, with --kill-guard 200ms, with --drains 1s, with --early-rejoin 4s)")
	flag.Float64Var(&cfg.DelayShare, "delay", 1, "the `share` of D that the guard waits; less than 1 is wrong, and to be found")
	flag.StringVar(&server, "redis-server", "redis-server", "the server's program")
	flag.Parse()
	trouble := func(err error) int {
		fmt.Fprintln(os.Stderr, "crash-campaign:", err)
		return 2
	}
	var err error
	if cfg.RedisServer, err = exec.LookPath(server); err != nil {
		return trouble(err)
	}
	switch {
	case flag.NArg() > 0:
		return trouble(fmt.Errorf("unknown argument %q", flag.Arg(0)))
	case without && killGuard || without && delayed || killGuard && delayed:
		return trouble(errors.New("--without-guard, --kill-guard and --before-start exclude each other"))
	case fence != "min-replicas" && fence != "acl":
		return trouble(fmt.Errorf("--fence %q is neither min-replicas nor acl", fence))
	case cfg.Guards < 0 || cfg.Guards > 5:
		return trouble(fmt.Errorf("--guards %d is not between 0 and 5", cfg.Guards))
	case cfg.Cycles < 1:
		return trouble(fmt.Errorf("--cycles %d is below 1", cfg.Cycles))
	case without:
		cfg.Guarding = campaign.Nothing
	case killGuard:
		cfg.Guarding = campaign.Killed
	case delayed:
		cfg.Guarding = campaign.Delayed
	}
	if killGuard || delayed {
		if cfg.Redlockctl, err = exec.LookPath(cfg.Redlockctl); err != nil {
			return trouble(err)
		}
	}
	cfg.ACL = fence == "acl"
	if cfg.Dir, err = os.MkdirTemp("", "redlockctl-campaign-"); err != nil {
		return trouble(err)
	}
	defer os.RemoveAll(cfg.Dir)
	cfg.Progress = func(line string) { fmt.Println(line) }
	logging.Disable() // go-redis writes each failed dial to stderr

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute+time.Duration(cfg.Cycles)*10*time.Second, errors.New("it takes too long"))
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
