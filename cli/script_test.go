package cli

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"redlockctl/base/race"
	"redlockctl/internal/lab"
	"redlockctl/internal/run"
)

func TestMain(m *testing.M) {
	// The scripts mostly wait for servers and for time to pass; the number of
	// processors is no measure of how many of them may do so side by side. -parallel
	// on the command line comes later and wins.
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	if run.IsReaper(os.Args) {
		os.Exit(run.Reap(os.Args))
	}
	testscript.Main(m, map[string]func(){
		"redlockctl": func() { os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
		"fetch":      fetch,
	})
}

// fetch URL: prints what is there; exit code 1 if there is no answer.
func fetch() {
	answer, err := http.Get(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_, _ = io.Copy(os.Stdout, answer.Body)
	_ = answer.Body.Close()
}

// TestScripts runs the scenarios in testdata/script, each on masters of its
// own. See the commands below for what they have beyond testscript's own. With the race
// detector only those of commands that stay are run: it makes each start of the program
// several times as slow, and the scripts start it hundreds of times.
func TestScripts(t *testing.T) {
	const dir = "testdata/script"
	p := scriptParams
	if race.Enabled {
		for _, name := range []string{"guard_daemon", "guard_two", "history", "keep", "run", "watch", "who"} {
			p.Files = append(p.Files, filepath.Join(dir, name+".txtar"))
		}
	} else {
		p.Dir = dir // testscript takes one or the other
	}
	testscript.Run(t, p)
}

// scriptParams are of all scripts.
var scriptParams = testscript.Params{
	RequireExplicitExec: true,
	RequireUniqueNames:  true,
	Setup: func(env *testscript.Env) error {
		b := &bed{t: env.T(), work: env.WorkDir, dir: filepath.Join(env.WorkDir, ".redis"), servers: map[string]*lab.Server{}, started: map[string]time.Time{}, jobs: map[string]*job{}}
		env.Values[bedKey{}] = b
		env.Defer(b.close)
		// A program built with the race detector would wait for a second at each of
		// its ends, for reports that were still to come.
		env.Setenv("GORACE", "atexit_sleep_ms=0")
		for name, dir := range map[string]string{"HOME": "home", "XDG_STATE_HOME": "state", "XDG_CONFIG_HOME": "xdg"} {
			env.Setenv(name, filepath.Join(env.WorkDir, dir))
		}
		page, err := filepath.Abs(jsonPage)
		if err != nil {
			return err
		}
		env.Setenv("JSONPAGE", page)
		b.env = env.Vars
		// A server opens its files in its own directory.
		return os.Mkdir(b.dir, 0o700)
	},
	Cmds: map[string]func(*testscript.TestScript, bool, []string){
		"exits":     cmdExits,
		"until":     cmdUntil,
		"cluster":   cmdCluster,
		"server":    cmdServer,
		"config":    cmdConfig,
		"crash":     cmdCrash,
		"restart":   cmdRestart,
		"pause":     cmdPause,
		"redis":     cmdRedis,
		"rejoins":   cmdRejoins,
		"closed":    cmdClosed,
		"freeports": cmdFreePorts,
		"killpid":   cmdKillPid,
		"nocontrol": cmdNoControl,
		"field":     cmdField,
		"start":     cmdStart,
		"await":     cmdAwait,
		"interrupt": cmdInterrupt,
		"signal":    cmdSignal,
		"ends":      cmdEnds,
		"examples":  cmdExamples,
	},
}

// failing is a [testing.T] for a script that must fail.
type failing struct{ t *testing.T }

func (f failing) Skip(args ...any)  { f.t.Skip(args...) }
func (f failing) Fatal(args ...any) { f.Log(args...); f.FailNow() }
func (f failing) Log(args ...any)   { f.t.Log(args...) }
func (failing) FailNow()            { runtime.Goexit() }
func (failing) Parallel()           {}
func (failing) Verbose() bool       { return false }
func (f failing) Run(_ string, do func(testscript.T)) {
	ended := make(chan struct{})
	go func() { defer close(ended); do(f) }()
	<-ended
}

// A script that fails leaves no server running that its lab up started.
func TestFailedScriptLeavesNoServer(t *testing.T) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("no redis-server")
	}
	dir := t.TempDir()
	port, err := lab.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(dir, "fails.txtar")
	reached := filepath.Join(dir, "reached")
	text := fmt.Sprintf("exec redlockctl lab up --dir deep/in/it --nodes 1 --port %d\nexec touch %s\nexec false\n", port, reached)
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := scriptParams
	p.Files = []string{script}
	testscript.RunT(failing{t}, p)
	if _, err := os.Stat(reached); err != nil {
		t.Fatal("the lab was not started")
	}
	if c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
		c.Close()
		t.Fatal("the server of the failed script still runs")
	}
}

