package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-redsync/redsync/v4"
	rsredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"redlockctl/internal/lab"
	"redlockctl/redlock"
	"redlockctl/server/resp"
)

const ttl = 8 * time.Second // redsync's default expiry

// contender is one way to lock. Lock waits until it has the lock or ctx ends;
// tryLock makes one attempt.
type contender interface {
	lock(ctx context.Context, key string) (unlock func() error, err error)
	close()
}

// maker makes a new contender for each use, with its own connections.
type maker struct {
	name      string
	make      func(servers lab.Servers) (contender, error)
	oneServer bool // the lock lives on one server, not on five
	floor     bool // no lock at all, but what the wire allows
}

func makers() []maker {
	return []maker{
		{name: "redlockctl", make: newOurs},
		{name: "redsync", make: func(s lab.Servers) (contender, error) { return newRedsync(s) }},
		{name: "redsync FailFast", make: func(s lab.Servers) (contender, error) { return newRedsync(s, redsync.WithFailFast(true)) }},
		{name: "rueidislock (1 server)", make: newRueidis, oneServer: true},
		{name: "floor", make: newFloor, floor: true},
	}
}

type ours struct{ c *redlock.Client }

func newOurs(servers lab.Servers) (contender, error) {
	c, err := redlock.New(servers.Nodes(), redlock.Options{Retries: 1 << 20})
	if err != nil {
		return nil, err
	}
	return ours{c}, nil
}

func (o ours) lock(ctx context.Context, key string) (func() error, error) {
	l, err := o.c.Acquire(ctx, key, ttl)
	if err != nil {
		return nil, err
	}
	return func() error {
		_, err := l.Release(ctx)
		return err
	}, nil
}
func (o ours) close() { _ = o.c.Close() }

type rs struct {
	clients []*redis.Client
	sync    *redsync.Redsync
	opts    []redsync.Option
}

func newRedsync(servers lab.Servers, opts ...redsync.Option) (contender, error) {
	r := &rs{opts: append([]redsync.Option{redsync.WithExpiry(ttl)}, opts...)}
	var pools []rsredis.Pool
	for _, s := range servers {
		c := redis.NewClient(&redis.Options{Addr: s.Addr()})
		r.clients = append(r.clients, c)
		pools = append(pools, goredis.NewPool(c))
	}
	r.sync = redsync.New(pools...)
	return r, nil
}

func (r *rs) lock(ctx context.Context, key string) (func() error, error) {
	m := r.sync.NewMutex(key, r.opts...)
	for {
		err := m.LockContext(ctx)
		if err == nil {
			return func() error { _, err := m.UnlockContext(ctx); return err }, nil
		}
		var taken *redsync.ErrTaken
		if !errors.As(err, &taken) && !errors.Is(err, redsync.ErrFailed) || ctx.Err() != nil {
			return nil, err
		}
	}
}

func (r *rs) close() {
	for _, c := range r.clients {
		_ = c.Close()
	}
}

type rueidisLock struct{ l rueidislock.Locker }

func newRueidis(servers lab.Servers) (contender, error) {
	l, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption:   rueidis.ClientOption{InitAddress: []string{servers[0].Addr()}},
		KeyValidity:    ttl,
		KeyMajority:    3, // five keys, as many as the others have servers
		NoLoopTracking: true,
	})
	if err != nil {
		return nil, err
	}
	return rueidisLock{l}, nil
}

func (r rueidisLock) lock(ctx context.Context, key string) (func() error, error) {
	_, cancel, err := r.l.WithContext(ctx, key)
	if err != nil {
		return nil, err
	}
	return func() error { cancel(); return nil }, nil
}
func (r rueidisLock) close() { r.l.Close() }

// floor is what the wire allows: one connection per node, prepared bytes, the
// third OK. It has no token of its own per attempt, no validity, no release of
// losers: no lock, but nothing that locks can be faster.
type floor struct {
	pipes []*pipe
	sha   string
	next  atomic.Int64
}

func newFloor(servers lab.Servers) (contender, error) {
	f := &floor{}
	for _, s := range servers {
		v, err := s.Do(context.Background(), "SCRIPT", "LOAD", "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) end return 0")
		if err != nil {
			return nil, err
		}
		f.sha = fmt.Sprint(v)
		p, err := newPipe(s.Addr())
		if err != nil {
			return nil, err
		}
		f.pipes = append(f.pipes, p)
	}
	return f, nil
}

func (f *floor) lock(_ context.Context, key string) (func() error, error) {
	token := fmt.Sprintf("%028d", f.next.Add(1))
	set := resp.AppendCommand(nil, "SET", key, token, "NX", "PX", "8000")
	del := resp.AppendCommand(nil, "EVALSHA", f.sha, "1", key, token)
	if !f.round(set) {
		return nil, errors.New("floor: contended")
	}
	return func() error { f.round(del); return nil }, nil
}

// round sends cmd to all pipes and waits for the third yes.
func (f *floor) round(cmd []byte) bool {
	v := &vote{need: len(f.pipes)/2 + 1, n: len(f.pipes), done: make(chan bool, 1)}
	for _, p := range f.pipes {
		p.send(cmd, v)
	}
	return <-v.done
}

func (f *floor) close() {
	for _, p := range f.pipes {
		p.close()
	}
}
