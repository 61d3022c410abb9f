package config

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"redlockctl/internal/record"
	"redlockctl/monitor/observe"
	"redlockctl/redlock"
	"redlockctl/restartguard"
	"redlockctl/restartguard/watch"
	"redlockctl/server/fences"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// secret is the password in all fixtures: no output may contain it.
const secret = "swordfish"

// env makes an environment for a test.
func env(pairs ...string) func(string) string {
	m := map[string]string{"HOME": "/home/ops", "REDIS_PASSWORD": secret}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return func(k string) string { return m[k] }
}

// place copies a fixture into a new directory, with the files that fixtures name: their
// modes matter, and a checkout does not keep modes.
func place(t *testing.T, fixture string) (dir, path string) {
	t.Helper()
	dir = t.TempDir()
	text, err := os.ReadFile(fixture)
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(dir, "etc", filepath.Base(fixture))
	write(t, path, text, 0o644)
	files := filepath.Join(dir, "files")
	write(t, filepath.Join(files, "secret"), []byte(secret+"\n"), 0o600)
	write(t, filepath.Join(files, "open"), []byte(secret+"\n"), 0o644)
	write(t, filepath.Join(files, "empty"), []byte("\n"), 0o600)
	write(t, filepath.Join(files, "two-lines"), []byte(secret+"\nsecond\n"), 0o600)
	cert, key := certificate(t)
	write(t, filepath.Join(files, "ca.pem"), cert, 0o644)
	write(t, filepath.Join(files, "client.pem"), cert, 0o644)
	write(t, filepath.Join(files, "client.key"), key, 0o600)
	return dir, path
}

func write(t *testing.T, path string, content []byte, mode fs.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil { // independent of the umask
		t.Fatal(err)
	}
}

func certificate(t *testing.T) (cert, key []byte) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "redis.example.com"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	kder, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: kder})
}

