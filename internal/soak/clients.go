//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/internal/lab"
	"redlockctl/redlock"
)

// order is what the clients in their process are told, as JSON.
type order struct {
	Addrs []string
	Count int
}

// word is what they tell each second.
type word struct {
	Goroutines int
	Opened     int64
	Counts     lab.Counts
}

// clients is the process of the clients, as seen from outside.
type clients struct {
	*child
	mu     sync.Mutex
	latest *word
}

func (s *stage) startClients(n int) (*clients, error) {
	o := order{Count: n}
	for _, n := range s.servers {
		o.Addrs = append(o.Addrs, n.Addr())
	}
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &clients{child: &child{name: "clients", cmd: exec.Command(self), ended: make(chan error, 1), log: filepath.Join(s.dir, "clients.log")}}
	log, err := os.Create(c.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	c.cmd.Env = append(os.Environ(), clientsEnv+"="+string(text))
	c.cmd.Stderr = log
	out, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	c.cmd.Stdout = in
	if err := s.run(c.child); err != nil {
		_ = out.Close()
		return nil, err
	}
	go c.listen(out)
	return c, nil
}

func (c *clients) listen(out io.ReadCloser) {
	defer out.Close()
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var w word
		if json.Unmarshal(lines.Bytes(), &w) == nil {
			c.mu.Lock()
			c.latest = &w
			c.mu.Unlock()
		}
	}
}

func (c *clients) goroutines() (float64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.latest == nil {
		return 0, errors.New("it has told nothing yet")
	}
	return float64(c.latest.Goroutines), nil
}

// last is what they did so far, in words.
func (c *clients) last() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.latest == nil {
		return ""
	}
	n := c.latest.Counts
	return fmt.Sprintf("%d acquired, %d extended, %d contended, %d failed, %d lost; %d clients opened",
		n.Acquired, n.Extended, n.Contended, n.Failed, n.Lost, c.latest.Opened)
}

// clientsMain is the clients in their process; it ends at SIGTERM.
func clientsMain(text string) int {
	if err := clientsRun(text); err != nil {
		fmt.Fprintln(os.Stderr, "clients:", err)
		return 1
	}
	return 0
}

func clientsRun(text string) error {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	nodes := make([]*redlock.Node, len(o.Addrs))
	for i, addr := range o.Addrs {
		n, err := redlock.NewNode("n"+strconv.Itoa(i+1), &redis.Options{Addr: addr})
		if err != nil {
			return err
		}
		nodes[i] = n
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var tally lab.Tally
	var opened atomic.Int64
	errs := make(chan error, o.Count)
	var wg sync.WaitGroup
	for i := range o.Count {
		wg.Go(func() {
			for ctx.Err() == nil {
				if err := clientLife(ctx, nodes, i, &tally, &opened); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	say := json.NewEncoder(os.Stdout)
	every := time.NewTicker(time.Second)
	defer every.Stop()
	for ctx.Err() == nil {
		if err := say.Encode(word{runtime.NumGoroutine(), opened.Load(), tally.Counts()}); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-every.C:
		case err := <-errs:
			return err
		}
	}
	wg.Wait()
	return nil
}

// clientLife is a client from its first connection to its last: it works for a
// while and is closed.
func clientLife(ctx context.Context, nodes []*redlock.Node, number int, tally *lab.Tally, opened *atomic.Int64) error {
	client, err := redlock.New(nodes, redlock.Options{})
	if err != nil {
		return err
	}
	defer client.Close()
	opened.Add(1)
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second+rand.N(25*time.Second))
	defer cancel()
	lab.Clients{Count: 1, First: number, MaxTTL: maxTTL, Tally: tally}.Run(ctx, client)
	return nil
}
