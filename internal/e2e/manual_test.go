//go:build linux

package e2e

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// TestManual brings five servers as configured by Debian under a guard with init and the
// commands of its runbook, word for word: three with requirepass, one of them with its
// own user, one with an ACL file, one with TLS. Then all crash before any of them was
// restarted: each starts fenced, rejoins after D, and still requires its password. CONFIG
// REWRITE changes nothing of that. Then follow a console with an old configuration, a
// rotated password, and a restart of the daemon. All the time, a restarted node must
// grant nothing before D has passed.
func TestManual(t *testing.T) {
	t.Parallel()
	w := newWalk(t)
	began := time.Now()
	commands := w.adopt()
	t.Logf("from init to protected: %d commands, most of them twice, %s", commands, time.Since(began).Round(time.Second))
	if commands > 8 {
		t.Errorf("%d commands from init to protected, more than 8", commands)
	}
	w.clientsLock()

	// All crash, for the first time.
	w.crash()
	w.eventually("redlockctl status", "cluster orders: safe")
	w.clientsLock()

	// CONFIG REWRITE twice, while fenced and while serving, and another crash.
	for range 2 {
		w.restart(syscall.SIGKILL)
		w.eachOne(func(n *walkNode) { n.refuses(t); n.do(t, "CONFIG", "REWRITE") })
		w.sh("redlockctl node wait n1 n2 n3 n4 n5 --timeout 30s", "")
		w.eachOne(func(n *walkNode) { n.do(t, "CONFIG", "REWRITE") })
	}
	w.crash()
	w.clientsLock()

	// The runbook again: nothing to change, not even in what the servers have written.
	w.sh(w.init, "Nothing to change")
	w.sh("cd "+w.folder+" && sh servers.sh", "")
	w.crash(2)

	// A console with an old configuration beside the guard, max_ttl a third of the right
	// one: it lets no node rejoin early, and says who protects the cluster.
	old := filepath.Join(w.folder, "old.toml")
	b, err := os.ReadFile(w.config)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(old, bytes.ReplaceAll(b, []byte(`"2s"`), []byte(`"1s"`)), 0o600); err != nil {
		t.Fatal(err)
	}
	console := (&cluster{bin: w.bin, dir: t.TempDir(), config: old}).terminal(t, 120, 40)
	console.shows("n1", "● serving")
	console.shows("guard")
	w.crash(2)
	console.keys("q")
	console.shows("exit code 0")

	// The guard's password is rotated before the guard knows the new one: it is blind and
	// says so; nobody reports that nothing can be locked.
	env := filepath.Join(w.folder, "guard.env")
	if err := os.WriteFile(env, []byte("REDLOCKCTL_GUARD_PASSWORD=rotated\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.sh(w.init, "changed +n1/users.redis")
	w.sh("cd "+w.folder+" && sh users.sh", "n5: 3 users made")
	w.eachOne(func(n *walkNode) { n.do(t, "CLIENT", "KILL", "USER", "redlockctl-guard") })
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
	w.eachOne(func(n *walkNode) { n.grants(t) })

	// The daemon with the new password: a node that crashed while it was blind waits.
	n := w.nodes[3]
	n.end(t, syscall.SIGKILL)
	n.start(t)
	n.refuses(t)
	w.sh("redlockctl node wait n4 --timeout 100ms", "", 1)
	w.sh("cd "+w.folder+" && sh users.sh && sudo sh guard.sh && sh servers.sh", "n5: changed")
	w.sh("redlockctl node wait n4 --timeout 30s", "")
	n.grants(t)
	w.eventually("redlockctl status", "cluster orders: safe")
	if code, body := w.get("/healthz"); code != http.StatusOK {
		t.Errorf("/healthz: %d %s", code, body)
	}
	w.eventually("redlockctl init --check --out "+w.folder, "^protected at the next crash: yes")

	// Undo everything, but not while a master is down or fenced, and in no other order.
	w.nodes[0].end(t, syscall.SIGKILL)
	w.sh("cd "+w.folder+" && sh servers.sh undo", "^redlockctl: n1 does not answer", 1)
	w.nodes[0].start(t)
	w.sh("redlockctl node wait n1 --timeout 30s && redlockctl node cordon n1 --reason work --yes", "")
	for _, step := range []string{"sh servers.sh undo", "sudo sh guard.sh undo", "sh users.sh undo"} {
		w.sh("cd "+w.folder+" && "+step, "^redlockctl: n1 is cordoned", 1)
	}
	w.sh("redlockctl node uncordon n1 --reason done --yes", "")
	w.sh("redlockctl node wait n1 --timeout 30s", "")
	w.sh("cd "+w.folder+" && sudo sh guard.sh undo", "^redlockctl: n1 would start fenced", 1)
	w.sh("cd "+w.folder+" && sh users.sh undo", "^redlockctl: n1 has a guard", 1)
	w.sh("cd "+w.folder+" && sh servers.sh undo && sudo sh guard.sh undo && sh users.sh undo", "n5: 3 users deleted")
	w.sh("cd "+w.folder+" && sh servers.sh undo && sudo sh guard.sh undo && sh users.sh undo", "n5: 0 users deleted")
	if left, _ := filepath.Glob(filepath.Join(w.root, "*/*/*/redlockctl*")); len(left) > 0 {
		t.Errorf("undo leaves %v", left)
	}
	w.restart(syscall.SIGTERM)
	w.eachOne(func(n *walkNode) { n.grants(t); n.wantsPassword(t) })
	w.sh("redlockctl init --check --out "+w.folder, "^next   users", 1)
}

// walkTTL and walkDelay are the max TTL of the configuration, and D.
const (
	walkTTL   = 2 * time.Second
	walkDelay = walkTTL + walkTTL/100 + 50*time.Millisecond
)

// walk is the machine of a person who follows the manual.
type walk struct {
	t              *testing.T
	bin, dir, root string
	folder, config string
	init           string // the command
	nodes          []*walkNode
	listen         string
}

// systemctl does what guard.sh needs, without systemd, for one guard.
const systemctl = `#!/bin/sh
set -eu
etc=$DESTDIR/etc/redlockctl/orders
stop() {
	[ -f "$DESTDIR/guard.pid" ] || return 0
	pid=$(cat "$DESTDIR/guard.pid")
	kill "$pid" 2>/dev/null || return 0
	while kill -0 "$pid" 2>/dev/null; do sleep 0.02; done
}
case $1 in
disable)
	stop
	rm -f "$DESTDIR/guard.pid"
	;;
start | restart)
	if [ "$1" = restart ]; then
		stop
	elif kill -0 "$(cat "$DESTDIR/guard.pid")" 2>/dev/null; then
		exit
	fi
	REDLOCKCTL_GUARD_PASSWORD=$(sed -n 's/^REDLOCKCTL_GUARD_PASSWORD=//p' "$etc/guard.env")
	GUARD_OPTIONS=$(sed -n 's/^GUARD_OPTIONS=//p' "$etc/options.env")
	export REDLOCKCTL_GUARD_PASSWORD XDG_STATE_HOME="$DESTDIR/var/lib/redlockctl/orders"
	unset REDLOCKCTL_CONFIG REDLOCKCTL_PASSWORD
	start=$(sed -n "s|^ExecStart=||p" "$DESTDIR/etc/systemd/system/redlockctl-guard@.service" |
		sed "s|[$]GUARD_OPTIONS|$GUARD_OPTIONS|; s|/etc/redlockctl/%i|$etc|; s|/usr/local/bin|$DESTDIR/usr/local/bin|; s|127.0.0.1:9622|$LISTEN|")
	$start >>"$DESTDIR/guard.log" 2>&1 </dev/null &
	echo $! >"$DESTDIR/guard.pid"
	;;
esac
`

func newWalk(t *testing.T) *walk {
	t.Helper()
	w := &walk{t: t, dir: t.TempDir()}
	w.bin = build(t)
	w.root, w.folder = filepath.Join(w.dir, "root"), filepath.Join(w.dir, "redlockctl-orders")
	w.config = filepath.Join(w.folder, "ops.toml")
	w.write(filepath.Join(filepath.Dir(w.bin), "sudo"), "#!/bin/sh\nexec \"$@\"\n", 0o755)
	w.write(filepath.Join(filepath.Dir(w.bin), "systemctl"), systemctl, 0o755)
	if err := os.MkdirAll(filepath.Join(w.root, "var/lib"), 0o755); err != nil {
		t.Fatal(err)
	}
	debian, err := os.ReadFile("/etc/redis/redis.conf")
	if err != nil {
		if os.Getenv("CI") != "" || os.Getenv("REDLOCKCTL_TEST_ALL") != "" {
			t.Fatalf("no redis.conf of Debian's package redis-server: %v", err)
		}
		t.Skipf("no redis.conf of Debian's package redis-server: %v", err)
	}
	ca := w.certificate()
	var urls []string
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
		// What docs/production.md asks for, and a login.
		conf += "\nmaxmemory-policy noeviction\nsave \"\"\nappendonly no\ntcp-keepalive 30\n"
		url := "redis://"
		switch i {
		case 3:
			w.write(filepath.Join(n.dir, "users.acl"), "user default on >secret ~* &* +@all\nuser app on >other ~lock:* +@all\n", 0o600)
			conf += "aclfile " + filepath.Join(n.dir, "users.acl") + "\n"
		case 4:
			conf = strings.Replace(conf, fmt.Sprintf("port %d\n", n.port), fmt.Sprintf("port 0\ntls-port %d\n", n.port), 1)
			conf += fmt.Sprintf("tls-cert-file %[1]s/ca.pem\ntls-key-file %[1]s/ca.key\ntls-ca-cert-file %[1]s/ca.pem\ntls-auth-clients no\nrequirepass secret\n", w.dir)
			url, n.tls = "rediss://", &tls.Config{RootCAs: ca, MinVersion: tls.VersionTLS12, ServerName: "127.0.0.1"}
		case 2:
			conf += "user app on >other ~lock:* +@all\n"
			fallthrough
		default:
			conf += "requirepass secret\n"
		}
		w.write(n.conf, conf, 0o600)
		n.start(t)
		t.Cleanup(func() { n.end(t, syscall.SIGKILL) })
		w.nodes = append(w.nodes, n)
		urls = append(urls, url+n.addr())
	}
	w.init = fmt.Sprintf("cd %s && redlockctl init --nodes %s --tls-ca ca.pem --cluster orders --pattern 'lock:*' --max-ttl 2s --watch 1s --yes", w.dir, strings.Join(urls, ","))
	w.listen = net.JoinHostPort("127.0.0.1", strconv.Itoa(freePort(t)))
	t.Cleanup(w.stopGuard)
	time.Sleep(4 * time.Second) // adopted masters must have run for longer than D: younger ones are fenced first
	return w
}

// write creates a file.
func (w *walk) write(path, text string, mode os.FileMode) {
	w.t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		w.t.Fatal(err)
	}
}

