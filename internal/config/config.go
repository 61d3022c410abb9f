// Package config reads config.toml: defaults, then the file, then the environment, then
// flags. All of it is validated before anything is contacted. A file has one cluster, or
// several in separate tables; several files make one [Set].
//
// All problems are reported at once, each with file, line, key and value, the other value
// if two contradict each other, and what would be right. The known keys are those that
// the program asks for while it builds a [Config]: see [LoadAll]. The commented example
// config.toml at the root of the project documents every key.
//
// The environment can only remove rights: REDLOCKCTL_READ_ONLY=1 makes the program
// read-only whatever the file says, NO_COLOR turns colours off. REDLOCKCTL_CONFIG names
// the file (see [Find]).
//
// A secret is never in the file: password_env and password_file say where it is. [Load]
// reads it, and keeps it where no verb of package fmt, no encoder and no error can show
// it.
package config

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/BurntSushi/toml"
	"github.com/redis/go-redis/v9"
	"golang.org/x/net/http/httpguts"

	"redlockctl/internal/metrics"
	"redlockctl/internal/notify"
	"redlockctl/internal/record"
	"redlockctl/monitor"
	"redlockctl/monitor/observe"
	"redlockctl/redlock"
	"redlockctl/restartguard"
	"redlockctl/restartguard/watch"
	"redlockctl/server/announce"
	"redlockctl/server/fences"
	"redlockctl/server/safetext"
)

// Config is a valid configuration with all defaults filled in.
type Config struct {
	Path    string // of its file
	Cluster Cluster
	Nodes   []Node
	Redlock redlock.Options
	Monitor observe.Options // the options in [monitor]
	Guard   Guard
	TUI     TUI
	Audit   Audit
	Record  record.Options // no path: nothing is recorded
	Notify  notify.Options // the zero value notifies nobody
	// ConnName is the name of the connections to the nodes, see [redlock.Node.Named]. It
	// is not a setting. Default: none.
	ConnName string
	// Version is that of this program, for what it sends to others. It is in no file.
	Version string
	// PasswordEnv are the environment variables from which passwords came, for all
	// clusters of the file. Child processes do not get them.
	PasswordEnv []string
	// Settings are all known keys of this cluster and of the whole file, with their
	// values and where these come from.
	Settings []Setting
	// Warnings are about settings that are allowed but rarely intended, such as an even
	// number of masters. Each is a sentence that starts with file and line.
	Warnings []string
}

// Cluster is [cluster].
type Cluster struct {
	Name         string // default "redlock"
	LockPatterns []string
	// MaxTTL covers each SET and each PEXPIRE of every client of the cluster; 0: unknown,
	// so no guard may run.
	MaxTTL   time.Duration
	ReadOnly bool
}

// Node is one of [[nodes]].
type Node struct {
	Name  string
	Addr  string // host:port, or the absolute path of a unix socket
	DB    int
	TLS   bool
	Fence fences.Method
	// Line is the line of the node in the file.
	Line int

	// options returns how to reach it, with its secrets. It is a function so that nothing
	// that prints values finds them: fmt does not call the methods of unexported fields,
	// but prints their contents. It names no type of go-redis, as redlock.Node does not.
	options func() any // *redis.Options
}

func optionsOf(n *Node) *redis.Options { return n.options().(*redis.Options) }

// Guard is [guard].
type Guard struct {
	// Config has the options in [guard]. Its Delay is 0 if the max TTL is unknown.
	watch.Config
	// StateDir is the directory in which the daemon stores its memory; "" without a home.
	StateDir string
	// Witnesses are addresses of guards elsewhere, http://HOST:PORT: they are asked for what
	// they see when too few nodes are seen from here.
	Witnesses []string
}

// TUI is [tui].
type TUI struct {
	ASCII bool
	Color bool // false: no colours; true: as many as the terminal has
	FPS   int
	// Theme is one of [Themes]; "": the one that the user chose last.
	Theme string
	// Colors replace colours of the theme, by meaning (good, info, warn, bad), as #rrggbb
	// or a number from 0 to 255.
	Colors map[string]string
}

