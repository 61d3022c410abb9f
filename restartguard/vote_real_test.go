package restartguard_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"redlockctl/internal/lab/labtest"
	"redlockctl/restartguard"
)

func memoryIn(t *testing.T, dir string) *restartguard.Memory {
	t.Helper()
	m, err := restartguard.OpenMemory(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

var startsFenced = []string{"--min-replicas-to-write", "2147483647", "--min-replicas-max-lag", "10"}

// A guard that restarts while it is cut off from the one with the greater D keeps that D, also
// where all that it knew of nodes is gone.
func TestADelayOutlivesTheGuardThatHeardIt(t *testing.T) {
	s := labtest.Servers(t, 1, startsFenced...)[0]
	const short, long = 200 * time.Millisecond, 2 * time.Second
	dir := t.TempDir()
	m := memoryIn(t, dir)
	right := guard(t, restartguard.Config{Delay: long}, s.Node())
	old := guard(t, restartguard.Config{Delay: short, Memory: m}, s.Node())
	old.becomes("that it knows of the other", func(st restartguard.NodeStatus) bool { return st.Delay == long })
	right.stop()
	old.stop()
	_ = m.Close()
	if err := os.Remove(filepath.Join(dir, "guard.json")); err != nil {
		t.Fatal(err)
	}
	m = memoryIn(t, dir)
	again := guard(t, restartguard.Config{Delay: short, Memory: m}, s.Node())
	again.becomes("that it knows of the other still", func(st restartguard.NodeStatus) bool { return st.Delay == long })
	born := restart(t, s)
	for !writes(t, s) {
		time.Sleep(time.Millisecond)
	}
	notBefore(t, long, born, time.Now())

	gone, err := restartguard.ForgetDelay(dir, right.ID()[:6])
	if err != nil || len(gone) != 1 || gone[0].Delay != long {
		t.Fatalf("%+v, %v", gone, err)
	}
	again.becomes("that an operator had it forgotten", func(st restartguard.NodeStatus) bool { return st.Delay == short })
	if all, err := restartguard.ReadDelays(dir); err != nil || len(all) != 0 {
		t.Errorf("on disk: %+v, %v", all, err)
	}
	if gone, err := restartguard.ForgetDelay(dir, "nobody"); err != nil || len(gone) != 0 {
		t.Errorf("%+v, %v", gone, err)
	}
}
