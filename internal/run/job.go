package run

import (
	"encoding/gob"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"redlockctl/base/crash"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// passedOn are the signals that a command gets from us: those that end or stop
// a job, those that mean what the program likes, and news of the window.
var passedOn = []os.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGTSTP, syscall.SIGCONT,
	syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH,
}

// discarded is how long it takes to know that a stop of ourselves was discarded
// by the system, as it is where nobody could continue us.
const discarded = 200 * time.Millisecond

// job is a command in a process group of its own, so that all of it can be
// ended at once, and nothing else with it. Its parent is a reaper (reaper.go).
//
// On a terminal that makes it a job beside ours. It is put into the foreground
// when it asks for the terminal or, with standard streams on the terminal, from
// the beginning; then the terminal's signals reach it alone, and else us alone,
// who pass them on. When it is stopped from the keyboard we stop too, so that
// the shell sees its job stopped, and continue it when we are continued.
type job struct {
	reaper  *exec.Cmd
	control *os.File // to the reaper, which ends everything when it is closed without [leave]
	events  *gob.Decoder
	group   int
	tty     *os.File            // nil: there is no terminal
	stopped chan syscall.Signal // the last one that stopped it
	ended   chan struct{}       // closed at its end
	status  syscall.WaitStatus  // after that
	broken  error               // after that: the reaper did not tell it

	front bool             // it had the terminal before we stopped
	again <-chan time.Time // our own stop was discarded
}

// startJob starts the command; with front it gets the terminal, if we have it.
func startJob(cmd *exec.Cmd, front bool) (*job, error) {
	if cmd.Err != nil {
		return nil, cmd.Err
	}
	j := &job{stopped: make(chan syscall.Signal, 1), ended: make(chan struct{})}
	if tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0); err == nil {
		j.tty = tty
		j.front = front && j.foreground() == syscall.Getpgrp()
	}
	if err := j.start(cmd); err != nil {
		j.close()
		return nil, err
	}
	// Only from here on, since a command inherits what is ignored: to take the
	// terminal back from the background would stop us.
	signal.Ignore(syscall.SIGTTOU)
	crash.Go(j.watch)
	return j, nil
}

// start starts the reaper, and has it start the command.
func (j *job) start(cmd *exec.Cmd) error {
	path, err := program()
	if err != nil {
		return err
	}
	orders, control, err := os.Pipe()
	if err != nil {
		return err
	}
	defer orders.Close()
	j.control = control
	events, told, err := os.Pipe()
	if err != nil {
		return err
	}
	defer told.Close()
	j.events = gob.NewDecoder(events)
	j.reaper = exec.Command(path)
	j.reaper.Args = []string{reaperName}
	j.reaper.Stdin, j.reaper.Stdout, j.reaper.Stderr, j.reaper.Env = cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Env
	j.reaper.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// The reaper gets these under numbers that are free here, since whoever started us may
	// have opened others for the command.
	for _, f := range []*os.File{orders, told} {
		fd, err := syscall.Dup(int(f.Fd()))
		if err != nil {
			return err
		}
		defer syscall.Close(fd)
		j.reaper.Args = append(j.reaper.Args, strconv.Itoa(fd))
	}
	if err := j.reaper.Start(); err != nil {
		j.reaper = nil
		return fmt.Errorf("start %s: %v", reaperName, err) // not wrapped: it is not the command that is missing
	}
	if err := gob.NewEncoder(control).Encode(order{cmd.Path, cmd.Args, j.front}); err != nil {
		return err
	}
	// The reaper must be the only one who can write here, or its end would not be noticed.
	_ = told.Close()
	var e event
	switch err := j.events.Decode(&e); {
	case err != nil:
		return fmt.Errorf("%s ended before it started the command: %w", reaperName, err)
	case e.Failed != 0:
		return &fs.PathError{Op: "start", Path: cmd.Path, Err: e.Failed}
	}
	j.group = e.Started
	return nil
}