// Each fixture in testdata/bad is refused; the file beside it has the message.
func TestBadConfigurationsAreRefused(t *testing.T) {
	fixtures, err := filepath.Glob("testdata/bad/*.toml")
	if err != nil || len(fixtures) < 40 {
		t.Fatalf("%d fixtures: %v", len(fixtures), err)
	}
	for _, fixture := range fixtures {
		t.Run(strings.TrimSuffix(filepath.Base(fixture), ".toml"), func(t *testing.T) {
			dir, path := place(t, fixture)
			c, err := Load(path, env())
			if c != nil || !errors.Is(err, ErrInvalid) {
				t.Fatalf("Load = %v, %v; want an error that is ErrInvalid", c, err)
			}
			var e *Error
			if !errors.As(err, &e) || len(e.Problems) == 0 {
				t.Fatalf("%T is no *Error with problems", err)
			}
			for _, p := range e.Problems {
				if p.File != path || p.Text == "" {
					t.Errorf("problem without file or text: %+v", p)
				}
			}
			got := strings.ReplaceAll(err.Error(), dir, "DIR") + "\n"
			if strings.Contains(got, secret) {
				t.Errorf("the error shows the secret:\n%s", got)
			}
			for _, r := range got {
				if r != '\n' && r != '\t' && !unicode.IsPrint(r) {
					t.Errorf("the error holds %U", r)
				}
			}
			golden := strings.TrimSuffix(fixture, ".toml") + ".golden"
			if *update {
				write(t, golden, []byte(got), 0o644)
			}
			want, _ := os.ReadFile(golden)
			if got != string(want) {
				t.Errorf("the error is\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestGoodConfigurationsAreTaken(t *testing.T) {
	load := func(t *testing.T, name string) (*Config, string) {
		dir, path := place(t, "testdata/good/"+name+".toml")
		c, err := Load(path, env())
		if err != nil {
			t.Fatal(err)
		}
		c.Path, c.Settings = "", nil
		for i := range c.Nodes {
			c.Nodes[i].options = nil
		}
		return c, dir
	}
	t.Run("least", func(t *testing.T) {
		c, _ := load(t, "least")
		want := &Config{
			Cluster: Cluster{Name: "redlock", LockPatterns: []string{"*"}, MaxTTL: 30 * time.Second},
			Nodes:   []Node{{Name: "n1", Addr: "127.0.0.1:7001", Line: 4}},
			Redlock: redlock.Options{ConnectTimeout: 2 * time.Second, DriftFactor: 0.01, DriftMargin: 2 * time.Millisecond, Retries: 3, RetryDelay: 200 * time.Millisecond},
			Monitor: observe.Options{Timeout: 500 * time.Millisecond, ProbeEvery: 200 * time.Millisecond, InfoEvery: time.Second, ScanEvery: 250 * time.Millisecond, ScanCount: 250},
			Guard: Guard{Config: watch.Config{FirstContact: restartguard.Adopt, Delay: 30350 * time.Millisecond,
				Poll: 200 * time.Millisecond, Timeout: 500 * time.Millisecond, ClockStep: 5 * time.Millisecond, Patterns: []string{"*"}},
				StateDir: "/home/ops/.local/state/redlockctl/guard"},
			TUI:      TUI{Color: true, FPS: 30},
			Audit:    Audit{Path: "/home/ops/.local/state/redlockctl/audit.jsonl"},
			Record:   record.Options{Path: "/home/ops/.local/state/redlockctl/record/redlock.db", Keep: 7 * 24 * time.Hour, MaxSize: 512 << 20},
			Warnings: c.Warnings,
		}
		if !reflect.DeepEqual(c, want) {
			t.Errorf("got  %+v\nwant %+v", c, want)
		}
		if len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0], "single master") {
			t.Errorf("warnings %q; want one, of the single master", c.Warnings)
		}
	})
	t.Run("all-kinds", func(t *testing.T) {
		c, dir := load(t, "all-kinds")
		want := &Config{
			Cluster: Cluster{Name: "prod: eu/west", LockPatterns: []string{"lock:*", "redlock:*"}, MaxTTL: 2 * time.Minute, ReadOnly: true},
			Nodes: []Node{
				{Name: "v4", Addr: "10.0.0.1:6379", DB: 2, Fence: fences.Method{Kind: fences.None}, Line: 7},
				{Name: "v6", Addr: "[2001:db8::1]:6379", TLS: true, Fence: fences.Method{Kind: fences.ACL, User: "locks", Allow: []string{"+set", "+pexpire", "+del"}}, Line: 15},
				{Name: "unix", Addr: "/run/redis.sock", Line: 31},
			},
			Redlock: redlock.Options{NodeTimeout: 80 * time.Millisecond, ConnectTimeout: time.Second, DriftFactor: 0.05, DriftMargin: 5 * time.Millisecond, Retries: -1, RetryDelay: time.Second},
			Monitor: observe.Options{Timeout: time.Second, ProbeEvery: 100 * time.Millisecond, InfoEvery: 2 * time.Second, ScanEvery: time.Second, ScanCount: 500, MaxMemory: 512 << 20},
			Guard: Guard{Config: watch.Config{FirstContact: restartguard.Fence, Delay: 3 * time.Minute,
				Poll: 100 * time.Millisecond, Timeout: 250 * time.Millisecond, ClockStep: 20 * time.Millisecond, CountEvery: watch.DefaultCount, Patterns: []string{"lock:*", "redlock:*"}, Early: watch.EarlyRejoin{AttemptBound: 1500 * time.Millisecond, Patterns: []string{"lock:*", "redlock:*"}}},
				StateDir: filepath.Join(dir, "state"), Witnesses: []string{"http://ops1:9622", "https://user@ops2:9622/status"}},
			TUI:         TUI{ASCII: true, FPS: 25, Theme: "color-blind", Colors: map[string]string{"warn": "#ffd75f", "bad": "210"}},
			PasswordEnv: []string{"REDIS_PASSWORD"},
			Audit:       Audit{Path: filepath.Join(dir, "etc", "audit.jsonl")},
			Record:      record.Options{Path: filepath.Join(dir, "etc", "record", "prod:%20eu%2Fwest.db"), Keep: 48 * time.Hour, MaxSize: 64 << 20},
			Warnings:    c.Warnings,
		}
		if !reflect.DeepEqual(c, want) {
			t.Errorf("got  %+v\nwant %+v", c, want)
		}
		all := strings.Join(c.Warnings, "\n")
		if len(c.Warnings) != 2 || !strings.Contains(all, `"v4": the password goes over the network`) || !strings.Contains(all, "differ in db") {
			t.Errorf("warnings %q; want one of a password in the clear, one of databases", c.Warnings)
		}
	})
	t.Run("inline", func(t *testing.T) {
		c, _ := load(t, "inline")
		if c.TUI.FPS != 20 || len(c.Nodes) != 2 || c.Nodes[1].Line != 4 {
			t.Errorf("got %+v", c)
		}
		if c.Redlock.NodeTimeout != 0 {
			t.Errorf("default node timeout is %s; want none, so that it follows the round trip", c.Redlock.NodeTimeout)
		}
		if len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0], "even number") {
			t.Errorf("warnings %q; want one, of the even number", c.Warnings)
		}
	})
}

func TestMastersHaveWhatTheFileSays(t *testing.T) {
	_, path := place(t, "testdata/good/all-kinds.toml")
	c, err := Load(path, env())
	if err != nil {
		t.Fatal(err)
	}
	masters, err := c.Masters()
	if err != nil || len(masters) != 3 {
		t.Fatalf("Masters = %d, %v", len(masters), err)
	}
	if m := masters[0]; m.Name() != "v4" || m.Addr() != "10.0.0.1:6379" || m.DB() != 2 {
		t.Errorf("first master is %s %s %d", m.Name(), m.Addr(), m.DB())
	}
	v4, v6, unix := optionsOf(&c.Nodes[0]), optionsOf(&c.Nodes[1]), optionsOf(&c.Nodes[2])
	if v4.Username != "ops" || v4.Password != secret || v4.Protocol != 3 || v4.TLSConfig != nil || v4.Network != "tcp" {
		t.Error("v4: user, password, protocol, TLS or network is wrong")
	}
	if v6.Password != secret || v6.Protocol != 2 {
		t.Error("v6: password or protocol is wrong")
	}
	if s := v6.TLSConfig; s == nil || s.MinVersion != 0x0303 || s.RootCAs == nil || len(s.Certificates) != 1 || s.ServerName != "redis.example.com" || s.InsecureSkipVerify {
		t.Error("v6: TLS is wrong")
	}
	if unix.Network != "unix" || unix.Addr != "/run/redis.sock" || unix.Password != "" {
		t.Error("unix: network, address or password is wrong")
	}
}

func TestTheMethodOfANode(t *testing.T) {
	for _, tt := range []struct {
		keys string
		want fences.Method
	}{
		{"", fences.Method{}},
		{`fence = "none"`, fences.Method{Kind: fences.None}},
		{"fence = \"acl\"\nfence_user = \"locks\"", fences.Method{Kind: fences.ACL, User: "locks", Allow: fences.DefaultAllow()}},
	} {
		c, err := loadText(t, least+tt.keys, env())
		if err != nil || !reflect.DeepEqual(c.Nodes[0].Fence, tt.want) {
			t.Errorf("%q: %+v, %v; want %+v", tt.keys, c, err, tt.want)
		}
	}
}

func TestSecretsAreNotPrinted(t *testing.T) {
	_, path := place(t, "testdata/good/all-kinds.toml")
	c, err := Load(path, env())
	if err != nil {
		t.Fatal(err)
	}
	if optionsOf(&c.Nodes[0]).Password != secret {
		t.Fatal("there is no secret to hide")
	}
	hidden := struct{ nodes []Node }{c.Nodes} // fmt does not call methods in here
	type plain Node                           // has no methods
	for _, v := range []any{c, *c, c.Nodes, c.Nodes[0], &c.Nodes[0], hidden, plain(c.Nodes[0])} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
			if out := fmt.Sprintf(verb, v); strings.Contains(out, secret) {
				t.Errorf("%s of a %T shows the secret: %s", verb, v, out)
			}
		}
		if out, err := json.Marshal(v); err == nil && bytes.Contains(out, []byte(secret)) {
			t.Errorf("JSON of a %T shows the secret: %s", v, out)
		}
		var log bytes.Buffer
		slog.New(slog.NewTextHandler(&log, nil)).Info("x", "v", v)
		slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "v", v)
		if strings.Contains(log.String(), secret) {
			t.Errorf("slog of a %T shows the secret: %s", v, log.String())
		}
	}
	if strings.Contains(strings.Join(c.Warnings, ""), secret) {
		t.Errorf("a warning shows the secret: %q", c.Warnings)
	}
}

