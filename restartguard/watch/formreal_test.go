package watch_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"redlockctl/internal/lab"
	"redlockctl/internal/lab/labtest"
	"redlockctl/redlock"
	"redlockctl/restartguard/boot"
	"redlockctl/restartguard/oneshot"
	"redlockctl/server/fences"
	"redlockctl/server/minreplicas"
)

// TestBootFormsOnRealServers: each form of a boot fence, on a real server that rewrites its files
// while it is fenced and while it serves, is killed, and is started again. The recommended forms
// always start fenced; the others are reported as fragile, and the same commands break them.
func TestBootFormsOnRealServers(t *testing.T) {
	const (
		fence = "min-replicas-to-write 2147483647\nmin-replicas-max-lag 10\n"
		users = "user default on nopass ~* &* +@all\nuser locks on >hunter2 ~* -@all +@read\n"
	)
	included := map[string]string{"f.conf": fence}
	aclMethod := fences.Method{Kind: fences.ACL, User: "locks"}
	for name, c := range map[string]struct {
		main   string
		more   map[string]string
		args   []string
		method fences.Method
		fixed  bool // the server may not write beside its files
		boot   boot.State
		form   boot.Form
		// survives are the histories after which it still starts fenced; of a form that
		// is fenced, all.
		survives, falls []string
	}{
		"command line":               {main: "set-proc-title no\n", args: minreplicas.FenceArgs, boot: boot.Fenced, form: boot.FormCommandLine},
		"command line over the file": {main: "set-proc-title no\ninclude DIR/f.conf\n", more: included, args: minreplicas.FenceArgs, boot: boot.Fenced, form: boot.FormCommandLine},
		"anchors":                    {main: fence + "include DIR/f.conf\n", more: included, boot: boot.Fenced, form: boot.FormAnchors},
		"anchors by older names": {main: "min-slaves-to-write 2147483647\nmin-slaves-max-lag 10\ninclude DIR/f.conf\n", more: included,
			boot: boot.Fenced, form: boot.FormAnchors},
		"anchors, twice": {main: fence + fence + "include DIR/f.conf\nmin-replicas-to-write 2147483647\n", more: included,
			boot: boot.Fenced, form: boot.FormAnchors},
		// The same without what makes it hold: what the test is for must show.
		"include without anchors": {main: "include DIR/f.conf\n", more: included, boot: boot.Fragile, form: boot.FormInclude,
			survives: []string{"F", "FF", "S", "SS"}, falls: []string{"FS", "FFSS"}},
		"anchors behind the include": {main: "include DIR/f.conf\n" + fence, more: included, boot: boot.Fragile, form: boot.FormInclude,
			survives: []string{"F", "FF"}, falls: []string{"S", "SS", "FFSS"}},
		"main file": {main: fence, boot: boot.Fragile, form: boot.FormMainFile,
			survives: []string{"F", "FF"}, falls: []string{"S", "SS", "FFSS"}},
		"read-only ACL file": {main: "aclfile DIR/users.acl\n", more: map[string]string{"users.acl": users}, method: aclMethod, fixed: true,
			boot: boot.Fenced, form: boot.FormFixedACL},
		"writable ACL file": {main: "aclfile DIR/users.acl\n", more: map[string]string{"users.acl": users}, method: aclMethod,
			boot: boot.Fragile, form: boot.FormACLFile, survives: []string{"F", "FF"}, falls: []string{"S", "FFSS"}},
		"user line": {main: "user locks on >hunter2 ~* -@all +@read\n", method: aclMethod,
			boot: boot.Fragile, form: boot.FormUserLine, survives: []string{"F", "FF"}, falls: []string{"S", "FFSS"}},
	} {
		histories := append(append([]string{}, c.survives...), c.falls...)
		if c.boot == boot.Fenced {
			histories = []string{"F", "S", "FS", "SF", "FFSS", "SSFFSS"}
			c.survives = histories
		}
		for _, history := range histories {
			t.Run(name+" "+history, func(t *testing.T) {
				t.Parallel()
				start := withFile
				if c.fixed {
					start = withFixedFile
				}
				s := start(t, c.main, c.more, c.args...)
				check, err := boot.CheckNode(t.Context(), s.Node(), c.method, nil)
				if err != nil || check.Boot != c.boot || check.Form != c.form {
					t.Fatalf("%s, %s, %q, %v; want %s, %s", check.Boot, check.Form, check.Because, err, c.boot, c.form)
				}
				if !startedFenced(t, s, c.method) {
					t.Fatal("the first start is unfenced")
				}
				rewritesWhile(t, s, c.method, history)
				before, err := boot.CheckNode(t.Context(), s.Node(), c.method, nil)
				if err != nil {
					t.Fatal(err)
				}
				if err := s.Kill(); err != nil {
					t.Fatal(err)
				}
				if err := s.Start(); err != nil {
					t.Fatal(err)
				}
				want := strings.Contains(" "+strings.Join(c.survives, " ")+" ", " "+history+" ")
				if got := startedFenced(t, s, c.method); got != want {
					t.Fatalf("started fenced: %v", got)
				}
				// It was known before the restart.
				if known := before.Boot != boot.Unfenced; known != want {
					t.Errorf("before: %s, %s, %q", before.Boot, before.Form, before.Because)
				}
				if want != (before.Boot == boot.Fenced) && c.boot == boot.Fenced {
					t.Errorf("before: %s", before.Boot)
				}
			})
		}
	}
}

