package redlock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// crowd lets many callers acquire at the same time, and returns how many failed,
// and how long it took the slowest.
func crowd(t *testing.T, c *Client, many int) (failed int, slowest time.Duration) {
	t.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	begin := time.Now()
	for i := range many {
		wg.Go(func() {
			_, err := c.TryAcquire(t.Context(), fmt.Sprint(i), time.Hour)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed++
			}
			slowest = max(slowest, time.Since(begin))
		})
	}
	wg.Wait()
	return failed, slowest
}

// TestCrowdWaitsForRoom: who finds no room on the way to nodes that are well waits,
// and gets its copies on all of them.
func TestCrowdWaitsForRoom(t *testing.T) {
	inMemory(t, 5, func(t *testing.T, nodes []*memNode, c *Client) {
		for _, n := range nodes {
			n.away(10)
		}
		const many = 10 * windowMost
		if failed, _ := crowd(t, c, many); failed > 0 {
			t.Errorf("%d of %d failed", failed, many)
		}
		time.Sleep(time.Second)
		for i, n := range nodes {
			if n.live() != many {
				t.Errorf("n%d has %d of %d copies", i+1, n.live(), many)
			}
		}
		for _, s := range c.streams {
			if used, owed := s.window.used.Load(), s.window.owed.Load(); used != 0 || owed != 0 {
				t.Errorf("%d under way and %d owed when nothing is", used, owed)
			}
		}
		if n := c.admission.waiting.Load(); n != 0 || c.admission.others.waits != nil {
			t.Errorf("%d wait", n)
		}
	})
}

// besideHungNodes lets a crowd in while two of five nodes hang.
func besideHungNodes(t *testing.T, spoil func(*Client)) (err error) {
	inMemory(t, 5, func(t *testing.T, nodes []*memNode, c *Client) {
		spoil(c)
		nodes[1].hang()
		nodes[4].hang()
		const many = 5 * windowFirst
		switch failed, slowest := crowd(t, c, many); {
		case failed > 0:
			err = fmt.Errorf("%d of %d failed", failed, many)
		case slowest > c.nodeTimeout()+time.Millisecond:
			err = fmt.Errorf("one waited for %s", slowest)
		}
	})
	return err
}

// TestCrowdBesideHungNodes: nodes that hang hold nobody up beyond the node timeout.
func TestCrowdBesideHungNodes(t *testing.T) {
	if err := besideHungNodes(t, func(*Client) {}); err != nil {
		t.Error(err)
	}
	if besideHungNodes(t, func(c *Client) {
		for _, s := range c.streams {
			s.conn.patience = newPatience(time.Hour)
		}
	}) == nil {
		t.Error("not noticed: hung nodes are waited for")
	}
}

// TestContextEndsTheWaitForRoom: it is the caller's.
func TestContextEndsTheWaitForRoom(t *testing.T) {
	inMemory(t, 3, func(t *testing.T, nodes []*memNode, c *Client) {
		for _, n := range nodes {
			n.away(10)
		}
		for _, s := range c.streams {
			s.window.used.Add(2 * windowMost) // and no sign of the node: it is not waited for for ever
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		begin := time.Now()
		if _, err := c.TryAcquire(ctx, "a", time.Hour); !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) > 20*time.Millisecond+c.nodeTimeout() {
			t.Errorf("after %s: %v", time.Since(begin), err)
		}
		for _, s := range c.streams {
			s.window.used.Add(-2 * windowMost)
		}
		if _, err := c.TryAcquire(t.Context(), "a", time.Hour); err != nil {
			t.Error(err)
		}
	})
}

// TestReleasesGoFirst: of those who wait for room, who keeps or gives back a lock
// goes before who wants one.
func TestReleasesGoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStream(memDialer{node: newMemNodes(1)[0]}, newPatience(50*time.Millisecond), time.Second, hooks{})
		s.window.begin()
		s.window.used.Add(windowFirst)
		g := &admission{windows: []*window{s.window}}
		var mu sync.Mutex
		var wg sync.WaitGroup
		var order []string
		for i := range 6 {
			name, urgent := fmt.Sprint("acquire ", i), false
			if i >= 3 {
				name, urgent = fmt.Sprint("release ", i-3), true
			}
			wg.Go(func() {
				if err := g.enter(t.Context(), urgent, nil); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				order = append(order, name)
			})
			synctest.Wait()
		}
		for range 6 {
			s.window.give()
			g.poke()
			synctest.Wait()
		}
		wg.Wait()
		if got, want := fmt.Sprint(order), "[release 0 release 1 release 2 acquire 0 acquire 1 acquire 2]"; got != want {
			t.Error(got)
		}
	})
}