func TestEnvironmentOnlyTakesAway(t *testing.T) {
	readOnly := strings.Replace(least, "[cluster]", "[cluster]\nread_only = true", 1)
	for _, tt := range []struct {
		text, variable string
		want, bad      bool
	}{
		{least, "", false, false},
		{least, "1", true, false},
		{least, "TRUE", true, false},
		{least, "0", false, false},
		{readOnly, "", true, false},
		{readOnly, "0", true, false},
		{least, "maybe", false, true},
	} {
		c, err := loadText(t, tt.text, env("REDLOCKCTL_READ_ONLY", tt.variable))
		if tt.bad {
			if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), `REDLOCKCTL_READ_ONLY = "maybe"`) {
				t.Errorf("%q: %v; want it refused by name and value", tt.variable, err)
			}
			continue
		}
		if err != nil || c.Cluster.ReadOnly != tt.want {
			t.Errorf("%q: %v, %v; want read-only %v", tt.variable, c, err, tt.want)
		}
	}
	c, err := loadText(t, least, env("NO_COLOR", "1"))
	if err != nil || c.TUI.Color {
		t.Errorf("NO_COLOR: %v, %v; want no colour", c, err)
	}
}

const least = "[cluster]\nmax_ttl = \"30s\"\n\n[[nodes]]\nname = \"n1\"\naddr = \"127.0.0.1:7001\"\n"

