package lab

import (
	"context"
	"errors"
	"testing"
	"time"
)

// Each kind leaves on real protocol what it says, and takes it away in the end.
func TestWrongClients(t *testing.T) {
	cluster, err := Embedded(3)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cluster.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := Unfence(ctx, cluster); err != nil {
		t.Fatal(err)
	}
	const maxTTL = time.Minute
	w := NewWrong(cluster.Nodes(), maxTTL)
	defer w.Close()
	for _, kind := range []string{"leak", "overstay", "split"} {
		if err := w.Start(kind, 1); err != nil || w.Running(kind) != 1 {
			t.Fatalf("%s: %v, %d run", kind, err, w.Running(kind))
		}
	}
	type copied struct {
		token string
		ttl   time.Duration
	}
	look := func(key string) (found []copied) {
		for _, n := range cluster.Nodes() {
			c := n.Client(1, time.Second)
			if token, err := c.Get(ctx, key).Result(); err == nil {
				ttl, _ := c.PTTL(ctx, key).Result()
				found = append(found, copied{token, ttl})
			}
			_ = c.Close()
		}
		return found
	}
	wait := func(what string, ok func() bool) {
		t.Helper()
		for !ok() {
			if ctx.Err() != nil {
				t.Fatalf("%s: leak %v, overstay %v, split %v", what, look("leak:1"), look("overstay:2"), look("split:3"))
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	wait("a leak has no TTL", func() bool { l := look("leak:1"); return len(l) == 3 && l[0].ttl < 0 && l[2].ttl < 0 })
	wait("an overstay is above the max TTL", func() bool { l := look("overstay:2"); return len(l) == 3 && l[1].ttl > maxTTL })
	wait("a split has two tokens", func() bool {
		l := look("split:3")
		return len(l) == 3 && l[0].token != l[1].token && l[0].ttl <= maxTTL
	})
	if err := w.Start("leak", 0); err != nil || len(look("leak:1")) != 0 || w.Running("leak") != 0 {
		t.Errorf("the leak's lock is left: %v, %v", err, look("leak:1"))
	}
	w.Close()
	if len(look("overstay:2"))+len(look("split:3")) != 0 {
		t.Error("something is left")
	}
	if err := w.Start("split", 1); !errors.Is(err, ErrClosed) {
		t.Errorf("started after the end: %v", err)
	}
	if err := w.Start("nothing", 1); !errors.Is(err, ErrKind) {
		t.Errorf("an unknown kind: %v", err)
	}
}

// A master that stands still answers nothing, and goes on with what it has; one
// that is crashed meanwhile does not hang.
func TestEmbeddedStandsStill(t *testing.T) {
	cluster, err := Embedded(1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cluster.Close() })
	if err := Unfence(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	c := cluster.Nodes()[0].Client(1, 20*time.Second)
	defer c.Close()
	if err := c.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if err := cluster.Pause(0); err != nil {
		t.Fatal(err)
	}
	answer := make(chan error, 1)
	go func() { answer <- c.Get(t.Context(), "k").Err() }()
	select {
	case err := <-answer:
		t.Fatalf("it answered: %v", err)
	case <-time.After(50 * time.Millisecond): // that it never answers cannot be seen
	}
	if err := cluster.Resume(0); err != nil {
		t.Fatal(err)
	}
	if err := <-answer; err != nil {
		t.Errorf("after it goes on: %v", err)
	}
	if err := cluster.Pause(0); err != nil {
		t.Fatal(err)
	}
	go func() { answer <- c.Get(t.Context(), "k").Err() }()
	if err := cluster.Crash(0); err != nil {
		t.Fatal(err)
	}
	if err := <-answer; err == nil {
		t.Error("a crashed master answered")
	}
	if err := cluster.Resume(0); err == nil {
		t.Error("a master that is down goes on")
	}
}

func TestShiftMovesAClock(t *testing.T) {
	cluster, err := Embedded(1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cluster.Close() })
	c := cluster.Nodes()[0].Client(1, 5*time.Second)
	defer c.Close()
	before, err := c.Time(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := cluster.(Shifter).Shift(0, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	after, err := c.Time(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	if moved := after.Sub(before); moved < 2*time.Hour || moved > 3*time.Hour {
		t.Errorf("moved by %s", moved)
	}
}