// Themes are the themes of the screen.
func Themes() []string {
	return []string{"ansi", "ansi-light", "dark", "light", "high-contrast", "high-contrast-light", "color-blind", "color-blind-light", "none"}
}

// Meanings lists what has a colour on the screen.
func Meanings() []string { return []string{"good", "info", "warn", "bad"} }

// Audit is [audit].
type Audit struct{ Path string }

// PasswordVariable holds the password for nodes from [Flags], URLPasswordVariable the one
// for a guard that is queried by URL.
const (
	PasswordVariable    = "REDLOCKCTL_PASSWORD"
	URLPasswordVariable = "REDLOCKCTL_URL_PASSWORD"
)

// ChildEnv returns an environment without this program's passwords, for a process that it
// starts: neither those in variables with fixed names, nor those in variables that the
// configuration names. c may be nil.
func (c *Config) ChildEnv(env []string) []string {
	secret := []string{PasswordVariable, URLPasswordVariable}
	if c != nil {
		secret = append(secret, c.PasswordEnv...)
	}
	return slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(secret, name)
	})
}

// Defaults of the keys that are not options of another package, which has its own.
const (
	defaultClusterName = "redlock"
	defaultClockStep   = 5 * time.Millisecond
	DefaultFPS         = 30 // frames per second of the console
)

const (
	// leastProbe keeps the console from loading the servers.
	leastProbe = 50 * time.Millisecond
	// leastMemory is enough for about ten thousand locks.
	leastMemory = 32 << 20
	// leastRecord is enough for about ten thousand grants.
	leastRecord = 4 << 20
	// mostBytes limits what is read: a configuration is small, but a wrong path may name
	// any file.
	mostBytes = 1 << 18
)

