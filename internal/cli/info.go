package cli

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"redlockctl/internal/app"
	"redlockctl/internal/audit"
	"redlockctl/internal/config"
	"redlockctl/internal/safetext"
	"redlockctl/internal/view"
)

// infoJSON is the document of info. Source is "default", "file", a variable of
// the environment or a flag.
type infoJSON struct {
	Version     string            `json:"version"`
	Config      []infoPathJSON    `json:"config"`
	Cluster     infoNameJSON      `json:"cluster"`
	Clusters    []safetext.Text   `json:"clusters"`
	Paths       []infoPathJSON    `json:"paths"`
	Settings    []infoSettingJSON `json:"settings"`
	Environment []infoEnvJSON     `json:"environment"`
}

func (infoJSON) kind() string { return "info" }

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

// infoSettingJSON is a key of the configuration. The value of a secret is never
// here: it is the name of its variable or file.
type infoSettingJSON struct {
	Key    safetext.Text  `json:"key"`
	Value  safetext.Text  `json:"value"`
	Source string         `json:"source"`
	File   *safetext.Text `json:"file,omitempty"`
	Line   int            `json:"line,omitempty"`
}

type infoEnvJSON struct {
	Name   string         `json:"name"`
	Value  *safetext.Text `json:"value,omitempty"` // left out: not set; of a secret "set" or "not set"
	Effect string         `json:"effect"`
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
		Args:    noArgs,
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
			doc := a.infoDoc(set, cfg, source, by, all || a.output == "json")
			if a.output == "json" {
				return printJSON(a.out, doc)
			}
			a.printInfo(doc)
			return nil
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "the defaults of nodes too")
	return cmd
}

func (a *commandLine) infoDoc(set *config.Set, cfg *config.Config, source, by string, all bool) infoJSON {
	doc := infoJSON{
		Version: build().Version, Cluster: infoNameJSON{safetext.New(cfg.Cluster.Name), by},
	}
	seen := map[string]bool{}
	for _, c := range set.Clusters {
		doc.Clusters = append(doc.Clusters, safetext.New(c.Cluster.Name))
		if !seen[c.Path] {
			seen[c.Path] = true
			doc.Config = append(doc.Config, infoPathJSON{"configuration", safetext.New(c.Path), true, source})
		}
	}
	from := map[string]string{}
	for _, s := range cfg.Settings {
		setting := infoSettingJSON{Key: safetext.New(s.Key), Value: safetext.New(s.Value), Source: s.Source}
		if s.Line > 0 {
			setting.File, setting.Line = safetext.Optional(s.File), s.Line
		}
		key := s.Key[strings.LastIndex(s.Key, " ")+1:]
		switch flag := map[string]bool{"read_only": a.readOnly, "ascii": a.ascii && s.Value != "true", "color": a.noColor}[key]; {
		case flag && key == "color":
			setting = infoSettingJSON{Key: safetext.New(s.Key), Value: safetext.New("never"), Source: "--no-color"}
		case flag:
			setting = infoSettingJSON{Key: safetext.New(s.Key), Value: safetext.New("true"), Source: "--" + strings.ReplaceAll(key, "_", "-")}
		}
		from[key] = setting.Source
		if all || setting.Source != config.FromDefault || !strings.HasPrefix(s.Key, "[[") && !strings.Contains(s.Key, "nodes.tls]") {
			doc.Settings = append(doc.Settings, setting)
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
	for _, e := range environment {
		env := infoEnvJSON{Name: e.name, Effect: e.effect}
		v := a.getenv(e.name)
		if e.secret {
			v = map[bool]string{true: "set", false: "not set"}[v != ""]
		}
		env.Value = safetext.Optional(v)
		doc.Environment = append(doc.Environment, env)
	}
	return doc
}

func (a *commandLine) printInfo(doc infoJSON) {
	fmt.Fprintf(a.out, "redlockctl %s\n\n", doc.Version)
	t := view.NewTable("WHAT", "WHERE", "FROM")
	for _, p := range append(doc.Config, doc.Paths...) {
		where := view.Cell{Text: p.Path.String()}
		if !p.There {
			where.Text += " (not there yet)"
		}
		t.Add(view.Cell{Text: p.What}, where, view.Cell{Text: p.Source})
	}
	cluster := doc.Cluster.Name.String()
	if len(doc.Clusters) > 1 {
		names := make([]string, len(doc.Clusters))
		for i, n := range doc.Clusters {
			names[i] = n.String()
		}
		cluster += " (of " + strings.Join(names, ", ") + ")"
	}
	t.Add(view.Cell{Text: "cluster"}, view.Cell{Text: cluster}, view.Cell{Text: doc.Cluster.Source})
	printTable(a.out, t, a.color())

	fmt.Fprintln(a.out)
	t = view.NewTable("SETTING", "VALUE", "FROM")
	for _, s := range doc.Settings {
		source := view.Cell{Text: s.Source}
		switch {
		case s.Line > 0:
			source.Text = fmt.Sprintf("%s:%d", s.File, s.Line)
		case s.Source == config.FromDefault:
			source.Tone = view.Dim
		case !strings.HasPrefix(s.Source, "--"):
			source.Text = "$" + s.Source
		}
		value := s.Value.String()
		if value == "" {
			value = "-"
		}
		t.Add(view.Cell{Text: s.Key.String()}, view.Cell{Text: a.clip(value, 80)}, source)
	}
	printTable(a.out, t, a.color())

	fmt.Fprintln(a.out)
	t = view.NewTable("VARIABLE", "VALUE", "EFFECT")
	for _, e := range doc.Environment {
		value := "-"
		if e.Value != nil {
			value = a.clip(e.Value.String(), 60)
		}
		t.Add(view.Cell{Text: "$" + e.Name}, view.Cell{Text: value}, view.Cell{Text: e.Effect})
	}
	printTable(a.out, t, a.color())
}
