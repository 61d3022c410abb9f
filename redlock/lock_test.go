package redlock

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"redlockctl/base/race"
)

// inMemory runs a test of a client over n masters in virtual time.
func inMemory(t *testing.T, n int, test func(t *testing.T, nodes []*memNode, c *Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		nodes := newMemNodes(n)
		c := newMemClient(t, nodes, Options{Retries: -1}, nil)
		defer c.Close()
		synctest.Wait()
		test(t, nodes, c)
	})
}

// away puts a node so far away that a round trip takes ms milliseconds.
func (n *memNode) away(ms int) {
	d := time.Duration(ms) * time.Millisecond / 2
	n.set(func(n *memNode) { n.delay = func() (time.Duration, time.Duration) { return d, d } })
}

func mustKeep(t *testing.T, l *Lock, opt KeepOptions) *Keeper {
	t.Helper()
	k, err := l.Keep(opt)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func mustAcquire(t *testing.T, c *Client, ttl time.Duration) *Lock {
	t.Helper()
	l, err := c.TryAcquire(t.Context(), "a", ttl)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestValidityCountsFromBeforeTheFirstRequest(t *testing.T) {
	inMemory(t, 3, func(t *testing.T, nodes []*memNode, c *Client) {
		for _, n := range nodes {
			n.away(40)
		}
		start := time.Now()
		l := mustAcquire(t, c, 10*time.Second)
		if took := time.Since(start); took != 40*time.Millisecond {
			t.Errorf("took %s", took)
		}
		if got, want := l.Until().Sub(start), 10*time.Second-102*time.Millisecond; got != want {
			t.Errorf("valid for %s, want %s", got, want)
		}
	})
}

// TestSleepOfTheMachine: the monotonic clock does not advance meanwhile, but the copies
// expire.
func TestSleepOfTheMachine(t *testing.T) {
	inMemory(t, 3, func(t *testing.T, nodes []*memNode, c *Client) {
		sleep := sleepy(c)
		l := mustAcquire(t, c, 10*time.Second)
		until := l.Until()
		sleep(shortestSleep - 1) // by the grain of the clocks
		if !l.Until().Equal(until) {
			t.Error("a sleep that was none")
		}
		sleep(6 * time.Second)
		if got := until.Sub(l.Until()).Round(time.Millisecond); got != 6001*time.Millisecond || !l.Valid(time.Now()) {
			t.Errorf("the validity is %s shorter, valid %t", got, l.Valid(time.Now()))
		}
		if err := l.Extend(t.Context(), 10*time.Second); err != nil || !l.Until().Equal(until) {
			t.Errorf("extended until %s after the end before: %v", l.Until().Sub(until), err)
		}
		sleep(9 * time.Second)
		k := mustKeep(t, l, KeepOptions{}) // that was slept before counts too
		defer k.Stop()
		if !k.Until().Equal(until.Add(-9 * time.Second)) {
			t.Errorf("kept until %s before the end", until.Sub(k.Until()))
		}
		sleep(898 * time.Millisecond)
		if l.Valid(time.Now()) || k.State() != Lost {
			t.Errorf("valid after a sleep beyond the validity, and %s", k.State())
		}
		if err := l.Extend(t.Context(), 10*time.Second); !errors.Is(err, ErrExpired) {
			t.Errorf("extended after it: %v", err)
		}
	})
}

func TestNobodyWaitsForHungNodes(t *testing.T) {
	inMemory(t, 5, func(t *testing.T, nodes []*memNode, c *Client) {
		nodes[0].hang()
		nodes[1].hang()
		start := time.Now()
		l := mustAcquire(t, c, 100*time.Second)
		if took := time.Since(start); took != 0 {
			t.Errorf("acquired after %s", took)
		}
		if err := l.Extend(t.Context(), 200*time.Second); err != nil || time.Since(start) != 0 {
			t.Errorf("extended after %s: %v", time.Since(start), err)
		}
		results, err := l.Release(t.Context())
		if took := time.Since(start); err != nil || took != 0 {
			t.Errorf("released after %s: %v", took, err)
		}
		if results[0].Status != StatusUnanswered || !results[0].MayLiveUntil.IsZero() {
			t.Errorf("%+v", results[0])
		}
		// By its token, it waits for what each node says, but not for long.
		if results, err = c.Release(t.Context(), "a", l.Token()); !errors.Is(err, ErrNotHeld) || results[0].Status != StatusSlow || results[0].Err == nil {
			t.Errorf("%+v, %v", results[0], err)
		}
		if took := time.Since(start); took != DefaultNodeTimeout {
			t.Errorf("answered after %s", took)
		}
	})
	inMemory(t, 3, func(t *testing.T, nodes []*memNode, c *Client) {
		nodes[0].hang()
		nodes[1].hang()
		start := time.Now()
		_, err := c.TryAcquire(t.Context(), "a", 100*time.Millisecond)
		if took := time.Since(start); !errors.Is(err, ErrNoQuorum) || took != 10*time.Millisecond {
			t.Errorf("failed after %s, want a tenth of the TTL: %v", took, err)
		}
	})
}

// TestFirstOperationWaitsForConnections: opening a connection may take longer
// than a node timeout, and must not use it up.
func TestFirstOperationWaitsForConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := newMemNodes(3)
		for _, n := range nodes {
			n.connect = 300 * time.Millisecond
		}
		c := newMemClient(t, nodes, Options{}, nil)
		defer c.Close()
		start := time.Now()
		if _, err := c.TryAcquire(t.Context(), "a", 10*time.Second); err != nil || time.Since(start) != 300*time.Millisecond {
			t.Errorf("after %s: %v", time.Since(start), err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		nodes := newMemNodes(3)
		nodes[0].hang()
		c := newMemClient(t, nodes, Options{}, nil)
		defer c.Close()
		start := time.Now()
		if _, err := c.TryAcquire(t.Context(), "a", 10*time.Second); err != nil || time.Since(start) != DefaultNodeTimeout {
			t.Errorf("with a hung node after %s: %v", time.Since(start), err)
		}
		start = time.Now()
		if _, err := c.TryAcquire(t.Context(), "b", 10*time.Second); err != nil || time.Since(start) != 0 {
			t.Errorf("the second after %s: %v", time.Since(start), err)
		}
	})
}

// TestExtendAfterTheValidity: the copies still exist, for the drift allowance, but the
// holder knows that the lock has ended.
func TestExtendAfterTheValidity(t *testing.T) {
	inMemory(t, 3, func(t *testing.T, nodes []*memNode, c *Client) {
		l := mustAcquire(t, c, 10*time.Second)
		time.Sleep(time.Until(l.Until()) - 1)
		if err := l.Extend(t.Context(), 10*time.Second); err != nil {
			t.Fatalf("in the last moment: %v", err)
		}
		time.Sleep(time.Until(l.Until()))
		if err := l.Extend(t.Context(), 10*time.Second); !errors.Is(err, ErrExpired) {
			t.Errorf("at its end: %v", err)
		}
	})
	inMemory(t, 3, func(t *testing.T, nodes []*memNode, c *Client) {
		l := mustAcquire(t, c, 10*time.Second)
		for _, n := range nodes {
			n.away(40)
		}
		time.Sleep(time.Until(l.Until()) - 30*time.Millisecond)
		until := l.Until()
		if err := l.Extend(t.Context(), 10*time.Second); !errors.Is(err, ErrExpired) {
			t.Errorf("confirmed after its end: %v", err)
		}
		if !l.Until().Equal(until) || l.Valid(time.Now()) {
			t.Errorf("valid until %s later", l.Until().Sub(until))
		}
	})
}

func TestReleaseDuringAnExtension(t *testing.T) {
	inMemory(t, 3, func(t *testing.T, nodes []*memNode, c *Client) {
		l := mustAcquire(t, c, 10*time.Second)
		for _, n := range nodes {
			n.away(40)
		}
		extended := make(chan error)
		go func() { extended <- l.Extend(t.Context(), 20*time.Second) }()
		time.Sleep(20 * time.Millisecond)
		go func() { _, _ = l.Release(t.Context()) }()
		if err := <-extended; !errors.Is(err, ErrNotHeld) {
			t.Errorf("extended while it was released: %v", err)
		}
		if l.Valid(time.Now()) {
			t.Error("valid")
		}
		time.Sleep(time.Second)
		for i, n := range nodes {
			if n.live() != 0 {
				t.Errorf("n%d keeps a copy", i+1)
			}
		}
	})
}

func TestExtensionThatNobodyAnswersIsUncertain(t *testing.T) {
	inMemory(t, 3, func(t *testing.T, nodes []*memNode, c *Client) {
		l := mustAcquire(t, c, 10*time.Second)
		synctest.Wait() // all three have voted: a copy of which nothing was heard does not count
		until := l.Until()
		nodes[0].hang()
		nodes[1].hang()
		if err := l.Extend(t.Context(), 10*time.Second); !errors.Is(err, ErrNoQuorum) {
			t.Fatal(err)
		}
		if !l.Valid(time.Now()) || !l.Until().Equal(until) {
			t.Error("the validity so far changed")
		}
		nodes[0].resume()
		time.Sleep(time.Second)
		if err := l.Extend(t.Context(), 10*time.Second); err != nil {
			t.Errorf("tried again: %v", err)
		}
	})
}

func TestMayLiveUntil(t *testing.T) {
	inMemory(t, 5, func(t *testing.T, nodes []*memNode, c *Client) {
		nodes[0].away(30) // answers after the lock is decided
		nodes[1].hang()   // never answers
		l := mustAcquire(t, c, 100*time.Second)
		if l.Nodes()[0].Status != StatusUnanswered {
			t.Fatalf("%+v", l.Nodes())
		}
		time.Sleep(time.Second)
		for _, n := range nodes[:3] {
			n.set(func(n *memNode) { n.down = true })
		}
		results, err := l.Release(t.Context())
		if !errors.Is(err, ErrNoQuorum) {
			t.Fatal(err)
		}
		start := l.Until().Add(-100*time.Second + c.opt.Drift(100*time.Second))
		longest := 100*time.Second + c.opt.Drift(100*time.Second)
		for i, want := range []time.Time{start.Add(30*time.Millisecond + longest), {}, start.Add(longest), {}, {}} {
			if got := results[i].MayLiveUntil; !got.Equal(want) {
				t.Errorf("n%d: until %s, want %s", i+1, got, want)
			}
		}
	})
}

func TestFailedAttemptTellsWhatMayBeLeft(t *testing.T) {
	inMemory(t, 3, func(t *testing.T, nodes []*memNode, c *Client) {
		nodes[0].set(func(n *memNode) { n.down = true })
		nodes[1].set(func(n *memNode) { n.fenced = true })
		nodes[2].away(10)
		_, err := c.TryAcquire(t.Context(), "a", 10*time.Second)
		var e *Error
		if !errors.As(err, &e) || !errors.Is(err, ErrNoQuorum) || len(e.Nodes) != 3 {
			t.Fatal(err)
		}
		want := `acquire "a": no quorum of 2 in 3 nodes; n1 down (connection reset by peer), n2 fenced`
		if err.Error() != want {
			t.Errorf("%s\nwant %s", err, want)
		}
	})
}

func TestCloseGivesUpWhatIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := newMemNodes(3)
		c := newMemClient(t, nodes, Options{RetryDelay: time.Hour, Retries: 100}, nil)
		synctest.Wait()
		mustAcquire(t, c, 10*time.Hour)
		failed := make(chan error)
		go func() {
			_, err := c.Acquire(context.Background(), "a", time.Second)
			failed <- err
		}()
		time.Sleep(time.Minute)
		closed := make(chan error)
		go func() { closed <- c.Close() }()
		if err := <-failed; !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
		if err := <-closed; err != nil { // its streams wait for their last answers
			t.Error(err)
		}
	})
}

