package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"redlockctl/cli/app"
	"redlockctl/cli/flags"
	"redlockctl/cli/printer"
	"redlockctl/internal/audit"
	"redlockctl/internal/config"
	"redlockctl/internal/view"
	"redlockctl/server/safetext"
)

// infoJSON is the document of info. Source is "default", "file", a variable of
// the environment or a flag.
type infoJSON struct {
	Version     string            `json:"version"`
	Config      []infoPathJSON    `json:"config"`
	Cluster     infoNameJSON      `json:"cluster"`
	Clusters    []safetext.Text   `json:"clusters"`
	Paths       []infoPathJSON    `json:"paths"`
	Settings    []config.Setting  `json:"settings"`
	Environment []config.Variable `json:"environment"`
}

type infoNameJSON struct {
	Name   safetext.Text `json:"name"`
	Source string        `json:"source"`
}

type infoPathJSON struct {
	What   string        `json:"what"`
	Path   safetext.Text `json:"path"`
	There  bool          `json:"exists"`
	Source string        `json:"source"`
}

func (a *commandLine) infoCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "info",
		Short: "Every path and setting in use, and where each came from",
		Long: `Prints which configuration and which cluster are used and why, the files that are
written, each setting with its value and its source (the default, a line of the
file, a variable of the environment, a flag), and the variables that matter. No
node is contacted. Of a secret only the place is shown, never the value.

Settings of nodes that have their defaults are left out; --all shows them too.`,
		Example: "redlockctl info\nredlockctl info -o json | jq '.settings[] | select(.source != \"default\")'",
		Args:    flags.NoArgs,
		RunE: a.run(func(context.Context, []string) error {
			set, source, err := a.loadAll()
			if err != nil {
				return err
			}
			name, by := a.wanted(set)
			cfg, err := set.Choose(name)
			if err != nil {
				return app.ConfigError{Err: err}
			}
			doc := a.infoDoc(set, cfg, source, by, all || a.Output == "json")
			if a.Output == "json" {
				return a.JSON("info", doc)
			}
			a.printInfo(doc, set.Names())
			return nil
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "the defaults of nodes too")
	return cmd
}

func (a *commandLine) infoDoc(set *config.Set, cfg *config.Config, source, by string, all bool) infoJSON {
	doc := infoJSON{
		Version: build().Version, Cluster: infoNameJSON{safetext.New(cfg.Cluster.Name), by}, Clusters: safetext.Texts(set.Names()),
	}
	seen := map[string]bool{}
	for _, c := range set.Clusters {
		if !seen[c.Path] {
			seen[c.Path] = true
			doc.Config = append(doc.Config, infoPathJSON{"configuration", safetext.New(c.Path), true, source})
		}
	}
	from := map[string]string{}
	for _, s := range cfg.Settings {
		if s.Line == 0 {
			s.File = ""
		}
		key := s.Key[strings.LastIndex(s.Key, " ")+1:]
		switch flag := map[string]bool{"read_only": a.readOnly, "ascii": a.ASCII && s.Value != "true", "color": a.NoColor}[key]; {
		case flag && key == "color":
			s = config.Setting{Key: s.Key, Value: "never", Source: "--no-color"}
		case flag:
			s = config.Setting{Key: s.Key, Value: "true", Source: "--" + strings.ReplaceAll(key, "_", "-")}
			if key == "ascii" && a.asciiBy != "" {
				s.Source = a.asciiBy
			}
		}
		from[key] = s.Source
		if all || s.Source != config.FromDefault || !strings.HasPrefix(s.Key, "[[") && !strings.Contains(s.Key, "nodes.tls]") {
			doc.Settings = append(doc.Settings, s)
		}
	}
	path := func(what, path, source string) {
		if path == "" {
			return
		}
		_, err := os.Stat(path)
		doc.Paths = append(doc.Paths, infoPathJSON{what, safetext.New(path), err == nil, source})
	}
	path("audit log", cfg.Audit.Path, from["path"])
	if cfg.Audit.Path != "" {
		path("end of its chain", audit.HeadPath(cfg.Audit.Path), from["path"])
	}
	path("guard's memory", cfg.Guard.StateDir, from["state_dir"])
	for _, e := range config.Environment {
		e.Value = a.Getenv(e.Name)
		if e.Secret {
			e.Value = map[bool]string{true: "set", false: "not set"}[e.Value != ""]
		}
		doc.Environment = append(doc.Environment, e)
	}
	return doc
}

func (a *commandLine) printInfo(doc infoJSON, clusters []string) {
	fmt.Fprintf(a.Out, "redlockctl %s\n\n", doc.Version)
	t := view.NewTable("WHAT", "WHERE", "FROM")
	for _, p := range append(doc.Config, doc.Paths...) {
		where := view.Cell{Text: p.Path.String()}
		if !p.There {
			where.Text += " (not there yet)"
		}
		t.Add(view.Cell{Text: p.What}, where, view.Cell{Text: p.Source})
	}
	cluster := doc.Cluster.Name.String()
	if len(clusters) > 1 {
		cluster += " (of " + safetext.Escape(strings.Join(clusters, ", ")) + ")"
	}
	t.Add(view.Cell{Text: "cluster"}, view.Cell{Text: cluster}, view.Cell{Text: doc.Cluster.Source})
	a.Table(t)

	fmt.Fprintln(a.Out)
	t = view.NewTable("SETTING", "VALUE", "FROM")
	for _, s := range doc.Settings {
		source := view.Cell{Text: s.Source}
		switch {
		case s.Line > 0:
			source.Text = fmt.Sprintf("%s:%d", safetext.Escape(s.File), s.Line)
		case s.Source == config.FromDefault:
			source.Tone = view.Dim
		case !strings.HasPrefix(s.Source, "--"):
			source.Text = "$" + s.Source
		}
		t.Add(printer.Plain(s.Key), view.Cell{Text: a.Clip(cmp.Or(safetext.Escape(s.Value), "-"), 80)}, source)
	}
	a.Table(t)

	fmt.Fprintln(a.Out)
	t = view.NewTable("VARIABLE", "VALUE", "EFFECT")
	for _, e := range doc.Environment {
		t.Add(printer.Plain("$"+e.Name), view.Cell{Text: a.Clip(cmp.Or(safetext.Escape(e.Value), "-"), 60)}, printer.Plain(e.Effect))
	}
	a.Table(t)
}