// watch hears of stops and of the end.
func (j *job) watch() {
	defer close(j.ended)
	for {
		var e event
		switch err := j.events.Decode(&e); {
		case err != nil:
			j.broken = fmt.Errorf("%s was killed, and the command with it", reaperName)
			return
		case e.Ended:
			j.status = e.Status
			return
		}
		select {
		case <-j.stopped:
		default:
		}
		j.stopped <- e.Stopped
	}
}

// leave lets what the command has left behind go on, after its own end.
func (j *job) leave() { _, _ = j.control.Write([]byte{leave}) }

// close ends what is left, unless it was let go, and gives the terminal back to us.
func (j *job) close() {
	if j.control != nil {
		_ = j.control.Close()
	}
	if j.reaper != nil {
		_ = j.reaper.Wait() // also for what copies to streams that are no files
	}
	if j.tty == nil {
		return
	}
	if j.group != 0 && j.foreground() == j.group {
		j.give(syscall.Getpgrp())
	}
	_ = j.tty.Close()
}

// interrupted tells, after its end, if an interrupt from the keyboard ended it
// that nobody else has had.
func (j *job) interrupted() bool {
	return j.tty != nil && j.status.Signaled() && j.status.Signal() == syscall.SIGINT && j.foreground() == j.group
}

// send sends a signal to all of the group.
func (j *job) send(s syscall.Signal) { _ = syscall.Kill(-j.group, s) }

// end ends the group; one that is stopped must go on to hear of SIGTERM. With SIGKILL
// the reaper ends all that is not in the group.
func (j *job) end(s syscall.Signal) {
	if j.send(s); s != syscall.SIGKILL {
		j.send(syscall.SIGCONT)
		return
	}
	_ = j.control.Close()
}

// pass passes a signal on. Those without a meaning of their own are for the
// program that was started; its children would die of them.
func (j *job) pass(s syscall.Signal) {
	switch s {
	case syscall.SIGCONT:
		j.resume()
	case syscall.SIGUSR1, syscall.SIGUSR2:
		_ = syscall.Kill(j.group, s)
	default:
		j.send(s)
	}
}

// halted does what is to do when the command was stopped.
func (j *job) halted(by syscall.Signal) {
	if j.tty == nil || by == syscall.SIGSTOP {
		return // it was not the terminal, and whoever did it will continue it
	}
	wants := by == syscall.SIGTTIN || by == syscall.SIGTTOU
	switch front := j.foreground(); {
	case wants && front == syscall.Getpgrp():
		j.give(j.group)
		j.send(syscall.SIGCONT)
		return
	case front == j.group:
		j.front = true
		j.give(syscall.Getpgrp())
	default:
		j.front = j.front || wants
	}
	// The shell watches us and the others of our job. Until it continues us nothing
	// more happens here, not even an extension. Of the signals that stop a job, and
	// that are discarded where nobody could continue it, this is the one that does
	// stop us: a Go program that has once asked for SIGTSTP cannot be stopped by it
	// any more.
	_ = syscall.Kill(0, syscall.SIGTTIN)
	j.again = time.After(discarded)
}

// resume continues the command.
func (j *job) resume() {
	j.again = nil
	if j.tty != nil && j.front && j.foreground() == syscall.Getpgrp() {
		j.give(j.group)
	}
	j.send(syscall.SIGCONT)
}

// foreground is the process group that has the terminal; 0 if that is unknown.
func (j *job) foreground() int {
	group, err := unix.IoctlGetInt(int(j.tty.Fd()), unix.TIOCGPGRP)
	if err != nil {
		return 0
	}
	return group
}

func (j *job) give(group int) {
	_ = unix.IoctlSetPointerInt(int(j.tty.Fd()), unix.TIOCSPGRP, group)
}

// interruptJob interrupts our job, and so ourselves.
func interruptJob() {
	signal.Reset(syscall.SIGINT)
	_ = syscall.Kill(0, syscall.SIGINT)
}
