package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"redlockctl/cli/app"
	"redlockctl/cli/exit"
	"redlockctl/cli/flags"
	"redlockctl/cli/printer"
	"redlockctl/internal/audit"
	"redlockctl/internal/config"
	"redlockctl/internal/metrics"
	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/server/safetext"
)

// guardPageJSON is the document of guard status.
type guardPageJSON struct {
	view.ClusterDoc
	view.GuardsDoc
	History []view.AuditDoc `json:"history"` // of fences and rejoins, the latest last
}

func (a *commandLine) guardStatusCommand() *cobra.Command {
	var again live
	var as flags.Listing
	var last int
	var where asking
	cmd := as.Add(again.add(&cobra.Command{
		Use:   "status",
		Short: "Which nodes are fenced, for how long, and what was fenced and rejoined",
		Long: `Looks at every master once, and prints beside it what the guard on this machine has
written into [guard] state_dir: which nodes wait, when they rejoin, whether their
last start started fenced. Below are the fences and rejoins of the audit log, by
guards and by people, the latest last.

The guards that run are named, on whatever host and with whatever state directory:
they announce themselves on the nodes. If none runs, the output says that no fenced node
rejoins. The memory of a guard on another machine, or of another user, cannot be read
from here: run this command there as that user, or ask the guard with --url if it runs
with --listen. With --web-config it may require a user; its password comes from a file
or from $REDLOCKCTL_URL_PASSWORD.

Exit code 4 when there is no quorum.`,
		Example: "redlockctl guard status --watch\nredlockctl guard status --url http://127.0.0.1:9622\nredlockctl guard status -o json | jq '.nodes[] | select(.rejoin_ms)'",
		Args:    flags.NoArgs,
		RunE: a.run(func(ctx context.Context, _ []string) error {
			cfg, err := a.load()
			if err != nil {
				return err
			}
			return a.snapshots(ctx, cfg, &again, app.Aim{Nodes: true}, func(s *monitor.Snapshot) error {
				answer, err := a.ask(ctx, cfg, where)
				if err != nil {
					return err
				}
				seen := app.GuardsOf(cfg, s)
				guards := seen.Doc(answer)
				history, err := fenceHistory(cfg, last)
				if err != nil {
					return err
				}
				columns := view.GuardColumns(guards.Running != nil && !*guards.Running)
				nodes, err := flags.Sorted(&as, columns, guards.Nodes)
				if err != nil {
					return err
				}
				printed, err := a.Document("guard", guardPageJSON{ClusterDoc: view.DocOfCluster(s), GuardsDoc: guards, History: view.Docs(history, view.DocOfAudit)})
				if err != nil {
					return err
				}
				if printed {
					return unavailable(s)
				}
				if a.Output != "csv" {
					a.printGuards(seen, answer, guards)
				}
				if err := printer.List(a.Printer, as.Columns, a.ViewContext(s), columns, nodes, func(n view.GuardDoc) any { return n }); err != nil {
					return err
				}
				if a.Output != "csv" {
					if err := a.printHistory(len(guards.Guards) > 0 && slices.ContainsFunc(nodes, guards.Elsewhere), history); err != nil {
						return err
					}
				}
				return unavailable(s)
			})
		}),
	}), view.Heads(view.GuardColumns(false)))
	cmd.Flags().IntVar(&last, "last", 20, "how many lines of the audit log")
	where.add(cmd)
	return cmd
}

func fenceHistory(cfg *config.Config, last int) ([]audit.Entry, error) {
	if cfg.Audit.Path == "" || last == 0 {
		return nil, nil
	}
	return audit.Latest(cfg.Audit.Path, last, func(e audit.Entry) bool {
		// Intents are followed by their outcome.
		return e.Cluster == cfg.Cluster.Name && (strings.HasPrefix(e.Act, "node ") || strings.HasPrefix(e.Act, "guard ")) && e.Phase != audit.Intent
	})
}

