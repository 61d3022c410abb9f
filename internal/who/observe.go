package who

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/push"

	"redlockctl/base/crash"
	"redlockctl/base/sleep"
	"redlockctl/redlock"
	"redlockctl/server/resp"
	"redlockctl/server/serverinfo"
)

// Limits of what the observation may cost a node. A list stops it for 0.4 ms at 200
// connections and for 2 ms at 1,000.
const (
	listEvery   = 200 * time.Millisecond // minimum between two lists of a node
	controlMore = 100 * time.Millisecond // random addition to it
	pushEvery   = 15 * time.Millisecond  // how often to read pushes of changes
	// MostConns is the largest number of connections of a node that is listed.
	MostConns = 2000
	listReply = 16 << 20 // bytes
	valueRead = 256
)

// ErrTooMany is returned for a node with more than [MostConns] connections.
var ErrTooMany = errors.New("too many connections")

// Options of [Observe].
type Options struct {
	Key     string
	For     time.Duration // how long; it ends when the answer is sure, but not before each node has answered or had Timeout for it
	Force   bool          // even with more than [MostConns] connections
	Timeout time.Duration // of a command
	// Known is an earlier answer, or nil. Its holder is checked again as long as its
	// token holds the lock, to see whether it has become silent or is gone.
	Known *Answer
}

// Observe watches a lock and the connections of its nodes, and says who holds it. It
// changes nothing. The error is about the options or ctx, or [ErrTooMany]; failures of
// single nodes are in the answer.
func Observe(ctx context.Context, nodes []*redlock.Node, opt Options) (*Answer, error) {
	now := time.Now()
	end := now.Add(opt.For)
	ctx, cancel := context.WithDeadline(ctx, now.Add(max(opt.For, opt.Timeout)))
	defer cancel()
	reports := make(chan report)
	var wg sync.WaitGroup
	for i, n := range nodes {
		wg.Go(crash.Safe(func() {
			w := &nodeWatch{node: i, opt: opt, reports: reports}
			// A command in flight at the end is not a failure of a node that has answered
			// before, although it may fail a moment before ctx ends.
			if err := w.run(ctx, n, end); err != nil && (!w.heard || time.Now().Before(end)) && ctx.Err() == nil {
				w.send(ctx, report{list: List{Node: i, At: time.Now()}, err: err})
			}
		}))
	}
	crash.Go(func() { wg.Wait(); close(reports) })
	c := newCase(nodes, opt.Key)
	c.remember(opt.Known, time.Now())
	var refused error
	look := time.NewTicker(listEvery)
	defer look.Stop()
	for open := true; open; {
		var r report
		select {
		case <-look.C: // no change is an answer too
			if c.sure(time.Now()) {
				cancel()
			}
			continue
		case r, open = <-reports:
			if !open {
				continue
			}
		}
		if errors.Is(r.err, ErrTooMany) {
			refused = r.err
			cancel()
		}
		c.take(r)
		if c.sure(time.Now()) {
			cancel()
		}
	}
	if err := context.Cause(ctx); refused == nil && errors.Is(err, context.Canceled) && !c.sure(time.Now()) {
		return nil, err
	}
	return c.answer(time.Now()), refused
}

// nodeWatch watches one node over its own connection.
type nodeWatch struct {
	node    int
	opt     Options
	reports chan<- report
	dirty   atomic.Bool // the node has reported a change
	heard   bool
}

func (w *nodeWatch) send(ctx context.Context, r report) bool {
	select {
	case w.reports <- r:
		return true
	case <-ctx.Done():
		return false
	}
}

// HandlePushNotification receives changes. The node also reports keys that have our key's
// name as a prefix.
func (w *nodeWatch) HandlePushNotification(_ context.Context, _ push.NotificationHandlerContext, said []any) error {
	if len(said) != 2 {
		return nil
	}
	keys, some := said[1].([]any)
	for _, k := range keys {
		if k == w.opt.Key {
			w.dirty.Store(true)
		}
	}
	if !some {
		w.dirty.Store(true) // all keys may have changed
	}
	return nil
}

// run watches until end. It finishes the first read even after end, as long as ctx lasts.
func (w *nodeWatch) run(ctx context.Context, node *redlock.Node, end time.Time) (err error) {
	defer resp.Contain(&err, node.Name())
	hears := push.NewProcessor()
	if err := hears.RegisterHandler("invalidate", w, false); err != nil {
		return err
	}
	client := node.Within(resp.NewBudget(listReply, 0)).Client(1, w.opt.Timeout, func(o *redis.Options) {
		o.Protocol = 3
		o.PushNotificationProcessor = hears
	})
	defer client.Close()
	conn := client.Conn()
	defer conn.Close()
	info, err := conn.Info(ctx, "clients").Result()
	if err != nil {
		return err
	}
	if n, _ := serverinfo.Number(info, "connected_clients"); n > MostConns && !w.opt.Force {
		return fmt.Errorf("%w: %s has %d; each list would stop it for milliseconds", ErrTooMany, node.Name(), n)
	}
	if err := conn.Do(ctx, "CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", w.opt.Key).Err(); err != nil {
		return fmt.Errorf("CLIENT TRACKING: %w", err)
	}
	var listed, control time.Time
	quiet := time.Now() // all earlier changes are reported
	for {
		now := time.Now()
		if w.heard && !now.Before(end) {
			return nil
		}
		changed := w.dirty.Load() && now.Sub(listed) >= listEvery
		if changed || now.After(control) && now.Sub(listed) >= listEvery {
			if changed {
				w.dirty.Store(false)
			}
			r, err := w.look(ctx, conn)
			if err != nil {
				return err
			}
			r.changed, r.list.Delay = changed, r.list.At.Sub(quiet).Seconds()
			if !w.send(ctx, r) {
				return nil
			}
			w.heard, listed = true, now
			control = now.Add(listEvery + rand.N(controlMore))
		} else if err := conn.Ping(ctx).Err(); err != nil && !answered(err) {
			return err
		}
		if !w.dirty.Load() {
			quiet = now
		}
		if sleep.For(ctx, pushEvery) != nil {
			return nil
		}
	}
}

func (w *nodeWatch) look(ctx context.Context, conn *redis.Conn) (report, error) {
	r := report{list: List{Node: w.node}}
	pipe := conn.Pipeline()
	clock := pipe.Time(ctx)
	value := pipe.GetRange(ctx, w.opt.Key, 0, valueRead-1)
	ttl := pipe.PTTL(ctx, w.opt.Key)
	list := pipe.Do(ctx, "CLIENT", "LIST", "TYPE", "normal")
	if _, err := pipe.Exec(ctx); err != nil && !answered(err) {
		return r, err
	}
	text, err := list.Text()
	if err = cmp.Or(err, clock.Err(), ttl.Err()); err != nil {
		return r, err
	}
	r.list.At, r.list.Server, r.list.Conns = time.Now(), float64(clock.Val().UnixMicro())/1e6, ParseList(text)
	// A hash or a sorted set counts as one holder here, whoever its fields name.
	r.token, r.there = value.Val(), ttl.Val() != -2
	return r, nil
}

// answered reports whether err is an answer of the server.
func answered(err error) bool {
	var said redis.Error
	return errors.As(err, &said)
}
