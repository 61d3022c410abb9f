//go:build linux

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// TestManual follows docs/production.md word for word on five servers as Debian
// configures them, protected by requirepass: from nothing to a crash that is fenced
// and a rejoin, with CONFIG REWRITE, a console with an old configuration, a rotated
// password and a restart of the daemon. Nothing in between may be unsafe: a node
// that has restarted grants nothing before D is over.
func TestManual(t *testing.T) {
	t.Parallel()
	w := newWalk(t)

	// The rights: set-up 1, no ACL file. The default user stays as it is.
	for i := range w.nodes {
		w.sh(fmt.Sprintf(`redlockctl config acl --role operator,guard --user ops --password-env OPS_PASSWORD --setuser | redis-cli -p %d -a secret --no-auth-warning`, w.nodes[i].port), "^OK$")
		w.sh(fmt.Sprintf(`redlockctl config acl --role operator,guard --user ops --password-env OPS_PASSWORD >> %s`, w.nodes[i].conf), "")
	}
	w.sh("redlockctl config check", "is valid")
	w.sh("redlockctl status", "unprotected.*no guard, 5 boot fences not verified")

	// The guard as a service, with a state directory that no console knows.
	w.startGuard()
	w.eventually("redlockctl guard status", "D is 3.08s")
	w.eventually("redlockctl status", "unprotected.*5 boot fences not verified")

	// The boot fence, node by node: the command line for three, anchors for two.
	w.sh("redlockctl node boot-fence n1", "--min-replicas-to-write 2147483647 --min-replicas-max-lag 10")
	for i, n := range w.nodes {
		if i < 3 {
			n.args = []string{"--min-replicas-to-write", "2147483647", "--min-replicas-max-lag", "10"}
		} else {
			n.anchors(t)
			w.sh(fmt.Sprintf("redlockctl node boot-fence n%d --verify --file %s", i+1, n.conf), "anchors")
		}
		n.end(t, syscall.SIGTERM)
		n.start(t)
		n.refuses(t)
		w.sh(fmt.Sprintf("redlockctl node wait n%d --timeout 30s", i+1), "")
		n.grants(t)
		n.wantsPassword(t)
	}
	w.eventually("redlockctl status", "cluster orders: safe")

	// A crash is fenced for D, and the node rejoins.
	w.crash(0)

	// CONFIG REWRITE twice, while fenced and while serving, and again a crash.
	for _, i := range []int{1, 4} {
		n := w.nodes[i]
		for range 2 {
			n.end(t, syscall.SIGKILL)
			n.start(t)
			n.refuses(t)
			n.do(t, "CONFIG", "REWRITE")
			w.sh(fmt.Sprintf("redlockctl node wait n%d --timeout 30s", i+1), "")
			n.do(t, "CONFIG", "REWRITE")
		}
		w.crash(i)
	}

	// A console with an old configuration beside the guard, max_ttl a third of what
	// is right: it opens nothing early, and says who protects the cluster.
	old := filepath.Join(w.dir, "old.toml")
	b, err := os.ReadFile(w.config)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(old, bytes.ReplaceAll(b, []byte(`"3s"`), []byte(`"1s"`)), 0o600); err != nil {
		t.Fatal(err)
	}
	console := (&cluster{bin: w.bin, dir: t.TempDir(), config: old, more: []string{"OPS_PASSWORD=" + w.password}}).terminal(t, 120, 40)
	console.shows("n1", "serving")
	console.shows("guard")
	w.crash(2)
	console.keys("q")
	console.shows("exit code 0")

	// The guard's password is rotated before the guard knows the new one: it is blind,
	// and says so; nobody is told that nothing can be locked.
	for _, n := range w.nodes {
		n.do(t, "ACL", "SETUSER", "ops", "resetpass", ">rotated")
		n.do(t, "CLIENT", "KILL", "USER", "ops")
	}
	w.until("the guard says that it is blind", func() error {
		code, body := w.get("/healthz")
		if code != http.StatusServiceUnavailable {
			return fmt.Errorf("/healthz: %d %s", code, body)
		}
		return nil
	})
	if _, body := w.get("/metrics"); regexp.MustCompile(`(?m)^redlockctl_cluster_lockable\{[^}]*\} 0`).MatchString(body) {
		t.Error("redlockctl_cluster_lockable is 0, while all clients lock")
	}
	if out, _ := w.try("redlockctl status"); strings.Contains(out, "nothing can be locked") {
		t.Errorf("status says that nothing can be locked:\n%s", out)
	}
	for _, n := range w.nodes {
		n.grants(t)
	}

	// The daemon with the new password: a node that crashed while it was blind waits.
	n := w.nodes[3]
	n.end(t, syscall.SIGKILL)
	n.start(t)
	n.refuses(t)
	for _, n := range w.nodes { // the next start of n4 has the old password from its file
		n.do(t, "ACL", "SETUSER", "ops", "resetpass", ">rotated")
	}
	w.password = "rotated"
	w.stopGuard()
	n.refuses(t)
	w.sh("redlockctl node wait n4 --timeout 100ms", "", 1)
	w.startGuard()
	w.sh("redlockctl node wait n4 --timeout 30s", "")
	n.grants(t)
	w.eventually("redlockctl status", "cluster orders: safe")
	if code, body := w.get("/healthz"); code != http.StatusOK {
		t.Errorf("/healthz: %d %s", code, body)
	}
}

