package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// ErrNoCluster is returned when no cluster has the requested name, or when there are
// several and none is named.
var ErrNoCluster = errors.New("no such cluster")

// Set has all clusters of one or several files.
type Set struct {
	Clusters []*Config // in the order of the files; at least one
	// Default is the cluster to use if none is named; "": no default.
	Default string
}

// Names returns the names of the clusters, in their order.
func (s *Set) Names() []string {
	names := make([]string, len(s.Clusters))
	for i, c := range s.Clusters {
		names[i] = c.Cluster.Name
	}
	return names
}

// Choose returns the cluster with this name; without a name, the default or the only one.
// It fails with [ErrNoCluster].
func (s *Set) Choose(name string) (*Config, error) {
	names := s.Names()
	if name == "" {
		name = s.Default
	}
	if name == "" && len(names) == 1 {
		return s.Clusters[0], nil
	}
	if i := slices.Index(names, name); i >= 0 {
		return s.Clusters[i], nil
	}
	there := "there is " + strings.Join(names, ", ")
	if name == "" {
		return nil, fmt.Errorf("%w: there are several: name one of %s by --cluster, by REDLOCKCTL_CLUSTER, or by default_cluster in the configuration", ErrNoCluster, strings.Join(names, ", "))
	}
	if best := Nearest(name, names); best != "" {
		return nil, fmt.Errorf("%w: %q; did you mean %s? %s", ErrNoCluster, name, best, there)
	}
	return nil, fmt.Errorf("%w: %q; %s", ErrNoCluster, name, there)
}

// Load reads and validates the file at path, and returns its only or its default cluster.
// See [LoadAll].
func Load(path string, getenv func(string) string) (*Config, error) {
	set, err := LoadAll([]string{path}, getenv)
	if err != nil {
		return nil, err
	}
	return set.Choose("")
}

// LoadAll reads and validates the files at paths. Its error is an [*Error] that lists
// every problem with file, line, key, the wrong values and what would be right; or
// [ErrNotFound] for a missing file. It contacts nothing. Files named in a configuration
// are relative to its directory.
func LoadAll(paths []string, getenv func(string) string) (*Set, error) {
	return LoadWith(paths, getenv, Options{})
}

// LoadWith is [LoadAll] with options.
func LoadWith(paths []string, getenv func(string) string, opt Options) (*Set, error) {
	if len(paths) == 0 {
		return nil, fmt.Errorf("%w: no file is named", ErrNotFound)
	}
	var files []*configFile
	var all []loaded
	var named setting // default_cluster
	for _, path := range paths {
		f := &configFile{path: path, Options: opt}
		files = append(files, f)
		made, def, err := f.load(getenv)
		if err != nil {
			return nil, err
		}
		all = append(all, made...)
		if def.set && !named.set {
			named = def
		}
	}
	return setOf(files, all, named)
}

// setOf returns all clusters of the files, unless one of them has a problem.
func setOf(files []*configFile, all []loaded, named setting) (*Set, error) {
	set := &Set{}
	together(all)
	for _, l := range all {
		set.Clusters = append(set.Clusters, l.Config)
	}
	if named.set {
		set.Default, _ = named.raw.(string)
		if len(all) > 0 && !slices.Contains(set.Names(), set.Default) {
			hint := ""
			if best := Nearest(set.Default, set.Names()); best != "" {
				hint = fmt.Sprintf("; did you mean %s?", best)
			}
			named.problem("names no cluster; there is %s%s", strings.Join(set.Names(), ", "), hint)
		}
	}
	var problems []Problem
	for _, f := range files {
		problems = append(problems, f.sorted()...)
	}
	if len(problems) > 0 {
		return nil, &Error{Problems: problems}
	}
	return set, nil
}

// loaded is a cluster with the settings that must differ from those of other clusters.
type loaded struct {
	*Config
	name, stateDir setting
}

func (s setting) where() string {
	return fmt.Sprintf("%s:%d", s.table.file.path, max(1, s.line()))
}

