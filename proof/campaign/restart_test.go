package campaign_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	rsredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"redlockctl/base/sleep"
	"redlockctl/internal/lab"
	"redlockctl/internal/lab/labtest"
	"redlockctl/redlock"
)

// restartScript has the test restart a server.
const restartScript = "touch \"$1/$2\"; while [ -e \"$1/$2\" ]; do sleep 0.02; done"

// nodeLoad takes locks by node-redlock until its input ends.
const nodeLoad = `const require = (await import('node:module')).createRequire(process.cwd() + '/here.js');
const Redis = require('ioredis'), { default: Redlock } = require('redlock5');
const redlock = new Redlock(process.argv.slice(2).map((a) => new Redis('redis://' + a)), { retryCount: 0 });
let grants = 0, refused = 0, ended = false;
process.stdin.resume().on('end', () => { ended = true; });
while (!ended) {
  try {
    await (await redlock.acquire(['js:' + grants + ':' + refused], 1000)).release();
    grants++;
  } catch (e) { refused++; console.error(String(e)); }
  await new Promise((r) => setTimeout(r, 20));
}
console.log(grants, refused);
process.exit(0);
`

// Five real servers are restarted one after the other, under holders that keep their locks and the load of lock
// libraries: no lock is lost, and no grant refused.
func TestPlannedRestartsUnderLoad(t *testing.T) {
	program, dir, wanted := redlockctl(t), t.TempDir(), t.TempDir()
	servers := labtest.Servers(t, 5, lab.BootFence...)
	nodes := labtest.Nodes(servers)
	var config strings.Builder
	fmt.Fprintf(&config, "[cluster]\nmax_ttl = \"1s\"\n[guard]\nstate_dir = %q\n", filepath.Join(dir, "guard"))
	var names, addrs []string
	var pools []rsredis.Pool
	for i, s := range servers {
		name, addr := nodes[i].Name(), s.Addr()
		if _, err := s.Do(t.Context(), "CONFIG", "SET", "min-replicas-to-write", "0"); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&config, "[[nodes]]\nname = %q\naddr = %q\n", name, addr)
		names, addrs = append(names, name), append(addrs, addr)
		c := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})
		t.Cleanup(func() { _ = c.Close() })
		pools = append(pools, goredis.NewPool(c))
	}
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	file := write("config.toml", config.String())
	command := func(args ...string) *exec.Cmd {
		cmd := exec.Command(program, args...)
		cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+dir)
		return cmd
	}
	run := func(args ...string) string {
		t.Helper()
		out, err := command(args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	guard := command("guard", "--config", file)
	if err := guard.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = guard.Process.Kill(); _ = guard.Wait() })
	run(append([]string{"node", "wait", "--timeout", "1m", "--config", file}, names...)...)

	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	defer load.Wait()
	defer stop()
	var ours, theirs, slow atomic.Int64
	client, err := redlock.New(nodes, redlock.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	kept, err := client.Acquire(ctx, "kept", time.Second)
	if err != nil {
		t.Fatal(err)
	}
	keeper, err := kept.Keep(redlock.KeepOptions{})
	if err != nil {
		t.Fatal(err)
	}
	load.Go(func() {
		for sleep.For(ctx, 10*time.Millisecond) == nil {
			for i, name := range names {
				if _, err := os.Stat(filepath.Join(wanted, name)); err != nil {
					continue
				}
				if err := errors.Join(servers[i].Kill(), servers[i].Start(), os.Remove(filepath.Join(wanted, name))); err != nil {
					t.Error(err)
				}
			}
		}
	})
	loop := func(grants *atomic.Int64, once func(name string) error) {
		load.Go(func() {
			for i := 0; sleep.For(ctx, 20*time.Millisecond) == nil; i++ {
				switch err := once(fmt.Sprint("load:", i)); {
				case ctx.Err() != nil:
					return
				case err == nil:
					grants.Add(1)
				case strings.Contains(err.Error(), "timeout") || strings.Contains(err.Error(), "deadline") || strings.Contains(err.Error(), " slow"):
					slow.Add(1) // this machine is
				default:
					t.Error(err)
				}
			}
		})
	}
	loop(&ours, func(name string) error {
		l, err := client.TryAcquire(ctx, "ours:"+name, time.Second)
		if err == nil {
			_, _ = l.Release(ctx)
		}
		return err
	})
	rs := redsync.New(pools...)
	loop(&theirs, func(name string) error {
		m := rs.NewMutex("redsync:"+name, redsync.WithExpiry(time.Second), redsync.WithTries(1))
		err := m.LockContext(ctx)
		if err == nil {
			_, _ = m.UnlockContext(ctx)
		}
		return err
	})
	if modules := os.Getenv("REDLOCKCTL_NODE_LIBRARIES"); modules != "" {
		js := exec.Command("node", append([]string{write("load.mjs", nodeLoad)}, addrs...)...)
		js.Dir, js.Stderr = modules, os.Stderr
		in, _ := js.StdinPipe()
		var out strings.Builder
		js.Stdout = &out
		if err := js.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() {
			_ = in.Close()
			_ = js.Wait()
			t.Logf("node-redlock: grants and refusals %s", out.String())
			if !strings.HasSuffix(strings.TrimSpace(out.String()), " 0") {
				t.Error("node-redlock was refused a lock")
			}
		}()
	}

	began := time.Now()
	out := run(slices.Concat([]string{"restart", "--config", file}, names, []string{"--yes", "--", "sh", "-c", restartScript, "sh", wanted, "{name}"})...)
	t.Logf("five restarts in %s\n%s", time.Since(began).Round(100*time.Millisecond), out)
	if !kept.Valid(time.Now()) {
		t.Errorf("the kept lock is lost: %v", keeper.State())
	}
	if _, err := kept.Release(ctx); err != nil {
		t.Error(err)
	}
	stop()
	load.Wait()
	t.Logf("grants: redlock %d, redsync %d; %d attempts met servers that were slow", ours.Load(), theirs.Load(), slow.Load())
	if ours.Load() == 0 || theirs.Load() == 0 {
		t.Error("nothing was tried")
	}
}
