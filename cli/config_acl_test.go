package cli

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/cli/printer"
	"redlockctl/internal/acl"
	"redlockctl/internal/lab"
	"redlockctl/internal/lab/labtest"
)

// aclServer is a redis-server that is restarted with its own redis.conf.
type aclServer struct {
	t    *testing.T
	bin  string
	dir  string
	addr string
	cmd  *exec.Cmd
}

func newACLServer(t *testing.T, bin, conf string) *aclServer {
	t.Helper()
	port, err := lab.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	s := &aclServer{t: t, bin: bin, dir: t.TempDir(), addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}
	s.append("redis.conf", fmt.Sprintf("port %d\nbind 127.0.0.1\nsave \"\"\nlogfile %s/log\ndir %s\n%s\n", port, s.dir, s.dir, conf))
	t.Cleanup(s.stop)
	return s
}

func (s *aclServer) append(name, text string) {
	s.t.Helper()
	f, err := os.OpenFile(filepath.Join(s.dir, name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		s.t.Fatal(err)
	}
}

// start starts it, and fails with the server's log if it does not come up.
func (s *aclServer) start() {
	s.t.Helper()
	s.stop()
	s.cmd = exec.Command(s.bin, filepath.Join(s.dir, "redis.conf"))
	var out bytes.Buffer
	s.cmd.Stdout, s.cmd.Stderr = &out, &out
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.cmd.Wait() }()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		select {
		case <-ended:
			log, _ := os.ReadFile(filepath.Join(s.dir, "log"))
			s.cmd = nil
			s.t.Fatalf("the server does not start: %s%s", out.String(), log)
		default:
		}
		conn, err := net.DialTimeout("tcp", s.addr, time.Second)
		if err == nil {
			conn.Close()
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatal("the server does not listen")
		}
	}
}

func (s *aclServer) stop() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
			if conn, err := net.DialTimeout("tcp", s.addr, time.Second); err != nil {
				break
			} else {
				conn.Close()
			}
		}
		s.cmd = nil
	}
}

// do sends one command as this user, "" without logging in.
func (s *aclServer) do(user, password string, args ...any) (any, error) {
	c := redis.NewClient(&redis.Options{Addr: s.addr, Protocol: 2, DisableIdentity: true, Username: user, Password: password, MaxRetries: -1})
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return c.Do(ctx, args...).Result()
}

func (s *aclServer) must(user, password string, args ...any) any {
	s.t.Helper()
	v, err := s.do(user, password, args...)
	if err != nil {
		s.t.Fatalf("%v as %q: %v", args[:min(len(args), 3)], user, err)
	}
	return v
}

// config acl with a password in the configuration that is nowhere set.
func printACL(t *testing.T, patterns string, args ...string) (lines []string, guide string) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "config.toml")
	cfg := "[cluster]\nmax_ttl = \"30s\"\nlock_patterns = " + patterns + "\n[[nodes]]\nname = \"n1\"\naddr = \"redis-1.example.com:6379\"\n" +
		"username = \"ops\"\npassword_env = \"NOT_SET_ANYWHERE\"\n[nodes.tls]\nca = \"/no/such/file\"\n" +
		"[[nodes]]\nname = \"n2\"\naddr = \"redis-2.example.com:6379\"\nfence = \"acl\"\nfence_user = \"locks\"\nusername = \"ops\"\npassword_file = \"/no/such/file\"\n"
	if err := os.WriteFile(path, []byte(cfg), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"HOME": dir, "REDLOCKCTL_CONFIG": path, "APP_PASSWORD": "sesame"}
	var out, errOut bytes.Buffer
	a := newCommandLine(&printer.Printer{In: strings.NewReader(""), Out: &out, Err: &errOut, Getenv: func(k string) string { return env[k] }})
	if code := a.main(t.Context(), append([]string{"config", "acl"}, args...)); code != 0 {
		t.Fatalf("config acl %v: exit code %d: %s", args, code, errOut.String())
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n"), errOut.String()
}

