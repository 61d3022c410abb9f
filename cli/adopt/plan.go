package adopt

import (
	"bytes"
	"cmp"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/deploy"
	"redlockctl/internal/acl"
	"redlockctl/internal/config"
	"redlockctl/internal/view"
	"redlockctl/restartguard"
	"redlockctl/server/lockform"
	"redlockctl/server/minreplicas"
	"redlockctl/server/safetext"
)

// File is one file of the folder.
type File struct {
	Path string // in the folder
	Mode fs.FileMode
	Text string
	// Secret: it is never shown.
	Secret bool
}

// Secrets are the passwords of the new users, by their names.
type Secrets map[string]string

// Names of files in the folder.
const (
	guardConfig = "config.toml"
	opsConfig   = "ops.toml"
	guardEnv    = "guard.env"
	caFile      = "ca.pem"
	runbook     = "RUNBOOK.md"
	// madeByInit is in each folder of init, with and without a guard.
	madeByInit = "servers.sh"
)

// PasswordVariable is what guard.env sets.
const PasswordVariable = "REDLOCKCTL_GUARD_PASSWORD"

func passwordFile(user string) string {
	if user == GuardUser {
		return guardEnv
	}
	return strings.TrimPrefix(user, "redlockctl-") + ".password"
}

//go:embed templates
var templates embed.FS

// host is one master as the templates see it.
type host struct {
	Server
	Host, Port string // empty Host: a unix socket
	SSH        string // empty: this host
	// Manual is why its start has to be changed by hand; empty: install.sh does it.
	Manual    string
	FenceFile string
	// IncludeLine is the line that includes FenceFile, as the server reads it.
	IncludeLine string
	UsersFile   string
	Users       []acl.User
	Unit        string // with a unit that is not known: Debian's
}

// URL returns the address for --nodes, with the login of init, which may change users.
func (h host) URL() string {
	u := url.URL{Scheme: "redis", Host: h.Addr}
	switch {
	case h.Host == "":
		u = url.URL{Scheme: "unix", Path: h.Addr}
	case h.TLS:
		u.Scheme = "rediss"
	}
	if h.User != "" {
		u.User = url.User(h.User)
	}
	return strings.ReplaceAll(u.String(), ",", "%2C") // --nodes would split there
}

// page is what all templates see.
type page struct {
	Answers
	// Instance names the guard's unit and its files.
	Instance string
	Hosts    []host
	Users    []string
	Delay    time.Duration // D
	Seconds  string        // D for sleep
	// StartSeconds is how long systemd waits for a start that sleeps for D first.
	StartSeconds int64
	FenceLines   []string
	FenceArgs    string
	Variable     string
	AnyPass      bool // a server has a password: who changes users needs it
	TLS          bool
	Remote       bool
}

// manual are the hosts that install.sh leaves out.
func (p page) manual() []host {
	return slices.DeleteFunc(slices.Clone(p.Hosts), func(h host) bool { return h.Manual == "" })
}

// AnyManual reports whether install.sh leaves out a host.
func (p page) AnyManual() bool { return len(p.manual()) > 0 }

// ManyManual reports whether it leaves out several.
func (p page) ManyManual() bool { return len(p.manual()) > 1 }

// FirstManual is the name of the first one.
func (p page) FirstManual() string { return p.manual()[0].Name }

// Problems are all reasons why there is no plan.
type Problems []error

func (p Problems) Error() string { return errors.Join(p...).Error() }

// Unwrap makes errors.Is look at each.
func (p Problems) Unwrap() []error { return p }

