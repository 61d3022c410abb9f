package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/base/sleep"
	"redlockctl/internal/lab/embedded"
	"redlockctl/server/serverinfo"
)

// ErrNotFresh is returned by [UpBad] when dir already has a lab.
var ErrNotFresh = errors.New("there is a lab already")

// BadNodes is the least number of servers that [UpBad] has faults for.
const BadNodes = 5

// The locks that UpBad creates. Those that are not stuck for ever end after badTTL; the
// orphan counts as orphaned only while its TTL is not too long.
const (
	badTTL    = time.Hour
	orphanTTL = 25 * time.Second
	badValue  = 2 << 20 // bytes
)

// UpBad is [Up] for a new lab in which almost everything is wrong that can be wrong
// with a cluster, to see what that looks like. faults has a sentence for each fault. A
// replica, one server more than n, is on the next port. It fails with [ErrNotFresh] if
// dir has a lab.
func UpBad(ctx context.Context, dir, bin string, n, firstPort int) (started []Started, faults []string, err error) {
	if n < BadNodes || firstPort+n > 65535 {
		return nil, nil, fmt.Errorf("%d servers from port %d on: a bad lab has %d at least, and a replica on the port after them", n, firstPort, BadNodes)
	}
	abs, err := labDir(dir)
	if err != nil {
		return nil, nil, err
	}
	if there, err := hasServer(abs); err != nil {
		return nil, nil, err
	} else if there {
		return nil, nil, fmt.Errorf("%w in %s; lab down ends it", ErrNotFresh, abs)
	}
	replica := &daemon{name: "r3", dir: filepath.Join(abs, "r3"), port: firstPort + n}
	if err := replica.look(ctx); err != nil {
		return nil, nil, err
	}
	if started, err = Up(ctx, dir, bin, n, firstPort); err != nil {
		return nil, nil, err
	}
	b := badLab{dir: abs, port: firstPort, replica: replica}
	if faults, err = b.spoil(ctx, bin, started); err != nil {
		_, down := Down(context.WithoutCancel(ctx), dir)
		return nil, nil, errors.Join(err, down)
	}
	return started, faults, nil
}

// badLab makes the faults in a running lab.
type badLab struct {
	dir     string
	port    int
	replica *daemon
	clients []*redis.Client
}

func (b *badLab) spoil(ctx context.Context, bin string, started []Started) (faults []string, err error) {
	defer func() {
		for _, c := range b.clients {
			_ = c.Close()
		}
	}()
	var daemons []*daemon
	for i, s := range started {
		d := &daemon{name: s.Name, dir: filepath.Join(b.dir, s.Name), port: b.port + i}
		c, _, _, err := d.ask(ctx)
		if err != nil {
			return nil, fmt.Errorf("spoil %s: %w", s.Name, err)
		}
		daemons, b.clients = append(daemons, d), append(b.clients, c)
	}
	for _, f := range []struct {
		what string
		do   func() error
	}{
		{"n1 evicts keys with a TTL when memory is short (maxmemory-policy volatile-lru), and has done so", func() error { return b.evict(ctx, b.clients[0]) }},
		{"n2 has no boot fence, and no fence works there (min-replicas-max-lag 0)", func() error { return b.unfence(ctx, b.clients[1], daemons[1]) }},
		{"n3 has a replica, " + b.replica.addr(), func() error { return b.replicate(ctx, bin, b.clients[2]) }},
		{"n4 seems to be durable and is not (appendonly yes, appendfsync everysec)", func() error {
			return b.clients[3].ConfigSet(ctx, "appendonly", "yes").Err()
		}},
		{"n5 had its file rewritten by hand (CONFIG REWRITE)", func() error { return b.clients[4].ConfigRewrite(ctx).Err() }},
		{"job:no-ttl has no TTL", func() error { return b.set(ctx, "job:no-ttl", "left-behind", 0, 0, 1, 2) }},
		{"job:split has two tokens", func() error {
			return errors.Join(b.set(ctx, "job:split", "holder-a", badTTL, 0, 1, 2), b.set(ctx, "job:split", "holder-b", badTTL, 3, 4))
		}},
		{"job:long has a TTL of " + badTTL.String(), func() error { return b.set(ctx, "job:long", "patient", badTTL, 0, 1, 2, 3, 4) }},
		{"job:orphan has copies on two nodes, for " + orphanTTL.String(), func() error { return b.set(ctx, "job:orphan", "crashed", orphanTTL, 3, 4) }},
		{"job:huge has a value of " + strconv.Itoa(badValue>>20) + " MB", func() error {
			return b.set(ctx, "job:huge", strings.Repeat("x", badValue), badTTL, 1)
		}},
		{"job:queue is a list", func() error { return b.clients[1].RPush(ctx, "job:queue", "no", "lock").Err() }},
	} {
		if err := f.do(); err != nil {
			return nil, fmt.Errorf("%s: %w", f.what, err)
		}
		faults = append(faults, f.what)
	}
	return faults, nil
}

func (b *badLab) set(ctx context.Context, key, value string, ttl time.Duration, on ...int) error {
	for _, i := range on {
		if err := b.clients[i].Set(ctx, key, value, ttl).Err(); err != nil {
			return err
		}
	}
	return nil
}

// evict makes the server evict some keys, and leaves it with a memory limit that does
// no further harm.
func (b *badLab) evict(ctx context.Context, c *redis.Client) error {
	for i := range 10 {
		if err := c.Set(ctx, "filler:"+strconv.Itoa(i), "x", badTTL).Err(); err != nil {
			return err
		}
	}
	if err := c.ConfigSet(ctx, "maxmemory-policy", "volatile-lru").Err(); err != nil {
		return err
	}
	if err := c.ConfigSet(ctx, "maxmemory", "1").Err(); err != nil {
		return err
	}
	if err := until(ctx, func() (bool, error) {
		_ = c.Set(ctx, "filler:last", "x", badTTL).Err() // OOM: the others are evicted
		n, err := c.DBSize(ctx).Result()
		return n == 0, err
	}); err != nil {
		return err
	}
	return c.ConfigSet(ctx, "maxmemory", "104857600").Err()
}

// unfence removes the boot fence of this incarnation, and of all later ones.
func (b *badLab) unfence(ctx context.Context, c *redis.Client, d *daemon) error {
	const open = "# The boot fence was removed.\nmin-replicas-to-write 0\nmin-replicas-max-lag 0\n"
	if err := os.WriteFile(d.fence(), []byte(open), 0o600); err != nil {
		return err
	}
	return c.ConfigSet(ctx, embedded.ParamLag, "0").Err()
}

func (b *badLab) replicate(ctx context.Context, bin string, master *redis.Client) error {
	path, err := lookServer(bin)
	if err != nil {
		return err
	}
	if err := b.replica.start(ctx, path); err != nil {
		return err
	}
	c, _, _, err := b.replica.ask(ctx)
	if err != nil {
		return err
	}
	b.clients = append(b.clients, c)
	if err := c.ReplicaOf(ctx, "127.0.0.1", strconv.Itoa(b.port+2)).Err(); err != nil {
		return err
	}
	return until(ctx, func() (bool, error) {
		info, err := master.Info(ctx, "replication").Result()
		return serverinfo.Field(info, "connected_slaves") == "1", err
	})
}

// until waits for done, not longer than a server takes to start.
func until(ctx context.Context, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, daemonStarts, errors.New("it does not come about"))
	defer cancel()
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		if err := sleep.For(ctx, daemonPoll); err != nil {
			return err
		}
	}
}
