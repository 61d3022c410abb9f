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

// child is never made: a command and all that it starts could not be ended in time
// without process groups and their signals.
type child struct {
	stopped chan syscall.Signal
	ended   chan struct{}
	status  syscall.WaitStatus
	again   <-chan time.Time
}

func startChild(*exec.Cmd, bool) (*child, error) {
	return nil, errors.New("a command and what it starts cannot be ended together on Windows")
}

func (*child) close()                {}
func (*child) end(syscall.Signal)    {}
func (*child) pass(syscall.Signal)   {}
func (*child) halted(syscall.Signal) {}
func (*child) resume()               {}
func (*child) interrupted() bool     { return false }
func interruptJob()                  {}