func together(all []loaded) {
	for i, l := range all {
		for _, other := range all[:i] {
			if l.Cluster.Name == other.Cluster.Name {
				l.name.problem("%q is also the name of the cluster at %s; each needs a name of its own", l.Cluster.Name, other.name.where())
			}
			if l.Guard.StateDir == "" || l.Guard.StateDir != other.Guard.StateDir {
				continue
			}
			switch which := l.stateDir; {
			case which.set, other.stateDir.set:
				if !which.set {
					which = other.stateDir
				}
				which.problem("the clusters %q and %q use the same directory %q; the guard of each needs one of its own", other.Cluster.Name, l.Cluster.Name, l.Guard.StateDir)
			default:
				l.Warnings = append(l.Warnings, fmt.Sprintf("%s: [guard] state_dir is by default that of the cluster %q too, %q: give each a directory of its own before their guards run as daemons",
					l.Path, other.Cluster.Name, l.Guard.StateDir))
			}
		}
	}
}

// load reads one file: its clusters, and which is the default. Only a problem that
// prevents reading is an error; the rest is reported.
func (f *configFile) load(getenv func(string) string) ([]loaded, setting, error) {
	text, err := readText(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, setting{}, fmt.Errorf("%w: %q does not exist", ErrNotFound, f.path)
	case err != nil:
		f.report(0, "", "", "cannot be read: %v", cause(err))
		return nil, setting{}, nil
	}
	all, def := f.parse(text, getenv)
	return all, def, nil
}

func (f *configFile) parse(text string, getenv func(string) string) ([]loaded, setting) {
	values := map[string]any{}
	if _, err := toml.Decode(text, &values); err != nil {
		f.syntax(text, err)
		return nil, setting{}
	}
	if len(values) == 0 {
		f.report(0, "", "", "is empty; it needs at least max_ttl in [cluster] and one [[nodes]] with name and addr "+
			"(`redlockctl demo` runs without a configuration)")
		return nil, setting{}
	}
	f.lines = scanLines(text)
	return f.configs(values, getenv)
}

func (f *configFile) sorted() []Problem {
	order := func(p Problem) int { return cmp.Or(p.Line, math.MaxInt) }
	slices.SortStableFunc(f.problems, func(a, b Problem) int { return cmp.Compare(order(a), order(b)) })
	return f.problems
}

// configs builds the clusters of a file, and reports their problems.
func (f *configFile) configs(values map[string]any, getenv func(string) string) (all []loaded, def setting) {
	root := f.section("", "", values)
	_, def = root.text("default_cluster", "")
	shared := &Config{Path: f.path}
	tui := root.sub("tui", "[tui]")
	color := tui.choice("color", "auto", "auto", "never")
	shared.TUI.Color = color == "auto"
	if getenv("NO_COLOR") != "" {
		shared.TUI.Color = false
		setting{table: tui, key: "color"}.came("never", "NO_COLOR")
	}
	shared.TUI.ASCII, _ = tui.boolean("ascii", false)
	shared.TUI.FPS = tui.integer("fps", DefaultFPS, 1, 60)
	shared.TUI.Theme = tui.choice("theme", "", Themes()...)
	shared.TUI.Colors = colors(tui.sub("colors", "[tui.colors]"))
	auditTable := root.sub("audit", "[audit]")
	audit := f.audit(shared, auditTable, getenv)
	recorded := f.record(shared, root.sub("record", "[record]"), getenv)
	f.notify(shared, root.sub("notify", "[notify]"), getenv)
	common := f.settings

	var forms []form
	if root.values["clusters"] == nil {
		forms = []form{{keys: root.sub("cluster", "[cluster]"), root: root, label: func(name string) string { return "[" + name + "]" }}}
	} else {
		forms = f.several(root)
	}
	readOnly := f.readOnly(getenv)
	for _, of := range forms {
		c := *shared
		f.settings = nil
		all = append(all, f.one(&c, of, readOnly, getenv))
		if recorded != "" {
			c.Record.Path = filepath.Join(recorded, url.PathEscape(c.Cluster.Name)+".db")
		}
		c.Settings = flat(f.settings, common)
		all[len(all)-1].Config = &c
	}
	for _, l := range all {
		l.PasswordEnv = f.passwordEnv
	}
	if audit.table != nil && slices.ContainsFunc(all, func(l loaded) bool { return !l.Cluster.ReadOnly }) {
		audit.problem("is missing, and neither XDG_STATE_HOME nor HOME gives a default; name a file for the audit log")
	}
	f.unknown()
	return all, def
}

