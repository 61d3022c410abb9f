package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"redlockctl/internal/config"
	"redlockctl/internal/safetext"
	"redlockctl/redlock"
)

// configJSON is the document of config check on a valid configuration.
type configJSON struct {
	Schema       string           `json:"schema"`
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
	Nodes        []configNodeJSON `json:"nodes"`
	Warnings     []safetext.Text  `json:"warnings,omitempty"`
}

type configNodeJSON struct {
	Name  safetext.Text `json:"name"`
	Addr  safetext.Text `json:"addr"`
	Fence string        `json:"fence"`
}

// badConfigJSON is the document of config check on one that cannot be used.
type badConfigJSON struct {
	Schema   string        `json:"schema"`
	Valid    bool          `json:"valid"` // false
	Problems []problemJSON `json:"problems"`
}

type problemJSON struct {
	File  *safetext.Text `json:"file,omitempty"`
	Line  int            `json:"line,omitempty"`
	Key   *safetext.Text `json:"key,omitempty"`
	Value *safetext.Text `json:"value,omitempty"`
	Text  safetext.Text  `json:"text"`
}

func badConfigDoc(err error) badConfigJSON {
	doc := badConfigJSON{Schema: Schema}
	var several *config.Error
	if !errors.As(err, &several) {
		doc.Problems = []problemJSON{{Text: text(err.Error())}}
		return doc
	}
	for _, p := range several.Problems {
		doc.Problems = append(doc.Problems, problemJSON{
			File: optional(p.File), Line: p.Line, Key: optional(p.Key), Value: optional(p.Value), Text: text(p.Text),
		})
	}
	return doc
}

func (a *app) configCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "The configuration", RunE: group, Args: cobra.ArbitraryArgs}
	cmd.AddCommand(&cobra.Command{
		Use:   "check",
		Short: "Check the configuration; nothing is contacted",
		Long: `Reads the configuration, secrets included, and prints what follows from it, or
every problem with its line, the value and what would be right. No node is
contacted. Exit code 2 when it cannot be used.`,
		Args: noArgs,
		RunE: a.run(func(context.Context, []string) error {
			cfg, err := a.load()
			if err == nil {
				if _, merr := cfg.Masters(); merr != nil {
					err = configError{merr}
				}
			}
			if err != nil {
				if a.output == "json" {
					if perr := printJSON(a.out, badConfigDoc(err)); perr != nil {
						return perr
					}
				}
				return err
			}
			n := len(cfg.Nodes)
			if a.output == "json" {
				doc := configJSON{
					Schema: Schema, Valid: true, Path: text(cfg.Path), Cluster: text(cfg.Cluster.Name), N: n, Quorum: redlock.Quorum(n),
					MaxTTLms: ms(cfg.Cluster.MaxTTL), DelayMs: ms(cfg.Guard.Delay), ReadOnly: cfg.Cluster.ReadOnly, Audit: text(cfg.Audit.Path),
				}
				for _, p := range cfg.Cluster.LockPatterns {
					doc.LockPatterns = append(doc.LockPatterns, text(p))
				}
				for _, node := range cfg.Nodes {
					doc.Nodes = append(doc.Nodes, configNodeJSON{text(node.Name), text(node.Addr), node.Fence})
				}
				for _, w := range cfg.Warnings {
					doc.Warnings = append(doc.Warnings, text(w))
				}
				return printJSON(a.out, doc)
			}
			fmt.Fprintf(a.out, "%s is valid\n", safetext.Escape(cfg.Path))
			fmt.Fprintf(a.out, "cluster %s: %s, quorum %d, max TTL %s; a restarted node waits %s\n\n", safetext.Escape(cfg.Cluster.Name),
				plural(n, "node", "nodes"), redlock.Quorum(n), cfg.Cluster.MaxTTL, cfg.Guard.Delay)
			t := &table{head: []string{"NODE", "ADDR", "FENCE"}}
			for _, node := range cfg.Nodes {
				t.add(plain(node.Name), plain(node.Addr), plain(node.Fence))
			}
			t.write(a.out, a.color())
			for _, w := range cfg.Warnings {
				fmt.Fprintf(a.errOut, "redlockctl: warning: %s\n", printable(w))
			}
			return nil
		}),
	})
	return cmd
}
