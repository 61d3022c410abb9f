package redlock_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"redlockctl/internal/lab"
	"redlockctl/internal/lab/labtest"
	"redlockctl/redlock"
)

const (
	soakFor     = 8 * time.Second // by default
	soakWorkers = 16
	soakPause   = 40 * time.Millisecond // between two locks of a worker
)

// campaign is how long a test goes on that finds more the longer it does: what
// the environment variable says, or else a few seconds.
func campaign(t *testing.T, variable string, short time.Duration) time.Duration {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return short
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		t.Fatalf("%s=%q is not a positive duration", variable, text)
	}
	return d
}

// soakSample is what the process uses at one time.
type soakSample struct {
	at         time.Duration
	goroutines int
	heap       uint64 // bytes in use after a collection
	files      int    // open descriptors; connections are some of them
}

// Bounds of a soak. While a node is stopped, what is queued for it fills up to
// a few megabytes, and is let go of later; a leak raises the lowest samples too.
const (
	soakGoroutines = 16       // more than there were after the warm-up, at any time
	soakHeap       = 64 << 20 // bytes, at any time
	soakHeapRise   = 4 << 20  // bytes, of the lowest samples
	soakRise       = 4        // goroutines and descriptors, of the lowest samples
)

// rises looks for growth in samples that were taken after the warm-up.
func rises(samples []soakSample) error {
	if len(samples) < 6 {
		return fmt.Errorf("only %d samples: this shows nothing", len(samples))
	}
	for _, s := range samples {
		if s.goroutines > samples[0].goroutines+soakGoroutines {
			return fmt.Errorf("%d goroutines after %s, %d after the warm-up", s.goroutines, s.at, samples[0].goroutines)
		}
		if s.heap > soakHeap {
			return fmt.Errorf("a heap of %d bytes after %s", s.heap, s.at)
		}
	}
	third := len(samples) / 3
	early, late := samples[:third], samples[len(samples)-third:]
	for _, what := range []struct {
		name  string
		of    func(soakSample) int
		bound int
	}{
		{"goroutines", func(s soakSample) int { return s.goroutines }, soakRise},
		{"heap", func(s soakSample) int { return int(s.heap) }, soakHeapRise},
		{"descriptors", func(s soakSample) int { return s.files }, soakRise},
	} {
		lowest := func(samples []soakSample) int {
			least := what.of(samples[0])
			for _, s := range samples {
				least = min(least, what.of(s))
			}
			return least
		}
		if from, to := lowest(early), lowest(late); to > from+what.bound {
			return fmt.Errorf("%s rose from %d to %d", what.name, from, to)
		}
	}
	return nil
}

func takeSoakSample(since time.Time) soakSample {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	files := 0
	if entries, err := os.ReadDir("/proc/self/fd"); err == nil {
		files = len(entries)
	}
	return soakSample{time.Since(since), runtime.NumGoroutine(), m.HeapAlloc, files}
}

// TestSoak keeps sixteen goroutines locking while one node after the other is
// stopped and continued, and expects that nothing grows and that nothing is
// left on any node in the end. It lasts longer by REDLOCKCTL_SOAK=10m; see
// scripts/soak.
func TestSoak(t *testing.T) {
	length := campaign(t, "REDLOCKCTL_SOAK", soakFor)
	servers := labtest.Servers(t, 5)
	c := open(t, servers, redlock.Options{Retries: -1})
	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	var grants, contended, failed atomic.Int64
	var wg sync.WaitGroup
	for i := range soakWorkers {
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				key := fmt.Sprint("own:", i)
				if n%8 == 0 {
					key = "shared"
				}
				// Longer than the test: a copy that is left over stays to be seen.
				l, err := c.TryAcquire(ctx, key, length+time.Hour)
				switch {
				case err == nil:
					grants.Add(1)
					if n%4 == 0 && l.Extend(ctx, length+2*time.Hour) != nil {
						failed.Add(1)
					}
					if _, err := l.Release(ctx); err != nil {
						failed.Add(1)
					}
				case key == "shared":
					contended.Add(1)
				default:
					failed.Add(1)
				}
				pause(ctx, soakPause/2+rand.N(soakPause))
			}
		})
	}
	stops := 0
	wg.Go(func() { stops = stopAndContinue(ctx, t, servers) })

	begin, cpu := time.Now(), soakCPU()
	every := max(length/40, 250*time.Millisecond)
	var samples []soakSample
	for {
		if pause(ctx, every); ctx.Err() != nil {
			break // the workers are about to end, which would look like less
		}
		s := takeSoakSample(begin)
		t.Logf("%6s  %7d grants  %5d failed  %3d goroutines  %5d KiB heap  %3d descriptors", s.at.Round(time.Second),
			grants.Load(), failed.Load(), s.goroutines, s.heap>>10, s.files)
		if s.at > length/5 {
			samples = append(samples, s)
		}
	}
	wg.Wait()
	used := soakCPU() - cpu
	t.Logf("%d grants, %d contended, %d failed, %d stops, %.1f %% of a core (without the servers)", grants.Load(), contended.Load(),
		failed.Load(), stops, 100*used.Seconds()/time.Since(begin).Seconds())
	if err := rises(samples); err != nil {
		t.Error(err)
	} else {
		first, last := samples[0], samples[len(samples)-1]
		t.Logf("flat from %s to %s: goroutines %d and %d, heap %d and %d KiB, descriptors %d and %d", first.at.Round(time.Second),
			last.at.Round(time.Second), first.goroutines, last.goroutines, first.heap>>10, last.heap>>10, first.files, last.files)
	}
	if grants.Load() < 100 || stops < 2 {
		t.Errorf("%d grants, %d stops: this shows nothing", grants.Load(), stops)
	}
	settled(t, servers)
	t.Log("no copy is left on any node")
}

// stopAndContinue stops one node for 1–3 s, continues it, and does the same with the
// next after a moment.
func stopAndContinue(ctx context.Context, t *testing.T, servers []*lab.Server) (stops int) {
	for ctx.Err() == nil {
		s := servers[rand.IntN(len(servers))]
		if err := s.Pause(); err != nil {
			t.Error(err)
			return stops
		}
		stops++
		pause(ctx, time.Second+rand.N(2*time.Second))
		if err := s.Resume(); err != nil {
			t.Error(err)
			return stops
		}
		pause(ctx, 500*time.Millisecond+rand.N(time.Second))
	}
	return stops
}

// pause waits for d, or for the end of ctx.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func soakCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestSoakNotices: the check of the soak sees what grows.
func TestSoakNotices(t *testing.T) {
	for what, grow := range map[string]func(s *soakSample, i int){
		"":            func(*soakSample, int) {},
		"goroutines":  func(s *soakSample, i int) { s.goroutines += i },
		"heap":        func(s *soakSample, i int) { s.heap += uint64(i) << 18 },
		"descriptors": func(s *soakSample, i int) { s.files += i },
	} {
		samples := make([]soakSample, 32)
		for i := range samples {
			samples[i] = soakSample{goroutines: 40 + i%3, heap: 2<<20 + uint64(i%5)<<14, files: 20 + i%2}
			grow(&samples[i], i)
		}
		if err := rises(samples); (err != nil) != (what != "") {
			t.Errorf("%q grows: %v", what, err)
		}
	}
}
