package redlock_test

import (
	"fmt"
	"testing"
	"time"

	"redlockctl/internal/lab/labtest"
	"redlockctl/redlock"
)

// BenchmarkAcquireRelease is a lock on five real servers and its release, one after
// the other.
func BenchmarkAcquireRelease(b *testing.B) {
	c, err := redlock.New(labtest.Nodes(labtest.Servers(b, 5)), patient())
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		l, err := c.Acquire(b.Context(), fmt.Sprint("bench:", i), time.Minute)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := l.Release(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// TestAllocations: a lock and its release cost no more of them than this.
func TestAllocations(t *testing.T) {
	c := open(t, labtest.Servers(t, 5), patient())
	if got := testing.AllocsPerRun(200, func() {
		if _, err := acquire(t, c, "a", time.Minute).Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}); got > 22 {
		t.Errorf("%.0f", got)
	}
}