func loadText(t *testing.T, text string, getenv func(string) string) (*Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.toml")
	write(t, path, []byte(text), 0o644)
	return Load(path, getenv)
}

func TestAuditPath(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		getenv     func(string) string
		want       string
	}{
		{"is below the home directory", least, env(), "/home/ops/.local/state/redlockctl/audit.jsonl"},
		{"is below XDG_STATE_HOME", least, env("XDG_STATE_HOME", "/state"), "/state/redlockctl/audit.jsonl"},
		{"ignores a relative XDG_STATE_HOME", least, env("XDG_STATE_HOME", "state"), "/home/ops/.local/state/redlockctl/audit.jsonl"},
		{"may begin with a tilde", least + "[audit]\npath = \"~/a.jsonl\"\n", env(), "/home/ops/a.jsonl"},
		{"may be absolute", least + "[audit]\npath = \"/var/log//a.jsonl\"\n", env(), "/var/log/a.jsonl"},
		{"may be missing when nothing is written", strings.Replace(least, "[cluster]", "[cluster]\nread_only = true", 1), env("HOME", ""), ""},
	} {
		c, err := loadText(t, tt.text, tt.getenv)
		if err != nil || c.Audit.Path != tt.want {
			t.Errorf("%s: %v, %v; want %q", tt.name, c, err, tt.want)
		}
	}
	if _, err := loadText(t, least, env("HOME", "")); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "[audit] path") {
		t.Errorf("without a home: %v; want [audit] path asked for", err)
	}
}

func TestFilesThatCannotBeRead(t *testing.T) {
	if _, err := Load(filepath.Join(t.TempDir(), "none.toml"), env()); !errors.Is(err, ErrNotFound) {
		t.Errorf("a missing file: %v; want ErrNotFound", err)
	}
	if _, err := Load(t.TempDir(), env()); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "directory") {
		t.Errorf("a directory: %v; want ErrInvalid", err)
	}
	if _, err := loadText(t, strings.Repeat("# long\n", mostBytes/7+1), env()); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "larger") {
		t.Errorf("a large file: %v; want ErrInvalid", err)
	}
}