// Plan is the files of the folder, or [Problems]. It is pure: the same facts, answers and secrets make
// the same files.
func Plan(f *Facts, a Answers, secrets Secrets) ([]File, error) {
	p := page{Answers: a, Instance: Instance(a.Cluster), FenceLines: minreplicas.FenceLines, FenceArgs: strings.Join(minreplicas.FenceArgs, " "), Variable: PasswordVariable}
	p.Delay = restartguard.DefaultDelay(a.MaxTTL)
	p.Seconds = strconv.FormatFloat(p.Delay.Seconds(), 'f', -1, 64)
	p.StartSeconds = int64((p.Delay + 90*time.Second + time.Second - 1) / time.Second)
	for _, u := range users {
		p.Users = append(p.Users, u.name)
	}
	libraries := acl.PlainLibraries()
	if len(a.Libraries) > 0 {
		var err error
		if libraries, err = acl.LibrariesNamed(a.Libraries); err != nil {
			return nil, err
		}
	}
	var problems []error
	for _, s := range f.Servers {
		h, err := hostOf(s)
		problems = append(problems, err)
		h.Users = usersOf(s, a, libraries, secrets)
		p.Hosts = append(p.Hosts, h)
		p.AnyPass = p.AnyPass || s.Password
		p.TLS = p.TLS || s.TLS
		p.Remote = p.Remote || h.SSH != ""
	}
	cluster, err := p.kubernetes()
	problems = slices.DeleteFunc(append(problems, err), func(err error) bool { return err == nil })
	if len(problems) > 0 {
		return nil, Problems(problems)
	}
	return p.files(secrets, cluster)
}

func (p page) files(secrets Secrets, cluster kubernetesPage) ([]File, error) {
	var files []File
	var failed error
	add := func(name, from string, mode fs.FileMode, with any) {
		text, err := render(from, with)
		failed = cmp.Or(failed, err)
		files = append(files, File{Path: name, Mode: mode, Text: text})
	}
	kind := "fence"
	if p.WithoutGuard {
		kind = "delay"
	}
	add(runbook, runbook+"."+kind, 0o644, p)
	add(madeByInit, "servers.sh", 0o755, p)
	for i := range p.Hosts {
		if p.Hosts[i].Manual == "" {
			add(path.Join(p.Hosts[i].Name, "install.sh"), "install.sh."+kind, 0o700, hostPage{p, p.Hosts[i]})
		}
	}
	if p.WithoutGuard {
		return files, failed
	}
	for i := range p.Hosts {
		add(path.Join(p.Hosts[i].Name, usersCommands), usersCommands, 0o600, hostPage{p, p.Hosts[i]})
		if p.Hosts[i].Manual != "" {
			add(path.Join(p.Hosts[i].Name, "users.acl"), "users.acl", 0o600, hostPage{p, p.Hosts[i]})
		}
	}
	add(guardConfig, "config.toml", 0o644, configPage{p, GuardUser})
	add(opsConfig, "config.toml", 0o644, configPage{p, OpsUser})
	add("users.sh", "users.sh", 0o755, p)
	add("guard.sh", "guard.sh", 0o755, p)
	if p.Ansible {
		add("ansible/site.yml", "ansible-site.yml", 0o644, p)
		add("ansible/undo.yml", "ansible-undo.yml", 0o644, p)
		add("ansible/inventory.ini", "ansible-inventory.ini", 0o644, p)
		add("ansible/roles/redlockctl_master/tasks/main.yml", "ansible-master.yml", 0o644, p)
		add("ansible/roles/redlockctl_guard/tasks/main.yml", "ansible-guard.yml", 0o644, p)
	}
	if p.Kubernetes != "" {
		add("kustomization.yaml", "kustomization.yaml", 0o644, cluster)
		base, err := guardBase()
		failed = cmp.Or(failed, err)
		files = append(files, base...)
	}
	files = append(files, File{Path: "redlockctl-guard@.service", Mode: 0o644, Text: deploy.GuardUnit})
	if p.CA != "" {
		files = append(files, File{Path: caFile, Mode: 0o644, Text: p.CA})
	}
	for _, u := range p.Users {
		text := secrets[u] + "\n"
		if u == GuardUser {
			text = PasswordVariable + "=" + text
		}
		files = append(files, File{Path: passwordFile(u), Mode: 0o600, Text: text, Secret: true})
	}
	return files, failed
}

type hostPage struct {
	page
	Node host
}

type configPage struct {
	page
	User string
}

// PasswordFile is where the configuration finds the password; empty: in the environment.
func (c configPage) PasswordFile() string {
	if c.User == GuardUser {
		return ""
	}
	return passwordFile(c.User)
}