// bed is what a script's servers stand in.
type bed struct {
	t       testscript.T
	work    string // the script's directory
	dir     string
	servers map[string]*lab.Server
	started map[string]time.Time // just before the last start of a server
	env     []string             // of the script, as it began
	jobs    map[string]*job
}

type bedKey struct{}

func bedOf(ts *testscript.TestScript) *bed { return ts.Value(bedKey{}).(*bed) }

// job is a program in the background whose output can be waited for.
type job struct {
	cmd  *exec.Cmd
	done chan struct{}
	lockedLog
}

func (b *bed) close() {
	for _, j := range b.jobs {
		_ = j.cmd.Process.Kill() // if it has not ended
		<-j.done
	}
	for _, s := range b.servers {
		_ = s.Kill()
	}
	// A script that failed has not come to its "lab down".
	_ = filepath.WalkDir(b.work, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "redis.conf" {
			_, err := lab.Down(context.Background(), filepath.Dir(filepath.Dir(path)))
			if err != nil {
				b.t.Log(err)
			}
		}
		return nil
	})
}

func (b *bed) server(ts *testscript.TestScript, name string) *lab.Server {
	s := b.servers[name]
	if s == nil {
		ts.Fatalf("no server %q", name)
	}
	return s
}

func (b *bed) start(ts *testscript.TestScript, name string, args ...string) *lab.Server {
	bin, err := exec.LookPath("redis-server")
	if err != nil {
		const what = "no redis-server: apt-get install redis-server"
		if os.Getenv("CI") != "" || os.Getenv("REDLOCKCTL_TEST_ALL") != "" {
			ts.Fatalf(what)
		}
		b.t.Skip(what)
	}
	b.started[name] = time.Now()
	s, err := lab.StartServer(bin, name, b.dir, args...)
	ts.Check(err)
	b.servers[name] = s
	ts.Setenv("ADDR_"+name, s.Addr())
	return s
}

func (b *bed) do(s *lab.Server, args ...string) (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	words := make([]any, len(args))
	for i, a := range args {
		words[i] = a
	}
	return s.Do(ctx, words...)
}

// exits CODE PROGRAM ARG...: the program ends with this exit code.
func cmdExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARG...")
	}
	code := 0
	err := ts.Exec(args[1], args[2:]...)
	var ee *exec.ExitError
	if errors.As(err, &ee) {
		code = ee.ExitCode()
	} else {
		ts.Check(err)
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, not %s", code, args[0])
	}
}

// hangs is after how long what has not come is said never to come.
const hangs = 60 * time.Second

// until PATTERN PROGRAM ARG...: runs the program until its standard output matches.
func cmdUntil(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: until PATTERN PROGRAM ARG...")
	}
	re := regexp.MustCompile("(?m)" + args[0])
	pause := 20 * time.Millisecond // a real server makes us wait, and processes cost
	for deadline := time.Now().Add(hangs); ; pause = min(2*pause, 300*time.Millisecond) {
		_ = ts.Exec(args[1], args[2:]...)
		if re.MatchString(ts.ReadFile("stdout")) {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("no match for %s within %s", args[0], hangs)
		}
		time.Sleep(pause)
	}
}

