package lab

import (
	_ "embed"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
	"unsafe"
)

// clockShimSource is preloaded into a server so that its wall clock can be moved; see
// the source.
//
//go:embed clockshim/clockshim.c
var clockShimSource []byte

// ErrNoCompiler is returned by [BuildClockShim] on a machine without a C compiler.
var ErrNoCompiler = errors.New("no C compiler: apt-get install gcc libc6-dev")

// ErrNoClock is returned by [Server.SetClock] for a server without a clock of
// its own, see [Server.UseClock].
var ErrNoClock = errors.New("the server has no clock of its own")

// BuildClockShim compiles the library that gives a server its own wall clock into dir,
// and returns its path. Linux only.
func BuildClockShim(dir string) (string, error) {
	cc, err := exec.LookPath("cc")
	if err != nil {
		if cc, err = exec.LookPath("gcc"); err != nil {
			return "", ErrNoCompiler
		}
	}
	source, lib := filepath.Join(dir, "clockshim.c"), filepath.Join(dir, "clockshim.so")
	if err := os.WriteFile(source, clockShimSource, 0o600); err != nil {
		return "", err
	}
	out, err := exec.Command(cc, "-O2", "-fPIC", "-shared", "-o", lib, source).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", cc, err, out)
	}
	return lib, nil
}

// UseClock gives the server, from its next start on, a wall clock that
// [Server.SetClock] moves. Like the clock of a machine it keeps its setting across
// restarts. shim is the path from [BuildClockShim].
func (s *Server) UseClock(shim string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.clock != nil {
		return nil
	}
	path := filepath.Join(s.dir, s.name+".clock")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	const size = int(unsafe.Sizeof(clockSetting{}))
	if err := f.Truncate(int64(size)); err != nil {
		return err
	}
	// The page stays mapped until this process ends: a server may read it at any time.
	page, err := syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("map %s: %w", path, err)
	}
	s.clock = (*clockSetting)(unsafe.Pointer(&page[0]))
	s.env = append(s.env, "LD_PRELOAD="+shim, "REDLOCKCTL_CLOCK="+path)
	return nil
}

// SetClock makes the server's wall clock show real time + offset now, and run
// at rate times the real speed from now on (1: as real time does; 1.01: one
// percent fast). It fails with [ErrNoClock] without [Server.UseClock].
func (s *Server) SetClock(offset time.Duration, rate float64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.clock == nil {
		return fmt.Errorf("%s: %w", s.name, ErrNoClock)
	}
	if !(rate > 0 && rate <= 10) {
		return fmt.Errorf("clock rate %g is not in (0, 10]", rate)
	}
	c := s.clock
	c.version.Add(1)
	c.anchorNs = time.Now().UnixNano()
	c.offsetNs = int64(offset)
	c.ratePPB = int64(math.Round((rate - 1) * 1e9))
	c.version.Add(1)
	return nil
}
