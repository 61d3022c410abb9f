package campaign

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/base/sleep"
	"redlockctl/internal/lab"
	"redlockctl/redlock"
	"redlockctl/server/serverinfo"
)

// delayed is a server that starts after "redlockctl node wait NAME --before-start".
// Masters with an odd number are run as systemd does it, with the wait as ExecStartPre
// and the configuration in a file. The others are run as a container, whose entrypoint
// waits and then executes the server.
type delayed struct {
	node *redlock.Node
	rand *rand.Rand
	*program
	stop  context.CancelFunc
	ended sync.WaitGroup

	waitKills int
}

func (cfg *Config) startDelayed(ctx context.Context, i int) (*delayed, error) {
	port, err := lab.FreePort()
	if err != nil {
		return nil, err
	}
	name, addr := "n"+strconv.Itoa(i+1), net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	node, err := redlock.NewNode(name, &redis.Options{Addr: addr})
	if err != nil {
		return nil, err
	}
	base := filepath.Join(cfg.Dir, name)
	maxTTL := maxTTLOf(cfg.waits())
	server := []string{cfg.RedisServer, "--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", cfg.Dir}
	p := &program{argv: server, log: base + ".log", mayEnd: true}
	if i%2 == 0 {
		p.pre = []string{cfg.Redlockctl, "node", "wait", name, "--before-start", "--config", base + ".toml"}
		text := fmt.Sprintf("[cluster]\nmax_ttl = %q\n[[nodes]]\nname = %q\naddr = %q\n", maxTTL, name, addr)
		err = os.WriteFile(base+".toml", []byte(text), 0o600)
	} else {
		script := fmt.Sprintf(`"$0" node wait n1 --before-start --nodes %s --max-ttl %s && exec "$@"`, addr, maxTTL)
		p.argv = append([]string{"sh", "-c", script, cfg.Redlockctl}, server...)
	}
	if err != nil {
		return nil, err
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	d := &delayed{node: node, rand: rand.New(rand.NewPCG(cfg.Seed, uint64(i)+200)), stop: stop, program: p}
	d.ended.Go(func() { _ = p.run(running) })
	for end := time.Now().Add(10 * time.Second); d.pid(ctx) == 0; _ = sleep.For(ctx, watchEvery) {
		if time.Now().After(end) {
			d.end()
			said, _ := os.ReadFile(p.log)
			return nil, fmt.Errorf("%s does not start: %s", name, strings.TrimSpace(string(said)))
		}
	}
	return d, nil
}

func (d *delayed) Node() *redlock.Node { return d.node }

func (d *delayed) end() {
	d.stop()
	d.ended.Wait()
}

// pid returns the server's process id, as it reports it; 0 if it does not answer.
func (d *delayed) pid(ctx context.Context) int {
	c := redlock.ConnectOnce(d.node, watchTimeout)
	defer c.Close()
	pid, _ := serverinfo.Number(c.Info(ctx, "server").Val(), "process_id")
	return int(pid)
}

// crash kills the server. If it waits for its start, it kills the wait.
func (d *delayed) crash(ctx context.Context) (lost time.Time, err error) {
	pid := d.pid(ctx)
	if pid == 0 {
		if d.kill() {
			d.waitKills++
		}
		return lost, nil
	}
	lost = time.Now()
	// An operator or the kernel kills the server, or the container with all that is in it.
	if d.rand.IntN(2) == 0 {
		err = syscall.Kill(pid, syscall.SIGKILL)
	} else {
		d.kill()
	}
	for err == nil && d.pid(ctx) == pid {
		_ = sleep.For(ctx, watchEvery) // it is about to end
	}
	return lost, err
}

// watch asks whether the server listens: it serves from then on.
func (d *delayed) watch() (func(context.Context) (bool, int, bool), func()) {
	return func(ctx context.Context) (bool, int, bool) { return d.pid(ctx) > 0, 0, true }, func() {}
}