// start NAME PROGRAM ARG...: runs the program in the background.
func cmdStart(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: start NAME PROGRAM ARG...")
	}
	b := bedOf(ts)
	path, err := exec.LookPath(args[1]) // testscript has put its own directory into PATH
	ts.Check(err)
	j := &job{cmd: exec.Command(path, args[2:]...), done: make(chan struct{})}
	j.cmd.Args[0] = args[1]
	j.cmd.Dir, j.cmd.Env = ts.MkAbs("."), b.env
	j.cmd.Stdout, j.cmd.Stderr = j, j
	ts.Check(j.cmd.Start())
	go func() { _ = j.cmd.Wait(); close(j.done) }()
	b.jobs[args[0]] = j
}

// await NAME PATTERN: waits until the job's output matches.
func cmdAwait(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: await NAME PATTERN")
	}
	j := bedOf(ts).jobs[args[0]]
	re := regexp.MustCompile("(?m)" + args[1])
	for deadline := time.Now().Add(hangs); !re.MatchString(j.String()); time.Sleep(10 * time.Millisecond) {
		select {
		case <-j.done:
			ts.Fatalf("%s ended without %s:\n%s", args[0], args[1], j.String())
		default:
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%s does not say %s:\n%s", args[0], args[1], j.String())
		}
	}
}

// interrupt NAME: sends SIGINT to the job, which must end with exit code 0; its
// output, of both streams, is printed.
func cmdInterrupt(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: interrupt NAME")
	}
	j := bedOf(ts).jobs[args[0]]
	ts.Check(j.cmd.Process.Signal(syscall.SIGINT))
	select {
	case <-j.done:
	case <-time.After(3 * hangs): // it may wait for others
		ts.Fatalf("%s does not end:\n%s", args[0], j.String())
	}
	fmt.Fprint(ts.Stdout(), j.String())
	if code := j.cmd.ProcessState.ExitCode(); code != 0 {
		ts.Fatalf("%s: %s", args[0], j.cmd.ProcessState)
	}
}

// signal NAME SIGNAL: sends it to the job; INT, TERM, …
func cmdSignal(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: signal NAME SIGNAL")
	}
	s := unix.SignalNum("SIG" + args[1])
	if s == 0 {
		ts.Fatalf("no signal %q", args[1])
	}
	ts.Check(bedOf(ts).jobs[args[0]].cmd.Process.Signal(s))
}

// ends NAME CODE: the job ends with this exit code, -1 for a signal; its output,
// of both streams, is printed.
func cmdEnds(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: ends NAME CODE")
	}
	j := bedOf(ts).jobs[args[0]]
	select {
	case <-j.done:
	case <-time.After(3 * hangs): // it may wait for others
		ts.Fatalf("%s does not end:\n%s", args[0], j.String())
	}
	fmt.Fprint(ts.Stdout(), j.String())
	if code := j.cmd.ProcessState.ExitCode(); strconv.Itoa(code) != args[1] {
		ts.Fatalf("%s: %s, not %s", args[0], j.cmd.ProcessState, args[1])
	}
}

// cluster N [max_ttl=D]: N masters n1, n2, … with the boot fence, opened, and
// config.toml for them.
func cmdCluster(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: cluster N [KEY=VALUE...]")
	}
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	b := bedOf(ts)
	for i := range n {
		s := b.start(ts, fmt.Sprintf("n%d", i+1), lab.BootFence...)
		_, err := b.do(s, "CONFIG", "SET", "min-replicas-to-write", "0")
		ts.Check(err)
	}
	cmdConfig(ts, false, args[1:])
}

// server NAME [ARG...]: one more server, open, with these arguments.
func cmdServer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: server NAME [ARG...]")
	}
	bedOf(ts).start(ts, args[0], args[1:]...)
}

