package redlock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// kept runs a test of a keeper over 3 masters in virtual time. The bubble fails
// it if a goroutine is left behind.
func kept(t *testing.T, ttl time.Duration, opt KeepOptions, test func(t *testing.T, nodes []*memNode, l *Lock, k *Keeper)) {
	t.Helper()
	inMemory(t, 3, func(t *testing.T, nodes []*memNode, c *Client) {
		l := mustAcquire(t, c, ttl)
		synctest.Wait() // for the nodes beyond the quorum
		k := mustKeep(t, l, opt)
		defer k.Stop()
		test(t, nodes, l, k)
	})
}

// due is when the next extension begins.
func (k *Keeper) due() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.machine.due
}

func (n *memNode) forget() { n.set(func(n *memNode) { clear(n.keys) }) }

// ended waits for the end of a keeper's context, and returns when it was told.
func ended(k *Keeper) time.Time {
	<-k.Context().Done()
	return time.Now()
}

func TestKeeperExtendsAtAThird(t *testing.T) {
	kept(t, 30*time.Second, KeepOptions{}, func(t *testing.T, nodes []*memNode, l *Lock, k *Keeper) {
		began := l.Until()
		var pauses []time.Duration
		for last := began; len(pauses) < 50; time.Sleep(time.Millisecond) {
			if u := k.Until(); !u.Equal(last) {
				pauses, last = append(pauses, u.Sub(last)), u
			}
		}
		if low, high := slices.Min(pauses), slices.Max(pauses); low < 8*time.Second || high > 10*time.Second || high-low < time.Second {
			t.Errorf("extended every %s to %s: want chance within the last fifth of 10s", low, high)
		}
		if k.State() != Held || k.Err() != nil || k.Context().Err() != nil || !l.Valid(time.Now()) || !k.Until().Equal(l.Until()) {
			t.Errorf("%s: %v", k.State(), k.Err())
		}
	})
}

func TestKeeperOfALockWithAnotherTTL(t *testing.T) {
	kept(t, 5*time.Second, KeepOptions{TTL: 30 * time.Second, Every: time.Hour}, func(t *testing.T, nodes []*memNode, l *Lock, k *Keeper) {
		synctest.Wait()
		if left := time.Until(k.Until()); left < 29*time.Second {
			t.Errorf("a shorter TTL is extended at once, but %s are left", left)
		}
		if wait := time.Until(k.due()); wait > 15*time.Second {
			t.Errorf("extended after %s: there is no time left for a second try", wait)
		}
	})
	kept(t, time.Hour, KeepOptions{TTL: 30 * time.Second}, func(t *testing.T, nodes []*memNode, l *Lock, k *Keeper) {
		if wait := time.Until(k.due()); wait < 59*time.Minute-time.Hour/100 {
			t.Errorf("a longer TTL is extended after %s", wait)
		}
	})
}

func TestKeeperUncertainThenHeldAgain(t *testing.T) {
	kept(t, 30*time.Second, KeepOptions{}, func(t *testing.T, nodes []*memNode, l *Lock, k *Keeper) {
		until := k.Until()
		nodes[0].hang()
		nodes[1].hang()
		if s := <-k.Changes(); s != Uncertain {
			t.Fatalf("told %s", s)
		}
		if waited := time.Until(until); waited < 19*time.Second {
			t.Errorf("told with %s of validity left", waited)
		}
		if k.State() != Uncertain || !errors.Is(k.Err(), ErrNoQuorum) || k.Context().Err() != nil || !k.Until().Equal(until) {
			t.Errorf("%s: %v", k.State(), k.Err())
		}
		time.Sleep(5 * time.Second)
		nodes[0].resume()
		resumed := time.Now()
		if s := <-k.Changes(); s != Held {
			t.Fatalf("told %s", s)
		}
		// The node is tried again within 2 s, and the extension within one.
		if took := time.Since(resumed); took > 3100*time.Millisecond {
			t.Errorf("held again %s after the node was back", took)
		}
		if k.Err() != nil || k.Context().Err() != nil || !k.Until().After(until) {
			t.Errorf("%s: %v", k.State(), k.Err())
		}
	})
}

