package adopt

import (
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"redlockctl/cli/app"
	"redlockctl/internal/config"
	"redlockctl/restartguard"
	"redlockctl/restartguard/boot"
	"redlockctl/server/fences"
)

var someSecrets = Secrets{GuardUser: "GUARDSECRET", OpsUser: "OPSSECRET", ClientUser: "CLIENTSECRET"}

func someAnswers() Answers {
	return Answers{Cluster: "orders", MaxTTL: 30 * time.Second, Patterns: []string{"lock:*", `o'dd "x"`}}
}

func someServer(name string) Server {
	return Server{Name: name, Addr: "10.0.0.1:6379", Version: "7.0.15", Role: "master", ConfigFile: "/etc/redis/redis.conf",
		Unit: "redis-server.service", Guessed: true, Password: true}
}

// planned is the text of a file of a plan for one server.
func planned(t *testing.T, s Server, a Answers, path string) string {
	t.Helper()
	files, err := Plan(&Facts{Servers: []Server{s}}, a, someSecrets)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.Path == path {
			return f.Text
		}
	}
	t.Fatalf("the plan has no %s", path)
	return ""
}

func TestPlan(t *testing.T) {
	acl, old, socket, tls := someServer("n1"), someServer("n1"), someServer("n1"), someServer("n1")
	acl.ACLFile, acl.User = "/etc/redis/users.acl", "admin"
	old.ACL = "6.2"
	socket.Addr = "/run/redis/redis.sock"
	tls.TLS, tls.DB = true, 3
	secure := someAnswers()
	secure.CA, secure.ServerName = "PEM", "redis.example.com"
	cases := []struct {
		name   string
		server Server
		a      Answers
		path   string
		has    string
	}{
		{"over ssh", someServer("n1"), someAnswers(), "servers.sh", "$SSH 10.0.0.1 $SUDO sh -s -- $mode <n1/install.sh >n1/seen.conf"},
		{"on this host", socket, someAnswers(), "servers.sh", "\n$SUDO sh n1/install.sh $mode"},
		{"by its socket", socket, someAnswers(), "users.sh", " \\\n\t--nodes unix:///run/redis/redis.sock\n"},
		{"as the user that looked", acl, someAnswers(), "users.sh", " \\\n\t--nodes redis://admin@10.0.0.1:6379\n"},
		{"users in the ACL file", acl, someAnswers(), "n1/install.sh", "\nusers=/etc/redis/users.acl\n"},
		{"no comment in an ACL file", acl, someAnswers(), "n1/install.sh", "edit \"$users\" \\\n\t\t'user redlockctl-client"},
		{"rights of an old server", old, someAnswers(), "n1/users.redis", "+evalsha +"},
		{"TLS", tls, secure, "config.toml", "db = 3\n[nodes.tls]\nca = \"ca.pem\"\nserver_name = \"redis.example.com\"\n"},
		{"TLS for the users", tls, secure, "users.sh", " \\\n\t--nodes rediss://10.0.0.1:6379 \\\n\t--tls-ca ca.pem \\\n\t--tls-server-name redis.example.com\n"},
		{"a pattern with quotes", someServer("n1"), someAnswers(), "config.toml", `lock_patterns = ["lock:*", "o'dd \"x\""]`},
		{"the guard's password", someServer("n1"), someAnswers(), "guard.env", "REDLOCKCTL_GUARD_PASSWORD=GUARDSECRET\n"},
		{"a unit that is guessed", someServer("n1"), someAnswers(), "RUNBOOK.md", "ssh 10.0.0.1 sudo systemctl restart redis-server.service && redlockctl --config ops.toml node wait n1   # the unit's name is Debian's"},
	}
	for _, c := range cases {
		if text := planned(t, c.server, c.a, c.path); !strings.Contains(text, c.has) {
			t.Errorf("%s: %s has no %q:\n%s", c.name, c.path, c.has, text)
		}
	}
}

// No password is in a file that says that it has no secrets, and each plan has the same
// files again.
func TestPlanKeepsSecrets(t *testing.T) {
	a := someAnswers()
	a.Ansible = true
	files, err := Plan(&Facts{Servers: []Server{someServer("n1")}}, a, someSecrets)
	again, _ := Plan(&Facts{Servers: []Server{someServer("n1")}}, a, someSecrets)
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range files {
		if again[i] != f {
			t.Errorf("%s is another one the second time", f.Path)
		}
		if strings.Contains(f.Text, "SECRET") != f.Secret || f.Secret && f.Mode.Perm()&0o077 != 0 {
			t.Errorf("%s has a password: %v, and its mode is %v", f.Path, strings.Contains(f.Text, "SECRET"), f.Mode)
		}
		if strings.Contains(f.Text, "<no value>") || strings.Contains(f.Text, "%!") {
			t.Errorf("%s:\n%s", f.Path, f.Text)
		}
	}
}

func TestPlanRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Server)
		why    string
	}{
		"one that cannot be looked at": {func(s *Server) { s.Err = errors.New("NOPERM \x1b[2J") }, `cannot be looked at: NOPERM \x1b[2J`},
		"a node of a Redis Cluster":    {func(s *Server) { s.Cluster = true }, "it is a node of a Redis Cluster"},
		"a replica":                    {func(s *Server) { s.Role = "slave" }, "its role is slave"},
		"one that needs its replicas":  {func(s *Server) { s.MinReplicas = 1 }, "it uses min-replicas-to-write 1"},
	} {
		s := someServer("n1")
		c.change(&s)
		if _, err := Plan(&Facts{Servers: []Server{s}}, someAnswers(), someSecrets); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %v; want %q", name, err, c.why)
		}
	}
	// Root runs what is written: a path that is not plain is written nowhere.
	for _, path := range []string{"", "redis.conf", "/etc/redis/$(reboot).conf", "/etc/redis/x\n.conf"} {
		s := someServer("n1")
		s.ConfigFile = path
		text := planned(t, s, someAnswers(), "servers.sh")
		if !strings.Contains(text, "left out") || strings.Contains(text, "reboot") {
			t.Errorf("%q: %s", path, text)
		}
	}
}

func TestDebianUnits(t *testing.T) {
	for file, want := range map[string]string{
		"/etc/redis/redis.conf": "redis-server.service", "/etc/redis/redis-a.conf": "redis-server@a.service",
		"/etc/valkey/valkey.conf": "valkey-server.service", "/srv/redis.conf": "", "": "",
	} {
		if got := debianUnit(file); got != want {
			t.Errorf("%s: %q, want %q", file, got, want)
		}
	}
}

// The scripts are ones that the least of shells reads.
func TestScriptsParse(t *testing.T) {
	for _, without := range []bool{false, true} {
		a := someAnswers()
		a.WithoutGuard = without
		acl := someServer("n2")
		acl.ACLFile = "/etc/redis/users.acl"
		files, err := Plan(&Facts{Servers: []Server{someServer("n1"), acl}}, a, someSecrets)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if !strings.HasSuffix(f.Path, ".sh") {
				continue
			}
			cmd := exec.Command("sh", "-n")
			cmd.Stdin = strings.NewReader(f.Text)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %v: %s", f.Path, err, out)
			}
		}
	}
}

// Ansible accepts the playbooks, and goes through them with --check on a fresh master, if it is
// installed.
func TestPlaybooks(t *testing.T) {
	ansible, err := exec.LookPath("ansible-playbook")
	if err != nil {
		t.Skip("no ansible-playbook to check the playbook with")
	}
	a := someAnswers()
	a.Ansible, a.CA = true, "PEM"
	plan, err := Plan(&Facts{Servers: []Server{someServer("n1")}}, a, someSecrets)
	if err != nil {
		t.Fatal(err)
	}
	folder := Folder{Path: filepath.Join(t.TempDir(), "folder")}
	if err := folder.Write(plan); err != nil {
		t.Fatal(err)
	}
	for _, playbook := range []string{"site.yml", "undo.yml"} {
		for _, args := range [][]string{{"--syntax-check"}, {"--check", "-e", "ansible_connection=local", "-e", "ansible_become=false"}} {
			cmd := exec.Command(ansible, append([]string{"-i", "inventory.ini", playbook}, args...)...)
			cmd.Dir = filepath.Join(folder.Path, "ansible")
			cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "HOME="+t.TempDir())
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s %v: %v\n%s", playbook, args, err, out)
			}
		}
	}
}