// config [KEY=VALUE...] [NODE.KEY=VALUE...]: writes config.toml for all servers of the
// script, or without any for one that does not answer; KEY is one of [cluster], or
// first_contact.
func cmdConfig(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: config [KEY=VALUE...] [NODE.KEY=VALUE...]")
	}
	b := bedOf(ts)
	cluster := map[string]string{"name": "test", "max_ttl": "30s"}
	node := map[string][]string{}
	contact := ""
	for _, a := range args {
		key, value, ok := strings.Cut(a, "=")
		if !ok {
			ts.Fatalf("%q is not KEY=VALUE", a)
		}
		if key == "first_contact" {
			contact = value
		} else if name, of, ok := strings.Cut(key, "."); ok {
			node[name] = append(node[name], fmt.Sprintf("%s = %q", of, value))
		} else {
			cluster[key] = value
		}
	}
	var w strings.Builder
	fmt.Fprintln(&w, "[cluster]")
	for _, key := range slices.Sorted(maps.Keys(cluster)) {
		if strings.HasPrefix(cluster[key], "[") || cluster[key] == "true" {
			fmt.Fprintf(&w, "%s = %s\n", key, cluster[key])
		} else {
			fmt.Fprintf(&w, "%s = %q\n", key, cluster[key])
		}
	}
	// A busy machine is no reason to take a node for dead.
	maxTTL := duration(ts, cluster["max_ttl"])
	fmt.Fprintf(&w, "[redlock]\nnode_timeout = %q\n[monitor]\ntimeout = \"1s\"\n", min(time.Second, maxTTL/10))
	// The servers were only just started.
	fmt.Fprintf(&w, "[guard]\nfirst_contact = %q\n", cmp.Or(contact, "adopt-young"))
	if len(b.servers) == 0 {
		fmt.Fprint(&w, "\n[[nodes]]\nname = \"n1\"\naddr = \"127.0.0.1:1\"\n") // nobody is there
	}
	for _, name := range slices.Sorted(maps.Keys(b.servers)) {
		fmt.Fprintf(&w, "\n[[nodes]]\nname = %q\naddr = %q\n", name, b.servers[name].Addr())
		for _, line := range node[name] {
			fmt.Fprintln(&w, line)
		}
	}
	ts.Check(os.WriteFile(ts.MkAbs("config.toml"), []byte(w.String()), 0o600))
}

// crash NODE...: ends the processes as kill -9 does.
func cmdCrash(ts *testscript.TestScript, neg bool, args []string) {
	for _, name := range args {
		ts.Check(bedOf(ts).server(ts, name).Kill())
	}
}

// restart NODE...: starts them again, empty, with the arguments they had.
func cmdRestart(ts *testscript.TestScript, neg bool, args []string) {
	b := bedOf(ts)
	for _, name := range args {
		s := b.server(ts, name)
		b.started[name] = time.Now()
		ts.Check(s.Start())
	}
}

// pause NODE: it stays connected and does not answer any more.
func cmdPause(ts *testscript.TestScript, neg bool, args []string) {
	for _, name := range args {
		ts.Check(bedOf(ts).server(ts, name).Pause())
	}
}

// redis NODE COMMAND ARG...: sends a command and prints the answer; with ! the
// answer must be an error, which is printed. Go's escapes are understood.
func cmdRedis(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: redis NODE COMMAND ARG...")
	}
	words := make([]string, len(args)-1)
	for i, a := range args[1:] {
		w, err := strconv.Unquote(`"` + strings.ReplaceAll(a, `"`, `\"`) + `"`)
		ts.Check(err)
		words[i] = w
	}
	b := bedOf(ts)
	answer, err := b.do(b.server(ts, args[0]), words...)
	switch {
	case err != nil && err.Error() == "redis: nil":
		answer, err = "(nil)", nil
	case neg && err == nil:
		ts.Fatalf("no error, but %v", answer)
	case neg:
		answer = err
	case err != nil:
		ts.Fatalf("%v", err)
	}
	fmt.Fprintln(ts.Stdout(), answer)
}

