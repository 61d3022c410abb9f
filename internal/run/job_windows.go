package run

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// passedOn is empty: no command is started here.
var passedOn []os.Signal

// job is never made: a command and all that it starts could not be ended in time
// without process groups and their signals.
type job struct {
	stopped chan syscall.Signal
	ended   chan struct{}
	status  syscall.WaitStatus
	broken  error
	again   <-chan time.Time
}

func startJob(*exec.Cmd, bool) (*job, error) {
	return nil, errors.New("a command and what it starts cannot be ended together on Windows")
}

// IsReaper is false: see reaper.go.
func IsReaper([]string) bool { return false }

// Reap is never called.
func Reap([]string) int { return 0 }

func (*job) close()                {}
func (*job) leave()                {}
func (*job) end(syscall.Signal)    {}
func (*job) pass(syscall.Signal)   {}
func (*job) halted(syscall.Signal) {}
func (*job) resume()               {}
func (*job) interrupted() bool     { return false }
func interruptJob()                {}
