package cli

import (
	"context"
	"errors"
	"fmt"
	"image/color"

	"github.com/spf13/cobra"

	"redlockctl/cli/app"
	"redlockctl/cli/exit"
	"redlockctl/internal/config"
	"redlockctl/internal/metrics"
	"redlockctl/server/safetext"
	"redlockctl/tui"
	"redlockctl/tui/action"
	"redlockctl/tui/styles"
)

// screen runs the terminal UI until the user quits or a signal arrives, SIGHUP of a closed
// terminal included.
func (a *commandLine) screen(ctx context.Context, opt tui.Options) error {
	opt.ASCII, opt.In, opt.Out = a.ASCII, a.In, a.Out
	opt = app.OnMachine(opt, a.Getenv)
	opt.Tell = a.tellParting
	err := tui.Run(ctx, opt)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil // SIGTERM and SIGHUP are ways to quit
	}
	return err
}

// themed returns opt with the colours of the configuration, which is valid.
func themed(opt tui.Options, is config.TUI) tui.Options {
	opt.Theme = styles.Theme(is.Theme)
	for meaning, c := range map[string]*color.Color{"good": &opt.Colors.Good, "info": &opt.Colors.Info, "warn": &opt.Colors.Warn, "bad": &opt.Colors.Bad} {
		*c, _ = styles.Color(is.Colors[meaning])
	}
	return opt
}

// tellParting lists the locks acquired on the screen: which were released at quitting, and
// which remain.
func (a *commandLine) tellParting(p action.Parting) {
	for _, key := range p.Released {
		a.Note("%s released", safetext.Escape(key.Raw()))
	}
	for _, l := range p.Left {
		a.Note("%s stays locked until %s; nothing extends it any more", safetext.Escape(l.Key.Raw()), l.Until.Format("15:04:05"))
	}
}

// listening has the flags of the metrics listener.
type listening struct{ addr, webConfig string }

func (l *listening) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&l.addr, "listen", "", "serve metrics and health checks at this address, such as 127.0.0.1:9622")
	cmd.Flags().StringVar(&l.webConfig, "web-config", "", "with --listen: a file of TLS and passwords, in the form of Prometheus' exporter toolkit")
}

// listen opens the metrics listener; nil if the address is empty.
func (l *listening) listen() (*metrics.Metrics, error) {
	if l.addr == "" && l.webConfig != "" {
		return nil, exit.Usagef("--web-config is for --listen")
	}
	v := build()
	m, err := metrics.Open(l.addr, l.webConfig, metrics.Build{Version: v.Version, Go: v.Go, Revision: v.Revision})
	switch {
	case errors.Is(err, metrics.ErrAddress):
		return nil, exit.Usagef("--listen %w", err)
	case errors.Is(err, metrics.ErrWebConfig):
		return nil, exit.Usagef("--web-config %w", err)
	case err != nil:
		return nil, fmt.Errorf("--listen: %w", err)
	}
	return m, nil
}