// Each line that config acl prints is loaded by real servers of each generation:
// from an ACL file, from redis.conf, and by ACL SETUSER.
func TestACLLinesLoad(t *testing.T) {
	patterns := []string{`["*"]`, `["lock:*", "mutex:*"]`, `["a b", "quo\"te's", "back\\slash", "[ab]?*", "*"]`, `["ümläut:\u0007*"]`}
	for _, generation := range labtest.Generations(t) {
		t.Run(generation.Name, func(t *testing.T) {
			t.Parallel()
			server := min(generation.Name, "7.0")
			variants := [][]string{{}, {"--password-env", "APP_PASSWORD"}, {"--role", "operator,guard"}, {"--role", "observer,guard"}, {"--library", "all"}}
			if server == "7.0" { // newer servers know what older ones want
				variants = append(variants, []string{"--server", "6.2"}, []string{"--server", "6.0"})
			}
			for _, name := range acl.LibraryNames() {
				variants = append(variants, []string{"--role", "client", "--library", name})
			}
			file := newACLServer(t, generation.Bin, "requirepass sesame\naclfile users.acl")
			conf := newACLServer(t, generation.Bin, "requirepass sesame")
			file.append("users.acl", "user default on >sesame ~* +@all\n")
			live := newACLServer(t, generation.Bin, "")
			live.start()
			n := 0
			for i, p := range patterns {
				for _, variant := range variants {
					if i > 1 && len(variant) > 2 {
						continue // the patterns have been tried with each role
					}
					args := variant
					if strings.Join(variant, "") == "" || variant[0] != "--server" {
						args = append([]string{"--server", server}, variant...)
					}
					lines, _ := printACL(t, p, args...)
					commands, _ := printACL(t, p, append(args, "--setuser")...)
					for j, line := range lines {
						n++
						// Names are their own, so that one start loads them all.
						fields := strings.Fields(line)
						fields[1] = fmt.Sprintf("user%d", n)
						file.append("users.acl", strings.Join(fields, " ")+"\n")
						conf.append("redis.conf", strings.Join(fields, " ")+"\n")
						var command []any
						for f := range strings.FieldsSeq(commands[j]) {
							command = append(command, f)
						}
						if v, err := live.do("", "", command...); err != nil || v != "OK" {
							t.Errorf("%s: %v %v", commands[j], v, err)
						}
					}
				}
			}
			for _, s := range []*aclServer{file, conf} {
				s.start()
				users, _ := s.must("default", "sesame", "ACL", "USERS").([]any)
				if len(users) != n+1 {
					t.Errorf("%d users of %d were loaded", len(users), n+1)
				}
				if _, err := s.do("", "", "PING"); err == nil {
					t.Error("the default user has no password any more")
				}
			}
			t.Logf("%s: %d lines, each loaded from a file, from redis.conf and by ACL SETUSER", generation.Name, n)
		})
	}
}

// The steps that config acl prints, followed word for word with redis-cli, in
// each set-up: after a restart the users are there, and the default user still
// needs its password.
func TestACLStepsKeepThePassword(t *testing.T) {
	bin := labtest.RedisServer(t)
	cli, err := exec.LookPath("redis-cli")
	if err != nil {
		t.Fatal("no redis-cli: apt-get install redis-tools")
	}
	for _, setup := range []string{"redis.conf", "ACL file", "from redis.conf to an ACL file"} {
		t.Run(setup, func(t *testing.T) {
			conf := "requirepass sesame"
			if setup == "ACL file" {
				conf += "\naclfile users.acl"
			}
			s := newACLServer(t, bin, conf)
			if setup == "ACL file" {
				s.append("users.acl", "user default on >sesame ~* &* +@all\n")
			}
			s.start()
			_, port, _ := net.SplitHostPort(s.addr)
			redisCLI := func(stdin string, args ...string) string {
				t.Helper()
				cmd := exec.CommandContext(t.Context(), cli, append([]string{"-p", port}, args...)...)
				cmd.Env = append(os.Environ(), "REDISCLI_AUTH=sesame")
				cmd.Stdin = strings.NewReader(stdin)
				out, err := cmd.Output()
				if err != nil || strings.Contains(string(out), "ERR") || strings.Contains(string(out), "NO") {
					t.Fatalf("redis-cli %v: %v %s", args, err, out)
				}
				return string(out)
			}
			lines, guide := printACL(t, `["lock:*"]`, "--password-env", "APP_PASSWORD")
			commands, _ := printACL(t, `["lock:*"]`, "--password-env", "APP_PASSWORD", "--setuser")
			for _, step := range []string{"CONFIG GET aclfile", "config acl --password-env APP_PASSWORD --setuser | redis-cli", "config acl --password-env APP_PASSWORD >> redis.conf", "ACL LIST > users.acl"} {
				if !strings.Contains(guide, step) {
					t.Fatalf("no step %q in: %s", step, guide)
				}
			}
			hasFile := strings.Contains(redisCLI("", "CONFIG", "GET", "aclfile"), "users.acl")
			if hasFile != (setup == "ACL file") {
				t.Error("the question that tells the set-ups apart does not")
			}
			redisCLI(strings.Join(commands, "\n") + "\n")
			switch setup {
			case "redis.conf":
				s.append("redis.conf", strings.Join(lines, "\n")+"\n")
			case "ACL file":
				redisCLI("", "ACL", "SAVE")
			default:
				s.append("users.acl", redisCLI("", "ACL", "LIST"))
				s.append("redis.conf", "aclfile users.acl\n")
			}
			for range 2 {
				if _, err := s.do("", "", "PING"); err == nil || !strings.Contains(err.Error(), "NOAUTH") {
					t.Errorf("whoever comes without a password gets %v", err)
				}
				s.must("default", "sesame", "SET", "x", "y")
				s.must("redlockctl-client", "sesame", "SET", "lock:1", "y")
				if _, err := s.do("redlockctl-client", "sesame", "SET", "x", "y"); err == nil {
					t.Error("the client may write where no locks are")
				}
				s.must("redlockctl-observer", "sesame", "GETRANGE", "lock:1", 0, 1)
				s.start()
			}
		})
	}
}
