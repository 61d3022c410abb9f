// Package config reads config.toml: defaults, then the file, then the
// environment, then flags, validated whole before anything is contacted.
//
// All that is wrong is reported at once, each with file, line, key and value,
// the other value where two contradict each other, and what would be right.
// What the program knows of keys is what it asks for while it builds a
// [Config]: see [Load]. The commented example config.toml at the root of the
// project documents every key.
//
// The environment can only take rights away: REDLOCKCTL_READ_ONLY=1 makes the
// program read-only whatever the file says, NO_COLOR turns colours off.
// REDLOCKCTL_CONFIG names the file (see [Find]).
//
// A secret is never in the file: password_env and password_file say where it
// is. It is read by [Load], and kept where no verb of package fmt, no encoder
// and no error reaches it.
package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/BurntSushi/toml"

	"redlockctl/internal/safetext"
	"redlockctl/redlock"
	"redlockctl/restartguard"
)

// Config is a valid configuration, with all defaults filled in.
type Config struct {
	Path    string // of the file it came from
	Cluster Cluster
	Nodes   []Node
	Redlock redlock.Options
	Monitor Monitor
	Guard   Guard
	TUI     TUI
	Audit   Audit
	// Warnings are what is allowed and yet seldom meant, such as an even number
	// of masters; each a sentence that begins with file and line.
	Warnings []string
}

// Cluster is [cluster].
type Cluster struct {
	Name         string // default "redlock"
	LockPatterns []string
	// MaxTTL covers each SET and each PEXPIRE of every client of the cluster.
	MaxTTL   time.Duration
	ReadOnly bool
}

// Monitor is [monitor].
type Monitor struct {
	Timeout, ProbeEvery, InfoEvery, ScanEvery time.Duration
	ScanCount                                 int
}

// Guard is [guard].
type Guard struct {
	FirstContact  restartguard.FirstContact
	DelayMargin   time.Duration
	Delay         time.Duration // D, computed or given
	Poll, Timeout time.Duration
	// ClockStep is the least forward step of a node's clock that is a loss.
	ClockStep time.Duration
	Counter   bool // a counter key shows a restored snapshot
	// StateDir is what the daemon remembers in; "" without a home.
	StateDir string
}

// TUI is [tui].
type TUI struct {
	ASCII bool
	Color bool // false: none at all; true: as many as the terminal has
	FPS   int
}

// Audit is [audit].
type Audit struct{ Path string }

// Defaults of the keys that are no option of the lock algorithm; those are in
// package redlock.
const (
	defaultClusterName    = "redlock"
	defaultMonitorTimeout = 500 * time.Millisecond
	defaultProbeEvery     = 200 * time.Millisecond
	defaultInfoEvery      = time.Second
	defaultScanEvery      = 250 * time.Millisecond
	defaultScanCount      = 250
	defaultDelayMargin    = 50 * time.Millisecond
	defaultGuardPoll      = 200 * time.Millisecond
	defaultGuardTimeout   = 500 * time.Millisecond
	defaultClockStep      = 5 * time.Millisecond
	defaultFPS            = 15
)

const (
	// leastProbe keeps the console from being a load of its own.
	leastProbe = 50 * time.Millisecond
	// mostBytes bounds what is read: a configuration is small, a wrong path may
	// lead anywhere.
	mostBytes = 1 << 18
)

// Load reads and validates the file at path. What is wrong with it is an
// [*Error] that lists every problem with file, line, key, the offending values
// and what would be right; a file that is not there is [ErrNotFound]. Nothing
// is contacted. Files that the configuration names are found from its own
// directory.
func Load(path string, getenv func(string) string) (*Config, error) {
	f := &file{path: path}
	text, err := read(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: %q does not exist", ErrNotFound, path)
	case err != nil:
		f.report(0, "", "", "cannot be read: %v", cause(err))
		return nil, f.err()
	}
	values := map[string]any{}
	if _, err := toml.Decode(text, &values); err != nil {
		f.syntax(text, err)
		return nil, f.err()
	}
	if len(values) == 0 {
		f.report(0, "", "", "is empty; it needs at least max_ttl in [cluster] and one [[nodes]] with name and addr "+
			"(`redlockctl demo` runs without a configuration)")
		return nil, f.err()
	}
	f.lines = scanLines(text)
	c := f.config(values, getenv)
	if len(f.problems) > 0 {
		return nil, f.err()
	}
	return c, nil
}