// certificate makes a self-signed authority that is also the server's certificate, ca.pem
// and ca.key.
func (w *walk) certificate() *x509.CertPool {
	w.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		w.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		w.t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		w.t.Fatal(err)
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	w.write(filepath.Join(w.dir, "ca.pem"), string(cert), 0o600)
	w.write(filepath.Join(w.dir, "ca.key"), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})), 0o600)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(cert)
	return pool
}

// adopt runs init and then the commands of its runbook, and returns their number.
func (w *walk) adopt() (commands int) {
	w.t.Helper()
	before := make([]string, len(w.nodes))
	for i, n := range w.nodes {
		before[i] = n.runID(w.t)
	}
	w.sh(w.init, "Next: read redlockctl-orders/RUNBOOK.md")
	page, err := os.ReadFile(filepath.Join(w.folder, "RUNBOOK.md"))
	if err != nil {
		w.t.Fatal(err)
	}
	commands = 2 // init and cd
	for _, block := range regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindAllStringSubmatch(string(page), -1) {
		for line := range strings.Lines(block[1]) {
			commands++
			line = "cd " + w.folder + " && " + strings.TrimSpace(line)
			if strings.Contains(line, "--check") {
				w.eventually(line, "^protected at the next crash: yes")
			} else {
				w.sh(line, "")
				w.sh(line, "") // a second run changes nothing
			}
		}
	}
	w.sh("redlockctl status", "^cluster [a-z]+: safe") // as init --check says, although no start was seen
	for i, n := range w.nodes {
		if n.runID(w.t) != before[i] {
			w.t.Errorf("n%d was restarted", i+1)
		}
		n.grants(w.t)
	}
	for _, name := range []string{"guard.env", "ops.password", "client.password", "n1/install.sh", "n1/users.redis"} {
		if info, err := os.Stat(filepath.Join(w.folder, name)); err != nil || info.Mode().Perm()&0o077 != 0 {
			w.t.Errorf("%s: %v, %v: others can read it", name, info.Mode(), err)
		}
	}
	return commands
}