func TestNodesErrorsAreNotTheOperations(t *testing.T) {
	e := &Error{Op: "acquire", Resource: "a", Kind: ErrNoQuorum, Nodes: []NodeResult{
		{Node: "n1", Status: StatusSlow, Err: context.DeadlineExceeded},
		{Node: "n2", Status: StatusSkipped, Err: ErrClosed},
	}}
	if !errors.Is(e, ErrNoQuorum) || errors.Is(e, context.DeadlineExceeded) || errors.Is(e, ErrClosed) {
		t.Error("what a node failed of is taken for what the operation failed of")
	}
}

// TestLongHangKeepsOwedReleases: a node that hung while other locks came and went is
// still told of the release whose SET lies in its buffer.
func TestLongHangKeepsOwedReleases(t *testing.T) {
	race.Skip(t)
	inMemory(t, 3, func(t *testing.T, nodes []*memNode, c *Client) {
		first := mustAcquire(t, c, time.Hour)
		nodes[0].hang()
		for i := range 2 * owedSize {
			l, err := c.TryAcquire(t.Context(), fmt.Sprint("b", i), time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			if i == 4 {
				time.Sleep(time.Minute)
				_, _ = first.Release(t.Context())
			}
			_, _ = l.Release(t.Context())
		}
		nodes[0].resume()
		time.Sleep(time.Minute)
		synctest.Wait()
		for i, n := range nodes {
			if left := n.live(); left > 0 {
				t.Errorf("n%d keeps %d copies", i+1, left)
			}
		}
	})
}

// TestLookThatIsGivenUp: a node that was not given its time is not called slow.
func TestLookThatIsGivenUp(t *testing.T) {
	inMemory(t, 3, func(t *testing.T, nodes []*memNode, c *Client) {
		nodes[2].hang()
		for wait, want := range map[time.Duration]Status{10 * time.Millisecond: StatusUnanswered, time.Minute: StatusSlow} {
			ctx, cancel := context.WithTimeout(t.Context(), wait)
			results, err := c.Inspect(ctx, "a")
			cancel()
			if (err != nil) != (want == StatusUnanswered) || results[2].Status != want || results[0].Status != StatusAbsent {
				t.Errorf("after %s: %s, %v", wait, results[2].Status, err)
			}
		}
	})
}