// rejoins NODE LEAST MOST: the node accepts its first SET not sooner than LEAST
// and not later than MOST after it was started, on the monotonic clock.
func cmdRejoins(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: rejoins NODE LEAST MOST")
	}
	b := bedOf(ts)
	s, start := b.server(ts, args[0]), b.started[args[0]]
	least, most := duration(ts, args[1]), duration(ts, args[2])
	for {
		_, err := b.do(s, "SET", "probe:rejoin", "x", "PX", "1")
		if took := time.Since(start); err == nil {
			if took < least {
				ts.Fatalf("%s voted after %s, sooner than %s", args[0], took, least)
			}
			ts.Logf("%s rejoined after %s", args[0], took)
			return
		} else if took > most {
			ts.Fatalf("%s is closed after %s: %v", args[0], took, err)
		}
		time.Sleep(5 * time.Millisecond) // a real server makes us wait
	}
}

// closed NODE TIME: the node refuses every SET until this time after its start.
func cmdClosed(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: closed NODE TIME")
	}
	b := bedOf(ts)
	s, start, long := b.server(ts, args[0]), b.started[args[0]], duration(ts, args[1])
	for time.Since(start) < long {
		_, err := b.do(s, "SET", "probe:closed", "x", "PX", "1")
		if err == nil {
			ts.Fatalf("%s voted after %s", args[0], time.Since(start))
		}
		if !strings.HasPrefix(err.Error(), "NOREPLICAS") {
			ts.Fatalf("%s: %v", args[0], err)
		}
		time.Sleep(20 * time.Millisecond) // a real server makes us wait
	}
}

// freeports N: $PORT is the first of N loopback ports in a row that are free.
func cmdFreePorts(ts *testscript.TestScript, neg bool, args []string) {
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	for range 100 {
		first, err := lab.FreePort()
		ts.Check(err)
		free := 0
		for ; free < n; free++ {
			l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", first+free))
			if err != nil {
				break
			}
			l.Close()
		}
		if free == n {
			ts.Setenv("PORT", strconv.Itoa(first))
			return
		}
	}
	ts.Fatalf("no %d free ports in a row", n)
}

// killpid PID: kill -9 of a process that the script started.
func cmdKillPid(ts *testscript.TestScript, neg bool, args []string) {
	pid, err := strconv.Atoi(args[0])
	ts.Check(err)
	ts.Check(syscall.Kill(pid, syscall.SIGKILL))
}

// nocontrol stdout|stderr...: the last output holds no control character but
// line feeds, no C1 control, bidi mark or invalid UTF-8.
func cmdNoControl(ts *testscript.TestScript, neg bool, args []string) {
	for _, name := range args {
		text := ts.ReadFile(name)
		for i, r := range text {
			if r < ' ' && r != '\n' || r >= 0x7f && r <= 0x9f || r == '\ufffd' || r >= '\u200b' && r <= '\u200f' || r >= '\u202a' && r <= '\u202e' {
				ts.Fatalf("%s holds %U at byte %d: %q", name, r, i, text)
			}
		}
	}
}

// field VAR PATTERN: sets $VAR to what the first group of the pattern matches
// in the last standard output.
func cmdField(ts *testscript.TestScript, neg bool, args []string) {
	m := regexp.MustCompile("(?m)" + args[1]).FindStringSubmatch(ts.ReadFile("stdout"))
	if len(m) < 2 {
		ts.Fatalf("no match for %s", args[1])
	}
	ts.Setenv(args[0], m[1])
}

func duration(ts *testscript.TestScript, s string) time.Duration {
	d, err := time.ParseDuration(s)
	ts.Check(err)
	return d
}
