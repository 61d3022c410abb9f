package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFindTakesTheFirstThatIsThere(t *testing.T) {
	if _, err := os.Stat("/etc/redlockctl/config.toml"); err == nil {
		t.Skip("this machine has a configuration in /etc")
	}
	dir := t.TempDir()
	t.Chdir(dir)
	at := func(parts ...string) string { return filepath.Join(append([]string{dir}, parts...)...) }
	getenv := env("HOME", at("home"))
	xdg := env("HOME", at("home"), "XDG_CONFIG_HOME", at("xdg"))
	named := env("HOME", at("home"), "REDLOCKCTL_CONFIG", at("named.toml"))

	_, source, err := Find(nil, getenv)
	if !errors.Is(err, ErrNotFound) || source != "default" {
		t.Fatalf("nothing there: %q, %v; want ErrNotFound", source, err)
	}
	for _, want := range []string{"./config.toml", at("home", ".config", "redlockctl", "config.toml"), "/etc/redlockctl/config.toml", "redlockctl demo", "redlockctl init --nodes"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not name %s: %v", want, err)
		}
	}
	if _, _, err := Find(nil, env("HOME", "/dev/null")); !errors.Is(err, ErrNotFound) {
		t.Errorf("a home that is no directory: %v; want ErrNotFound", err)
	}

	check := func(flag string, getenv func(string) string, wantPath, wantSource string) {
		t.Helper()
		var flags []string
		if flag != "" {
			flags = []string{flag}
		}
		paths, source, err := Find(flags, getenv)
		if strings.Join(paths, " and ") != wantPath || source != wantSource || err != nil {
			t.Errorf("Find(%q) = %q, %q, %v; want %q, %q", flag, paths, source, err, wantPath, wantSource)
		}
	}
	write(t, at("home", ".config", "redlockctl", "config.toml"), nil, 0o644)
	check("", getenv, at("home", ".config", "redlockctl", "config.toml"), "default")
	write(t, at("xdg", "redlockctl", "config.toml"), nil, 0o644)
	check("", xdg, at("xdg", "redlockctl", "config.toml"), "default")
	write(t, at("config.toml"), nil, 0o644)
	check("", xdg, "config.toml", "default")
	write(t, at("named.toml"), nil, 0o644)
	check("", named, at("named.toml"), "REDLOCKCTL_CONFIG")
	both := env("REDLOCKCTL_CONFIG", at("config.toml")+":"+at("named.toml"))
	check("", both, at("config.toml")+" and "+at("named.toml"), "REDLOCKCTL_CONFIG")
	twice := env("REDLOCKCTL_CONFIG", at("config.toml")+"::"+at("config.toml"))
	check("", twice, at("config.toml"), "REDLOCKCTL_CONFIG")
	write(t, at("a:b.toml"), nil, 0o644)
	check("", env("REDLOCKCTL_CONFIG", at("a:b.toml")), at("a:b.toml"), "REDLOCKCTL_CONFIG")
	write(t, at("flag.toml"), nil, 0o644)
	check(at("flag.toml"), named, at("flag.toml"), "--config")
}

// Another cluster's file would be worse than an error.
func TestFindDoesNotPassOverWhatWasNamed(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "config.toml", nil, 0o644)
	_, source, err := Find([]string{"no\x1b[2J.toml"}, env())
	if !errors.Is(err, ErrNotFound) || source != "--config" || !strings.Contains(err.Error(), "--config") || strings.Contains(err.Error(), "\x1b") {
		t.Errorf("--config: %q, %q; want ErrNotFound that names it", source, err)
	}
	_, source, err = Find(nil, env("REDLOCKCTL_CONFIG", "none.toml"))
	if !errors.Is(err, ErrNotFound) || source != "REDLOCKCTL_CONFIG" || !strings.Contains(err.Error(), "REDLOCKCTL_CONFIG") {
		t.Errorf("REDLOCKCTL_CONFIG: %q, %v; want ErrNotFound that names it", source, err)
	}
}

func TestStateDir(t *testing.T) {
	for _, c := range []struct {
		name, state, home, want string
	}{
		{"state", "/s", "/h", "/s/redlockctl/lab"},
		{"home", "", "/h", "/h/.local/state/redlockctl/lab"},
		{"a relative path does not count", "s", "/h", "/h/.local/state/redlockctl/lab"},
		{"none", "", "", ""},
	} {
		env := map[string]string{"XDG_STATE_HOME": c.state, "HOME": c.home}
		if got := StateDir(func(k string) string { return env[k] }, "lab"); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