func read(path string) (string, error) {
	r, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer r.Close()
	b, err := io.ReadAll(io.LimitReader(r, mostBytes+1))
	switch {
	case err != nil:
		return "", err
	case len(b) > mostBytes:
		return "", fmt.Errorf("it is larger than %d bytes and cannot be a configuration", mostBytes)
	case !utf8.Valid(b):
		return "", errors.New("it is not UTF-8 text")
	}
	return string(b), nil
}

// syntax reports an error of the TOML library.
func (f *file) syntax(text string, err error) {
	var pe toml.ParseError
	if !errors.As(err, &pe) {
		f.report(0, "", "", "is not TOML: %s", safetext.Escape(err.Error()))
		return
	}
	message := pe.Message
	rows := strings.Split(text, "\n")
	row := ""
	if n := pe.Position.Line; n >= 1 && n <= len(rows) {
		row = rows[n-1]
	}
	// The library quotes what it could not read, and a password without quotes
	// is such a thing.
	if strings.Contains(strings.ToLower(row+pe.LastKey), "pass") {
		message = "this line cannot be read; it is not shown, since a secret may stand in it"
	}
	f.report(pe.Position.Line, "", "", "is not TOML: %s", safetext.Escape(message))
}

// err is what was reported, in the order of the file.
func (f *file) err() error {
	order := func(line int) int {
		if line == 0 {
			return int(^uint(0) >> 1)
		}
		return line
	}
	sort.SliceStable(f.problems, func(i, j int) bool {
		return order(f.problems[i].Line) < order(f.problems[j].Line)
	})
	return &Error{Problems: f.problems}
}

// config builds the configuration and reports what is wrong on the way.
func (f *file) config(values map[string]any, getenv func(string) string) *Config {
	c := &Config{Path: f.path}
	root := f.section("", "", values)

	cluster := root.sub("cluster", "[cluster]")
	maxTTL := f.cluster(c, cluster)
	if v := getenv("REDLOCKCTL_READ_ONLY"); v != "" {
		switch strings.ToLower(v) {
		case "1", "true", "yes":
			c.Cluster.ReadOnly = true
		case "0", "false", "no":
		default:
			f.report(0, "REDLOCKCTL_READ_ONLY", fmt.Sprintf("%q", v), "environment variable is neither 1 nor 0")
		}
	}
	f.nodes(c, root, getenv)
	drift := f.redlock(c, root.sub("redlock", "[redlock]"), maxTTL)
	f.monitor(c, root.sub("monitor", "[monitor]"))
	f.guard(c, root.sub("guard", "[guard]"), maxTTL, drift, getenv)

	tui := root.sub("tui", "[tui]")
	c.TUI.Color = tui.choice("color", "auto", "auto", "never") == "auto" && getenv("NO_COLOR") == ""
	c.TUI.ASCII = tui.boolean("ascii", false)
	c.TUI.FPS = tui.integer("fps", defaultFPS, 1, 60)

	f.audit(c, root.sub("audit", "[audit]"), getenv)
	f.unknown()
	return c
}

func (f *file) cluster(c *Config, t *table) span {
	name, s := t.text("name", defaultClusterName)
	if why := badName(name, 64, true); why != "" {
		s.problem("%s", why)
	}
	c.Cluster.Name = name
	c.Cluster.LockPatterns = t.texts("lock_patterns", "*")
	c.Cluster.ReadOnly = t.boolean("read_only", false)
	maxTTL := t.duration("max_ttl", 0, 10*time.Millisecond)
	if !maxTTL.set {
		maxTTL.ok = false
		maxTTL.problem(`is missing; set it to the longest TTL that any client of this cluster uses, such as "30s"`)
	}
	c.Cluster.MaxTTL = maxTTL.Duration
	return maxTTL
}