func TestKeeperIsToldAtOnceThatTheTokenIsGone(t *testing.T) {
	kept(t, 30*time.Second, KeepOptions{}, func(t *testing.T, nodes []*memNode, l *Lock, k *Keeper) {
		due := k.due()
		nodes[1].forget()
		nodes[2].forget()
		if at := ended(k); !at.Equal(due) {
			t.Errorf("told %s after the extension", at.Sub(due))
		}
		cause := context.Cause(k.Context())
		if !errors.Is(cause, ErrLost) || !errors.Is(cause, ErrNotHeld) || errors.Is(cause, ErrExpired) {
			t.Error(cause)
		}
		if want := `keep "a": lost: no majority has this token`; cause.Error() != want {
			t.Errorf("%s, want %s", cause, want)
		}
		if k.State() != Lost || k.Err() != cause || l.Valid(time.Now()) {
			t.Errorf("%s: %v", k.State(), k.Err())
		}
		var told []KeeperState
		for s := range k.Changes() {
			told = append(told, s)
		}
		if !slices.Equal(told, []KeeperState{Lost}) {
			t.Errorf("told %v", told)
		}
	})
}

// endsWithTheValidity checks that the context of a keeper of which no
// extension succeeds ends at the end of validity and no later.
func endsWithTheValidity(t *testing.T, keep func(*Lock) *Keeper) (err error) {
	inMemory(t, 3, func(t *testing.T, nodes []*memNode, c *Client) {
		l := mustAcquire(t, c, 30*time.Second)
		until := l.Until()
		k := keep(l)
		defer k.Stop()
		derived, cancel := context.WithCancel(k.Context())
		defer cancel()
		for _, n := range nodes {
			n.hang()
		}
		if at := ended(k); at.After(until) {
			err = fmt.Errorf("told %s after the end of validity", at.Sub(until))
			return
		} else if at.Before(until) {
			t.Errorf("told %s before the end of validity", until.Sub(at))
		}
		synctest.Wait()
		if derived.Err() == nil || k.State() != Lost {
			t.Errorf("%s; derived: %v", k.State(), derived.Err())
		}
		if cause := context.Cause(derived); !errors.Is(cause, ErrLost) || !errors.Is(cause, ErrExpired) || errors.Is(cause, ErrNoQuorum) {
			t.Error(cause)
		}
		var e *Error
		if !errors.As(k.Err(), &e) || len(e.Nodes) != 3 {
			t.Errorf("it does not tell what was in the way: %v", k.Err())
		}
	})
	return err
}

func TestKeeperEndsWithTheValidity(t *testing.T) {
	if err := endsWithTheValidity(t, func(l *Lock) *Keeper { return mustKeep(t, l, KeepOptions{}) }); err != nil {
		t.Error(err)
	}
	for name, mutant := range map[string]func(*Lock) *Keeper{
		"a context that ends with the TTL": func(l *Lock) *Keeper {
			l.until = l.until.Add(l.client.opt.Drift(l.ttl))
			return mustKeep(t, l, KeepOptions{})
		},
		"nobody but the extension looks at the clock": func(l *Lock) *Keeper {
			k := mustKeep(t, l, KeepOptions{})
			k.mu.Lock()
			defer k.mu.Unlock()
			k.timer.Stop()
			k.machine.until = k.machine.until.Add(time.Minute)
			return k
		},
	} {
		if endsWithTheValidity(t, mutant) == nil {
			t.Errorf("not noticed: %s", name)
		}
	}
}