// TestOwedReleasesGoWithoutAReconnect: releases that found the queue full are sent when
// there is room, on the same connection.
func TestOwedReleasesGoWithoutAReconnect(t *testing.T) {
	inStream(t, func(t *testing.T, n *memNode, s *stream) {
		n.away(10)
		before := s.conn
		const many = queueSize + queueReserve + flightSize + owedSize/2
		for i := range many {
			n.set(func(n *memNode) { n.keys[fmt.Sprint(i)] = memCopy{"t", time.Now().Add(time.Hour)} })
		}
		for i := range many {
			s.enqueue(del(fmt.Sprint(i), "t", nil))
		}
		if owed := s.owedCount.Load(); owed == 0 {
			t.Fatal("nothing is owed: this shows nothing")
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n.live() > 0 || s.owedCount.Load() > 0 {
			t.Errorf("%d copies are left, %d releases owed", n.live(), s.owedCount.Load())
		}
		if s.conn != before {
			t.Error("over another connection")
		}
	})
}

// TestRoomFollowsTheNode: as much is under way as a node answers without delay.
func TestRoomFollowsTheNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newWindow(newPatience(50 * time.Millisecond))
		r.begin()
		answer := func(n int, took time.Duration) {
			for range n {
				time.Sleep(100 * time.Microsecond)
				r.answered(took, time.Now())
			}
		}
		answer(10_000, time.Millisecond)
		if got := r.most.Load(); got != windowFirst {
			t.Errorf("%d although nobody wants more", got)
		}
		r.used.Store(windowMost)
		answer(10_000, time.Millisecond)
		if got := r.most.Load(); got != windowMost {
			t.Errorf("%d for a node that is fast", got)
		}
		answer(10_000, 30*time.Millisecond)
		if got := r.most.Load(); got != windowLeast {
			t.Errorf("%d for a node that is late", got)
		}
		answer(10_000, time.Millisecond)
		if got := r.most.Load(); got != windowMost {
			t.Errorf("%d for a node that is fast again", got)
		}
		r.begin() // far away, and no slower for what is under way
		answer(10_000, 40*time.Millisecond)
		if got := r.most.Load(); got != windowMost {
			t.Errorf("%d for a node that is far away", got)
		}
	})
}

// busy is a sink that keeps a stream's reader from reading for as long.
type busy time.Duration

func (b busy) answered(answer) { time.Sleep(time.Duration(b)) }

// delayReaders keeps this process from reading what any node says.
func delayReaders(c *Client, d time.Duration) {
	for i, s := range c.streams {
		s.enqueue(&call{request: &request{op: opInspect, key: "x", to: busy(d)}, node: i})
	}
	synctest.Wait()
}

// TestLateProcessBlamesNoNode: answers that are there, and not read in time because
// this process has no time, are those of nodes that are well. Attempts are made again,
// releases wait, and the connections stay.
func TestLateProcessBlamesNoNode(t *testing.T) {
	inMemory(t, 5, func(t *testing.T, nodes []*memNode, c *Client) {
		for _, n := range nodes {
			n.away(10) // and back
		}
		before := make([]*nodeConn, len(c.streams))
		for i, s := range c.streams {
			before[i] = s.conn
		}
		late := 3 * c.nodeTimeout()
		delayReaders(c, late)
		l, err := c.TryAcquire(t.Context(), "a", time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		delayReaders(c, late)
		if err := l.Extend(t.Context(), 2*time.Hour); err != nil {
			t.Error(err)
		}
		delayReaders(c, late)
		if seen, err := c.Inspect(t.Context(), "a"); err != nil || seen[0].Status != StatusHeld {
			t.Errorf("%v: %v", seen, err)
		}
		delayReaders(c, late)
		if nodes, err := l.Release(t.Context()); err != nil {
			t.Errorf("%v: %v", nodes, err)
		}
		time.Sleep(time.Second)
		for i, s := range c.streams {
			if s.conn != before[i] {
				t.Errorf("n%d lost its connection", i+1)
			}
			if nodes[i].live() > 0 {
				t.Errorf("n%d has a copy", i+1)
			}
		}
	})
}

// TestHungQuorumCostsOneTimeout: nodes that hang are not taken for an own delay.
func TestHungQuorumCostsOneTimeout(t *testing.T) {
	inMemory(t, 5, func(t *testing.T, nodes []*memNode, c *Client) {
		l, err := c.TryAcquire(t.Context(), "a", time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range nodes[:3] {
			n.hang()
		}
		begin := time.Now()
		wg, most := sync.WaitGroup{}, c.nodeTimeout()+time.Millisecond
		for name, do := range map[string]func() error{
			"acquire": func() error { _, err := c.TryAcquire(t.Context(), "b", time.Hour); return err },
			"extend":  func() error { return l.Extend(t.Context(), time.Hour) },
			"release": func() error { _, err := c.Release(t.Context(), "c", "t"); return err },
		} {
			wg.Go(func() {
				if err := do(); !errors.Is(err, ErrNoQuorum) || time.Since(begin) > most {
					t.Errorf("%s, after %s: %v", name, time.Since(begin), err)
				}
			})
		}
		wg.Wait()
	})
}

// TestSlowNodeIsCutOff: one that goes on answering, but always too late, does not set
// the pace for ever.
func TestSlowNodeIsCutOff(t *testing.T) {
	inStream(t, func(t *testing.T, n *memNode, s *stream) {
		links := func() int {
			n.mu.Lock()
			defer n.mu.Unlock()
			return len(n.links)
		}
		before := links()
		var delay atomic.Int64
		n.set(func(n *memNode) { n.delay = func() (to, back time.Duration) { return time.Duration(delay.Load()), 0 } })
		for range 2000 {
			s.enqueue(del("a", "t", nil))
			time.Sleep(time.Millisecond)
			delay.Store(min(delay.Load()+int64(time.Millisecond), 4*int64(s.patience.lasts())))
			if links() != before {
				return
			}
		}
		t.Error("it was not")
	})
}

// TestCloseGivesOwedReleasesUp: releases that are still owed when the time to close has passed
// are not queued and failed again and again.
func TestCloseGivesOwedReleasesUp(t *testing.T) {
	for range 20 { // at random the writer sees the end or the release first
		inStream(t, func(t *testing.T, n *memNode, s *stream) {
			s.enqueue(del("a", "t", nil))
			s.cancel()
		})
	}
}