// clientsLock lets real libraries lock on all masters as the user that init created for
// them.
func (w *walk) clientsLock() {
	w.t.Helper()
	var urls []string
	for _, n := range w.nodes {
		scheme := "redis://"
		if n.tls != nil {
			scheme = "rediss://"
		}
		urls = append(urls, scheme+n.addr())
	}
	login := fmt.Sprintf("LOCK_USER=redlockctl-client LOCK_PASSWORD=$(cat %s/client.password) LOCK_CA=%s/ca.pem ", w.folder, w.dir)
	house, err := filepath.Abs("../../proof/samples")
	if err != nil {
		w.t.Fatal(err)
	}
	w.sh(fmt.Sprintf("cd %s && go build -o %s/quorum ./quorum", house, w.dir), "")
	w.sh(login+w.dir+"/quorum "+strings.Join(urls, " "), "^redsync: acquired, extended, released$")
	if modules := os.Getenv("REDLOCKCTL_NODE_LIBRARIES"); modules != "" {
		w.sh("cd "+modules+" && "+login+"node "+house+"/quorum/quorum.mjs "+strings.Join(urls, " "), "^node-redlock: acquired, extended, released$")
	}
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

func (w *walk) env() []string {
	return append(os.Environ(), "PATH="+filepath.Dir(w.bin)+":"+os.Getenv("PATH"), "REDLOCKCTL_CONFIG="+w.config, "REDLOCKCTL_PASSWORD=secret",
		"XDG_STATE_HOME="+filepath.Join(w.dir, "person"), "DESTDIR="+w.root, "LISTEN="+w.listen)
}

// try runs a line of the manual in a shell.
func (w *walk) try(line string) (out string, code int) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", "set -o pipefail; "+line)
	cmd.Env = w.env()
	b, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		w.t.Fatal(err)
	}
	return string(b), cmd.ProcessState.ExitCode()
}

