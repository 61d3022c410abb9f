//go:build linux

package main

import (
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"redlockctl/internal/lab/labtest"
)

// ramp is an hour of a process of which m grows by so much from the middle of the
// first quarter to that of the last one, with a saw-tooth of noise upon it.
func ramp(m measure, grows float64) *series {
	s := &series{name: "p"}
	for at := range 64 {
		var samples []usage
		for i := range 5 {
			u := usage{40, 60, 30}
			u[m] += grows*float64(at)/48 + float64(i)*10
			samples = append(samples, u)
		}
		s.add(time.Duration(at)*time.Minute, samples)
	}
	return s
}

func TestJudge(t *testing.T) {
	for m := range measures {
		if grown := judge(io.Discard, []*series{ramp(m, 0)}, 0); len(grown) > 0 {
			t.Errorf("%s is flat: %q", m, grown)
		}
		allowed := limits[m].over(48*time.Minute, 0)
		if grown := judge(io.Discard, []*series{ramp(m, allowed-1)}, 0); len(grown) > 0 {
			t.Errorf("%s grows by less than is allowed: %q", m, grown)
		}
		if grown := judge(io.Discard, []*series{ramp(m, allowed+1)}, 0); len(grown) != 1 || !strings.Contains(grown[0], m.String()) {
			t.Errorf("%s grows by more than is allowed: %q", m, grown)
		}
	}
	// Eight hours are not allowed eight times the noise.
	if got := limits[memory].over(8*time.Hour, 40); got != 48 {
		t.Errorf("in eight hours %v MiB are allowed", got)
	}
	if got := limits[descriptors].over(time.Hour, 200); got != 32 {
		t.Errorf("of 200 descriptors %v more are allowed", got)
	}
}

func TestTooFewSamplesShowNothing(t *testing.T) {
	for _, warm := range []time.Duration{57 * time.Minute, 2 * time.Hour} {
		if grown := judge(io.Discard, []*series{ramp(memory, 0)}, warm); len(grown) != 1 || !strings.Contains(grown[0], "shows nothing") {
			t.Errorf("behind %s: %q", warm, grown)
		}
	}
}

// What is seen from outside is what a process uses.
func TestUsageOfAProcess(t *testing.T) {
	bin, err := labtest.Program(t.TempDir(), "../..")
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command(bin, "watch", "--nodes", "127.0.0.1:1")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = child.Process.Kill(); _ = child.Wait() }()
	p := &process{name: "child", dir: fmt.Sprint("/proc/", child.Process.Pid)}
	p.goroutines = p.mostGoroutines
	var u usage
	if err := until(t.Context(), "its goroutines", func() error {
		var err error
		if u, err = p.sample(); err == nil && (u[goroutines] < 10 || u[memory] < 1) { // it was read before it grew
			err = fmt.Errorf("it uses %v", u)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if u[goroutines] > 1000 || u[memory] > 500 || u[descriptors] < 3 || u[descriptors] > 1000 {
		t.Errorf("it uses %v", u)
	}
}
