package adopt

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"redlockctl/internal/acl"
	"redlockctl/internal/audit"
	"redlockctl/internal/lab/labtest"
	"redlockctl/internal/operator"
	"redlockctl/monitor"
	"redlockctl/redlock"
	"redlockctl/restartguard/boot"
	"redlockctl/server/announce"
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
		c := redlock.Connect(n, 1, askTime, func(o *redis.Options) { o.Username, o.Password = u.name, someSecrets[u.name] })
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

// The users are made and deleted on running servers, without a client program, and each change
// is in the audit log; a node that is down, and a folder of other masters, are told.
func TestChangeUsers(t *testing.T) {
	servers := labtest.Servers(t, 2)
	one := planFor(t, func(s *Server) { s.Addr = servers[0].Addr() })
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	change := func(what string, want string, nodes ...*redlock.Node) {
		t.Helper()
		log, err := audit.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		client, err := redlock.New(nodes, redlock.Options{})
		if err != nil {
			t.Fatal(err)
		}
		op := operator.New(client, operator.Options{Log: log})
		defer op.Close()
		var told strings.Builder
		if err := one.ChangeUsers(t.Context(), op, what, func(node, what string) { told.WriteString(node + ": " + what + "\n") }); err != nil {
			told.WriteString(err.Error())
		}
		if !strings.Contains(told.String(), want) {
			t.Errorf("%s: %q, want %q", what, told.String(), want)
		}
		text, lines := read(t, path), strings.Split(strings.TrimSpace(read(t, path)), "\n")
		outcome := lines[len(lines)-1]
		if want == "n2: the folder has no users for it" { // nothing was sent
			return
		}
		_, done, _ := strings.Cut(strings.TrimSpace(want), ": ")
		for _, want := range []string{`"act":"users ` + what + `"`, `"reason":"init: users of the folder ` + one.Path + `"`, done} {
			if !strings.Contains(outcome, want) {
				t.Errorf("%s: the audit log ends with %s, which has no %s", what, outcome, want)
			}
		}
		if intent := lines[len(lines)-2]; !strings.Contains(intent, `"phase":"intent"`) || !strings.Contains(intent, "redlockctl-guard") {
			t.Errorf("%s: the intent is %s", what, intent)
		}
		for _, secret := range someSecrets {
			if strings.Contains(text, secret) || strings.Contains(text, acl.Hash(secret)) {
				t.Error("a password, or its hash, is in the audit log")
			}
		}
	}
	for range 2 { // again: changes nothing
		change(MakeUsers, "n1: 3 users made\n", servers[0].Node())
		logsIn(t, servers[0].Node())
	}
	users, err := servers[0].Do(t.Context(), "ACL", "USERS")
	if names, ok := users.([]any); err != nil || !ok || len(names) != 4 {
		t.Errorf("%v, %v: not four users", users, err)
	}
	for _, n := range []string{"3", "0"} {
		change(DeleteUsers, "n1: "+n+" users deleted\n", servers[0].Node())
	}
	users, err = servers[0].Do(t.Context(), "ACL", "USERS")
	if names, ok := users.([]any); err != nil || !ok || len(names) != 1 {
		t.Errorf("%v, %v: not one user", users, err)
	}
	change(MakeUsers, "n2: the folder has no users for it", servers[1].Node())
	if err := servers[0].Kill(); err != nil {
		t.Fatal(err)
	}
	change(MakeUsers, "n1: ", servers[0].Node())
	// One without ACLs repeats the command, with what is in it.
	other := labtest.Servers(t, 1, "--rename-command", "ACL", "")[0]
	change(MakeUsers, "n1: ERR unknown command", other.Node())
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

// A master that servers.sh leaves out is changed by hand: the check says so, and its undo needs
// no --force once a guard has seen it start without the fence.
func TestStartByHand(t *testing.T) {
	const nobody = "127.0.0.1:1" // nothing of its host can be read
	ours := planFor(t, func(s *Server) { s.Addr = nobody })
	byHand := planFor(t, func(s *Server) { s.Addr, s.ConfigFile, s.Unit = nobody, "", "" })
	for _, tc := range []struct {
		folder     Folder
		boot       announce.Boot
		do, needed string
	}{
		{ours, announce.BootUnfenced, "sh servers.sh", "n1 may start fenced: its files were not read"},
		{byHand, announce.BootUnfenced, "by hand, as step 3 of RUNBOOK.md says, and restart it", ""},
		{byHand, announce.BootUnknown, "by hand, as step 3 of RUNBOOK.md says, and restart it", "n1 may start fenced, and no guard has seen it start otherwise: servers.sh left it out"},
	} {
		c, err := tc.folder.configs(func(name string) string { return map[string]string{"HOME": tc.folder.Path}[name] })
		if err != nil {
			t.Fatal(err)
		}
		v := tc.folder.bootByFiles(t.Context(), c.nodes[0], c.guard.Nodes[0].Fence)
		if steps := tc.folder.startSteps(c.nodes, []boot.Verdict{v}); len(steps) != 1 || steps[0].State != Next || steps[0].Do != tc.do {
			t.Errorf("%v, want one that says %q", steps, tc.do)
		}
		n := &monitor.Node{Guards: []announce.Guard{{ID: "a", Boot: tc.boot}}}
		why := tc.folder.startNeeds(t.Context(), c, 0, n, stepGuard)
		if why != "" {
			why = "n1 " + why
		}
		if strings.Contains(why, "--force") {
			t.Errorf("%q: a guard will see it start", why)
		}
		if (why == "") != (tc.needed == "") || !strings.HasPrefix(why, tc.needed) {
			t.Errorf("a guard saw %v: %q, want %q", tc.boot, why, tc.needed)
		}
	}
}