// startedFenced reports whether a server refuses writes though nothing was set
// since its start.
func startedFenced(t *testing.T, s *lab.Server, method fences.Method) bool {
	t.Helper()
	o, err := oneshot.Inspect(t.Context(), s.Node(), method)
	if err != nil || o.Blind || o.Configured {
		t.Fatalf("%+v, %v", o, err)
	}
	shut, _ := o.Fenced()
	return shut
}

// rewritesWhile has the server rewrite its files, once for each letter: F while
// it is fenced, S while it serves.
func rewritesWhile(t *testing.T, s *lab.Server, method fences.Method, history string) {
	t.Helper()
	c := redlock.Connect(s.Node(), 1, time.Minute)
	defer c.Close()
	for _, h := range history {
		var err error
		switch {
		case h == 'S':
			err = oneshot.RejoinNow(t.Context(), s.Node(), method)
		case method.Kind == fences.ACL:
			err = c.Do(t.Context(), "ACL", "SETUSER", method.User, "-@write").Err()
		default:
			err = c.ConfigSet(t.Context(), "min-replicas-to-write", fmt.Sprint(minreplicas.FenceUp)).Err()
		}
		if err != nil {
			t.Fatal(err)
		}
		rewrite := c.ConfigRewrite(t.Context()).Err()
		save := c.Do(t.Context(), "ACL", "SAVE").Err()
		if method.Kind == fences.MinReplicas && rewrite != nil || rewrite != nil && save == nil && !strings.Contains(rewrite.Error(), "denied") {
			t.Fatal(rewrite, save)
		}
	}
}

// withFixedFile is withFile where the server runs as a user who can write none
// of its files.
func withFixedFile(t *testing.T, main string, more map[string]string, args ...string) *lab.Server {
	t.Helper()
	dir, work := t.TempDir(), t.TempDir()
	for _, d := range []string{filepath.Dir(dir), dir} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range more {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "redis.conf")
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(main, "DIR", dir)), 0o644); err != nil {
		t.Fatal(err)
	}
	as := ""
	if os.Getuid() == 0 { // who may write everywhere
		as = "setpriv --reuid=65534 --regid=65534 --clear-groups "
		own := filepath.Join(work, "n1") // the server's folder
		if err := errors.Join(os.Mkdir(own, 0o700), os.Chmod(work, 0o755), os.Chmod(own, 0o777)); err != nil {
			t.Fatal(err)
		}
	} else {
		if err := os.Chmod(dir, 0o555); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(dir, 0o755) })
	}
	return startWrapped(t, fmt.Sprintf("exec %s%s %s \"$@\"", as, labtest.RedisServer(t), path), work, args...)
}