// redlock reads [redlock] and returns its drift factor.
func (f *file) redlock(c *Config, t *table, maxTTL span) setting {
	o := &c.Redlock
	timeout := redlock.DefaultNodeTimeout
	if maxTTL.ok {
		timeout = min(timeout, maxTTL.Duration/10)
	}
	node := t.duration("node_timeout", timeout, leastDuration)
	o.ConnectTimeout = t.duration("connect_timeout", redlock.DefaultConnectTimeout, 5*time.Millisecond).Duration
	factor, factorSetting := t.number("drift_factor", redlock.DefaultDriftFactor, 0, 1)
	margin := t.duration("drift_margin", redlock.DefaultDriftMargin, leastDuration)
	o.NodeTimeout, o.DriftFactor, o.DriftMargin = node.Duration, factor, margin.Duration
	o.Retries = t.integer("retries", redlock.DefaultRetries, 0, 1000)
	if o.Retries == 0 {
		o.Retries = -1 // the zero value means the default
	}
	o.RetryDelay = t.duration("retry_delay", redlock.DefaultRetryDelay, leastDuration).Duration

	if !maxTTL.ok {
		return factorSetting
	}
	if most := maxTTL.Duration / 10; node.ok && node.Duration > most {
		node.problem("is more than a tenth of %s, so that a few dead nodes use the lock up; at most %s would be right", maxTTL.refer(), show(most))
	}
	if drift := o.Drift(maxTTL.Duration); margin.ok && drift >= maxTTL.Duration {
		culprit := factorSetting
		if margin.set {
			culprit = margin.setting
		}
		if !culprit.set {
			culprit = maxTTL.setting
		}
		culprit.problem("the drift allowance, max_ttl × drift_factor + drift_margin = %s, uses up %s: no lock would ever be valid (%s, %s)",
			drift, maxTTL.refer(), factorSetting.refer(fmt.Sprint(factor)), margin.refer())
	}
	return factorSetting
}

func (f *file) monitor(c *Config, t *table) {
	m := &c.Monitor
	m.Timeout = t.duration("timeout", defaultMonitorTimeout, 5*time.Millisecond).Duration
	probe := t.duration("probe_every", defaultProbeEvery, leastProbe)
	info := t.duration("info_every", defaultInfoEvery, leastProbe)
	m.ProbeEvery, m.InfoEvery = probe.Duration, info.Duration
	m.ScanEvery = t.duration("scan_every", defaultScanEvery, 10*time.Millisecond).Duration
	m.ScanCount = t.integer("scan_count", defaultScanCount, 1, 10000)
	if probe.ok && info.ok && info.Duration < probe.Duration {
		s, other := info, probe
		if !s.set {
			s, other = probe, info
		}
		s.problem("contradicts %s: INFO is the dearer of the two and must not be asked for more often than the time; info_every of at least %s would be right",
			other.refer(), show(probe.Duration))
	}
}