// TestKeeperDoesNotWaitForAnExtension: the end of validity is told by a timer,
// whatever an extension does meanwhile.
func TestKeeperDoesNotWaitForAnExtension(t *testing.T) {
	kept(t, 30*time.Second, KeepOptions{}, func(t *testing.T, nodes []*memNode, l *Lock, k *Keeper) {
		for _, n := range nodes {
			n.away(20)
		}
		due := k.due()
		time.Sleep(time.Until(due) - 1)
		k.mu.Lock()
		k.machine.until = due.Add(10 * time.Millisecond) // in the middle of it
		k.timer.Reset(time.Until(k.machine.until))
		k.mu.Unlock()
		if at := ended(k); at.Sub(due) != 10*time.Millisecond {
			t.Errorf("told %s after the extension had begun", at.Sub(due))
		}
		time.Sleep(time.Second)
		if k.State() != Lost || k.Context().Err() == nil {
			t.Errorf("the extension that was confirmed too late made it %s", k.State())
		}
	})
}

func TestKeeperReleaseDuringAnExtension(t *testing.T) {
	kept(t, 30*time.Second, KeepOptions{}, func(t *testing.T, nodes []*memNode, l *Lock, k *Keeper) {
		for _, n := range nodes {
			n.away(40)
		}
		copies := make(chan int, 1) // when the context ended
		context.AfterFunc(k.Context(), func() {
			live := 0
			for _, n := range nodes {
				live += n.live()
			}
			copies <- live
		})
		time.Sleep(time.Until(k.due()) + 10*time.Millisecond)
		if results, err := k.Release(t.Context()); err != nil || len(results) != 3 {
			t.Errorf("%v: %v", results, err)
		}
		if n := <-copies; n != 3 {
			t.Errorf("the work went on until %d copies were left", n)
		}
		if cause := context.Cause(k.Context()); k.State() != Released || cause != context.Canceled || k.Err() != nil || l.Valid(time.Now()) {
			t.Errorf("%s: %v, %v", k.State(), cause, k.Err())
		}
		if s, open := <-k.Changes(); s != Released || !open {
			t.Errorf("told %s", s)
		}
		if _, open := <-k.Changes(); open {
			t.Error("there are more changes")
		}
		time.Sleep(time.Minute)
		for i, n := range nodes {
			if n.live() != 0 {
				t.Errorf("n%d keeps a copy", i+1)
			}
		}
		if _, err := k.Release(t.Context()); !errors.Is(err, ErrNotHeld) || k.State() != Released {
			t.Errorf("a second release: %v, %s", err, k.State())
		}
	})
}

func TestKeeperReleaseOfALostLock(t *testing.T) {
	kept(t, 30*time.Second, KeepOptions{}, func(t *testing.T, nodes []*memNode, l *Lock, k *Keeper) {
		nodes[0].forget()
		nodes[1].forget()
		ended(k)
		_, err := k.Release(t.Context())
		if !errors.Is(err, ErrLost) || nodes[2].live() != 0 {
			t.Errorf("%d copies are left: %v", nodes[2].live(), err)
		}
		if k.State() != Lost || !errors.Is(context.Cause(k.Context()), ErrLost) {
			t.Errorf("the loss is forgotten: %s", k.State())
		}
	})
}

func TestKeeperStop(t *testing.T) {
	kept(t, 30*time.Second, KeepOptions{}, func(t *testing.T, nodes []*memNode, l *Lock, k *Keeper) {
		for _, n := range nodes {
			n.away(40)
		}
		until := k.Until()
		time.Sleep(time.Until(k.due()) + 10*time.Millisecond) // in the middle of an extension
		before := time.Now()
		k.Stop()
		k.Stop()
		if took := time.Since(before); took != 0 {
			t.Errorf("stopped after %s", took)
		}
		if k.State() != Held || k.Context().Err() != nil || !l.Valid(time.Now()) || nodes[0].live() != 1 {
			t.Errorf("the lock is not held any more: %s", k.State())
		}
		if at := ended(k); !at.Equal(until) {
			t.Errorf("told %s after the end of validity", at.Sub(until))
		}
		if s := <-k.Changes(); s != Lost {
			t.Errorf("told %s", s)
		}
	})
}