// sh runs a line of the manual, which must print this text and exit with one of these
// codes, default 0.
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

// eventually is sh for something that takes a moment.
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

// stopGuard ends a guard that the test left running.
func (w *walk) stopGuard() {
	b, err := os.ReadFile(filepath.Join(w.root, "guard.pid"))
	if err != nil {
		return
	}
	if pid, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil {
		_ = syscall.Kill(pid, syscall.SIGTERM)
	}
	if w.t.Failed() {
		log, _ := os.ReadFile(filepath.Join(w.root, "guard.log"))
		w.t.Logf("the guard said:\n%s", log)
	}
}

// eachOne calls f for each of these nodes; without any, for all.
func (w *walk) eachOne(f func(*walkNode), which ...int) {
	for i, n := range w.nodes {
		if len(which) == 0 || slices.Contains(which, i) {
			f(n)
		}
	}
}

// restart ends nodes and starts them again.
func (w *walk) restart(how syscall.Signal, which ...int) {
	w.t.Helper()
	w.eachOne(func(n *walkNode) { n.end(w.t, how) }, which...)
	w.eachOne(func(n *walkNode) { n.start(w.t) }, which...)
}

// crash kills nodes, all unless some are named, and starts them again: each must refuse
// writes from its first answer until D after its start, and then grant again.
func (w *walk) crash(which ...int) {
	w.t.Helper()
	w.eachOne(func(n *walkNode) { n.end(w.t, syscall.SIGKILL) }, which...)
	back := time.Now() // before the start: D counts from an even later time
	w.eachOne(func(n *walkNode) { n.start(w.t); n.refuses(w.t) }, which...)
	if len(which) == 0 {
		which = []int{0, 1, 2, 3, 4}
	}
	for _, i := range which {
		w.sh(fmt.Sprintf("redlockctl node wait n%d --timeout 30s", i+1), "")
		if took := time.Since(back); took < walkDelay {
			w.t.Errorf("n%d rejoined %v after its crash, before D = %v", i+1, took, walkDelay)
		}
	}
	w.eachOne(func(n *walkNode) { n.grants(w.t); n.wantsPassword(w.t) }, which...)
}