func (f *file) guard(c *Config, t *table, maxTTL span, drift setting, getenv func(string) string) {
	g := &c.Guard
	if dir, s := t.text("state_dir", ""); s.set {
		g.StateDir = f.resolve(dir, getenv)
	} else if dir := userDir(getenv, "XDG_STATE_HOME", ".local/state"); dir != "" {
		g.StateDir = filepath.Join(dir, "redlockctl", "guard")
	}
	g.Counter = t.boolean("counter", false)
	step := t.duration("clock_step", defaultClockStep, leastDuration)
	g.ClockStep = step.Duration
	if t.choice("first_contact", "adopt", "adopt", "fence") == "fence" {
		g.FirstContact = restartguard.Fence
	}
	margin := t.duration("delay_margin", defaultDelayMargin, leastDuration)
	g.DelayMargin = margin.Duration
	// The default allowance is the least: locks are also taken by clients that do
	// not read this file.
	factor := max(c.Redlock.DriftFactor, redlock.DefaultDriftFactor)
	least := restartguard.Delay(maxTTL.Duration, factor, margin.Duration)
	delay := t.duration("delay", least, leastDuration)
	g.Delay = delay.Duration
	poll := t.duration("poll", defaultGuardPoll, 10*time.Millisecond)
	timeout := t.duration("timeout", defaultGuardTimeout, 5*time.Millisecond)
	g.Poll, g.Timeout = poll.Duration, timeout.Duration
	if !maxTTL.ok {
		return
	}
	if delay.set && delay.ok && margin.ok && delay.Duration < least {
		why := ""
		if drift.set && factor > redlock.DefaultDriftFactor {
			why = ", " + drift.refer("")
		}
		delay.problem("is too short for %s: a node could vote again while a client believes in the vote that it forgot; "+
			"max_ttl × %g + delay_margin = %s is the least (%s%s)", maxTTL.refer(), 1+factor, show(least), margin.refer(), why)
	}
	if step.set && step.ok && step.Duration >= maxTTL.Duration {
		step.problem("is not below %s: a clock that steps forward by so much ends every lock at once", maxTTL.refer())
	}
	for _, s := range []span{poll, timeout} {
		if s.set && s.ok && s.Duration >= maxTTL.Duration {
			s.problem("is not below %s: a restart would be noticed only when all is over; a tenth of it, %s, would be right",
				maxTTL.refer(), show((maxTTL.Duration / 10).Round(time.Millisecond)))
		}
	}
}

func (f *file) audit(c *Config, t *table, getenv func(string) string) {
	path, s := t.text("path", "")
	if s.set {
		c.Audit.Path = f.resolve(path, getenv)
		return
	}
	dir := userDir(getenv, "XDG_STATE_HOME", ".local/state")
	if dir == "" {
		if !c.Cluster.ReadOnly {
			s.problem("is missing, and neither XDG_STATE_HOME nor HOME gives a default; name a file for the audit log")
		}
		return
	}
	c.Audit.Path = filepath.Join(dir, "redlockctl", "audit.jsonl")
}

// resolve is a path of the configuration: absolute, below the home directory
// ("~/"), or beside the configuration.
func (f *file) resolve(path string, getenv func(string) string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home := getenv("HOME"); filepath.IsAbs(home) {
			return filepath.Join(home, rest)
		}
	}
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	joined := filepath.Join(filepath.Dir(f.path), path)
	if abs, err := filepath.Abs(joined); err == nil {
		return abs
	}
	return joined
}

// badName says why a name cannot be used: names are typed by people to confirm
// what they do, stand in tables and are looked for by eye.
func badName(name string, most int, spaces bool) string {
	for _, r := range name {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("._-", r), spaces && strings.ContainsRune(" :/@", r):
		case spaces:
			return "has characters other than letters, digits, spaces and . _ - : / @; people must be able to type it"
		default:
			return "has characters other than letters, digits and . _ -; people must be able to type it"
		}
	}
	switch {
	case len(name) > most:
		return fmt.Sprintf("is longer than %d characters", most)
	case strings.TrimSpace(name) != name:
		return "begins or ends with a space"
	case strings.HasPrefix(name, "-"):
		return "begins with -, so that a command would take it for a flag"
	}
	return ""
}

// Masters are the nodes as the lock core knows them, with the secrets that
// Load read.
func (c *Config) Masters() ([]*redlock.Node, error) {
	masters := make([]*redlock.Node, len(c.Nodes))
	for i, n := range c.Nodes {
		opt := n.options()
		m, err := redlock.NewNode(n.Name, opt)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: [[nodes]] %q: %w", c.Path, n.Line, n.Name, err)
		}
		masters[i] = m
	}
	return masters, nil
}
