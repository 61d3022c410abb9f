package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"redlockctl/internal/lab"
)

// lockBench measures locks beside the rivals'.
func lockBench(args []string) error {
	var w wanted
	_ = w.flags("lock", "sequential, parallel, contended or fault").Parse(args)
	servers, err := lab.StartServers(w.server, 5)
	if err != nil {
		return err
	}
	defer servers.Close()
	makers := makers()
	if w.profile != "" {
		makers = makers[:1]
	}
	ended, err := w.startProfile()
	if err != nil {
		return err
	}
	defer ended()
	slice := 1500 * time.Millisecond
	if w.quick {
		slice = 300 * time.Millisecond
	}
	rounds := w.rounds(3, 5)
	var r report
	r.about("Locks", machine(servers, lockFacts(args, rounds)...)...)
	var all figures
	for round := range rounds {
		fmt.Fprintf(os.Stderr, "round %d of %d\n", round+1, rounds)
		if err := w.round(&all, servers, makers, round, slice); err != nil {
			return err
		}
	}
	all.print()
	return r.writeJSON(w.json, all)
}

// round measures each maker once, in an order of its own.
func (w *wanted) round(r *figures, servers lab.Servers, makers []maker, round int, slice time.Duration) error {
	order := slices.Clone(makers)
	rand.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	if w.wants("sequential") {
		for _, m := range order {
			if err := throughput(r, servers, m, round, "sequential", 1, slice); err != nil {
				return err
			}
		}
	}
	if w.wants("parallel") {
		for _, g := range []int{16, 64} {
			for _, m := range order {
				if err := throughput(r, servers, m, round, fmt.Sprintf("parallel %d", g), g, slice); err != nil {
					return err
				}
			}
		}
	}
	if w.wants("contended") {
		ceiling(r, round, slice)
		for _, m := range order {
			if err := contended(r, servers, m, round, 1, slice); err != nil {
				return err
			}
			if m.floor { // it cannot wait
				continue
			}
			if err := contended(r, servers, m, round, fighters, 3*slice); err != nil {
				return err
			}
		}
	}
	if w.wants("fault") {
		for _, m := range order {
			if m.floor || m.oneServer {
				continue
			}
			if err := fault(r, servers, m, round, slice); err != nil {
				return err
			}
		}
	}
	return nil
}

// lockFacts are the command, and the versions of the rivals.
func lockFacts(args []string, rounds int) []fact {
	facts := []fact{
		{"command", "cd proof/bench && go run . " + strings.Join(append([]string{"lock"}, args...), " ")},
		{"rounds", fmt.Sprint(rounds)},
	}
	info, _ := debug.ReadBuildInfo()
	for _, path := range []string{"github.com/redis/go-redis/v9", "github.com/go-redsync/redsync/v4", "github.com/redis/rueidis/rueidislock"} {
		for _, m := range info.Deps {
			if path == m.Path || strings.HasPrefix(path, m.Path+"/") {
				facts = append(facts, fact{path, m.Version})
			}
		}
	}
	return facts
}

// sample is the time of one lock and of one unlock.
type sample struct{ lock, unlock time.Duration }

// drive lets g goroutines lock and unlock keys of their own for d.
func drive(c contender, g int, d time.Duration, prefix string) ([]sample, error) {
	ctx, cancel := context.WithTimeout(context.Background(), d+30*time.Second)
	defer cancel()
	var (
		wg  sync.WaitGroup
		mu  sync.Mutex
		all []sample
		bad error
	)
	end := time.Now().Add(d)
	for i := range g {
		wg.Go(func() {
			key := fmt.Sprintf("%s:%d", prefix, i)
			mine := make([]sample, 0, 1<<14)
			for n := 0; time.Now().Before(end); n++ {
				t0 := time.Now()
				unlock, err := c.lock(ctx, key)
				t1 := time.Now()
				if err == nil {
					err = unlock()
				}
				if err != nil {
					mu.Lock()
					bad = err
					mu.Unlock()
				}
				mine = append(mine, sample{t1.Sub(t0), time.Since(t1)})
			}
			mu.Lock()
			all = append(all, mine...)
			mu.Unlock()
		})
	}
	wg.Wait()
	if len(all) == 0 {
		return nil, fmt.Errorf("nothing was locked: %w", bad)
	}
	return all, nil
}

