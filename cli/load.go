package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/pflag"

	"redlockctl/cli/app"
	"redlockctl/internal/config"
	"redlockctl/internal/record"
	"redlockctl/internal/who"
)

func (a *commandLine) load() (*config.Config, error) {
	return a.loadCluster("", config.Options{})
}

func (a *commandLine) loadWithoutSecrets() (*config.Config, error) {
	return a.loadCluster("", config.Options{Secretless: true})
}

func (a *commandLine) clusterNames() ([]string, error) {
	set, _, err := a.loadAllBy(config.Options{Secretless: true})
	if err != nil {
		return nil, err
	}
	return set.Names(), nil
}

// loadCluster loads a cluster by name; without one, the cluster of the command line.
func (a *commandLine) loadCluster(name string, opt config.Options) (*config.Config, error) {
	set, _, err := a.loadAllBy(opt)
	if err != nil {
		return nil, err
	}
	if name == "" {
		name, _ = a.wanted(set)
	}
	cfg, err := set.Choose(name)
	if err != nil {
		return nil, app.ConfigError{Err: err}
	}
	a.ASCII = cfg.TUI.ASCII
	return cfg, nil
}

// loadAll reads all clusters and applies the global flags to each; source says what named
// the files.
func (a *commandLine) loadAll() (set *config.Set, source string, err error) {
	return a.loadAllBy(config.Options{})
}

func (a *commandLine) loadAllBy(opt config.Options) (set *config.Set, source string, err error) {
	if len(a.named.Nodes) > 0 {
		source = cmp.Or(a.nodesBy, "--nodes")
		set, err = a.loadNamed(opt)
	} else {
		set, source, err = a.loadFiles(opt)
	}
	a.tellUnknown(set)
	if err != nil {
		return nil, source, app.ConfigError{Err: err}
	}
	self := who.Self(a.Getenv)
	for _, cfg := range set.Clusters {
		cfg.ConnName = who.ConnName(a.what, self)
		cfg.Version = build().Version
		switch cfg.Redlock.Owner {
		case "":
			cfg.Redlock.Owner = self
		case "none":
			cfg.Redlock.Owner = ""
		}
		cfg.Cluster.ReadOnly = cfg.Cluster.ReadOnly || a.readOnly
		cfg.TUI.ASCII = cfg.TUI.ASCII || a.ASCII
		cfg.TUI.Color = cfg.TUI.Color && !a.NoColor && a.Getenv("NO_COLOR") == ""
	}
	return set, source, nil
}

// wanted returns the name of the requested cluster, "" for the default, and what requested
// it.
func (a *commandLine) wanted(set *config.Set) (name, source string) {
	switch env := a.Getenv("REDLOCKCTL_CLUSTER"); {
	case a.cluster != "":
		return a.cluster, "--cluster"
	case env != "":
		return env, "REDLOCKCTL_CLUSTER"
	case set.Default != "":
		return "", "default_cluster"
	}
	return "", "default"
}

func (a *commandLine) nodeFlags(pf *pflag.FlagSet) {
	n := &a.named
	pf.StringSliceVar(&n.Nodes, "nodes", nil, "the masters, without a configuration: host:port, [::1]:port, /path/of/socket, redis:// or rediss:// URLs with user and database, dns+tcp://NAME:PORT, srv://NAME")
	pf.StringVar(&n.MaxTTL, "max-ttl", "", "with --nodes: the longest TTL that any client uses, such as 30s, without which nothing can be guarded")
	pf.StringVar(&n.Username, "user", "", "the user to log in as; its password is that of $"+config.PasswordVariable)
	pf.StringVar(&n.PasswordFile, "password-file", "", "a file (mode 0600) that holds the password")
	pf.StringVar(&n.PasswordCommand, "password-command", "", "a command of the shell that prints the password")
	pf.BoolVar(&a.askPassword, "ask-password", false, "ask for the password on the terminal")
	pf.BoolVar(&n.TLS, "tls", false, "TLS to all of them, as with rediss://")
	pf.StringVar(&n.CA, "tls-ca", "", "the authorities to trust, PEM")
	pf.StringVar(&n.Cert, "tls-cert", "", "a client certificate, PEM")
	pf.StringVar(&n.Key, "tls-key", "", "the key of the client certificate (mode 0600), PEM")
	pf.StringVar(&n.ServerName, "tls-server-name", "", "the name in the servers' certificates")
}

func (a *commandLine) loadFiles(opt config.Options) (*config.Set, string, error) {
	if flags := a.named; a.askPassword || flags.MaxTTL+flags.Username+flags.PasswordFile+flags.PasswordCommand+flags.CA+flags.Cert+flags.Key+flags.ServerName != "" || flags.TLS {
		return nil, "", errors.New("--max-ttl, --user, --password-*, --ask-password and --tls* go with --nodes; a configuration has keys for them")
	}
	paths, source, err := config.Find(a.configPaths, a.Getenv)
	if err != nil {
		return nil, source, err
	}
	opt.Found = source == "default" && paths[0] == "config.toml"
	set, err := config.LoadWith(paths, a.Getenv, opt)
	return set, source, err
}

func (a *commandLine) loadNamed(opt config.Options) (*config.Set, error) {
	if len(a.configPaths) > 0 {
		return nil, errors.New("--nodes and --config: give one of them")
	}
	flags, getenv := a.named, a.Getenv
	flags.Cluster = a.cluster
	if a.askPassword && !opt.Secretless {
		password, err := a.typedPassword()
		if err != nil {
			return nil, err
		}
		getenv = func(name string) string {
			if name == config.PasswordVariable {
				return password
			}
			return a.Getenv(name)
		}
	}
	return config.FromFlags(context.Background(), flags, getenv, opt)
}

func (a *commandLine) typedPassword() (string, error) {
	in, ok := a.In.(*os.File)
	switch {
	case a.password != "":
		return a.password, nil
	case !ok || !a.InTTY:
		return "", errors.New("--ask-password: standard input is not a terminal; use --password-file, --password-command or $" + config.PasswordVariable)
	case a.named.PasswordFile+a.named.PasswordCommand != "":
		return "", errors.New("--ask-password: the password is given in another place too; keep one of them")
	}
	fmt.Fprint(a.Err, "password of the masters: ")
	b, err := term.ReadPassword(in.Fd())
	fmt.Fprintln(a.Err)
	a.password = string(b)
	return a.password, err
}

func (a *commandLine) openRecord(file string) (*record.Reader, error) {
	if file != "" {
		return record.OpenReader(file, a.cluster)
	}
	cfg, err := a.loadWithoutSecrets()
	if err != nil {
		return nil, err
	}
	if cfg.Record.Path == "" {
		return nil, fmt.Errorf("%w: [record] is switched off", record.ErrNoRecord)
	}
	r, err := record.OpenReader(cfg.Record.Path, cfg.Cluster.Name)
	if errors.Is(err, record.ErrNoRecord) {
		err = fmt.Errorf("%w; `redlockctl guard` and the console record what they see", err)
	}
	return r, err
}

func (a *commandLine) auditPath() (string, error) {
	cfg, err := a.load()
	if errors.Is(err, config.ErrNoCluster) { // it is the same for all of a file
		set, _, serr := a.loadAll()
		if serr != nil {
			return "", serr
		}
		cfg, err = set.Clusters[0], nil
	}
	if err != nil {
		return "", err
	}
	if cfg.Audit.Path == "" {
		return "", app.ConfigError{Err: errors.New("[audit] path is missing, and neither XDG_STATE_HOME nor HOME gives a default")}
	}
	return cfg.Audit.Path, nil
}