func readText(path string) (string, error) {
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

func (f *configFile) syntax(text string, err error) {
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
	// The library quotes what it could not read, which may be a password without quotes.
	if strings.Contains(strings.ToLower(row+pe.LastKey), "pass") {
		message = "this line cannot be read; it is not shown, since a secret may stand in it"
	}
	f.report(pe.Position.Line, "", "", "is not TOML: %s", safetext.Escape(message))
}

// form is how a cluster is written: at the top of the file, or in a table of clusters.
type form struct {
	name  string // from the header; "": from a key
	keys  *table // max_ttl and others
	root  *table // table with its sections
	label func(section string) string
}

// cluster reads [cluster], or the same keys in [clusters.NAME]. The setting is the one
// that gives the name, even if that is the header of the table.
func (f *configFile) cluster(c *Config, of form, readOnly bool) (span, setting) {
	t := of.keys
	var named setting
	if c.Cluster.Name = of.name; of.name == "" {
		c.Cluster.Name, named = t.text("name", defaultClusterName)
		if why := badName(c.Cluster.Name, 64, true); why != "" {
			named.problem("%s", why)
		}
	} else if named = t.get("name"); named.set {
		named.problem("the name of this cluster is %q, that of its table; remove it", of.name)
	}
	c.Cluster.LockPatterns = t.texts("lock_patterns", "*")
	var s setting
	if c.Cluster.ReadOnly, s = t.boolean("read_only", false); readOnly {
		c.Cluster.ReadOnly = true
		s.came("true", "REDLOCKCTL_READ_ONLY")
	}
	maxTTL := t.duration("max_ttl", 0, 10*time.Millisecond)
	if !maxTTL.set {
		maxTTL.ok = false
	}
	if !maxTTL.set && !f.unlimited {
		maxTTL.problem(`is missing; set it to the longest TTL that any client of this cluster uses, such as "30s"`)
	}
	c.Cluster.MaxTTL = maxTTL.Duration
	return maxTTL, named
}

// redlock reads [redlock] and returns its drift factor.
func (f *configFile) redlock(c *Config, t *table, maxTTL span) setting {
	o := &c.Redlock
	node := t.durationOr("node_timeout", "auto", 0, leastDuration)
	o.ConnectTimeout = t.duration("connect_timeout", redlock.DefaultConnectTimeout, 5*time.Millisecond).Duration
	factor, factorSetting := t.number("drift_factor", redlock.DefaultDriftFactor, 0, 1)
	margin := t.duration("drift_margin", redlock.DefaultDriftMargin, leastDuration)
	o.NodeTimeout, o.DriftFactor, o.DriftMargin = node.Duration, factor, margin.Duration
	o.Retries = t.integer("retries", redlock.DefaultRetries, 0, 1000)
	if o.Retries == 0 {
		o.Retries = -1 // the zero value means the default
	}
	o.RetryDelay = t.duration("retry_delay", redlock.DefaultRetryDelay, leastDuration).Duration
	owner, s := t.text("owner", "auto")
	if o.Owner = owner; owner == "auto" {
		o.Owner = "" // whoever runs the program knows that
	}
	if len(owner) > redlock.MostOwner || strings.ContainsFunc(owner, func(r rune) bool { return r <= ' ' || r > '~' }) {
		s.problem(`must be at most %d printable ASCII characters without blanks, "auto" or "none"`, redlock.MostOwner)
	}

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

func (f *configFile) monitor(c *Config, t *table) {
	m := &c.Monitor
	m.Timeout = t.duration("timeout", observe.DefaultTimeout, 5*time.Millisecond).Duration
	probe := t.duration("probe_every", observe.DefaultProbeEvery, leastProbe)
	info := t.duration("info_every", observe.DefaultInfoEvery, leastProbe)
	m.ProbeEvery, m.InfoEvery = probe.Duration, info.Duration
	m.ScanEvery = t.duration("scan_every", observe.DefaultScanEvery, 10*time.Millisecond).Duration
	m.ScanCount = t.integer("scan_count", observe.DefaultScanCount, 1, 10000)
	m.MaxMemory = t.bytes("max_memory", 0, leastMemory)
	if probe.ok && info.ok && info.Duration < probe.Duration {
		s, other := info, probe
		if !s.set {
			s, other = probe, info
		}
		s.problem("contradicts %s: INFO is the dearer of the two and must not be asked for more often than the time; info_every of at least %s would be right",
			other.refer(), show(probe.Duration))
	}
}

func (f *configFile) guard(c *Config, t *table, maxTTL span, drift setting) {
	g := &c.Guard
	if counter, _ := t.boolean("counter", false); counter {
		g.CountEvery = watch.DefaultCount
	}
	step := t.duration("clock_step", defaultClockStep, leastDuration)
	g.ClockStep = step.Duration
	switch t.choice("first_contact", "adopt", "adopt", "fence", "adopt-young") {
	case "fence":
		g.FirstContact = restartguard.Fence
	case "adopt-young":
		g.FirstContact = restartguard.AdoptYoung
	}
	margin := t.duration("delay_margin", restartguard.DefaultMargin, leastDuration)
	// At least the default allowance: locks are also acquired by clients that do not read
	// this file.
	factor := max(c.Redlock.DriftFactor, restartguard.DefaultFactor)
	least := restartguard.Delay(maxTTL.Duration, factor, margin.Duration)
	delay := t.duration("delay", least, leastDuration)
	if g.Delay = delay.Duration; !maxTTL.ok {
		g.Delay = 0
	}
	poll := t.duration("poll", restartguard.DefaultPoll, 10*time.Millisecond)
	timeout := t.duration("timeout", restartguard.DefaultTimeout, 5*time.Millisecond)
	g.Poll, g.Timeout = poll.Duration, timeout.Duration
	witnesses, asked := t.list("witnesses")
	asked.secret = slices.ContainsFunc(witnesses, func(addr string) bool { return errors.Is(metrics.CheckAddress(addr), metrics.ErrPasswordInURL) })
	for i, addr := range witnesses {
		switch err := metrics.CheckAddress(addr); {
		case errors.Is(err, metrics.ErrPasswordInURL):
			asked.problem("address %d has a password, which others can read; it belongs in %s", i+1, URLPasswordVariable)
		case err != nil:
			asked.problem("address %d: %v", i+1, err)
		}
	}
	g.Witnesses = witnesses
	f.early(c, t, delay, drift)
	if g.Delay > announce.MostDelay && maxTTL.ok && delay.ok {
		culprit := maxTTL.setting
		if delay.set {
			culprit = delay.setting
		}
		culprit.problem("makes a guard wait for %s; guards agree on %s at most, and a lock with such a TTL is better taken for less and extended", show(g.Delay), show(announce.MostDelay))
	}
	if !maxTTL.ok {
		return
	}
	if delay.set && delay.ok && margin.ok && delay.Duration < least {
		why := ""
		if drift.set && factor > restartguard.DefaultFactor {
			why = ", " + drift.refer("")
		}
		delay.problem("is too short for %s: a node could vote again while a client relies on the vote that it forgot; "+
			"max_ttl × %g + delay_margin = %s is the least (%s%s)", maxTTL.refer(), 1+factor, show(least), margin.refer(), why)
	}
	if step.set && step.ok && step.Duration >= maxTTL.Duration {
		step.problem("is not below %s: a clock that steps forward by so much ends every lock at once", maxTTL.refer())
	}
	for _, s := range []span{poll, timeout} {
		if s.set && s.ok && s.Duration >= maxTTL.Duration {
			s.problem("is not below %s: a restart would be noticed too late; a tenth of it, %s, would be right",
				maxTTL.refer(), show((maxTTL.Duration / 10).Round(time.Millisecond)))
		}
	}
}

func (f *configFile) early(c *Config, t *table, delay span, drift setting) {
	on, _ := t.boolean("early_rejoin", false)
	c.Guard.Patterns = c.Cluster.LockPatterns
	bound := t.duration("attempt_bound", 0, leastDuration)
	if on && drift.set && c.Redlock.DriftFactor < redlock.DefaultDriftFactor {
		drift.problem("is below %g, and early_rejoin rests on holders that take off that much: who counts on a longer validity "+
			"may rely on a vote that a node forgot", redlock.DefaultDriftFactor)
	}
	if on && c.Redlock.NodeTimeout == 0 { // the argument rests on one that is known
		c.Redlock.NodeTimeout = min(redlock.DefaultNodeTimeout, max(c.Cluster.MaxTTL/10, leastDuration))
	}
	switch node := c.Redlock.NodeTimeout; {
	case on && !bound.set:
		bound.problem("is missing, and early_rejoin needs it: the longest time in which an attempt of any client of this cluster, " +
			"or an extension, may still be granted after its first request was sent; it has no default, since only you know the clients")
	case bound.set && bound.ok && bound.Duration < node:
		bound.problem("is less than [redlock] node_timeout = %s, so that not even this program keeps to it", show(node))
	case on && bound.ok && delay.ok && restartguard.EarlyAfter(bound.Duration) >= delay.Duration:
		bound.problem("is not below %s: early_rejoin would never be early", delay.refer())
	case on && bound.ok:
		c.Guard.Early = watch.EarlyRejoin{AttemptBound: bound.Duration, Patterns: c.Cluster.LockPatterns}
	}
}

// audit reads [audit]. If there is no path, it returns the setting to report when
// something must be logged.
func (f *configFile) audit(c *Config, t *table, getenv func(string) string) (missing setting) {
	path, s := t.text("path", "")
	if s.set {
		c.Audit.Path = f.resolve(path, getenv)
	} else if c.Audit.Path = StateDir(getenv, "audit.jsonl"); c.Audit.Path == "" {
		return s
	}
	s.came(c.Audit.Path, "")
	return setting{}
}

// record reads [record]. The directory has a file for each cluster; "": nothing is
// recorded.
func (f *configFile) record(c *Config, t *table, getenv func(string) string) (dir string) {
	on, _ := t.boolean("enabled", true)
	dir, s := t.text("dir", "")
	if s.set {
		dir = f.resolve(dir, getenv)
	} else {
		dir = StateDir(getenv, "record")
	}
	s.came(dir, "")
	c.Record.Keep = t.duration("keep", record.DefaultKeep, time.Hour).Duration
	c.Record.MaxSize = t.bytes("max_size", record.DefaultMaxSize, leastRecord)
	if !on {
		return ""
	}
	return dir
}

// notify reads [notify].
func (f *configFile) notify(c *Config, t *table, getenv func(string) string) {
	command, by := t.list("command")
	address, plain := t.text("url", "")
	urlPath, hidden := t.text("url_file", "")
	headerPath, head := t.text("header_file", "")
	least := t.choice("least", "warning", "info", "warning", "danger")
	timeout := t.duration("timeout", notify.DefaultTimeout, 100*time.Millisecond)
	plain.secret, hidden.secret, head.secret = true, false, false
	o := notify.Options{Timeout: timeout.Duration, Command: command}
	o.Least = map[string]monitor.Severity{"info": monitor.SeverityInfo, "warning": monitor.SeverityWarning, "danger": monitor.SeverityDanger}[least]
	secret := func(s setting, path string) string {
		if !s.set || f.Secretless {
			return ""
		}
		path = f.resolve(path, getenv)
		line, err := ReadSecret(path, getenv)
		if err != nil {
			s.problem("%s", err.Error())
		}
		s.came(path, "")
		return line
	}
	which := plain
	switch {
	case plain.set && hidden.set:
		hidden.problem("is set together with url (line %d); give one of the two", plain.line())
	case by.set && (plain.set || hidden.set):
		by.problem("is set together with a URL; give one of the two")
	case by.set && len(command) == 0:
		by.problem(`is empty; write a program with its arguments, such as ["/usr/local/bin/page", "redis"]`)
	case by.set && f.Found:
		by.problem("is not run from a configuration that was merely found in the working directory, which may be anybody's; name the file by --config")
	case hidden.set:
		address, which = secret(hidden, urlPath), hidden
	}
	if address != "" {
		u, err := url.Parse(address)
		switch {
		case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
			which.problem("is no URL; write http:// or https:// and a host")
		case plain.set && u.User != nil:
			plain.problem("has a password, which does not belong in this file: put the URL into a file, and name that by url_file")
		case plain.set:
			plain.came(u.Scheme+"://"+u.Host+"/…", "") // the path of some is a secret
		}
		o.URL = func() string { return address }
	} else if hidden.set && f.Secretless {
		o.URL = func() string { return "" }
	}
	if head.set {
		name, value, ok := strings.Cut(secret(head, headerPath), ":")
		if value = strings.TrimSpace(value); !f.Secretless && (!ok || !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value)) {
			head.problem("the file has no header; write one line such as Authorization: Bearer TOKEN")
		}
		if !plain.set && !hidden.set {
			head.problem("is for a URL, and there is none")
		}
		o.Header = func() (string, string) { return name, value }
	}
	if o.On() {
		c.Notify = o
	}
}

// resolve returns a path of the configuration: absolute, below the home directory ("~/"),
// or relative to the configuration's directory.
func (f *configFile) resolve(path string, getenv func(string) string) string {
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

// badName says why a name cannot be used: people type names to confirm actions, read them
// in tables and look for them.
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

// ErrNoMaxTTL is returned if D is needed but the longest TTL is unknown.
var ErrNoMaxTTL = errors.New("how long a node must stay out is not known: name the longest TTL that any client uses by --max-ttl, such as 30s")

// Guardable returns nil if D is known, otherwise [ErrNoMaxTTL].
func (c *Config) Guardable() error {
	if c.Guard.Delay == 0 {
		return ErrNoMaxTTL
	}
	return nil
}

// Masters returns the nodes for the lock core, with the secrets that Load read.
func (c *Config) Masters() ([]*redlock.Node, error) {
	masters := make([]*redlock.Node, len(c.Nodes))
	for i, n := range c.Nodes {
		opt := optionsOf(&n)
		m, err := redlock.NewNode(n.Name, opt)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: node %q: %w", c.Path, n.Line, n.Name, err)
		}
		if n.Fence.Kind == fences.ACL {
			m = m.FencedBy(n.Fence.User)
		}
		if c.ConnName != "" {
			m = m.Named(c.ConnName)
		}
		masters[i] = m
	}
	return masters, nil
}
