//go:build linux

package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// ramp is an hour of a process of which m grows by perHour, with a saw-tooth of
// noise upon it.
func ramp(m measure, perHour float64) *series {
	s := &series{name: "p"}
	for at := time.Duration(0); at <= time.Hour; at += time.Minute {
		var samples []usage
		for i := range 5 {
			u := usage{40, 60, 30}
			u[m] += perHour*at.Hours() + float64(i)*10
			samples = append(samples, u)
		}
		s.add(at, samples)
	}
	return s
}

func TestJudge(t *testing.T) {
	limits := [measures]limit{{12, 4}, {16, 4}, {8, 2}}
	for m := range measures {
		if grown := judge(io.Discard, []*series{ramp(m, 0)}, limits); len(grown) > 0 {
			t.Errorf("%s is flat: %q", m, grown)
		}
		allowed := limits[m].over(time.Hour, 0)
		if grown := judge(io.Discard, []*series{ramp(m, allowed-1)}, limits); len(grown) > 0 {
			t.Errorf("%s grows by less than is allowed: %q", m, grown)
		}
		if grown := judge(io.Discard, []*series{ramp(m, allowed+1)}, limits); len(grown) != 1 || !strings.Contains(grown[0], m.String()) {
			t.Errorf("%s grows by more than is allowed: %q", m, grown)
		}
	}
	// Eight hours are not allowed eight times the noise.
	if got := limits[memory].over(8*time.Hour, 40); got != 44 {
		t.Errorf("in eight hours %v MiB are allowed", got)
	}
	if got := limits[descriptors].over(time.Hour, 200); got != 32 {
		t.Errorf("of 200 descriptors %v more are allowed", got)
	}
}

func TestTooFewSamplesShowNothing(t *testing.T) {
	s := ramp(memory, 0).after(56 * time.Minute)
	if grown := judge(io.Discard, []*series{s}, [measures]limit{}); len(grown) != 1 || !strings.Contains(grown[0], "shows nothing") {
		t.Errorf("5 rows: %q", grown)
	}
	if s := ramp(memory, 0).after(2 * time.Hour); len(s.rows) != 0 {
		t.Error("rows after the end")
	}
}

// What is seen from outside is what a process uses.
func TestUsageOfAProcess(t *testing.T) {
	// Test programs have no symbols.
	bin := filepath.Join(t.TempDir(), "soak")
	if out, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	child := exec.Command(bin)
	child.Env = append(os.Environ(), clientsEnv+`={"Addrs":["127.0.0.1:1"],"Count":100}`)
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = child.Process.Kill(); _ = child.Wait() }()
	p, err := newProcess("child", child.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	p.goroutines = p.mostGoroutines
	var u usage
	if err := until(t.Context(), "its goroutines", func() error {
		var err error
		if u, err = p.sample(); err == nil && (u[goroutines] < 100 || u[memory] < 1) { // it was read before it grew
			err = fmt.Errorf("it uses %v", u)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if u[goroutines] > 10000 || u[memory] < 1 || u[memory] > 500 || u[descriptors] < 3 || u[descriptors] > 1000 {
		t.Errorf("it uses %v", u)
	}
}