// install runs install.sh on a server's files, and is what it prints.
func install(t *testing.T, dir, aclFile string, args ...string) (out string, failed bool) {
	t.Helper()
	s := someServer("n1")
	s.ConfigFile, s.ACLFile = filepath.Join(dir, "redis.conf"), aclFile
	a := someAnswers()
	cmd := exec.Command("sh", append([]string{"-s", "--"}, args...)...)
	cmd.Stdin = strings.NewReader(planned(t, s, a, "n1/install.sh"))
	b, err := cmd.CombinedOutput()
	return string(b), err != nil
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

const someConf = "# Debian's\nport 6379\ndir /var/lib/redis\nrequirepass secret\nuser app on >other ~* +@all\n"

// What install.sh puts in, also after the server has rewritten its file in its own way, it
// finds again; undo takes out that and nothing else.
func TestInstall(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a b")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(dir, "redis.conf")
	put(t, conf, someConf+"min-slaves-to-write 0\n")
	out, _ := install(t, dir, "")
	if !strings.HasPrefix(out, "# n1: changed") || strings.Contains(out, "secret") || strings.Contains(out, "#") && regexp.MustCompile(`#[0-9a-f]{64}`).MatchString(out) {
		t.Errorf("it prints\n%s", out)
	}
	if v := app.AssessSeen(out, fences.Method{}); v.Boot != boot.Fenced || v.Form != boot.FormAnchors {
		t.Errorf("what it prints is judged as %v, %v: %v", v.Boot, v.Form, v.Because)
	}
	first := read(t, conf)
	if !strings.HasPrefix(first, someConf) || strings.Count(first, "\nuser ") != 4 {
		t.Errorf("it made\n%s", first)
	}
	if info, err := os.Stat(conf); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the file has mode %v, %v", info.Mode(), err)
	}
	if out, _ := install(t, dir, ""); !strings.HasPrefix(out, "# n1: nothing to change") || read(t, conf) != first {
		t.Errorf("the second time it changes something: %s", out)
	}

	// CONFIG REWRITE while it serves: the user default replaces the line of a new one, and
	// the anchors are 0.
	rewritten := strings.Replace(first, "min-replicas-to-write 2147483647", "min-replicas-to-write 0", 1)
	rewritten = regexp.MustCompile(`user redlockctl-client .*`).ReplaceAllString(rewritten, "user default on #00 ~* +@all")
	put(t, conf, rewritten+"# Generated by CONFIG REWRITE\nuser redlockctl-client on #11 ~* +get\n")
	if out, _ := install(t, dir, ""); app.AssessSeen(out, fences.Method{}).Boot != boot.Fenced {
		t.Error("after CONFIG REWRITE it does not find itself again")
	}
	text := read(t, conf)
	if !strings.Contains(text, "user default on #00") || strings.Contains(text, "#11") || strings.Count(text, "\nuser redlockctl-") != 3 ||
		strings.Count(text, "min-replicas-to-write") != 1 {
		t.Errorf("after CONFIG REWRITE it makes\n%s", text)
	}
	if out, failed := install(t, dir, "", "undo"); failed || strings.Contains(read(t, conf), "redlockctl") || !strings.HasPrefix(read(t, conf), someConf) {
		t.Errorf("undo: %s\n%s", out, read(t, conf))
	}
	if v := app.AssessSeen(out, fences.Method{}); v.Boot != boot.Fenced {
		t.Error("what was printed is not what is judged")
	}
	if read(t, conf+".before-redlockctl") != someConf+"min-slaves-to-write 0\n" {
		t.Error("the first state is not kept")
	}
}

