// Package app puts the parts together: from the configuration of a cluster it
// makes nodes, monitor, guard, operator and audit log. A [Session] is what stands
// behind a screen, a [Daemon] is the guard without one, [Watch] is a single look;
// all are wired by the same code. It reads no flag and prints nothing.
package app

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"redlockctl/internal/audit"
	"redlockctl/internal/config"
	"redlockctl/internal/notify"
	"redlockctl/internal/operator"
	"redlockctl/internal/record"
	"redlockctl/monitor"
	"redlockctl/monitor/observe"
	"redlockctl/redlock"
	"redlockctl/restartguard/watch"
	"redlockctl/server/announce"
	"redlockctl/server/fences"
)

// ConfigError is a configuration that cannot be used, or the name of something that
// it does not have; its text may have several lines.
type ConfigError struct{ Err error }

func (e ConfigError) Error() string { return e.Err.Error() }
func (e ConfigError) Unwrap() error { return e.Err }

// Spec is what the parts of one cluster are made of.
type Spec struct {
	Nodes    []*redlock.Node
	Redlock  redlock.Options
	Monitor  observe.Options
	Guard    watch.Config
	Guarded  []*redlock.Node // what a guard of this cluster watches; empty: nothing is to be guarded
	ReadOnly bool
	Version  string         // of this program
	Force    bool           // locks are taken beyond the bound of their TTL
	Audit    string         // path of the audit log
	Folder   string         // of the configuration; empty: it came from no file
	Memory   string         // where a guard on this machine writes down what it knows; no path: nowhere
	Record   record.Options // where what is seen is kept; no path: nowhere
	Notify   notify.Options // whom the guard's daemon notifies
}

// SpecOf is the spec of a configuration. Nothing is contacted.
func SpecOf(cfg *config.Config) (Spec, error) {
	nodes, err := cfg.Masters()
	if err != nil {
		return Spec{}, ConfigError{err}
	}
	s := Spec{
		Nodes:    nodes,
		Redlock:  cfg.Redlock,
		Monitor:  cfg.Monitor,
		Guard:    cfg.Guard.Config,
		ReadOnly: cfg.Cluster.ReadOnly,
		Version:  cfg.Version,
		Audit:    cfg.Audit.Path,
		Memory:   cfg.Guard.StateDir,
		Record:   cfg.Record,
		Notify:   cfg.Notify,
	}
	s.Notify.Version, s.Notify.Env = cfg.Version, cfg.ChildEnv(os.Environ())
	if cfg.Path != config.NodesFlag {
		s.Folder = filepath.Dir(cfg.Path)
	}
	s.Guard.Cluster, s.Guard.N, s.Guard.Methods = cfg.Cluster.Name, len(nodes), Methods(cfg)
	s.Monitor.ClusterName, s.Monitor.LockPatterns, s.Monitor.MaxTTL = cfg.Cluster.Name, cfg.Cluster.LockPatterns, cfg.Cluster.MaxTTL
	s.Monitor.Redlock, s.Monitor.Fences = cfg.Redlock, map[string]fences.Kind{}
	for name, m := range s.Guard.Methods {
		s.Monitor.Fences[name] = m.Kind
	}
	s.Monitor.Witnesses = witnessesOf(cfg, os.Getenv)
	if s.Record.Path != "" {
		s.Monitor.Recorded = func(keys []string) []announce.Lock { return recordedGrants(s.Record.Path, cfg.Cluster.Name, keys) }
	}
	if s.Audit != "" {
		log := audit.Follow(s.Audit)
		s.Monitor.TakenBy = func(key, token string) (monitor.Action, bool) {
			r, ok := log.Taken(key, token)
			return actionOf(r), ok
		}
		lines := &auditLines{path: s.Audit}
		s.Monitor.Forced = followForced(lines, cfg.Cluster.Name, cfg.Cluster.MaxTTL)
		s.Monitor.Cordons = followCordons(lines, cfg.Cluster.Name).now
		s.Monitor.ActedOn = func(node string) (monitor.Action, bool) {
			r, ok := log.ActedOn(s.Monitor.ClusterName, node)
			return actionOf(r), ok
		}
	}
	if slices.ContainsFunc(cfg.Nodes, func(n config.Node) bool { return n.Fence.Kind != fences.None }) && !s.ReadOnly && cfg.Guardable() == nil {
		s.Guarded = nodes // one without a fence is only watched
	}
	return s, nil
}

func actionOf(r audit.Record) monitor.Action {
	a := monitor.Action{Act: r.Act, Actor: r.Actor, Reason: r.Reason, At: r.Time, Undecided: r.Phase == audit.Undecided}
	if r.Phase == audit.Failed {
		a.Only = r.Obeyed()
	}
	return a
}

// Methods are how the nodes of a configuration are fenced, by name.
func Methods(cfg *config.Config) map[string]fences.Method {
	methods := make(map[string]fences.Method, len(cfg.Nodes))
	for _, n := range cfg.Nodes {
		methods[n.Name] = n.Fence
	}
	return methods
}

// NodeNames are the names of the nodes of a configuration.
func NodeNames(cfg *config.Config) []string {
	names := make([]string, len(cfg.Nodes))
	for i, n := range cfg.Nodes {
		names[i] = n.Name
	}
	return names
}

// CheckNodes refuses the name of a node that is not configured.
func CheckNodes(cfg *config.Config, names ...string) error {
	there := NodeNames(cfg)
	for _, name := range names {
		if !slices.Contains(there, name) {
			return ConfigError{fmt.Errorf("there is no node %q; there is %s", name, strings.Join(there, ", "))}
		}
	}
	return nil
}

// NodeOf is a configured node, and how it is fenced.
func NodeOf(cfg *config.Config, name string) (*redlock.Node, fences.Method, error) {
	if err := CheckNodes(cfg, name); err != nil {
		return nil, fences.Method{}, err
	}
	nodes, err := cfg.Masters()
	if err != nil {
		return nil, fences.Method{}, ConfigError{err}
	}
	i := slices.Index(NodeNames(cfg), name)
	return nodes[i], cfg.Nodes[i].Fence, nil
}

// OpenOperator opens what an action needs: the audit log, if anything may be changed,
// and clients of the nodes.
func OpenOperator(s Spec, opt operator.Options) (*operator.Operator, error) {
	opt.Cluster, opt.ReadOnly, opt.MaxTTL, opt.Methods = s.Monitor.ClusterName, s.ReadOnly, s.Monitor.MaxTTL, s.Guard.Methods
	opt.Overtaken = s.kept().Overtaken
	if !s.ReadOnly {
		log, err := audit.Open(s.Audit)
		if err != nil {
			return nil, fmt.Errorf("%w: the audit log cannot be written: %w", operator.ErrRefused, err)
		}
		opt.Log = log
	}
	client, err := redlock.New(s.Nodes, s.Redlock)
	if err != nil {
		if opt.Log != nil {
			_ = opt.Log.Close()
		}
		return nil, ConfigError{err}
	}
	return operator.New(client, opt), nil
}