// walkNode is a redis-server with Debian's configuration.
type walkNode struct {
	port      int
	dir, conf string
	tls       *tls.Config
	cmd       *exec.Cmd
	ended     func() error
}

func (n *walkNode) start(t *testing.T) {
	t.Helper()
	n.cmd = exec.Command("redis-server", n.conf)
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

// runID identifies the incarnation of the server.
func (n *walkNode) runID(t *testing.T) string {
	t.Helper()
	c := n.client("secret")
	defer c.Close()
	info, err := c.Info(t.Context(), "server").Result()
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`run_id:\w+`).FindString(info)
}

func (n *walkNode) addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(n.port)) }

func (n *walkNode) client(password string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: n.addr(), Password: password, TLSConfig: n.tls, MaxRetries: -1, DialerRetries: 1})
}

// ask sends a command on a new connection.
func (n *walkNode) ask(t *testing.T, password string, args ...any) error {
	t.Helper()
	c := n.client(password)
	defer c.Close()
	return c.Do(t.Context(), args...).Err()
}

func (n *walkNode) do(t *testing.T, args ...any) {
	t.Helper()
	if err := n.ask(t, "secret", args...); err != nil {
		t.Fatalf("%v: %v", args, err)
	}
}

// grants checks that the node accepts a vote.
func (n *walkNode) grants(t *testing.T) {
	t.Helper()
	n.do(t, "SET", "lock:walk", "token", "PX", 1)
}

// refuses checks that the node refuses one.
func (n *walkNode) refuses(t *testing.T) {
	t.Helper()
	err := n.ask(t, "secret", "SET", "lock:walk", "token", "PX", 1)
	if err == nil || !strings.HasPrefix(err.Error(), "NOREPLICAS") {
		t.Fatalf("the node at %d does not refuse writes after its start: %v", n.port, err)
	}
}

// wantsPassword checks that requirepass still protects the node.
func (n *walkNode) wantsPassword(t *testing.T) {
	t.Helper()
	err := n.ask(t, "", "PING")
	if err == nil || !strings.HasPrefix(err.Error(), "NOAUTH") {
		t.Fatalf("the node at %d wants no password: %v", n.port, err)
	}
}