func TestKeeperMaxExtensions(t *testing.T) {
	kept(t, 30*time.Second, KeepOptions{MaxExtensions: 3}, func(t *testing.T, nodes []*memNode, l *Lock, k *Keeper) {
		start := time.Now()
		at := ended(k)
		if held := at.Sub(start); held < 53*time.Second || held > 60*time.Second || !at.Equal(l.Until()) {
			t.Errorf("held for %s after three extensions", held)
		}
		cause := context.Cause(k.Context())
		if want := `keep "a": lost: validity used up after 3 extensions, the limit`; !errors.Is(cause, ErrExpired) || cause.Error() != want {
			t.Errorf("%s, want %s", cause, want)
		}
	})
}

// TestKeeperAfterASleep: the monotonic clock does not advance while the machine is
// suspended; the masters' clocks do.
func TestKeeperAfterASleep(t *testing.T) {
	asleep := func(t *testing.T, test func(t *testing.T, nodes []*memNode, l *Lock, k *Keeper, sleep func(time.Duration))) {
		inMemory(t, 3, func(t *testing.T, nodes []*memNode, c *Client) {
			sleep := sleepy(c)
			l := mustAcquire(t, c, 30*time.Second)
			k := mustKeep(t, l, KeepOptions{})
			defer k.Stop()
			test(t, nodes, l, k, sleep)
		})
	}
	asleep(t, func(t *testing.T, nodes []*memNode, l *Lock, k *Keeper, sleep func(time.Duration)) {
		time.Sleep(5 * time.Second)
		synctest.Wait() // the keeper looks at this very moment too
		ctx := k.Context()
		sleep(29700*time.Millisecond - 5*time.Second - 2*time.Millisecond - 1)
		if ctx.Err() != nil || k.State() != Held {
			t.Fatalf("a moment before the end: %v", k.Err())
		}
		sleep(1)
		if ctx.Err() == nil || !errors.Is(context.Cause(ctx), ErrExpired) || k.State() != Lost {
			t.Errorf("after a sleep beyond the validity: %s, %v", k.State(), context.Cause(ctx))
		}
	})
	asleep(t, func(t *testing.T, nodes []*memNode, l *Lock, k *Keeper, sleep func(time.Duration)) {
		time.Sleep(3500 * time.Millisecond)
		done := k.Context().Done()
		sleep(time.Minute)
		woke := time.Now()
		<-done
		if took := time.Since(woke); took > keepLook {
			t.Errorf("who only waits was told after %s", took)
		}
	})
	asleep(t, func(t *testing.T, nodes []*memNode, l *Lock, k *Keeper, sleep func(time.Duration)) {
		time.Sleep(time.Second)
		until := l.Until()
		sleep(15 * time.Second)
		if got := until.Sub(k.Until()); got != 15*time.Second || !l.Until().Equal(k.Until()) {
			t.Errorf("a sleep of 15s made the validity %s shorter, and that of the lock %s", got, until.Sub(l.Until()))
		}
		time.Sleep(keepLook + 1) // it is extended as soon as the keeper has noticed
		if !l.Until().After(until) || !k.Until().Equal(l.Until()) || k.State() != Held {
			t.Errorf("%s until %s before the end of the extended validity", k.State(), l.Until().Sub(k.Until()))
		}
		time.Sleep(time.Hour)
		if k.State() != Held {
			t.Error(k.Err())
		}
	})
}

func TestKeeperIsNotHeldUpByNobodyListening(t *testing.T) {
	kept(t, 3*time.Second, KeepOptions{}, func(t *testing.T, nodes []*memNode, l *Lock, k *Keeper) {
		for range 5 {
			for _, want := range []KeeperState{Uncertain, Held} {
				for _, n := range nodes {
					n.set(func(n *memNode) { n.fenced = want == Uncertain })
				}
				for k.State() != want {
					time.Sleep(10 * time.Millisecond)
				}
			}
		}
		if s := <-k.Changes(); s != Held {
			t.Errorf("the latest state is told as %s", s)
		}
	})
}