func usersOf(s Server, a Answers, libraries []lockform.Needs, secrets Secrets) []acl.User {
	var out []acl.User
	cfg := &config.Config{}
	cfg.Cluster.LockPatterns = a.Patterns
	cfg.Nodes = []config.Node{{Name: s.Name, DB: s.DB}}
	for _, u := range users {
		out = append(out, acl.NewUser(u.name, u.roles, cfg, libraries, cmp.Or(s.ACL, acl.Servers[0]), acl.Hash(secrets[u.name])))
	}
	return out
}

// ordinaryPath is a path that a script and, in quotes, a configuration of Redis read as it
// is written. The server names it, and root runs the scripts that it is written into.
var ordinaryPath = regexp.MustCompile(`^/[A-Za-z0-9_./@+ -]+$`)

var notInInstances = regexp.MustCompile(`[^A-Za-z0-9._-]`)

// Instance is the name of a cluster's guard on a machine: of its unit, its files and its memory.
func Instance(cluster string) string {
	name := notInInstances.ReplaceAllString(cluster, "-")
	if strings.Trim(name, ".") == "" {
		return "redlock"
	}
	return name
}

// hostOf is a server as the templates see it, and why nothing can be planned for it.
func hostOf(s Server) (host, error) {
	h := host{Server: s, Unit: cmp.Or(s.Unit, "redis-server.service")}
	fail := func(format string, args ...any) (host, error) {
		return h, fmt.Errorf("%s (%s): %s", s.Name, s.Addr, fmt.Sprintf(format, args...))
	}
	switch {
	case s.Err != nil:
		advice := "init needs to reach every master"
		switch {
		case redis.HasErrorPrefix(s.Err, "WRONGPASS"), redis.HasErrorPrefix(s.Err, "NOAUTH"):
			advice = "give the right --user, and its password by --ask-password, --password-file or $REDLOCKCTL_PASSWORD"
		case redis.HasErrorPrefix(s.Err, "NOPERM"):
			advice = "init needs a user that may read INFO, CONFIG and ACL"
		}
		return fail("cannot be looked at: %s; %s", strings.TrimSuffix(safetext.Escape(s.Err.Error()), "."), advice)
	case s.Cluster:
		return fail("it is a node of a Redis Cluster, which keeps each key on one shard: locks need independent masters")
	case s.Role != "master":
		return fail("its role is %s: locks need masters without replication", safetext.Escape(cmp.Or(s.Role, "unknown")))
	case s.MinReplicas > 0 && s.MinReplicas < minreplicas.FenceCordon:
		return fail("it uses min-replicas-to-write %d for its replicas, which the fence needs for itself: see fence = \"acl\" in docs/guard.md", s.MinReplicas)
	}
	if !strings.HasPrefix(s.Addr, "/") {
		h.Host, h.Port, _ = net.SplitHostPort(s.Addr)
		if ip := net.ParseIP(h.Host); h.Host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			h.SSH = h.Host
		}
	}
	h.UsersFile = cmp.Or(s.ACLFile, s.ConfigFile)
	switch {
	case s.ConfigFile == "":
		h.Manual = "it runs without a configuration file, as in a container"
		return h, nil
	case !ordinaryPath.MatchString(s.ConfigFile), s.ACLFile != "" && !ordinaryPath.MatchString(s.ACLFile):
		h.Manual = "the path of its configuration or of its ACL file is relative, or has characters that are not written into a script"
		return h, nil
	}
	// The included file is beside the main file, and its own where several servers share a directory.
	h.FenceFile = strings.TrimSuffix(s.ConfigFile, ".conf") + "-redlockctl-fence.conf"
	h.IncludeLine = "include " + h.FenceFile
	if strings.Contains(h.FenceFile, " ") {
		h.IncludeLine = `include "` + h.FenceFile + `"`
	}
	return h, nil
}

func render(name string, with any) (string, error) {
	t, err := template.New("").Funcs(template.FuncMap{
		"sh":   func(s string) string { return safetext.New(s).Word() },
		"toml": tomlText,
		"span": view.Span,
	}).ParseFS(templates, "templates/*")
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	err = t.ExecuteTemplate(&b, name, with)
	return b.String(), err
}

// tomlText is a text of TOML, which has the escapes of JSON.
func tomlText(s string) (string, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(s)
	return strings.TrimSuffix(b.String(), "\n"), err
}
