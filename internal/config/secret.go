package config

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// password reads the secret of a node; "" if it has none or it cannot be read.
func (f *configFile) password(t *table, getenv func(string) string) string {
	if s := t.get("password"); s.set {
		s.problem("a password does not belong in this file, which is copied, shown and checked in; " +
			"name an environment variable by password_env, or a file that only you can read by password_file")
	}
	variable, env := t.text("password_env", "")
	path, in := t.text("password_file", "")
	command, by := t.text("password_command", "")
	env.secret, in.secret, by.secret = true, false, false
	switch {
	case env.set && in.set:
		in.problem("is set together with password_env (line %d); give one of the two", env.line())
		return ""
	case by.set && (env.set || in.set):
		by.problem("the password is given in another place too; keep one of them")
		return ""
	case env.set:
		if !variableName(variable) {
			// Somebody may have written the password itself here: do not show it.
			env.problem("is not the name of an environment variable (capital letters, digits and _), such as REDIS_PASSWORD; " +
				"the password itself does not belong in this file")
			return ""
		}
		if f.Secretless {
			return ""
		}
		v := getenv(variable)
		if v == "" {
			env.problem("the environment variable %s is not set, or empty; export it before starting, or use password_file", variable)
		}
		env.came("$"+variable, "")
		f.passwordEnv = append(f.passwordEnv, variable)
		return v
	case by.set && !f.Secretless:
		secret, why := f.ask(command)
		if why != "" {
			by.problem("%s", why)
		}
		by.came("a command", "")
		return secret
	case in.set && !f.Secretless:
		path = f.resolve(path, getenv)
		secret, err := ReadSecret(path, getenv)
		if err != nil {
			in.problem("%s", err.Error())
			return ""
		}
		in.came(path, "")
		return secret
	}
	return ""
}

// ReadSecret returns the only line of a file that nobody else may read.
func ReadSecret(path string, getenv func(string) string) (string, error) {
	b, why := private(path, getenv)
	if why != "" {
		return "", errors.New(why)
	}
	secret, why := onlyLine(b)
	if why != "" {
		return "", fmt.Errorf("the file %q %s", path, why)
	}
	return secret, nil
}

// variableName reports whether s looks like the name of an environment variable, and
// not like a password.
func variableName(s string) bool {
	for i, r := range s {
		if r != '_' && (r < 'A' || r > 'Z') && (r < '0' || r > '9' || i == 0) {
			return false
		}
	}
	return s != ""
}

// othersMay returns the permission bits of a secret's file that would let others read or
// change it. In the directory in which systemd passes credentials, the group may read:
// that is how the unit's user gets them from root.
func othersMay(path string, getenv func(string) string) fs.FileMode {
	dir := getenv("CREDENTIALS_DIRECTORY")
	if !filepath.IsAbs(dir) {
		return 0o077
	}
	if rel, err := filepath.Rel(dir, path); err != nil || !filepath.IsLocal(rel) {
		return 0o077
	}
	return 0o037
}

// private reads a file with a secret, or says why it must not be used.
func private(path string, getenv func(string) string) (content []byte, why string) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, fmt.Sprintf("the file %q cannot be read: %v", path, cause(err))
	case !info.Mode().IsRegular():
		return nil, fmt.Sprintf("%q is not a file", path)
	case info.Mode().Perm()&othersMay(path, getenv) != 0:
		return nil, fmt.Sprintf("the file %q has mode %04o, so that others can get at the secret; chmod 600 it", path, info.Mode().Perm())
	case info.Size() > 64<<10:
		return nil, fmt.Sprintf("the file %q is too large to be a secret", path)
	}
	if content, err = fs.ReadFile(os.DirFS(filepath.Dir(path)), filepath.Base(path)); err != nil {
		return nil, fmt.Sprintf("the file %q cannot be read: %v", path, cause(err))
	}
	return content, ""
}

// commandTime is the timeout of a password_command, which may ask a person.
const commandTime = time.Minute

// ask runs a password_command in the shell, once however many nodes name it, and returns
// its output.
func (f *configFile) ask(command string) (secret, why string) {
	if f.Found {
		return "", "is not run from a configuration that was merely found in the working directory, which may be anybody's; name the file by --config"
	}
	if said, ok := f.asked[command]; ok {
		return said.secret, said.why
	}
	ctx, cancel := context.WithTimeout(context.Background(), commandTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Stdin, cmd.Stderr, cmd.WaitDelay = os.Stdin, os.Stderr, time.Second
	var out limited
	cmd.Stdout = &out
	if err := cmd.Run(); err != nil {
		why = fmt.Sprintf("the command failed: %v", err)
	} else if secret, why = onlyLine(out.Bytes()); why != "" {
		why = "its output " + why
	}
	if f.asked == nil {
		f.asked = map[string]answer{}
	}
	f.asked[command] = answer{secret, why}
	return secret, why
}

// limited keeps as many bytes as a secret may have, and drops the rest.
type limited struct{ bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	l.Buffer.Write(p[:min(len(p), max(0, mostSecret+1-l.Len()))])
	return len(p), nil
}

// mostSecret is longer than any password.
const mostSecret = 64 << 10

// onlyLine returns the one line with the secret, or why there is none.
func onlyLine(b []byte) (secret, why string) {
	secret = strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r")
	switch {
	case secret == "":
		return "", "is empty; put the password on its first line"
	case strings.ContainsAny(secret, "\r\n"):
		return "", "has more than one line; it must hold the password alone"
	case len(secret) > mostSecret:
		return "", "is too long to be a password"
	}
	return secret, ""
}
