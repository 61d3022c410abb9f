package adopt

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"redlockctl/internal/lab/labtest"
	"redlockctl/redlock"
	"redlockctl/server/minreplicas"
)

// planFor is the folder of a plan for a running server.
func planFor(t *testing.T, change func(*Server)) Folder {
	t.Helper()
	s := someServer("n1")
	change(&s)
	plan, err := Plan(&Facts{Servers: []Server{s}}, someAnswers(), someSecrets)
	if err != nil {
		t.Fatal(err)
	}
	folder := Folder{Path: filepath.Join(t.TempDir(), "folder")}
	if err := folder.Write(plan); err != nil {
		t.Fatal(err)
	}
	return folder
}

// logsIn checks that each user of redlockctl can log in.
func logsIn(t *testing.T, n *redlock.Node) {
	t.Helper()
	for _, u := range users {
		c := n.Client(1, askTime, func(o *redis.Options) { o.Username, o.Password = u.name, someSecrets[u.name] })
		if err := c.Ping(t.Context()).Err(); err != nil {
			t.Errorf("%s: %v", u.name, err)
		}
		_ = c.Close()
	}
}

// A server in a container is given its users in each form that the runbook names, and starts
// with it.
func TestUsersOfAContainer(t *testing.T) {
	folder := planFor(t, func(s *Server) { s.ConfigFile, s.Unit = "", "" })
	book, lines := read(t, filepath.Join(folder.Path, runbook)), filepath.Join(folder.Path, "n1/users.acl")
	for _, form := range []string{"--aclfile", "--include"} {
		if !strings.Contains(book, "`"+form+"`") {
			t.Errorf("the runbook does not name %s", form)
		}
		server := labtest.Servers(t, 1, append([]string{form, lines}, minreplicas.FenceArgs...)...)[0]
		logsIn(t, server.Node())
		if _, err := server.Do(t.Context(), "SET", "lock:a", "token", "PX", "1"); !redis.HasErrorPrefix(err, "NOREPLICAS") {
			t.Errorf("%s: it does not start fenced: %v", form, err)
		}
	}
	conf := filepath.Join(t.TempDir(), "redis.conf")
	put(t, conf, read(t, lines))
	logsIn(t, labtest.Servers(t, 1, "--include", conf)[0].Node())
}

// What install.sh writes, a server reads: also of a path with spaces.
func TestServerStartsWithWhatIsInstalled(t *testing.T) {
	for _, withACLFile := range []bool{false, true} {
		dir := filepath.Join(t.TempDir(), "with a space")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		conf, acl := filepath.Join(dir, "redis.conf"), ""
		put(t, conf, "tls-port 0\n")
		if withACLFile {
			acl = filepath.Join(dir, "users.acl")
			put(t, conf, "tls-port 0\naclfile \""+acl+"\"\n")
			put(t, acl, "user default on nopass ~* &* +@all\n")
		}
		if out, failed := install(t, dir, acl); failed {
			t.Fatal(out)
		}
		server := labtest.Servers(t, 1, "--include", conf)[0]
		logsIn(t, server.Node())
		if _, err := server.Do(t.Context(), "SET", "lock:a", "token", "PX", "1"); !redis.HasErrorPrefix(err, "NOREPLICAS") {
			t.Errorf("it does not start fenced: %v", err)
		}
	}
}

// users.sh makes and deletes the users by redis-cli or valkey-cli, whichever is there.
func TestUsersByEitherClient(t *testing.T) {
	cli, err := exec.LookPath("redis-cli")
	if err != nil {
		if os.Getenv("CI") != "" || os.Getenv("REDLOCKCTL_TEST_ALL") != "" {
			t.Fatal(err)
		}
		t.Skip("no redis-cli")
	}
	server := labtest.Servers(t, 1)[0]
	folder := planFor(t, func(s *Server) { s.Addr, s.Password = server.Addr(), false })
	for _, name := range []string{"redis-cli", "valkey-cli", ""} {
		bin := t.TempDir()
		for _, tool := range []string{"sh", "dirname", "printf"} {
			path, err := exec.LookPath(tool)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(path, filepath.Join(bin, tool)); err != nil {
				t.Fatal(err)
			}
		}
		if name != "" {
			if err := os.Symlink(cli, filepath.Join(bin, name)); err != nil {
				t.Fatal(err)
			}
		}
		run := func(args ...string) string {
			cmd := exec.Command("sh", append([]string{filepath.Join(folder.Path, "users.sh")}, args...)...)
			cmd.Env = []string{"PATH=" + bin}
			out, _ := cmd.CombinedOutput()
			return string(out)
		}
		if name == "" {
			if out := run(); !strings.Contains(out, "redis-cli or valkey-cli is missing") {
				t.Error(out)
			}
			continue
		}
		if out := run(); out != "n1: 3 users made\n" {
			t.Errorf("%s: %s", name, out)
		}
		logsIn(t, server.Node())
		if out := run("undo", "--force"); out != "n1: 3 users deleted\n" {
			t.Errorf("%s: %s", name, out)
		}
	}
}

// No step is undone while a master needs it.
func TestMayUndo(t *testing.T) {
	server := labtest.Servers(t, 1)[0]
	folder := planFor(t, func(s *Server) { s.Addr = server.Addr() })
	may := func(step, want string) {
		t.Helper()
		err := MayUndo(t.Context(), folder, step, func(name string) string { return map[string]string{"HOME": folder.Path}[name] })
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", step, err, want)
		}
	}
	do := func(line string) {
		t.Helper()
		var args []any
		for _, word := range strings.Fields(line) {
			args = append(args, word)
		}
		if _, err := server.Do(t.Context(), args...); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range Undoable {
		may(step, "") // nothing was done yet, or all is undone
	}
	for line := range strings.Lines(read(t, filepath.Join(folder.Path, "n1/users.redis"))) {
		do(line)
	}
	may(stepServers, "")
	put(t, filepath.Join(folder.Path, "n1/seen.conf"), "# file: /r.conf\nmin-replicas-to-write 2147483647\nmin-replicas-max-lag 10\ninclude /f.conf\n# file: /f.conf\nmin-replicas-to-write 2147483647\nmin-replicas-max-lag 10\n")
	for _, fence := range []string{"2147483647", "2147483646"} {
		do("CONFIG SET min-replicas-max-lag 10 min-replicas-to-write " + fence)
		for _, step := range Undoable {
			may(step, map[string]string{"2147483647": "n1 is fenced", "2147483646": "n1 is cordoned: redlockctl --config ops.toml node uncordon n1"}[fence])
		}
	}
	do("CONFIG SET min-replicas-to-write 0")
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	for _, step := range Undoable {
		may(step, "n1 does not answer")
	}
}
