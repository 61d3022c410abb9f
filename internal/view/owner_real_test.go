package view_test

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/internal/lab/labtest"
	"redlockctl/internal/view"
	"redlockctl/internal/who"
	"redlockctl/monitor/observe"
	"redlockctl/redlock"
)

// heldOn makes this test the holder of a lock: the addresses of the servers.
const heldOn = "REDLOCKCTL_TEST_HELD_ON"

const (
	holderPace = 800 * time.Millisecond
	extendIt   = `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end return 0`
)

// hold extends the lock until the process is killed, or its parent ended.
func hold(ctx context.Context, addrs []string) {
	var clients []*redis.Client
	for _, addr := range addrs {
		clients = append(clients, redis.NewClient(&redis.Options{Addr: addr, ClientName: "billing", PoolSize: 1}))
	}
	for parent := os.Getppid(); os.Getppid() == parent; time.Sleep(holderPace) {
		for _, c := range clients {
			c.Eval(ctx, extendIt, []string{"job"}, "token", 120_000)
		}
	}
}

// TestOwnerOfAStoppedProcess: OWNER stops to say that a holder is alive a bounded time
// after it was suspended or killed, calls it silent only when it has missed two
// extensions, and alive again when it goes on.
func TestOwnerOfAStoppedProcess(t *testing.T) {
	if addrs := os.Getenv(heldOn); addrs != "" {
		hold(t.Context(), strings.Split(addrs, ","))
		return
	}
	t.Parallel()
	servers := labtest.Servers(t, 3)
	nodes := labtest.Nodes(servers)
	var addrs []string
	for _, s := range servers {
		addrs = append(addrs, s.Addr())
		if _, err := s.Do(t.Context(), "SET", "job", "token", "PX", "120000"); err != nil {
			t.Fatal(err)
		}
	}
	m, err := observe.New(named(nodes, "console"), observe.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); m.Run(ctx) }()
	defer func() { cancel(); <-ended }()

	holder := exec.Command(os.Args[0], "-test.run", "^TestOwnerOfAStoppedProcess$")
	holder.Env = append(os.Environ(), heldOn+"="+strings.Join(addrs, ","))
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Process.Kill(); _ = holder.Wait() }()
	signal := func(s os.Signal) time.Time {
		t.Helper()
		if err := holder.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		return time.Now()
	}

	var answer *who.Answer
	ask := func() {
		t.Helper()
		var err error
		if answer, err = who.Observe(ctx, named(nodes, "who"), who.Options{Key: "job", For: 30 * time.Second, Timeout: 5 * time.Second, Known: answer}); err != nil {
			t.Fatal(err)
		}
	}
	// The connections of the console and of who are in use all the time, and no candidates.
	ask()
	if answer.Method != who.Inferred || answer.Group.Name != "billing" || answer.Usually == 0 {
		t.Fatalf("the holder was not found: %+v", answer)
	}
	owner := func() string {
		s := m.Snapshot()
		l := s.Locks.Get("job")
		if l == nil {
			return ""
		}
		c := &view.Context{Glyphs: view.Plain(true), Snap: s, Now: time.Now(), Known: func(string) *who.Answer { return answer }}
		for _, column := range view.LockColumns(nil) {
			if column.Name == "OWNER" {
				return column.Cell(c, l).Text
			}
		}
		return ""
	}
	// until returns when OWNER says that, and what it said before, without repetitions.
	until := func(want string) (at time.Time, said []string) {
		t.Helper()
		is := regexp.MustCompile(`^billing\? p 0\.99\d, ` + want + `$`)
		for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			text := owner()
			if is.MatchString(text) {
				return time.Now(), said
			}
			if len(said) == 0 || said[len(said)-1] != text {
				said = append(said, text)
			}
		}
		t.Fatalf("OWNER does not say %q, but %q", want, said)
		return
	}
	const silent = `silent (\d+)s`
	usually := answer.Usually
	stops := func(how string, since time.Time) {
		t.Helper()
		quiet, _ := until(`(extended|silent) .*`)
		at, said := until(silent)
		t.Logf("%s, extending every %s: not called alive after %s, called silent after %s; before that %q", how, usually, quiet.Sub(since), at.Sub(since), said)
		// The last extension was before the signal. A loaded machine may show it late.
		const slack = 5 * time.Second
		if took := quiet.Sub(since); took > usually*3/2+slack {
			t.Errorf("%s: alive for %s", how, took)
		}
		if took := at.Sub(since); took > usually*5/2+slack {
			t.Errorf("%s: not called silent for %s", how, took)
		}
		secs, _ := strconv.Atoi(regexp.MustCompile(silent).FindStringSubmatch(owner())[1])
		if secs < int(usually*5/2/time.Second) {
			t.Errorf("%s: silent %ds; it extends every %s", how, secs, usually)
		}
	}
	until("alive")
	stops("suspended", signal(syscall.SIGSTOP))
	signal(syscall.SIGCONT)
	until("alive")
	stops("killed", signal(syscall.SIGKILL))
	if ask(); answer.Liveness != who.Gone {
		t.Errorf("asked again: %+v", answer)
	}
	until(`gone \d+s`)
}

// named returns the nodes with connections of a command of this program.
func named(nodes []*redlock.Node, command string) (out []*redlock.Node) {
	for _, n := range nodes {
		out = append(out, n.Named(who.ConnName(command, "test@here:1")))
	}
	return out
}