// Over ssh: the script comes by standard input, and what it prints comes back.
func TestServersOverSSH(t *testing.T) {
	dir := t.TempDir()
	folder := Folder{Path: filepath.Join(dir, "folder")}
	s := someServer("n1")
	s.ConfigFile = filepath.Join(dir, "redis.conf")
	put(t, s.ConfigFile, someConf)
	plan, err := Plan(&Facts{Servers: []Server{s}}, someAnswers(), someSecrets)
	if err != nil {
		t.Fatal(err)
	}
	if err := folder.Write(plan); err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(dir, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bin, "redlockctl"), []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "ssh"), "[ \"$1\" = 10.0.0.1 ] || exit 1\nshift\nexec sh -c \"$*\"\n")
	run := func(args ...string) string {
		cmd := exec.Command("sh", append([]string{filepath.Join(folder.Path, "servers.sh")}, args...)...)
		cmd.Env = append(os.Environ(), "SSH=sh "+filepath.Join(dir, "ssh"), "SUDO=env", "PATH="+bin+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	if out := run(); !strings.HasPrefix(out, "# n1: changed") {
		t.Error(out)
	}
	if v := app.AssessSeen(read(t, filepath.Join(folder.Path, "n1", app.SeenFile)), fences.Method{}); v.Boot != boot.Fenced {
		t.Errorf("%v: %v", v.Boot, v.Because)
	}
	if out := run("undo"); !strings.HasPrefix(out, "# n1: changed") || read(t, s.ConfigFile) != someConf {
		t.Errorf("%s\n%s", out, read(t, s.ConfigFile))
	}
	if left, _ := filepath.Glob(s.ConfigFile + "*"); len(left) != 1 {
		t.Errorf("undo leaves %v", left)
	}
	if out := run("undo"); !strings.HasPrefix(out, "# n1: nothing to change") {
		t.Errorf("undo twice: %s", out)
	}
}

func TestInstallIntoAnACLFile(t *testing.T) {
	dir := t.TempDir()
	acl := filepath.Join(dir, "users.acl")
	put(t, filepath.Join(dir, "redis.conf"), "port 6379\naclfile "+acl+"\n")
	const before = "user default on #00 ~* +@all\n"
	put(t, acl, before)
	if out, failed := install(t, dir, acl); failed || strings.Count(read(t, acl), "user redlockctl-") != 3 || strings.Contains(read(t, acl), "# ") {
		t.Errorf("%s\n%s", out, read(t, acl))
	}
	if conf := read(t, filepath.Join(dir, "redis.conf")); strings.Contains(conf, "\nuser ") {
		t.Errorf("the server does not start with users in both files:\n%s", conf)
	}
	if _, failed := install(t, dir, acl, "undo"); failed || read(t, acl) != before {
		t.Errorf("undo leaves %q", read(t, acl))
	}
}

// A server that names another file as its own gets nothing into it.
func TestInstallTouchesNoOtherFile(t *testing.T) {
	dir := t.TempDir()
	const hosts = "127.0.0.1 localhost\n"
	put(t, filepath.Join(dir, "redis.conf"), hosts)
	if out, failed := install(t, dir, ""); !failed || read(t, filepath.Join(dir, "redis.conf")) != hosts {
		t.Errorf("failed: %v: %s", failed, out)
	}
	put(t, filepath.Join(dir, "redis.conf"), someConf)
	put(t, filepath.Join(dir, "hosts"), hosts)
	if out, failed := install(t, dir, filepath.Join(dir, "hosts")); !failed || read(t, filepath.Join(dir, "hosts")) != hosts || read(t, filepath.Join(dir, "redis.conf")) != someConf {
		t.Errorf("failed: %v: %s", failed, out)
	}
}

// What is read back is judged, not what was meant.
func TestSeenIsJudged(t *testing.T) {
	const anchors = "min-replicas-to-write 2147483647\nmin-replicas-max-lag 10\n"
	for name, c := range map[string]struct {
		seen string
		want boot.State
	}{
		"nothing was read":       {"ssh: no route to host\n", boot.Unknown},
		"no fence":               {"# file: /r.conf\ndir /\n", boot.Unknown},
		"anchors":                {"# file: /r.conf\r\n" + anchors + "include /f.conf\r\n# file: /f.conf\r\n" + anchors, boot.Fenced},
		"an include without":     {"# file: /r.conf\ninclude /f.conf\n# file: /f.conf\n" + anchors, boot.Fragile},
		"a file that is not":     {"# file: /r.conf\n" + anchors + "include /f.conf\n", boot.Unknown},
		"a later line overrules": {"# file: /r.conf\n" + anchors + "include /f.conf\nmin-replicas-to-write 0\n# file: /f.conf\n" + anchors, boot.Unfenced},
	} {
		if v := app.AssessSeen(c.seen, fences.Method{}); v.Boot != c.want {
			t.Errorf("%s: %v, want %v: %v", name, v.Boot, c.want, v.Because)
		}
	}
}

// Without a guard: the drop-in is one that systemd takes, and waits for D.
func TestDelay(t *testing.T) {
	dir := t.TempDir()
	a := someAnswers()
	a.WithoutGuard = true
	stub := filepath.Join(dir, "systemctl")
	if err := os.WriteFile(stub, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) {
		cmd := exec.Command("sh", append([]string{"-s", "--"}, args...)...)
		cmd.Stdin = strings.NewReader(planned(t, someServer("n1"), a, "n1/install.sh"))
		cmd.Env = append(os.Environ(), "DESTDIR="+dir, "PATH="+dir+":"+os.Getenv("PATH"))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	run()
	path := filepath.Join(dir, "etc/systemd/system/redis-server.service.d/redlockctl-delay.conf")
	text := read(t, path)
	d := restartguard.DefaultDelay(a.MaxTTL)
	if !strings.Contains(text, "\nExecStartPre=+/bin/sleep 30.35\nTimeoutStartSec=121\n") || d != 30350*time.Millisecond {
		t.Errorf("D is %s:\n%s", d, text)
	}
	if analyze, err := exec.LookPath("systemd-analyze"); err == nil {
		unit := filepath.Join(dir, "etc/systemd/system/redis-server.service")
		put(t, unit, "[Service]\nType=notify\nNoExecPaths=/\nExecPaths=/bin/true\nExecStart=/bin/true\n")
		if out, err := exec.Command(analyze, "verify", "--man=no", unit).CombinedOutput(); err != nil || strings.Contains(string(out), "redlockctl") {
			t.Errorf("systemd-analyze verify: %v\n%s", err, out)
		}
		put(t, path, strings.Replace(text, "TimeoutStartSec=121", "TimeoutStartSec=soon", 1))
		if out, _ := exec.Command(analyze, "verify", "--man=no", unit).CombinedOutput(); !strings.Contains(string(out), "redlockctl-delay") {
			t.Errorf("systemd-analyze does not see the drop-in:\n%s", out)
		}
	}
	run("undo")
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("undo leaves the drop-in: %v", err)
	}
}

// The configurations are ones that the program reads.
func TestConfigurationIsValid(t *testing.T) {
	folder := Folder{Path: filepath.Join(t.TempDir(), "folder")}
	s := someServer("n1")
	s.DB = 2
	plan, err := Plan(&Facts{Servers: []Server{s}}, someAnswers(), someSecrets)
	if err != nil {
		t.Fatal(err)
	}
	if err := folder.Write(plan); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{guardConfig, opsConfig} {
		cfg, err := config.Load(filepath.Join(folder.Path, name), func(key string) string {
			return map[string]string{PasswordVariable: "x", "HOME": folder.Path}[key]
		})
		if err != nil || cfg.Cluster.MaxTTL != 30*time.Second || cfg.Nodes[0].DB != 2 || cfg.Cluster.LockPatterns[1] != `o'dd "x"` {
			t.Errorf("%s: %v", name, err)
		}
	}
	changes, err := folder.Changes(plan)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range changes {
		if c.Kind != Same {
			t.Errorf("%s is %s after it was written", c.Path, c.Kind)
		}
	}
	if kept, err := folder.Secrets(); err != nil || kept[OpsUser] != someSecrets[OpsUser] || kept[GuardUser] != someSecrets[GuardUser] {
		t.Errorf("the passwords are not kept: %v", err)
	}
}

var update = flag.Bool("update", false, "write the manifests of deploy/kubernetes/check/testdata anew")

// kustomize builds what is written for Kubernetes; the module of deploy/kubernetes/check
// holds the result against the types of the API.
func TestPlanForKubernetes(t *testing.T) {
	a := someAnswers()
	a.Cluster, a.Kubernetes, a.CA = "Orders & bills", "registry.example.com/redlockctl:1.0.0", "PEM"
	second := someServer("n2")
	second.Addr = "[2001:db8::2]:6380"
	files, err := Plan(&Facts{Servers: []Server{someServer("n1"), second}}, a, someSecrets)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, f := range files {
		path := filepath.Join(dir, f.Path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(f.Text), f.Mode); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := exec.LookPath("kubectl"); err != nil {
		t.Skip("no kubectl")
	}
	cmd := exec.Command("kubectl", "kustomize", dir)
	cmd.Stderr = os.Stderr
	got, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	golden := "../../deploy/kubernetes/check/testdata/init.yaml"
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, _ := os.ReadFile(golden); string(want) != string(got) {
		t.Errorf("other manifests than in %s: look at what -update changes", golden)
	}
	for _, has := range []string{"cidr: 10.0.0.1/32", "cidr: 2001:db8::2/128", "port: 6380", "namespace: redlock-orders-bills"} {
		if !strings.Contains(string(got), has) {
			t.Errorf("there is no %q", has)
		}
	}
}

func TestPlanForKubernetesRefuses(t *testing.T) {
	here := someServer("n1")
	here.Addr = "127.0.0.1:6379"
	for _, c := range []struct {
		server Server
		image  string
		change func(*Answers)
		why    string
	}{
		{here, "redlockctl", func(*Answers) {}, "no pod reaches n1"},
		{someServer("n1"), "a b", func(*Answers) {}, "name the image"},
		{someServer("n1"), "redlockctl", func(a *Answers) { a.WithoutGuard = true }, "what runs there is the guard"},
		{someServer("n1"), "redlockctl", func(a *Answers) { a.Key = "/k" }, "are not put there"},
	} {
		a := someAnswers()
		a.Kubernetes = c.image
		c.change(&a)
		if _, err := Plan(&Facts{Servers: []Server{c.server}}, a, someSecrets); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %v", c.why, err)
		}
	}
}
