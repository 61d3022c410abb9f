package cli

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"redlockctl/cli/exit"
	"redlockctl/internal/lab/labtest"
)

// watched collects what clients send to a server, by MONITOR.
type watched struct {
	mu    sync.Mutex
	lines []string
}

func watchServer(t *testing.T, addr string) *watched {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	fmt.Fprint(c, "MONITOR\r\n")
	r, w := bufio.NewReader(c), &watched{}
	if ok, err := r.ReadString('\n'); err != nil || ok != "+OK\r\n" {
		t.Fatal(ok, err)
	}
	go func() {
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			w.mu.Lock()
			w.lines = append(w.lines, line)
			w.mu.Unlock()
		}
	}()
	return w
}

func (w *watched) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.lines)
}

var (
	monitored = regexp.MustCompile(`\] "([^"]*)"(?: "([^"]*)")?`)
	// changing matches the commands that change a server, with their subcommand where only some do.
	changing = regexp.MustCompile(`^(set|setex|psetex|getset|del|unlink|expire|pexpire|expireat|pexpireat|persist|publish|hset|hdel|hpexpire|incr|incrby|rename|restore|copy|getdel|getex|eval|evalsha|fcall|flushall|flushdb|swapdb|shutdown|replicaof|slaveof|config (set|rewrite|resetstat)|acl (setuser|deluser|save|load)|client (kill|pause|unpause)|script (load|flush))$`)
)

// A dry run shows the plan, and sends nothing that changes a server; nothing is logged.
func TestDryRunSendsNothing(t *testing.T) {
	servers := labtest.Servers(t, 3)
	var addrs []string
	var seen []*watched
	for i, s := range servers {
		addrs = append(addrs, s.Addr())
		for _, key := range []string{"job:1", "job:2"} {
			if _, err := s.Do(t.Context(), "SET", key, "0123456789abcdef0123", "PX", 600000); err != nil {
				t.Fatal(err)
			}
		}
		if i == 0 {
			if _, err := s.Do(t.Context(), "CONFIG", "SET", "min-replicas-to-write", "2147483646"); err != nil {
				t.Fatal(err)
			}
		}
		seen = append(seen, watchServer(t, s.Addr()))
	}
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	t.Setenv("HOME", t.TempDir())
	for _, c := range []struct {
		args string
		code exit.Code
		want string
	}{
		{"revoke job:1", 0, "effect: "},
		{"revoke job:1 job:2", 0, "revoke job:2: dry run, nothing was changed"},
		{"revoke job:1 --read-only", 0, "effect: "},
		{"force-release job:1", 0, "risk: a holder that still works is not told"},
		{"force-release job:1 -o json", 0, `"kind": "plan"`},
		{"force-release job:3", exit.NotOwner, ""},
		{"release job:1 --token 0123456789abcdef0123", 0, "effect: the copies with this token are deleted, on n1, n2, n3"},
		{"release job:1 --token another", exit.NotOwner, ""},
		{"release job:3 --token another", exit.NotOwner, ""},
		{"node cordon n2", 0, "effect: it refuses writes"},
		{"node cordon n1 n3", 0, "already cordoned"},
		{"node drain n2", 0, "effect: it refuses writes"},
		{"node uncordon n1", 0, "it ends the cordon"},
		{"node rejoin --now n1 -o yaml", 0, "TWO HOLDERS"},
	} {
		var out, errs strings.Builder
		args := append(strings.Fields(c.args), "--dry-run", "--nodes", strings.Join(addrs, ","), "--max-ttl", "11m")
		if code := exit.Code(Main(args, strings.NewReader(""), &out, &errs)); code != c.code {
			t.Errorf("%s: %d, want %d: %s", c.args, code, c.code, errs.String())
		}
		if c.code == exit.NotOwner && strings.HasPrefix(c.args, "release") && !strings.Contains(errs.String(), "no majority has this token") {
			t.Errorf("%s: %q", c.args, errs.String())
		}
		if !strings.Contains(out.String(), c.want) {
			t.Errorf("%s: %q lacks %q", c.args, out.String(), c.want)
		}
	}
	for i, w := range seen {
		// The last command of ours to be seen shows that all before it are.
		if _, err := servers[i].Do(t.Context(), "ECHO", "the end"); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(30 * time.Second); !strings.Contains(strings.Join(w.all(), ""), "the end"); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("MONITOR does not end")
			}
		}
		read := false
		for _, line := range w.all() {
			m := monitored.FindStringSubmatch(line)
			if m == nil {
				t.Fatalf("%q", line)
			}
			word := strings.ToLower(m[1])
			read = read || word == "get" || strings.HasSuffix(word, "_ro")
			if changing.MatchString(word) || changing.MatchString(word+" "+strings.ToLower(m[2])) {
				t.Errorf("n%d was sent %s", i+1, line)
			}
		}
		if !read {
			t.Errorf("n%d: MONITOR has seen no read: %q", i+1, w.all())
		}
	}
	if found, _ := filepath.Glob(filepath.Join(state, "redlockctl", "audit*")); found != nil {
		t.Errorf("an audit log: %v", found)
	}
	if entries, _ := os.ReadDir(state); len(entries) > 0 {
		t.Errorf("written: %v", entries)
	}
}
