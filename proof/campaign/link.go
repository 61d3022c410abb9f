package campaign

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/base/sleep"
	"redlockctl/redlock"
)

// link is the network between a guard and a master, which can be cut.
type link struct {
	mu    sync.Mutex
	down  bool
	conns map[net.Conn]bool
}

var errCut = errors.New("the network is cut")

// node is a master behind the link.
func (l *link) node(n *redlock.Node) (*redlock.Node, error) {
	l.conns = map[net.Conn]bool{}
	return redlock.NewNode(n.Name(), &redis.Options{Addr: n.Addr(), Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.down {
			_ = c.Close()
			return nil, errCut
		}
		l.conns[c] = true
		return linked{c, l}, nil
	}})
}

// linked is a connection through it.
type linked struct {
	net.Conn
	link *link
}

func (c linked) Close() error {
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	delete(c.link.conns, c.Conn)
	return c.Conn.Close()
}

// cut breaks the connections, and lets none come up until it is mended.
func (l *link) cut(down bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = down
	for c := range l.conns {
		if down {
			_ = c.Close()
		}
	}
}

// cutLinks cuts a guard off from a master, or from all of them, for up to longest, again and again. It returns the
// number of times.
func cutLinks(ctx context.Context, dice *rand.Rand, links []*link, longest time.Duration) (cuts int) {
	for {
		if sleep.For(ctx, time.Duration(dice.Int64N(int64(longest)))) != nil {
			return cuts
		}
		struck := links
		if i := dice.IntN(2 * len(links)); i < len(links) {
			struck = links[i : i+1]
		}
		for _, l := range struck {
			l.cut(true)
		}
		cuts++
		_ = sleep.For(ctx, time.Duration(dice.Int64N(int64(longest))))
		for _, l := range struck {
			l.cut(false)
		}
	}
}