func TestKeeperOfALockThatIsOver(t *testing.T) {
	check := func(t *testing.T, l *Lock, kind error) {
		k := mustKeep(t, l, KeepOptions{})
		defer k.Stop()
		cause := context.Cause(k.Context())
		if k.State() != Lost || !errors.Is(cause, ErrLost) || !errors.Is(cause, kind) {
			t.Errorf("%s: %v, want %v", k.State(), cause, kind)
		}
		if s, open := <-k.Changes(); s != Lost || !open {
			t.Errorf("told %s", s)
		}
	}
	inMemory(t, 3, func(t *testing.T, nodes []*memNode, c *Client) {
		l := mustAcquire(t, c, 10*time.Second)
		time.Sleep(10 * time.Second)
		check(t, l, ErrExpired)
		l = mustAcquire(t, c, 10*time.Second)
		if _, err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		check(t, l, ErrNotHeld)
	})
}

func TestKeeperKeepsTheLockWhenTheWorkIsCancelled(t *testing.T) {
	type key struct{}
	inMemory(t, 3, func(t *testing.T, nodes []*memNode, c *Client) {
		l := mustAcquire(t, c, 30*time.Second)
		stop := errors.New("enough")
		parent, cancel := context.WithCancelCause(context.WithValue(t.Context(), key{}, 7))
		k := mustKeep(t, l, KeepOptions{Context: parent})
		defer k.Stop()
		if _, bounded := k.Context().Deadline(); bounded || k.Context().Value(key{}) != 7 {
			t.Error("the context is not the parent's")
		}
		cancel(stop)
		if cause := context.Cause(k.Context()); cause != stop {
			t.Error(cause)
		}
		time.Sleep(time.Hour)
		if k.State() != Held || !l.Valid(time.Now()) {
			t.Error(k.Err())
		}
	})
}

func TestKeeperThatCanNeverExtend(t *testing.T) {
	kept(t, 30*time.Second, KeepOptions{}, func(t *testing.T, nodes []*memNode, l *Lock, k *Keeper) {
		until := k.Until()
		if err := l.client.Close(); err != nil {
			t.Fatal(err)
		}
		if s := <-k.Changes(); s != Uncertain || !errors.Is(k.Err(), ErrClosed) {
			t.Errorf("%s: %v", s, k.Err())
		}
		if at := ended(k); !at.Equal(until) {
			t.Errorf("lost %s before the end of validity", until.Sub(at))
		}
	})
}

// TestKeepersExclude: the safety check of all beliefs, with holders that work
// under the keeper's context.
func TestKeepersExclude(t *testing.T) {
	working := func(mutant func(*Lock)) schedule {
		s := contenders()
		s.hold = func(l *Lock, rnd *rand.Rand) {
			if mutant != nil {
				mutant(l)
			}
			k := mustKeep(t, l, KeepOptions{})
			defer k.Stop()
			select {
			case <-k.Context().Done():
			case <-time.After(time.Duration(rnd.Int64N(int64(time.Second)))):
			}
		}
		return s
	}
	grants := 0
	for seed := range uint64(safetySeeds / 5) {
		beliefs, _ := working(nil).run(t, seed)
		grants += len(beliefs)
		if err := overlap(beliefs); err != nil {
			t.Fatalf("seed %d: two holders: %v", seed, err)
		}
	}
	if grants < safetySeeds/2 {
		t.Errorf("only %d grants in all: this shows nothing", grants)
	}
	for seed := range uint64(10 * safetySeeds) {
		beliefs, _ := working(func(l *Lock) { l.until = l.until.Add(time.Second) }).run(t, seed)
		if overlap(beliefs) != nil {
			return
		}
	}
	t.Error("not noticed: a context that outlives the validity")
}
