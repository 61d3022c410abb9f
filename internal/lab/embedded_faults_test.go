package lab

import (
	"redlockctl/redlock"
	"testing"
	"time"
)

// A paused master answers nothing, and continues with its data; one that is crashed
// meanwhile does not hang.
func TestEmbeddedStandsStill(t *testing.T) {
	cluster, err := Embedded(1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cluster.Close() })
	if err := Unfence(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	c := redlock.Connect(cluster.Nodes()[0], 1, 20*time.Second)
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
	c := redlock.Connect(cluster.Nodes()[0], 1, 5*time.Second)
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