func throughput(r *figures, servers lab.Servers, m maker, round int, scenario string, g int, d time.Duration) error {
	c, err := m.make(servers)
	if err != nil {
		return err
	}
	defer c.close()
	if _, err := drive(c, g, d/5, "warm"); err != nil { // connections, scripts
		return fmt.Errorf("%s: %w", m.name, err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	spent, t := processCPU(), time.Now()
	all, err := drive(c, g, d, "bench")
	if err != nil {
		return fmt.Errorf("%s: %w", m.name, err)
	}
	took, used := time.Since(t), processCPU()-spent
	runtime.ReadMemStats(&after)
	n := float64(len(all))
	total := make([]time.Duration, len(all))
	for i, s := range all {
		total[i] = s.lock + s.unlock
	}
	r.add(scenario+": lock+unlock p50", m.name, round, "µs", us(percentile(total, 50)))
	r.add(scenario+": lock+unlock p99", m.name, round, "µs", us(percentile(total, 99)))
	r.add(scenario+": throughput", m.name, round, "/s", n/took.Seconds())
	r.add(scenario+": client CPU", m.name, round, "µs", us(used)/n)
	r.add(scenario+": allocations", m.name, round, "", float64(after.Mallocs-before.Mallocs)/n)
	r.add(scenario+": allocated", m.name, round, "B", float64(after.TotalAlloc-before.TotalAlloc)/n)
	return nil
}

// fault measures lock and unlock with all nodes healthy, with one stopped, and
// with one that refuses, and what is left over on any node afterwards.
func fault(r *figures, servers lab.Servers, m maker, round int, d time.Duration) error {
	c, err := m.make(servers)
	if err != nil {
		return err
	}
	defer c.close()
	const g = 4
	healthy := make(map[string]float64)
	measure := func(name string) error {
		all, err := drive(c, g, d, fmt.Sprintf("fault%d", round))
		if err != nil {
			return fmt.Errorf("%s, %s: %w", m.name, name, err)
		}
		lock, unlock := make([]time.Duration, len(all)), make([]time.Duration, len(all))
		for i, s := range all {
			lock[i], unlock[i] = s.lock, s.unlock
		}
		for what, times := range map[string][]time.Duration{"lock": lock, "unlock": unlock} {
			p99 := us(percentile(times, 99))
			r.add("fault: "+what+" p99, "+name, m.name, round, "µs", p99)
			if before, ok := healthy[what]; ok {
				r.add("fault: "+what+" p99, "+name+", to all healthy", m.name, round, "×", p99/before)
			} else {
				healthy[what] = p99
			}
		}
		return nil
	}
	if _, err := drive(c, g, d/5, "warm"); err != nil {
		return err
	}
	if err := measure("all healthy"); err != nil {
		return err
	}
	victim := servers[1+round%(len(servers)-1)]
	if err := victim.Pause(); err != nil {
		return err
	}
	err = measure("one stopped")
	if e := victim.Resume(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	// What the stopped node found in its buffers must be gone, too.
	time.Sleep(500 * time.Millisecond)
	r.add("fault: left over after one stopped", m.name, round, "keys", leftOver(servers))
	if err := victim.Kill(); err != nil {
		return err
	}
	err = measure("one refused")
	if e := victim.Start(); err == nil {
		err = e
	}
	time.Sleep(500 * time.Millisecond)
	r.add("fault: left over after one refused", m.name, round, "keys", leftOver(servers))
	return errors.Join(err, command(context.Background(), servers, "FLUSHALL"))
}

// What is held for how long by how many in the fight for one key.
const (
	fighters = 8
	hold     = 5 * time.Millisecond
)

// sleep holds a lock for exactly as long as it says. A timer of Go's runtime
// comes up to a millisecond late on an idle machine, and the loss would be
// counted as the locks'; so the kernel's own timer brings it near the end, and
// the rest is spent looking at the clock. All contenders get the same.
func sleep(d time.Duration) {
	const rest = 250 * time.Microsecond
	end := time.Now().Add(d)
	t := syscall.NsecToTimespec(int64(d - rest))
	_ = syscall.Nanosleep(&t, nil)
	for time.Now().Before(end) {
	}
}

// ceiling measures how often one can hold nothing at all for 5 ms: no lock can
// be handed on more often than that.
func ceiling(r *figures, round int, d time.Duration) {
	n, begin := 0, time.Now()
	for time.Since(begin) < d {
		sleep(hold)
		n++
	}
	rate := float64(n) / time.Since(begin).Seconds()
	r.add(oneKey(1)+": grants", ceilRow, round, "/s", rate)
	r.add(oneKey(fighters)+": grants", ceilRow, round, "/s", rate)
}

func oneKey(clients int) string {
	if clients == 1 {
		return "one key, 1 client, hold 5 ms"
	}
	return fmt.Sprintf("one key, %d clients, hold 5 ms", clients)
}

// contended lets clients, each with connections of its own as if it were a
// process of its own, fight for one key and hold it for 5 ms. The handover is
// from the moment at which a holder calls unlock to the moment at which the next
// one's lock returns. With one client alone it is an unlock and a lock.
func contended(r *figures, servers lab.Servers, m maker, round, clients int, d time.Duration) error {
	all := make([]contender, clients)
	for i := range all {
		c, err := m.make(servers)
		if err != nil {
			return err
		}
		defer c.close()
		if _, err := drive(c, 1, d/60, fmt.Sprintf("warm%d", i)); err != nil {
			return err
		}
		all[i] = c
	}
	ctx, cancel := context.WithTimeout(context.Background(), d+10*time.Second)
	defer cancel()
	var (
		wg       sync.WaitGroup
		mu       sync.Mutex
		grants   int
		waits    []time.Duration
		gaps     []time.Duration
		released time.Time
	)
	begin := time.Now()
	end := begin.Add(d)
	for _, c := range all {
		wg.Go(func() {
			for time.Now().Before(end) {
				t := time.Now()
				unlock, err := c.lock(ctx, "one")
				got := time.Now()
				if err != nil {
					continue
				}
				mu.Lock()
				if got.Before(end) {
					grants++
				}
				waits = append(waits, got.Sub(t))
				if !released.IsZero() {
					gaps = append(gaps, got.Sub(released))
				}
				mu.Unlock()
				sleep(hold)
				mu.Lock()
				released = time.Now()
				mu.Unlock()
				_ = unlock()
			}
		})
	}
	wg.Wait()
	time.Sleep(100 * time.Millisecond)
	if len(gaps) == 0 {
		return fmt.Errorf("%s: nobody got the key", m.name)
	}
	name := oneKey(clients)
	r.add(name+": grants", m.name, round, "/s", float64(grants)/d.Seconds())
	if m.floor { // what one alone can do is a bound for many that take turns
		r.add(oneKey(fighters)+": grants", m.name, round, "/s", float64(grants)/d.Seconds())
	}
	r.add(name+": handover p50", m.name, round, "µs", us(percentile(gaps, 50)))
	r.add(name+": handover p99", m.name, round, "µs", us(percentile(gaps, 99)))
	if clients > 1 {
		r.add(name+": longest wait", m.name, round, "ms", us(slices.Max(waits))/1000)
		if !m.floor {
			r.add(name+": left over", m.name, round, "keys", leftOver(servers))
		}
	}
	return command(context.Background(), servers, "FLUSHALL")
}
