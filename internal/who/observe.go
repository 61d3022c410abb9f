package who

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/base/crash"
	"redlockctl/base/sleep"
	"redlockctl/redlock"
	"redlockctl/server/resp"
	"redlockctl/server/serverinfo"
)

// Limits of what the observation may cost a node. A list stops it for 0.4 ms at 200
// connections and for 2 ms at 1,000: 1 % of its time, for a minute.
const (
	listEvery = 25 * time.Millisecond  // minimum between two lists of a node
	listConn  = 200 * time.Microsecond // for each of its connections
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
	// Uncounted is called with the nodes that do not count the commands of their connections,
	// as soon as all were heard, unless the token tells its owner; nil: nobody wants to know.
	Uncounted func(nodes []string)
	// Free is called if a quorum answered and no node had a copy when all were heard; nil: nobody wants to know.
	Free func()
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
	uncounted, free := opt.Uncounted, opt.Free
	for i, n := range nodes {
		wg.Go(crash.Safe(func() {
			w := &nodeWatch{node: i, opt: opt, reports: reports}
			// A command in flight at the end is not a failure of a node that has answered
			// before, although it may fail a moment before ctx ends.
			if err := w.run(ctx, n, end); err != nil && (!w.heard || time.Now().Before(end)) && ctx.Err() == nil {
				w.send(ctx, report{Snapshot: Snapshot{Node: i, At: time.Now()}, err: err})
			}
		}))
	}
	crash.Go(func() { wg.Wait(); close(reports) })
	c := newCase(nodes, opt.Key)
	c.remember(opt.Known, time.Now())
	var refused error
	look := time.NewTicker(200 * time.Millisecond)
	defer look.Stop()
	for open := true; open; {
		var r report
		select {
		case <-look.C: // no change is an answer too
			if c.done(time.Now()) {
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
		if free != nil && c.heard() {
			if c.free() {
				free()
			}
			free = nil
		}
		if uncounted != nil && c.lacksCounts() {
			uncounted(c.uncounted())
			uncounted = nil
		}
		if c.done(time.Now()) {
			cancel()
		}
	}
	if err := context.Cause(ctx); refused == nil && errors.Is(err, context.Canceled) && !c.done(time.Now()) {
		return nil, err
	}
	return c.answer(time.Now()), refused
}

// nodeWatch watches one node over its own connection.
type nodeWatch struct {
	node    int
	opt     Options
	reports chan<- report
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

// run watches until end. It finishes the first read even after end, as long as ctx lasts.
func (w *nodeWatch) run(ctx context.Context, node *redlock.Node, end time.Time) (err error) {
	defer resp.Contain(&err, node.Name())
	client := redlock.ConnectOnce(node.Within(resp.NewBudget(listReply, 0)).Named(ConnName("who", Self(os.Getenv))), w.opt.Timeout)
	defer client.Close()
	info, err := client.Info(ctx, "clients").Result()
	if err != nil {
		return err
	}
	if n, _ := serverinfo.Number(info, "connected_clients"); n > MostConns && !w.opt.Force {
		return fmt.Errorf("%w: %s has %d; each list would stop it for milliseconds", ErrTooMany, node.Name(), n)
	}
	for !w.heard || time.Now().Before(end) {
		next := time.Now()
		s, err := w.look(ctx, client)
		if err != nil {
			return err
		}
		if !w.send(ctx, report{Snapshot: *s}) {
			return nil
		}
		w.heard = true
		next = next.Add(max(listEvery, time.Duration(len(s.Conns))*listConn))
		if sleep.For(ctx, time.Until(next)) != nil {
			return nil
		}
	}
	return nil
}

// look reads the copy and the connections in one transaction, so that nobody sends
// anything in between. The end of the copy is known from the times before and after, since
// some servers count a TTL from the start of the transaction, and any may be suspended in it.
func (w *nodeWatch) look(ctx context.Context, client *redis.Client) (*Snapshot, error) {
	pipe := client.Pipeline()
	before := pipe.Time(ctx)
	pipe.Do(ctx, "MULTI")
	pipe.Do(ctx, "GETRANGE", w.opt.Key, 0, valueRead-1)
	pipe.Do(ctx, "PTTL", w.opt.Key)
	pipe.Do(ctx, "INFO", "stats")
	pipe.Do(ctx, "CLIENT", "LIST")
	exec := pipe.Do(ctx, "EXEC")
	after := pipe.Time(ctx)
	if _, err := pipe.Exec(ctx); err != nil && !answered(err) {
		return nil, err
	}
	said, err := exec.Slice()
	if err = cmp.Or(before.Err(), err, after.Err()); err != nil {
		return nil, err
	}
	if len(said) != 4 {
		return nil, fmt.Errorf("EXEC: %d replies", len(said))
	}
	for _, one := range said[1:] {
		if err, failed := one.(error); failed {
			return nil, err
		}
	}
	value, _ := said[0].(string) // a hash or a sorted set counts as one holder here, whoever its fields name
	ttl, ok := said[1].(int64)
	stats, ok2 := said[2].(string)
	list, ok3 := said[3].(string)
	if !ok || !ok2 || !ok3 {
		return nil, errors.New("EXEC: replies of a strange type")
	}
	s := &Snapshot{Node: w.node, At: time.Now(), Before: before.Val(), After: after.Val(), Token: value, There: ttl != -2, Accepted: -1, Conns: ParseList(list)}
	if n, ok := serverinfo.Number(stats, "total_connections_received"); ok {
		s.Accepted = n
	}
	if ttl > 0 {
		s.TTL = time.Duration(ttl) * time.Millisecond
	}
	return s, nil
}

// answered reports whether err is an answer of the server.
func answered(err error) bool {
	var said redis.Error
	return errors.As(err, &said)
}
