package observe_test

import (
	"testing"
	"time"

	"redlockctl/internal/lab/labtest"
	"redlockctl/monitor"
	"redlockctl/monitor/observe"
)

// A semaphore is shown as one, with its holders, while they come and go; different
// holders on different nodes are no split.
func TestSemaphoresAreShownWithTheirHolders(t *testing.T) {
	const a, b = "6f1c3a52-9d0e-4b7f-8a21-c4d5e6f70819", "b0c7ad0e-51c3-4a4f-9d43-7d1c5d3f1e02"
	ss := labtest.Servers(t, 3)
	for i, s := range ss {
		do(t, s, "ZADD", "semaphore:job", "1", a)
		do(t, s, "PEXPIRE", "semaphore:job", "60000")
		if i > 0 {
			do(t, s, "ZADD", "semaphore:job", "2", b)
		}
	}
	m := watch(t, labtest.Nodes(ss), observe.Options{})
	until := func(owner string) {
		t.Helper()
		deadline := time.Now().Add(30 * time.Second)
		for {
			l := m.Snapshot().Locks.Get("semaphore:job")
			if l != nil && l.Form != nil && l.Form.Library == "redis-semaphore (semaphore)" && l.Form.Owner.Raw() == owner && l.State == monitor.LockNotALock {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%+v", l)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	until(a)
	for _, s := range ss {
		do(t, s, "ZREM", "semaphore:job", a)
	}
	until(b)
}