func (a *commandLine) printGuards(seen app.Guards, answer *metrics.Status, g view.GuardsDoc) {
	w := a.Out
	switch {
	case g.Memory == "none" && len(seen.All) > 0:
		fmt.Fprintf(w, "guard: D is %s by this configuration\n", time.Duration(g.DelayMs)*time.Millisecond)
	case g.Memory == "there":
		fmt.Fprintf(w, "guard: D is %s, memory in %s\n", time.Duration(g.DelayMs)*time.Millisecond, g.StateDir)
	case g.Memory == "none":
		fmt.Fprintf(w, "guard: D is %s; nothing is remembered in %s\n", time.Duration(g.DelayMs)*time.Millisecond, g.StateDir)
	default:
		fmt.Fprintf(w, "guard: D is %s; %s\n", time.Duration(g.DelayMs)*time.Millisecond, g.Error)
	}
	for _, line := range seen.Lines() {
		fmt.Fprintln(w, line)
	}
	for _, k := range seen.Remembered() {
		fmt.Fprintf(w, "guard: %s, not seen now: its D %s counts until it is seen with a smaller one, or \"redlockctl guard forget %s\"\n", safetext.Printable(k.Name()), k.Delay, k.ID[:min(6, len(k.ID))])
	}
	if answer != nil {
		fmt.Fprintf(w, "guard: asked %s, D %s\n", safetext.New(answer.ID[:min(6, len(answer.ID))]), answer.Delay)
		if answer.Sick != "" {
			why := safetext.Escape(answer.Sick)
			if a.Output != "wide" {
				why = a.Clip(why, 200)
			}
			fmt.Fprintf(w, "the guard is stuck: %s\n", why)
		}
	} else if none := seen.Missing(); none != "" {
		fmt.Fprintln(w, safetext.Escape(none))
	}
	if g.Outlook != nil {
		fmt.Fprintf(w, "%s\n", g.Outlook)
	}
	fmt.Fprintln(w)
}

// printHistory prints the history of fences. ask says that another guard knows when nodes
// rejoin.
func (a *commandLine) printHistory(ask bool, history []audit.Entry) error {
	if ask {
		fmt.Fprintln(a.Out, "\nWhen they rejoin is known to the guard: run this command on its host, as its user, or\nask it by --url http://HOST:PORT, if it runs with --listen.")
	}
	if len(history) == 0 {
		return nil
	}
	fmt.Fprintln(a.Out)
	return a.listAudit([]string{"time", "actor", "target", "act", "phase", "reason", "detail"}, history)
}

// asking has the flags for asking a guard that serves /status.
type asking struct{ url, ca, passwordFile string }

func (k *asking) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&k.url, "url", "", "ask the guard that listens there too, such as http://127.0.0.1:9622 or https://USER@HOST:9622")
	cmd.Flags().StringVar(&k.ca, "url-ca", "", "with --url: CA certificate file (PEM)")
	cmd.Flags().StringVar(&k.passwordFile, "url-password-file", "", "with --url: a file (mode 0600) that holds the password of its user (default $"+config.URLPasswordVariable+")")
}

func (k *asking) access(getenv func(string) string) (access metrics.Access, err error) {
	access.Password = getenv(config.URLPasswordVariable)
	if k.passwordFile != "" {
		if access.Password, err = config.ReadSecret(k.passwordFile, getenv); err != nil {
			return access, exit.Usagef("--url-password-file: %w", err)
		}
	}
	if k.ca != "" {
		if access.CA, err = os.ReadFile(k.ca); err != nil {
			return access, exit.Usagef("--url-ca: %w", err)
		}
	}
	return access, nil
}

// ask asks the guard at --url; nil without --url.
func (a *commandLine) ask(ctx context.Context, cfg *config.Config, k asking) (*metrics.Status, error) {
	if k.url == "" {
		if k.ca+k.passwordFile != "" {
			return nil, exit.Usagef("--url-ca and --url-password-file are for --url")
		}
		return nil, nil
	}
	access, err := k.access(a.Getenv)
	if err != nil {
		return nil, err
	}
	answer, err := metrics.ReadStatus(ctx, k.url, cfg.Cluster.Name, access)
	switch {
	case errors.Is(err, metrics.ErrCA):
		return nil, exit.Usagef("--url-ca %q: %w", k.ca, err)
	case errors.Is(err, metrics.ErrURL), errors.Is(err, metrics.ErrPasswordInURL), errors.Is(err, metrics.ErrPlain):
		return nil, exit.Usagef("--url: %w", err) // without the address, which may have a password
	case errors.Is(err, metrics.ErrAccess):
		return nil, fmt.Errorf("--url: %w: write https://USER@HOST:PORT, and give the password by --url-password-file or $%s", err, config.URLPasswordVariable)
	case err != nil:
		return nil, fmt.Errorf("--url: %w", err)
	case answer.Cluster != cfg.Cluster.Name:
		return nil, fmt.Errorf("--url: the guard there is one of the cluster %s, not of %q", safetext.New(answer.Cluster).Word(), cfg.Cluster.Name)
	}
	return &answer, nil
}