func colors(t *table) map[string]string {
	var out map[string]string
	for _, meaning := range Meanings() {
		word, s := t.text(meaning, "")
		if s.set && !colorForm.MatchString(word) {
			s.problem("is not a colour: write \"#rrggbb\", or the number of one of the terminal's, \"0\" to \"255\"")
		} else if s.set {
			if out == nil {
				out = map[string]string{}
			}
			out[meaning] = word
		}
	}
	return out
}

var colorForm = regexp.MustCompile(`^(#[0-9a-fA-F]{6}|[01]?[0-9]{1,2}|2[0-4][0-9]|25[0-5])$`)

func flat(parts ...[]*Setting) []Setting {
	var out []Setting
	for _, p := range parts {
		for _, s := range p {
			out = append(out, *s)
		}
	}
	return out
}

func (f *configFile) several(root *table) []form {
	clusters := root.sub("clusters", "[clusters]")
	for _, key := range []string{"cluster", "nodes", "defaults", "redlock", "monitor", "guard"} {
		if s := root.get(key); s.set {
			section := "NAME." + key
			if key == "cluster" {
				section = "NAME"
			}
			s.secret = true // a table is not shown, as it may contain secrets
			s.problem("is set together with [clusters] (line %d); with several clusters each has sections of its own: write [clusters.%s]", f.lines.at("clusters"), section)
		}
	}
	line := func(name string) int { return f.lines.at(join("clusters", name)) }
	names := slices.SortedFunc(maps.Keys(clusters.values), func(a, b string) int {
		return cmp.Or(cmp.Compare(line(a), line(b)), cmp.Compare(a, b))
	})
	if len(names) == 0 && clusters.values != nil {
		f.report(f.lines.at("clusters"), "[clusters]", "", "is empty; write [clusters.NAME] with max_ttl, and [[clusters.NAME.nodes]]")
	}
	var forms []form
	for _, name := range names {
		label := "[clusters." + bare(name) + "]"
		s := clusters.get(name)
		if why := badCluster(name); why != "" {
			f.report(line(name), label, "", "%s", why)
			continue
		}
		if _, ok := s.raw.(map[string]any); !ok {
			f.report(line(name), "[clusters] "+name, "", "is %s; a cluster is a table: write %s", kindOf(s.raw), label)
			continue
		}
		t := clusters.sub(name, label)
		forms = append(forms, form{name: name, keys: t, root: t, label: func(section string) string {
			return "[clusters." + name + "." + section + "]"
		}})
	}
	return forms
}

// badCluster says why the name of a table cannot be a cluster's name, which people type,
// and which names a directory.
func badCluster(name string) string {
	switch {
	case name == "":
		return "the name is empty"
	case strings.ContainsFunc(name, notBare):
		return "the name has characters other than letters, digits, _ and -; people must be able to type it"
	}
	return badName(name, 64, false)
}

func (f *configFile) readOnly(getenv func(string) string) bool {
	v := getenv("REDLOCKCTL_READ_ONLY")
	switch strings.ToLower(v) {
	case "1", "true", "yes":
		return true
	case "", "0", "false", "no":
	default:
		f.report(0, "REDLOCKCTL_READ_ONLY", fmt.Sprintf("%q", v), "environment variable is neither 1 nor 0")
	}
	return false
}

func (f *configFile) one(c *Config, of form, readOnly bool, getenv func(string) string) loaded {
	l := loaded{Config: c}
	maxTTL, name := f.cluster(c, of, readOnly)
	l.name = name
	f.nodes(c, of.root, "["+of.label("nodes")+"]", getenv)
	drift := f.redlock(c, of.root.sub("redlock", of.label("redlock")), maxTTL)
	f.monitor(c, of.root.sub("monitor", of.label("monitor")))
	guard := of.root.sub("guard", of.label("guard"))
	l.stateDir = f.stateDir(c, guard, of.name, getenv)
	f.guard(c, guard, maxTTL, drift)
	return l
}

// stateDir reads the directory for the guard's memory. By default, each cluster of a file
// has its own.
func (f *configFile) stateDir(c *Config, t *table, cluster string, getenv func(string) string) setting {
	dir, s := t.text("state_dir", "")
	if s.set {
		c.Guard.StateDir = f.resolve(dir, getenv)
	} else {
		c.Guard.StateDir = StateDir(getenv, "guard", cluster)
	}
	s.came(c.Guard.StateDir, "")
	return s
}
