package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/spf13/cobra"

	"redlockctl/internal/app"
	"redlockctl/internal/cli/exit"
	"redlockctl/internal/cli/flags"
	"redlockctl/internal/config"
	"redlockctl/internal/supervise"
	"redlockctl/restartguard"
)

// superviseOptions are the flags of supervise.
type superviseOptions struct {
	node       string
	maxTTL     time.Duration
	dir        string
	once       bool
	firstStart bool
	log        flags.Log
}

func (a *commandLine) superviseCommand() *cobra.Command {
	var o superviseOptions
	cmd := &cobra.Command{
		Use:   "supervise --node NAME [flags] -- COMMAND [ARG...]",
		Short: "Run a server, and keep it down for D after each end",
		Long: `Starts the server, waits for its end, and starts it again no sooner than the
delay D after that, so that a master which has forgotten its votes cannot give
them a second time. It is the fence for servers on which nobody has the right to
change parameters: it needs no connection and no password.

When the last end is not known for certain (no record, another boot of the host,
a supervisor that was killed), D counts from now. The first start of a new
cluster waits for D too, unless --new says that the server has never run; where
there is a record, --new is ignored. It does not belong into a unit file.

D is that of the configuration, in which NAME must be a node, or ` + fmt.Sprintf("%g", 1+restartguard.DefaultFactor) + ` × --max-ttl
+ ` + restartguard.DefaultMargin.String() + `. With --max-ttl no configuration is read.

The server must stay in the foreground (daemonize no) and be run by COMMAND
itself. It gets every SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1 and SIGUSR2 that
the supervisor gets; SIGINT and SIGTERM also end the supervisor, after it. The
exit code is the server's, 128 + N if signal N ended it. On Linux the server is
killed when its supervisor is.

systemd is told when the server has been started, and that the start takes long
while it waits. With --once the supervisor ends with the server, and systemd
starts both again: see deploy/systemd/redis-supervised@.service.`,
		Example: `redlockctl supervise --node n1 -- redis-server /etc/redis/n1.conf --daemonize no
redlockctl supervise --node n1 --max-ttl 30s --once -- redis-server --port 7001`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch at := cmd.ArgsLenAtDash(); {
			case len(args) == 0 || args[0] == "":
				return errors.New("supervise: the server's command is missing: redlockctl supervise --node NAME -- COMMAND [ARG...]")
			case at != 0:
				return errors.New("supervise: put -- before the server's command, so that its options are not taken for ours")
			}
			return nil
		},
		RunE: a.run(func(ctx context.Context, args []string) error {
			if err := a.tableOnly("the supervisor writes a log to standard error"); err != nil {
				return err
			}
			return a.supervise(ctx, o, args)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&o.node, "node", "", "name of the node")
	f.DurationVar(&o.maxTTL, "max-ttl", 0, "longest TTL of any client, instead of the configuration's")
	f.StringVar(&o.dir, "state-dir", "", "where to keep when the server ended (default $XDG_STATE_HOME/redlockctl/supervise)")
	f.BoolVar(&o.once, "once", false, "end when the server has ended: something else starts both again")
	f.BoolVar(&o.firstStart, "new", false, "the server has never run: do not wait where there is no record")
	o.log.Add(cmd)
	_ = cmd.MarkFlagRequired("node")
	return cmd
}

func (a *commandLine) supervise(ctx context.Context, o superviseOptions, command []string) error {
	// From here on signals are the server's. One that came before ends us.
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, supervise.HandedOn()...)
	defer signal.Stop(signals)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := supervise.CheckName(o.node); err != nil {
		return exit.Usage(err)
	}
	log, err := o.log.Logger(a.Err)
	if err != nil {
		return err
	}
	if err := a.mayActAnywhere(); err != nil {
		return err
	}
	delay, cfg, err := a.superviseDelay(o)
	if err != nil {
		return err
	}
	path, err := exec.LookPath(command[0])
	if err != nil {
		return exit.Usage(err)
	}
	if o.dir == "" {
		if o.dir = config.StateDir(a.Getenv, "supervise"); o.dir == "" {
			return exit.Usagef("neither XDG_STATE_HOME nor HOME says where to keep the record: --state-dir does")
		}
	}
	if o.dir, err = filepath.Abs(o.dir); err != nil {
		return err
	}
	code, err := supervise.Run(supervise.Config{
		Terms:   supervise.Terms{Node: o.node, Delay: delay, New: o.firstStart, Once: o.once},
		Dir:     o.dir,
		Command: append([]string{path}, command[1:]...),
		Env:     cfg.ChildEnv(os.Environ()),
		Log:     log,
		Notify:  func(state string) { _, _ = daemon.SdNotify(false, state) },
	}, signals)
	switch {
	case err != nil:
		return fmt.Errorf("supervise: %w", err)
	case code != 0:
		return exit.Silently(exit.Status(code))
	}
	return nil
}

// superviseDelay is D, and the configuration that it comes from, nil where
// --max-ttl gives it.
func (a *commandLine) superviseDelay(o superviseOptions) (time.Duration, *config.Config, error) {
	switch {
	case o.maxTTL > 0 && o.maxTTL < time.Millisecond:
		return 0, nil, exit.Usagef("--max-ttl %s is below 1ms", o.maxTTL)
	case o.maxTTL > 0:
		return restartguard.DefaultDelay(o.maxTTL), nil, nil
	}
	cfg, err := a.load()
	if err != nil {
		return 0, nil, err
	}
	if err := mayAct(cfg); err != nil {
		return 0, nil, err
	}
	if err := app.CheckNodes(cfg, o.node); err != nil {
		return 0, nil, err
	}
	if err := cfg.Guardable(); err != nil {
		return 0, nil, exit.Usage(err)
	}
	return cfg.Guard.Delay, cfg, nil
}