// walkTTL and walkDelay are the max TTL of the configuration, and D.
const (
	walkTTL   = 3 * time.Second
	walkDelay = walkTTL + walkTTL/100 + 50*time.Millisecond
)

// walk is the machine of a person who follows the manual.
type walk struct {
	t                *testing.T
	bin, dir, config string
	password         string
	nodes            []*walkNode
	guard            *exec.Cmd
	listen           string
}

func newWalk(t *testing.T) *walk {
	t.Helper()
	w := &walk{t: t, dir: t.TempDir(), password: "first"}
	w.bin = build(t)
	w.config = filepath.Join(w.dir, "config.toml")
	debian, err := os.ReadFile("/etc/redis/redis.conf")
	if err != nil {
		if os.Getenv("CI") != "" || os.Getenv("REDLOCKCTL_TEST_ALL") != "" {
			t.Fatalf("no redis.conf of Debian's package redis-server: %v", err)
		}
		t.Skipf("no redis.conf of Debian's package redis-server: %v", err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "[cluster]\nname = \"orders\"\nmax_ttl = \"3s\"\nlock_patterns = [\"lock:*\"]\n")
	fmt.Fprintf(&b, "[audit]\npath = %q\n", filepath.Join(w.dir, "audit.jsonl"))
	for i := range 5 {
		n := &walkNode{port: freePort(t), dir: filepath.Join(w.dir, fmt.Sprintf("n%d", i+1))}
		n.conf = filepath.Join(n.dir, "redis.conf")
		if err := os.Mkdir(n.dir, 0o700); err != nil {
			t.Fatal(err)
		}
		conf := string(debian)
		for key, value := range map[string]string{
			"port": strconv.Itoa(n.port), "dir": n.dir, "pidfile": filepath.Join(n.dir, "pid"),
			"logfile": filepath.Join(n.dir, "log"), "daemonize": "no", "bind": "127.0.0.1",
		} {
			conf = regexp.MustCompile(`(?m)^`+key+` .*$`).ReplaceAllString(conf, key+" "+value)
		}
		// What docs/production.md asks of each, and the password.
		conf += "\nrequirepass secret\nmaxmemory-policy noeviction\nsave \"\"\nappendonly no\ntcp-keepalive 30\n"
		if err := os.WriteFile(n.conf, []byte(conf), 0o600); err != nil {
			t.Fatal(err)
		}
		n.start(t)
		t.Cleanup(func() { n.end(t, syscall.SIGKILL) })
		w.nodes = append(w.nodes, n)
		fmt.Fprintf(&b, "[[nodes]]\nname = \"n%d\"\naddr = \"127.0.0.1:%d\"\nusername = \"ops\"\npassword_env = \"OPS_PASSWORD\"\n", i+1, n.port)
	}
	if err := os.WriteFile(w.config, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	w.listen = net.JoinHostPort("127.0.0.1", strconv.Itoa(freePort(t)))
	t.Cleanup(w.stopGuard)
	return w
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func (w *walk) env(state string) []string {
	return append(os.Environ(), "PATH="+filepath.Dir(w.bin)+":"+os.Getenv("PATH"), "REDLOCKCTL_CONFIG="+w.config,
		"XDG_STATE_HOME="+filepath.Join(w.dir, state), "OPS_PASSWORD="+w.password)
}

// try runs a line of the manual in a shell.
func (w *walk) try(line string) (out string, code int) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", "set -o pipefail; "+line)
	cmd.Env = w.env("person")
	b, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		w.t.Fatal(err)
	}
	return string(b), cmd.ProcessState.ExitCode()
}

// sh runs a line of the manual, which must say this, and end with a code, 0 unless
// given.
func (w *walk) sh(line, says string, codes ...int) {
	w.t.Helper()
	want := 0
	if len(codes) > 0 {
		want = codes[0]
	}
	out, code := w.try(line)
	if code != want || !regexp.MustCompile("(?m)"+says).MatchString(out) {
		w.t.Fatalf("%s: exit code %d, want %d and %q:\n%s", line, code, want, says, out)
	}
}

// eventually is sh for what takes a moment to be seen.
func (w *walk) eventually(line, says string) {
	w.t.Helper()
	w.until(line, func() error {
		if out, code := w.try(line); code != 0 || !regexp.MustCompile("(?m)"+says).MatchString(out) {
			return fmt.Errorf("exit code %d, want %q:\n%s", code, says, out)
		}
		return nil
	})
}

func (w *walk) until(what string, try func() error) {
	w.t.Helper()
	var err error
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if err = try(); err == nil {
			return
		}
	}
	w.t.Fatalf("%s: %v", what, err)
}

