package watch_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"redlockctl/internal/lab/labtest"
	"redlockctl/restartguard"
	"redlockctl/restartguard/memory"
	"redlockctl/restartguard/watch"
)

// A guard whose disk is full from the first start guards; what it knows is written
// when there is room.
func TestAFullDiskAtTheFirstStart(t *testing.T) {
	for name, files := range map[string]bool{"no room for files": false, "no room in files": true} {
		t.Run(name, func(t *testing.T) {
			disk, room := labtest.FullDisk(t, files)
			dir := filepath.Join(disk, "guard")
			m := openMemory(t, dir)
			defer m.Close()
			if !errors.Is(m.Full(), syscall.ENOSPC) {
				t.Fatalf("a full disk: %v", m.Full())
			}
			s := labtest.Servers(t, 1)[0]
			const d = 300 * time.Millisecond
			g := guard(t, watch.Config{Delay: d, Memory: m}, s.Node())
			g.reaches(restartguard.PhaseServing)
			restart(t, s)
			g.reaches(restartguard.PhaseFenced)
			g.reaches(restartguard.PhaseServing)
			if !writes(t, s) {
				t.Error("the guard opened nothing")
			}
			if _, err := os.Stat(filepath.Join(dir, "guard.json")); err == nil {
				t.Fatal("there was room for a memory: this shows nothing")
			}
			room()
			id := m.ID()
			if !wait(func() bool { known, err := memory.Read(dir); return err == nil && known["n1"].RunID != "" }) {
				t.Fatal("nothing was written when there was room")
			}
			// The directory is this guard's from then on.
			if _, err := memory.Open(dir); !errors.Is(err, memory.ErrInUse) {
				t.Errorf("a second guard: %v", err)
			}
			g.stop()
			_ = m.Close()
			next := openMemory(t, dir)
			defer next.Close()
			if next.ID() != id || next.Full() != nil || next.Damaged() != nil {
				t.Errorf("the next guard is %s, not %s; %v, %v", next.ID(), id, next.Full(), next.Damaged())
			}
		})
	}
}
