package redlock_test

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	mrand "math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/internal/lab"
	"redlockctl/internal/lab/labtest"
	"redlockctl/redlock"
)

// foreign locks as other libraries do: the same key on each node, a token of
// their own form, a goroutine and a pooled connection for each node.
type foreign struct {
	nodes  []*redis.Client
	draw   func() string
	unlock string // a script that compares and deletes
}

// redsyncLike has the tokens and the script of redsync.
func redsyncLike(t *testing.T, servers []*lab.Server) *foreign {
	return newForeign(t, servers, func() string {
		b := make([]byte, 16)
		_, _ = rand.Read(b)
		return base64.StdEncoding.EncodeToString(b)
	}, `local val = redis.call("GET", KEYS[1])
if val == ARGV[1] then return redis.call("DEL", KEYS[1]) elseif val == false then return -1 else return 0 end`)
}

// nodeRedlockLike has those of node-redlock.
func nodeRedlockLike(t *testing.T, servers []*lab.Server) *foreign {
	return newForeign(t, servers, func() string {
		b := make([]byte, 16)
		_, _ = rand.Read(b)
		return hex.EncodeToString(b)
	}, `local count = 0
for i, key in ipairs(KEYS) do if redis.call("get", key) == ARGV[1] then redis.pcall("del", key) count = count + 1 end end
return count`)
}

func newForeign(t *testing.T, servers []*lab.Server, draw func() string, unlock string) *foreign {
	f := &foreign{draw: draw, unlock: unlock}
	for _, n := range labtest.Nodes(servers) {
		c := redlock.Connect(n, 4, 2*time.Second)
		t.Cleanup(func() { _ = c.Close() })
		f.nodes = append(f.nodes, c)
	}
	return f
}

// each counts the nodes that say yes.
func (f *foreign) each(ask func(*redis.Client) bool) int {
	var yes atomic.Int64
	var wg sync.WaitGroup
	for _, n := range f.nodes {
		wg.Go(func() {
			if ask(n) {
				yes.Add(1)
			}
		})
	}
	wg.Wait()
	return int(yes.Load())
}

// lock makes one attempt; empty: another has it.
func (f *foreign) lock(key string, ttl time.Duration) (token string) {
	token = f.draw()
	set := func(n *redis.Client) bool {
		return n.Do(context.Background(), "SET", key, token, "NX", "PX", ttl.Milliseconds()).Err() == nil
	}
	if f.each(set) >= redlock.Quorum(len(f.nodes)) {
		return token
	}
	f.release(key, token)
	return ""
}

func (f *foreign) release(key, token string) int {
	return f.each(func(n *redis.Client) bool {
		v, err := n.Eval(context.Background(), f.unlock, []string{key}, token).Int()
		return err == nil && v == 1
	})
}

// TestOtherLibrariesAreKeptOut: who locks the same name with another library
// excludes the holders of this one, and is excluded by them.
func TestOtherLibrariesAreKeptOut(t *testing.T) {
	servers := labtest.Servers(t, 3)
	c := open(t, servers, patient())
	for name, other := range map[string]*foreign{"redsync": redsyncLike(t, servers), "node-redlock": nodeRedlockLike(t, servers)} {
		t.Run(name, func(t *testing.T) {
			token := other.lock("a", time.Minute)
			_, err := c.TryAcquire(t.Context(), "a", time.Minute)
			var e *redlock.Error
			if !errors.Is(err, redlock.ErrContended) || !errors.As(err, &e) || e.Nodes[0].Token != token {
				t.Errorf("%q has it: %v", token, err)
			}
			if n := other.release("a", token); n != 3 {
				t.Errorf("a failed attempt left %d of its 3 copies", n)
			}
			l := acquire(t, c, "a", time.Minute)
			everywhere(t, c, l)
			if token := other.lock("a", time.Minute); token != "" {
				t.Error("two holders")
			}
			if n := other.release("a", other.draw()); n != 0 || !l.Valid(time.Now()) {
				t.Errorf("%d copies deleted with another token", n)
			}
			if _, err := l.Release(t.Context()); err != nil {
				t.Error(err)
			}
			settled(t, servers)
		})
	}
}

// TestOtherLibrariesTakeTurns lets clients of three libraries fight for one lock,
// of which ours wait and are woken by the releases of the others.
func TestOtherLibrariesTakeTurns(t *testing.T) {
	servers := labtest.Servers(t, 3)
	opt := patient()
	opt.Retries, opt.RetryDelay = 1000, 50*time.Millisecond
	var inside atomic.Int64
	hold := func() {
		if inside.Add(1) != 1 {
			t.Error("two holders")
		}
		time.Sleep(time.Millisecond)
		inside.Add(-1)
	}
	const each = 15
	var wg sync.WaitGroup
	for range 2 {
		c := open(t, servers, opt)
		wg.Go(func() {
			for range each {
				l, err := c.Acquire(t.Context(), "a", time.Minute)
				if err != nil {
					t.Error(err)
					return
				}
				hold()
				if _, err := l.Release(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for _, other := range []*foreign{redsyncLike(t, servers), nodeRedlockLike(t, servers)} {
		wg.Go(func() {
			for got := 0; got < each && t.Context().Err() == nil; {
				if token := other.lock("a", time.Minute); token != "" {
					got++
					hold()
					other.release("a", token)
				}
				time.Sleep(time.Duration(1+mrand.IntN(10)) * time.Millisecond)
			}
		})
	}
	wg.Wait()
	settled(t, servers)
}