func (w *walk) get(path string) (code int, body string) {
	w.t.Helper()
	answer, err := http.Get("http://" + w.listen + path)
	if err != nil {
		w.t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return answer.StatusCode, string(b)
}

// startGuard starts the daemon as the unit file does: as somebody else, who keeps
// what it knows elsewhere.
func (w *walk) startGuard() {
	w.t.Helper()
	w.guard = exec.Command(w.bin, "guard", "--listen", w.listen, "--watch-locks")
	w.guard.Env = w.env("daemon")
	log, err := os.OpenFile(filepath.Join(w.dir, "guard.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		w.t.Fatal(err)
	}
	defer log.Close()
	w.guard.Stderr = log
	if err := w.guard.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.until("the guard is ready", func() error {
		answer, err := http.Get("http://" + w.listen + "/readyz")
		if err != nil {
			return err
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			return errors.New(answer.Status)
		}
		return nil
	})
}

func (w *walk) stopGuard() {
	if w.guard == nil {
		return
	}
	_ = w.guard.Process.Signal(syscall.SIGTERM)
	_ = w.guard.Wait()
	w.guard = nil
}

// crash kills a node and starts it again: it must refuse writes from its first
// answer until D has passed since it was back, and grant again then.
func (w *walk) crash(i int) {
	w.t.Helper()
	n := w.nodes[i]
	n.end(w.t, syscall.SIGKILL)
	back := time.Now() // before the start: D is counted from later still
	n.start(w.t)
	n.refuses(w.t)
	w.sh(fmt.Sprintf("redlockctl node wait n%d --timeout 30s", i+1), "")
	if took := time.Since(back); took < walkDelay {
		w.t.Errorf("n%d rejoined %v after its crash, before D = %v", i+1, took, walkDelay)
	}
	n.grants(w.t)
	n.wantsPassword(w.t)
}

// walkNode is a redis-server with a configuration as Debian installs it.
type walkNode struct {
	port      int
	dir, conf string
	args      []string
	cmd       *exec.Cmd
	ended     func() error
}

func (n *walkNode) start(t *testing.T) {
	t.Helper()
	n.cmd = exec.Command("redis-server", append([]string{n.conf}, n.args...)...)
	if err := n.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	n.ended = sync.OnceValue(n.cmd.Wait)
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		c, err := net.Dial("tcp", n.addr())
		if err == nil {
			c.Close()
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("the server at %d does not come up: %v", n.port, err)
		}
	}
	n.do(t, "PING")
}

func (n *walkNode) end(t *testing.T, how syscall.Signal) {
	t.Helper()
	_ = n.cmd.Process.Signal(how)
	_ = n.ended()
}

// anchors edits redis.conf as the manual says.
func (n *walkNode) anchors(t *testing.T) {
	t.Helper()
	const lines = "min-replicas-to-write 2147483647\nmin-replicas-max-lag 10\n"
	include := filepath.Join(n.dir, "redlockctl-fence.conf")
	if err := os.WriteFile(include, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(n.conf, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := fmt.Fprintf(f, "%sinclude %s\n", lines, include); err != nil {
		t.Fatal(err)
	}
}

func (n *walkNode) addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(n.port)) }

// ask sends a command on a connection of its own.
func (n *walkNode) ask(t *testing.T, password string, args ...any) error {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: n.addr(), Password: password, MaxRetries: -1, DialerRetries: 1})
	defer c.Close()
	return c.Do(t.Context(), args...).Err()
}

func (n *walkNode) do(t *testing.T, args ...any) {
	t.Helper()
	if err := n.ask(t, "secret", args...); err != nil {
		t.Fatalf("%v: %v", args, err)
	}
}

// grants makes sure that the node takes a vote.
func (n *walkNode) grants(t *testing.T) {
	t.Helper()
	n.do(t, "SET", "lock:walk", "token", "PX", 1)
}

// refuses makes sure that the node takes none.
func (n *walkNode) refuses(t *testing.T) {
	t.Helper()
	err := n.ask(t, "secret", "SET", "lock:walk", "token", "PX", 1)
	if err == nil || !strings.HasPrefix(err.Error(), "NOREPLICAS") {
		t.Fatalf("the node at %d does not refuse writes after its start: %v", n.port, err)
	}
}

// wantsPassword makes sure that requirepass still protects the node.
func (n *walkNode) wantsPassword(t *testing.T) {
	t.Helper()
	err := n.ask(t, "", "PING")
	if err == nil || !strings.HasPrefix(err.Error(), "NOAUTH") {
		t.Fatalf("the node at %d wants no password: %v", n.port, err)
	}
}
