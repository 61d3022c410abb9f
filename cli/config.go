package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"redlockctl/cli/app"
	"redlockctl/cli/flags"
	"redlockctl/cli/printer"
	"redlockctl/internal/config"
	"redlockctl/internal/view"
	"redlockctl/redlock"
	"redlockctl/server/safetext"
)

// configJSON is the document of config check on a valid configuration.
type configJSON struct {
	Valid        bool             `json:"valid"` // true
	Path         safetext.Text    `json:"path"`
	Cluster      safetext.Text    `json:"cluster"`
	N            int              `json:"n"`
	Quorum       int              `json:"quorum"`
	MaxTTLms     int64            `json:"max_ttl_ms"`
	DelayMs      int64            `json:"guard_delay_ms"`
	LockPatterns []safetext.Text  `json:"lock_patterns"`
	ReadOnly     bool             `json:"read_only"`
	Audit        safetext.Text    `json:"audit_path"`
	StateDir     safetext.Text    `json:"guard_state_dir"`
	Nodes        []configNodeJSON `json:"nodes"`
	Warnings     []safetext.Text  `json:"warnings,omitempty"`
	// Clusters lists all clusters if there are several; the fields above are those of the
	// chosen one, or of the first.
	Clusters []configJSON `json:"clusters,omitempty"`
}

type configNodeJSON struct {
	Name  safetext.Text `json:"name"`
	Addr  safetext.Text `json:"addr"`
	Fence string        `json:"fence"`
}

// badConfigJSON is the document of config check on an invalid configuration.
type badConfigJSON struct {
	Valid    bool             `json:"valid"` // false
	Problems []config.Problem `json:"problems"`
}

func badConfigDoc(err error) badConfigJSON {
	if several := (*config.Error)(nil); errors.As(err, &several) {
		return badConfigJSON{Problems: several.Problems}
	}
	return badConfigJSON{Problems: []config.Problem{{Text: err.Error()}}}
}

func (a *commandLine) configCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Check the configuration; nothing is contacted",
		Long: `Reads the configuration, secrets included, and prints what follows from it, or
every problem with its line, the value and what would be right; of all clusters, if
there are several. No node is contacted. Exit code 2 when it cannot be used.`,
		Args: flags.NoArgs,
		RunE: a.run(func(context.Context, []string) error {
			set, _, err := a.loadAll()
			if err == nil {
				err = usable(set)
			}
			if err == nil {
				// A cluster need not be chosen here, but a named one must exist.
				if name, _ := a.wanted(set); name != "" {
					if _, cerr := set.Choose(name); cerr != nil {
						err = app.ConfigError{Err: cerr}
					}
				}
			}
			if err != nil {
				if a.Output == "json" {
					if perr := a.JSON("config", badConfigDoc(err)); perr != nil {
						return perr
					}
				}
				return err
			}
			if a.Output == "json" {
				return a.JSON("config", a.configDoc(set))
			}
			a.printConfig(set)
			return nil
		}),
	}
}

// usable reports what is wrong with the nodes of a cluster; nil if nothing is.
func usable(set *config.Set) error {
	for _, cfg := range set.Clusters {
		if _, err := cfg.Masters(); err != nil {
			return app.ConfigError{Err: err}
		}
	}
	return nil
}

func (a *commandLine) configDoc(set *config.Set) configJSON {
	name, _ := a.wanted(set)
	chosen, err := set.Choose(name)
	if err != nil {
		chosen = set.Clusters[0]
	}
	doc := clusterConfigDoc(chosen)
	if len(set.Clusters) > 1 {
		for _, cfg := range set.Clusters {
			doc.Clusters = append(doc.Clusters, clusterConfigDoc(cfg))
		}
	}
	return doc
}

func clusterConfigDoc(cfg *config.Config) configJSON {
	n := len(cfg.Nodes)
	doc := configJSON{
		Valid: true, Path: safetext.New(cfg.Path), Cluster: safetext.New(cfg.Cluster.Name), N: n, Quorum: redlock.Quorum(n),
		MaxTTLms: cfg.Cluster.MaxTTL.Milliseconds(), DelayMs: cfg.Guard.Delay.Milliseconds(), ReadOnly: cfg.Cluster.ReadOnly, Audit: safetext.New(cfg.Audit.Path),
		StateDir: safetext.New(cfg.Guard.StateDir), LockPatterns: safetext.Texts(cfg.Cluster.LockPatterns), Warnings: safetext.Texts(cfg.Warnings),
	}
	for _, node := range cfg.Nodes {
		doc.Nodes = append(doc.Nodes, configNodeJSON{safetext.New(node.Name), safetext.New(node.Addr), node.Fence.Kind.String()})
	}
	return doc
}

func (a *commandLine) printConfig(set *config.Set) {
	path := ""
	for _, cfg := range set.Clusters {
		if cfg.Path != path {
			path = cfg.Path
			fmt.Fprintf(a.Out, "%s is valid\n", safetext.Escape(path))
		}
	}
	for i, cfg := range set.Clusters {
		if i > 0 {
			fmt.Fprintln(a.Out)
		}
		n := len(cfg.Nodes)
		more := ""
		if cfg.Cluster.ReadOnly {
			more = "; read-only"
		}
		if len(set.Clusters) > 1 && cfg.Cluster.Name == set.Default {
			more += "; the default"
		}
		fmt.Fprintf(a.Out, "cluster %s: %s, quorum %d, max TTL %s; a restarted node waits %s%s\n\n", safetext.Escape(cfg.Cluster.Name),
			view.Plural(n, "node"), redlock.Quorum(n), cfg.Cluster.MaxTTL, cfg.Guard.Delay, more)
		t := view.NewTable("NODE", "ADDR", "FENCE")
		for _, node := range cfg.Nodes {
			t.Add(printer.Plain(node.Name), printer.Plain(node.Addr), printer.Plain(node.Fence.Kind.String()))
		}
		a.Table(t)
		for _, w := range cfg.Warnings {
			a.Note("warning: %s", safetext.Printable(w))
		}
	}
}
