//go:build linux

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"redlockctl/internal/lab"
	"redlockctl/redlock"
)

// clients take locks, in this process. Each comes and goes.
type clients struct {
	tally  lab.Tally
	opened atomic.Int64
	stop   context.CancelFunc
	ended  sync.WaitGroup
}

func startClients(nodes []*redlock.Node, count int) *clients {
	ctx, stop := context.WithCancel(context.Background())
	c := &clients{stop: stop}
	for i := range count {
		c.ended.Go(func() {
			for ctx.Err() == nil {
				c.come(ctx, nodes, i)
			}
		})
	}
	return c
}

// come is a client from its first connection to its last.
func (c *clients) come(ctx context.Context, nodes []*redlock.Node, number int) {
	client, err := redlock.New(nodes, redlock.Options{})
	if err != nil {
		panic(err) // the nodes are ours
	}
	defer client.Close()
	c.opened.Add(1)
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second+rand.N(25*time.Second))
	defer cancel()
	lab.Clients{Count: 1, First: number, MaxTTL: maxTTL, Tally: &c.tally}.Run(ctx, client)
}

func (c *clients) String() string {
	n := c.tally.Counts()
	return fmt.Sprintf("%d acquired, %d extended, %d contended, %d failed, %d lost; %d clients opened",
		n.Acquired, n.Extended, n.Contended, n.Failed, n.Lost, c.opened.Load())
}

// end ends them. One that hangs says where.
func (c *clients) end() error {
	c.stop()
	done := make(chan struct{})
	go func() { c.ended.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-time.After(patience):
		return fmt.Errorf("the clients do not end:\n%s", stacks())
	}
}

// maxTTL of the cluster: short, so that locks and fences come and go.
const maxTTL = 2 * time.Second

// patience is how long anything here may take on a machine that is busy.
const patience = time.Minute

// stacks are the goroutines of this process.
func stacks() []byte {
	b := make([]byte, 1<<20)
	return b[:runtime.Stack(b, true)]
}