// systemd passes a credential as a file that the group may read; elsewhere, others could
// read such a secret.
func TestTheGroupMayReadACredential(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "credentials", "redis")
	if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, file, []byte("hunter2\n"), 0o600)
	text := least + "password_file = " + fmt.Sprintf("%q", file) + "\n"
	for name, c := range map[string]struct {
		credentials string
		mode        os.FileMode
		taken       bool
	}{
		"of systemd":                     {filepath.Join(dir, "credentials"), 0o440, true},
		"of its owner alone":             {"", 0o400, true},
		"without systemd":                {"", 0o440, false},
		"beside the directory":           {filepath.Join(dir, "cred"), 0o440, false},
		"under a directory of no place":  {"credentials", 0o440, false},
		"that everybody may read":        {filepath.Join(dir, "credentials"), 0o444, false},
		"that the group may write":       {filepath.Join(dir, "credentials"), 0o460, false},
		"above the directory, not below": {filepath.Join(dir, "credentials", "redis", "x"), 0o440, false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.Chmod(file, c.mode); err != nil {
				t.Fatal(err)
			}
			_, err := loadText(t, text, env("CREDENTIALS_DIRECTORY", c.credentials))
			if taken := err == nil; taken != c.taken {
				t.Errorf("taken is %v: %v", taken, err)
			}
		})
	}
}

// shipped is the example at the root of the project.
const shipped = "../../config.toml"

func TestShippedConfigurationIsValid(t *testing.T) {
	c, err := Load(shipped, env())
	if err != nil {
		t.Fatal(err)
	}
	if c.Cluster.Name != "lab" || c.Cluster.MaxTTL != 30*time.Second || len(c.Nodes) != 5 || len(c.Warnings) != 0 {
		t.Errorf("got %+v", c)
	}
	for i, n := range c.Nodes {
		if want := fmt.Sprintf("127.0.0.1:%d", 7001+i); n.Addr != want || n.Name != fmt.Sprintf("n%d", i+1) {
			t.Errorf("node %d is %s; want %s", i+1, n, want)
		}
	}
}

// A comment that shows a default is a promise: removing the "#" must change nothing. And
// the example must have every key.
func TestShippedConfigurationShowsTheDefaults(t *testing.T) {
	text, err := os.ReadFile(shipped)
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile(`(?m)^#([a-z_]+ = )`)
	if n := len(shown.FindAllString(string(text), -1)); n < 20 {
		t.Fatalf("only %d defaults are shown", n)
	}
	plain, err := loadText(t, string(text), env())
	if err != nil {
		t.Fatal(err)
	}
	spelt, err := loadText(t, shown.ReplaceAllString(string(text), "$1"), env())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []*Config{plain, spelt} {
		c.Path, c.Settings = "", nil
		for i := range c.Nodes {
			o := optionsOf(&c.Nodes[i])
			if o.Protocol != 3 || o.DB != 0 {
				t.Errorf("node %d: protocol %d, db %d", i+1, o.Protocol, o.DB)
			}
			c.Nodes[i].options = nil
		}
	}
	if !reflect.DeepEqual(plain, spelt) {
		t.Errorf("with the defaults spelt out it is\n%+v\nwithout\n%+v", spelt, plain)
	}

	f := &configFile{path: shipped, lines: lines{}}
	f.configs(map[string]any{"nodes": []any{map[string]any{}}}, env())
	keys := 0
	for _, s := range f.sections {
		for _, k := range s.known {
			if v := s.path + "." + k; s.label == "" && k != "default_cluster" || k == "tls" || k == "colors" || strings.HasSuffix(v, ".password") {
				continue // a section that is always refused
			}
			keys++
			if !regexp.MustCompile(`(?m)^#? ?` + k + ` = `).Match(text) {
				t.Errorf("the example lacks %s %s", s.label, k)
			}
		}
		if s.label != "" && !bytes.Contains(text, []byte(strings.Split(s.path, "[")[0])) {
			t.Errorf("the example lacks %s", s.label)
		}
	}
	if keys < 35 {
		t.Errorf("only %d keys are known: the test does not see them all", keys)
	}
}
